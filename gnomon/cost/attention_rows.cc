// From a measured attention row to a problem and its time.
//
// A row without a time has TFLOP/s; FLOPs are counted as its sources do: 2 · pairs · (qk + v) a
// head, 2.5 times that backward, half of the square when causal (the visible part where lengths
// differ). Rows that do not say what ran, ran something else, or are doubted by their own source
// stand apart with the reason; facts/measured_sources.md of the data set names the doubts.
//
// Length distributions of HSTU rows are read off the FLOPs that the sources print beside their
// times: ROCm/aiter's log draws lengths evenly from 0 to sparsity · longest (0.30 and 0.26 of the
// full square where 0.95²/3 and 0.9²/3 say 0.30 and 0.27), the Triton benchmarks from
// (2 · sparsity − 1) · longest to longest (0.90 measured, 0.90 by the formula).
// Entry point: MapAttentionRow.

#include "gnomon/cost/attention_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "gnomon/cost/attention.h"
#include "gnomon/cost/op_text.h"

namespace gnomon {
namespace {

using Kind = AttentionProblem::Kind;
using Pass = AttentionProblem::Pass;

constexpr double kBackwardFlops = 2.5;  // of the forward pass: five products instead of two
constexpr double kTera = 1e12;
// E[x²] of x even over [a, b] is (a² + ab + b²) / 3.
constexpr double kSquaresOfARange = 3;

struct Doubt {
  std::string_view device, op, pass, source;  ///< parts of the cells; empty: any
  std::string_view reason;
};

constexpr std::array<Doubt, 12> kDoubts = {{
    {"", "unfused", "", "", "a chain of unfused operators, no attention kernel"},
    {"", "eager", "", "", "a chain of unfused operators, no attention kernel"},
    {"", "kernel only", "", "", "a part of the backward pass"},
    {"", "smoke", "", "", "a smoke run of ten iterations"},
    {"", "contextual", "", "", "a contextual mask, whose visible part is not stated"},
    {"", "fmha v4", "", "", "causal is not stated; scales of mx types are not described"},
    {"mi355x", "flash_attn aiter", "bwd", "hipkittens",
     "run with deterministic=True, a different kernel"},
    {"", "", "", "pytorch/benchmark/pull/2296", "causal is not stated"},
    {"", "", "", "triton/pull/407", "causal is not stated; run at a 750 W cap"},
    {"", "", "", "triton/pull/377", "causal is not stated"},
    {"", "", "", "triton/pull/411", "causal is not stated"},
    {"", "", "", "triton/pull/726", "causal is not stated"},
}};
// Wall clock with a synchronisation each iteration, which only the source says.
constexpr std::string_view kSynchronised = "file id 41833340529";
// AITER's Triton HSTU backward at 120 sequences: 20 to 29 TFLOP/s, pathological by its own log.
constexpr double kPathologicalBatch = 120;

std::string_view DoubtOf(const OpsRow& row) {
  const std::string_view op = row.Text("op");
  for (const Doubt& doubt : kDoubts)
    if (HasText(row.Text("device"), doubt.device) && HasText(op, doubt.op) &&
        HasText(row.Text("pass"), doubt.pass) && HasText(row.Text("source"), doubt.source))
      return doubt.reason;
  if (HasText(op, "hstu") && HasText(op, "aiter triton") && row.Text("pass") == "bwd" &&
      row.Number("batch") == kPathologicalBatch)
    return "pathological by its own source";
  return {};
}

// "32" or "32/8", query heads over key heads.
bool ReadHeads(std::string_view cell, AttentionProblem& problem) {
  const size_t slash = cell.find('/');
  const auto q = WholeNumber(cell.substr(0, slash));
  const auto kv = slash == std::string_view::npos ? q : WholeNumber(cell.substr(slash + 1));
  if (!q || !kv || *q < 1 || *kv < 1) return false;
  problem.heads_q = static_cast<std::int64_t>(*q);
  problem.heads_kv = static_cast<std::int64_t>(*kv);
  return true;
}

bool ReadSides(const OpsRow& row, AttentionProblem& problem) {
  const std::array<std::pair<std::string_view, std::int64_t*>, 5> sides = {
      {{"batch", &problem.batch},
       {"head_dim_qk", &problem.head_dim_qk},
       {"head_dim_v", &problem.head_dim_v},
       {"seq_q", &problem.seq_q},
       {"seq_kv", &problem.seq_kv}}};
  for (const auto& [column, side] : sides) {
    const auto value = row.Number(column);
    if (!value || *value < 1) return false;
    *side = static_cast<std::int64_t>(*value);
  }
  return ReadHeads(row.Text("heads"), problem);
}

bool ReadPass(std::string_view text, AttentionProblem& problem) {
  const bool forward = HasWord(text, "fwd"), backward = HasWord(text, "bwd");
  if (!forward && !backward) return false;
  problem.pass = forward && backward ? Pass::kForwardBackward
                 : backward          ? Pass::kBackward
                                     : Pass::kForward;
  return true;
}

void ReadLengths(const OpsRow& row, AttentionProblem& problem) {
  auto sparsity = NumberAfter(row.Text("op"), "sparsity ");
  const bool from_zero = sparsity.has_value();
  if (!sparsity) sparsity = NumberAfter(row.Text("op"), "sparsity=");
  if (!sparsity || *sparsity <= 0 || *sparsity > 1) return;
  const double longest = from_zero ? *sparsity : 1;
  const double shortest = from_zero ? 0 : std::max(0.0, 2 * *sparsity - 1);
  const double mean = (longest + shortest) / 2;
  const double second =
      (longest * longest + longest * shortest + shortest * shortest) / kSquaresOfARange;
  problem.mean_fill = mean;
  problem.length_spread = second / (mean * mean);
}

double CountedFlops(const AttentionProblem& p) {
  const double q = static_cast<double>(p.seq_q), kv = static_cast<double>(p.seq_kv);
  const double visible = p.causal ? 1 - q / (2 * kv) : 1;
  const double forward = 2 * static_cast<double>(p.batch) * static_cast<double>(p.heads_q) * q *
                         kv * visible * static_cast<double>(p.head_dim_qk + p.head_dim_v);
  switch (p.pass) {
    case Pass::kForward:
      return forward;
    case Pass::kBackward:
      return forward * kBackwardFlops;
    case Pass::kForwardBackward:
      break;
  }
  return forward * (1 + kBackwardFlops);
}

std::string OperatorName(const AttentionProblem& p) {
  constexpr std::array<std::string_view, 3> kPasses = {"forward", "backward", "forward+backward"};
  return fmt::format("{} {}", p.kind == Kind::kHstu ? "hstu attention" : "flash attention",
                     kPasses[static_cast<size_t>(p.pass)]);
}

std::string ShapeKey(const OpsRow& row, Kind kind) {
  std::string text = fmt::format("{},{},{},{},{}", row.Text("batch"), row.Text("heads"),
                                 row.Text("seq_q"), row.Text("seq_kv"), row.Text("head_dim_qk"));
  // The last bit of the hash is the parity of a text's odd characters, and all HSTU shapes that
  // were measured are odd: their times tell them apart.
  if (kind == Kind::kHstu) text += fmt::format(",{}", row.Text("us"));
  return text;
}

}  // namespace

Mapping MapAttentionRow(const Device& device, const OpsRow& row) {
  if (const std::string_view doubt = DoubtOf(row); !doubt.empty()) return std::string(doubt);
  AttentionProblem problem;
  if (!ReadPass(row.Text("pass"), problem)) return "pass is not stated";
  if (!ReadSides(row, problem)) return "batch, heads, head dimension or length is not stated";
  problem.causal = row.Text("causal") == "1";
  ReadAttentionName(row.Text("op"), problem);
  if (HasText(row.Text("source"), kSynchronised)) problem.timing = AttentionProblem::Timing::kEager;
  ReadLengths(row, problem);
  if (row.Text("jagged") == "1" && problem.mean_fill == 1)
    return "lengths of the jagged batch are not stated";
  if (const std::string_view dtype = row.Text("dtype"); !dtype.empty()) {
    const auto known = DTypeOf(dtype);
    if (!known) return fmt::format("dtype \"{}\" is not one of ours", dtype);
    problem.dtype = *known;
  }
  const auto us = row.Number("us"), tflops = row.Number("tflops");
  Seconds measured{0};
  if (us && *us > 0)
    measured = Microseconds(*us);
  else if (tflops && *tflops > 0 && problem.mean_fill == 1 && problem.window == 0)
    measured = Seconds{CountedFlops(problem) / (*tflops * kTera)};
  else
    return "neither a time nor TFLOP/s that can be turned into one";
  auto prediction = PredictAttention(device, problem);
  if (!prediction) return prediction.error().message;
  return MappedOp{OperatorName(problem), ShapeKey(row, problem.kind), measured,
                  std::move(prediction).value()};
}

}  // namespace gnomon
