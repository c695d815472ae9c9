// Memory of a training step.
//
//   tables       rows · dim · 4              state   rows · 4 (row-wise Adagrad)
//   gradient     dense: rows · dim · 4       sparse: (lookups + unique rows) · (dim · 4 + 8)
//                fused: none
//   dense        parameters · 4 · (weight + gradient + state), + 16-bit copies where kept
//   activations  what the ops say they keep
//   workspace    twice the largest temporary of an op (operand and result) + allocator slack
//
// Adagrad over dense gradients of whole tables needs temporaries of their size: they stand in the
// workspace.
// Left out: the process itself, the data pipeline beyond one batch, fragmentation beyond the slack.

#include "gnomon/cost/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

// PyTorch's caching allocators and glibc round sizes up and keep freed blocks: 5% of what comes and
// goes, the share that TorchRec's planner reserves for the dense part as well.
constexpr double kAllocatorSlack = 0.05;
constexpr double kIndexBytes = 8;

}  // namespace

MemoryCost CostMemory(const Model& model, const Recipe& recipe, const Workload& workload,
                      double unique_rows) {
  const auto rows = static_cast<double>(model.TotalRows()),
             dim = static_cast<double>(model.embedding_dim);
  constexpr double kFloat = sizeof(float);
  MemoryCost memory;
  memory.tables = {rows * dim * kFloat};
  memory.table_state = {rows * kFloat};
  const double lookups = static_cast<double>(recipe.batch) * model.LookupsPerSample();
  if (recipe.embedding_update == EmbeddingUpdate::kDense)
    memory.table_gradient = memory.tables;
  else if (recipe.embedding_update == EmbeddingUpdate::kSparse)
    memory.table_gradient = {(lookups + unique_rows) * (dim * kFloat + kIndexBytes)};

  constexpr double kWeightGradientState = 3;
  memory.dense = {workload.dense_parameters * kFloat * kWeightGradientState};
  const bool half = recipe.dtype == DType::kBf16 || recipe.dtype == DType::kFp16;
  if (half && (recipe.gemm_backend == GemmBackend::kGnomon || recipe.fused_linear))
    memory.dense += Bytes{workload.dense_parameters * SizeOf(recipe.dtype)};

  Bytes largest{0};
  for (const Op& op : workload.ops) {
    memory.activations += op.keep;
    Bytes written = op.kind == Op::Kind::kGemm ? op.problem.bytes() : op.write;
    if (op.stage == Op::Stage::kTableGrads || op.kind == Op::Kind::kOptimizer) written = {};
    // Row-wise Adagrad over whole tables squares the gradient into one temporary of its size.
    if (op.stage == Op::Stage::kUpdateTables) written = memory.tables / 2;
    largest = std::max(largest, written);
  }
  memory.workspace = 2 * largest;
  memory.workspace +=
      kAllocatorSlack * (memory.activations + memory.table_gradient + memory.workspace);
  return memory;
}

Status CheckCapacity(const MemoryCost& memory, const Device& device) {
  const Bytes have = device.MainMemory().capacity;
  if (memory.total() <= have) return Done{};
  return BadInput(
      fmt::format("needs {} of memory, {} has {}: tables {}, their optimiser state {}, their "
                  "gradient {}, dense part {}, activations {}, workspace {}",
                  Show(memory.total()), device.id, Show(have), Show(memory.tables),
                  Show(memory.table_state), Show(memory.table_gradient), Show(memory.dense),
                  Show(memory.activations), Show(memory.workspace)),
      device.id);
}

}  // namespace gnomon
