// Rows of embeddings and jagged moves → TableBatchedProblem, OperatorProblem.
//
// A table-batched row is predicted where lookups, different rows and width are stated: as numbers
// in the text (total=, unique=), or with lookups from tables, batch and pooling and every row
// different where nothing says otherwise. Where the tables are is told by words: no_hbm and
// caching=False without _gpu: host; caching=True: host behind a device cache; else the device.
// Rows whose pooling, row count or lengths the source leaves out stand apart: their time follows
// from what is missing. Entry point: MapEmbedding.

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/cost/map_ops.h"
#include "gnomon/cost/op_text.h"
#include "gnomon/cost/operators.h"
#include "gnomon/cost/table_batched.h"

namespace gnomon {
namespace {

struct Timed {
  std::string name;
  Prediction prediction;
};
using Answer = std::variant<Timed, std::string>;

TableBatchedProblem::Home HomeOf(std::string_view op) {
  using Home = TableBatchedProblem::Home;
  if (HasText(op, "caching=True") || HasText(op, "uvm_caching")) return Home::kHostCached;
  if (HasAnyWord(op, "uvm|no_hbm|no hbm|no_caching")) return Home::kHost;
  return Home::kDevice;
}

std::string HomeName(TableBatchedProblem::Home home) {
  using Home = TableBatchedProblem::Home;
  return home == Home::kDevice ? "" : home == Home::kHost ? " in host memory" : " cached";
}

Answer TableBatched(const Device& device, const OpsRow& row) {
  using Pass = TableBatchedProblem::Pass;
  const std::string_view op = row.Text("op"), pass = row.Text("pass");
  TableBatchedProblem problem;
  const auto dim = row.Number("dim");
  if (!dim || *dim <= 0) return "width of the rows is not one number";
  problem.dim = *dim;
  if (const auto bytes = ElementBytes(row.Text("dtype")))
    problem.weight_bytes = problem.gradient_bytes = *bytes;
  const auto total = NumberAfter(op, "total="), unique = NumberAfter(op, "unique=");
  const auto tables = row.Number("tables"), batch = row.Number("batch"),
             pooling = row.Number("pooling"), rows = row.Number("rows");
  const bool unpooled = HasWord(row.Text("pooling"), "none");
  if (total) {
    problem.lookups = *total;
  } else if (tables && batch && pooling) {
    problem.lookups = *tables * *batch * *pooling;
  } else {
    return "number of lookups is not stated (tables, batch, pooling)";
  }
  if (!unique && !rows) return "different rows are not stated";
  problem.unique_rows =
      std::min(problem.lookups, unique.value_or(tables.value_or(1) * rows.value_or(0)));
  if (!unpooled && (!tables || !batch)) return "number of bags is not stated (tables, batch)";
  problem.bags = unpooled ? problem.lookups : *tables * *batch;
  problem.home = HomeOf(op);
  if (HasText(op, "opt=adam")) problem.state_rows = 2;
  const bool backward = HasWord(pass, "bwd"), forward = HasWord(pass, "fwd");
  if (!backward && !forward) return "pass is not stated";
  problem.pass = backward ? (forward ? Pass::kForwardBackward : Pass::kBackward) : Pass::kForward;
  const char* name = backward ? (forward ? "fwd+bwd" : "bwd") : "fwd";
  return Timed{fmt::format("TBE{} {}", HomeName(problem.home), name),
               PredictTableBatched(device, problem)};
}

// Values regrouped between keyed tensors: one permuting copy each way.
Answer Regroup(const Device& device, const OpsRow& row) {
  std::string text(row.Text("op"));
  std::erase(text, ',');
  const auto values = NumberAfter(text, "[");
  if (!values) return "number of values is not stated";
  OperatorProblem problem;
  problem.kind = OperatorProblem::Kind::kPermute;
  problem.element_bytes = ElementBytes(row.Text("dtype")).value_or(sizeof(float));
  constexpr double kMostValues = 1125899906842624.0;  // 2^50: beyond any memory
  problem.width = static_cast<std::int64_t>(std::clamp(*values, 0.0, kMostValues));
  const bool both = HasWord(row.Text("pass"), "bwd") && HasWord(row.Text("pass"), "fwd");
  if (both) {
    problem.read_tensors = problem.written_tensors = 2;
    problem.kernels = 2;
  }
  return Timed{both ? "regroup fwd+bwd" : "regroup fwd", PredictOperator(device, problem)};
}

Answer Ask(const Device& device, const OpsRow& row) {
  const std::string_view op = row.Text("op");
  if (HasAnyWord(op, "dynamicemb|embeddingcollection"))
    return "a hash table of rows, which is not modelled";
  if (HasAnyWord(op, "tbe|splittbe|embeddingbag|embedding_bag")) return TableBatched(device, row);
  if (HasText(op, "regroup")) return Regroup(device, row);
  if (HasAnyWord(op, "jagged|permute_2d_sparse_data|pack_segments|concat_2d_jagged|segments") ||
      HasText(op, "jagged"))
    return "lengths of the jagged rows are not stated";
  return "names none of the operators that are modelled";
}

}  // namespace

Mapping MapEmbedding(const Device& device, const OpsRow& row) {
  const auto us = row.Number("us");
  if (!us || *us <= 0) return "time is not stated";
  const Answer answer = Ask(device, row);
  if (const auto* reason = std::get_if<std::string>(&answer)) return *reason;
  const auto& timed = std::get<Timed>(answer);
  MappedOp mapped;
  mapped.op = timed.name;
  mapped.prediction = timed.prediction;
  mapped.measured = Microseconds(*us);
  mapped.shape = fmt::format("{},{},{},{},{}", row.Text("tables"), row.Text("rows"),
                             row.Text("dim"), row.Text("batch"), row.Text("pooling"));
  return mapped;
}

}  // namespace gnomon
