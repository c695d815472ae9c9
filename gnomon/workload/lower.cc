// Lowers a model under a recipe to the ops of one training step: what a framework would really run.
//
//   input copy → forward of every block → loss → backward in reverse → optimisers
//
// A stock step is a chain of operators: addmm folds the bias by filling its output first, ReLU is a
// pass, 16-bit recipes cast activations, weights and weight gradients (autocast). Our kernels fold
// such passes into a GEMM or into one pass. This file drives, and lowers embeddings, loss and
// optimisers; lower_dense.cc has the MLP, lower_interaction.cc dot products and cross layers. The
// operator counts are those of eager LibTorch 1.13 (ATen/native: EmbeddingBag.cpp,
// SparseTensorMath.cpp, Loss.cpp; torch/csrc/api/src/optim/adagrad.cpp), composite operators
// counted by what they dispatch to.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gnomon/workload/lowering.h"

namespace gnomon {
namespace {

// Eager operators behind one call, LibTorch 1.13.
constexpr int kBagOps = 8;  // embedding_bag: checks, four outputs, offsets to bags, gather
constexpr int kBagBackwardOps =
    8;  // index_select of the gradient, sparse tensor, view and size checks
constexpr int kCoalesceOps = 8;  // sort, outputs, segment sum
constexpr int kRowAdagradOps =
    10;  // square, mean, index_add, index_select, sqrt, add, divide, index_add
constexpr int kTableGradOps = 4;                          // zeros, accumulation by row
constexpr int kTableAdagradOps = 6;                       // square, mean, add, sqrt, add, addcdiv
constexpr int kLossForwardOps = 6, kLossBackwardOps = 6;  // binary cross entropy with logits
constexpr int kAdagradOps = 4;  // addcmul, sqrt, add, addcdiv: a parameter tensor

// Values moved for one parameter by those operators: addcmul 2 read 1 written, sqrt 1+1, add 1+1,
// addcdiv 3+1; and by one fused pass: weight, gradient and state read, weight and state written.
constexpr double kAdagradReads = 7, kAdagradWrites = 4;
constexpr double kFusedAdagradReads = 3, kFusedAdagradWrites = 2;
// The same over whole tables, row-wise: square 1+1, mean 1, addcdiv 2+1; per value of the table.
constexpr double kTableAdagradReads = 4, kTableAdagradWrites = 2;

Status CheckRecipe(const Recipe& recipe) {
  const auto refuse = [](std::string why, std::string field) {
    return BadInput(std::move(why), "recipe." + std::move(field));
  };
  constexpr std::int64_t kMaxBatch = 1LL << 32, kMaxPad = 4096;
  if (recipe.batch < 1 || recipe.batch > kMaxBatch)
    return refuse(fmt::format("batch is {}; it must lie in [1, {}]", recipe.batch, kMaxBatch),
                  "batch");
  if (recipe.pad_to < 1 || recipe.pad_to > kMaxPad)
    return refuse(fmt::format("pad_to is {}; it must lie in [1, {}]", recipe.pad_to, kMaxPad),
                  "pad_to");
  if (recipe.threads < 0)
    return refuse(fmt::format("threads is {}; 0 means all", recipe.threads), "threads");
  const bool trainable = recipe.dtype == DType::kFp32 || recipe.dtype == DType::kTf32 ||
                         recipe.dtype == DType::kBf16 || recipe.dtype == DType::kFp16;
  if (!trainable)
    return refuse(fmt::format("dtype {} has no training recipe: fp32, tf32, bf16 and fp16 do",
                              Name(recipe.dtype)),
                  "dtype");
  return Done{};
}

}  // namespace

namespace internal {

Op& Lowering::Add(std::string name, Op::Kind kind, Op::Pass pass) {
  Op op;
  op.name = std::move(name);
  op.kind = kind;
  op.pass = pass;
  if (!workload.ops.empty()) op.inputs = {static_cast<int>(workload.ops.size()) - 1};
  workload.ops.push_back(std::move(op));
  return workload.ops.back();
}

Op& Lowering::Elementwise(std::string name, Op::Pass pass, Bytes read, Bytes write) {
  Op& op = Add(std::move(name), Op::Kind::kElementwise, pass);
  op.read = read;
  op.write = write;
  return op;
}

void Lowering::EmbeddingForward() {
  const double bags = batch() * static_cast<double>(model.tables.size());
  const auto dim = static_cast<double>(model.embedding_dim);
  const bool ours = recipe.embedding_update == EmbeddingUpdate::kFused;
  const bool merged = ours || recipe.fused_tables;
  Op& op = Add("embedding.fwd", Op::Kind::kEmbeddingLookup, Op::Pass::kForward);
  op.stage = Op::Stage::kGather;
  op.inputs = {0};  // needs the step's indices only
  op.lookups = batch() * model.LookupsPerSample();
  op.lookup_groups = merged ? 1 : static_cast<int>(model.tables.size());
  op.framework_ops = ours ? kOurForwardOps : kBagOps * op.lookup_groups;
  op.fused = ours;
  op.dim = dim;
  // Our lookup writes what the GEMMs read; a stock bag writes fp32.
  op.bag_bytes = ours ? Activations(bags * dim) : Floats(bags * dim);
  op.keep = op.bag_bytes;
  op.flops = {op.lookups * dim};
  if (half() && our_gemms() && !ours) {
    // Our 16-bit GEMMs pass 16-bit activations on, a stock bag gives fp32.
    const int tensors = op.lookup_groups;
    Op& cast = Elementwise("embedding.cast", Op::Pass::kForward, Floats(bags * dim),
                           Activations(bags * dim));
    cast.framework_ops = tensors;
    cast.keep = cast.write;
  }
}

void Lowering::EmbeddingBackward() {
  const Op forward = *std::find_if(workload.ops.begin(), workload.ops.end(),
                                   [](const Op& op) { return op.stage == Op::Stage::kGather; });
  if (half() && our_gemms() && recipe.embedding_update != EmbeddingUpdate::kFused) {
    const double values = batch() * static_cast<double>(model.tables.size()) * forward.dim;
    Elementwise("embedding.cast_d", Op::Pass::kBackward, Activations(values), Floats(values))
        .framework_ops = forward.lookup_groups;
  }
  const auto add = [&](std::string name, Op::Pass pass, Op::Stage stage, int ops_per_group) -> Op& {
    Op& op = Add(std::move(name), Op::Kind::kEmbeddingUpdate, pass);
    op.stage = stage;
    op.lookups = forward.lookups;
    op.lookup_groups = forward.lookup_groups;
    op.dim = forward.dim;
    op.bag_bytes = forward.bag_bytes;
    op.framework_ops = ops_per_group * forward.lookup_groups;
    return op;
  };
  const auto rows = static_cast<double>(model.TotalRows());
  switch (recipe.embedding_update) {
    case EmbeddingUpdate::kFused:
      add("embedding.update", Op::Pass::kBackward, Op::Stage::kFusedUpdate, kOurBackwardOps).fused =
          true;
      break;
    case EmbeddingUpdate::kSparse: {
      add("embedding.grad", Op::Pass::kBackward, Op::Stage::kLookupGrads, kBagBackwardOps);
      Op& coalesce =
          add("embedding.coalesce", Op::Pass::kOptimizer, Op::Stage::kCoalesce, kCoalesceOps);
      coalesce.primitive = "coalesce_key_level";
      // A sort a table is shallower than one for all, but not faster a key: measured from batch 512
      // to 16384.
      coalesce.items = forward.lookups * std::max(1.0, std::log2(forward.lookups));
      add("embedding.adagrad", Op::Pass::kOptimizer, Op::Stage::kUpdateRows, kRowAdagradOps);
      break;
    }
    case EmbeddingUpdate::kDense: {
      Op& grad = add("embedding.grad", Op::Pass::kBackward, Op::Stage::kTableGrads, kTableGradOps);
      grad.write = Floats(rows * forward.dim);
      Op& adagrad = add("embedding.adagrad", Op::Pass::kOptimizer, Op::Stage::kUpdateTables,
                        kTableAdagradOps);
      adagrad.read = Floats(kTableAdagradReads * rows * forward.dim);
      adagrad.write = Floats(kTableAdagradWrites * rows * forward.dim);
      break;
    }
  }
}

void Lowering::DenseOptimizer() {
  const double values = workload.dense_parameters;
  Op& op = Add("dense.adagrad", Op::Kind::kOptimizer, Op::Pass::kOptimizer);
  const bool fused = recipe.fused_optimizer;
  op.fused = fused;
  op.read = Floats(values * (fused ? kFusedAdagradReads : kAdagradReads));
  op.write = Floats(values * (fused ? kFusedAdagradWrites : kAdagradWrites));
  // The fused pass also refreshes the 16-bit copies that our GEMMs read.
  if (fused && keeps_copies()) op.write += Activations(values);
  op.framework_ops = fused ? kOurForwardOps : kAdagradOps * workload.parameter_tensors;
}

}  // namespace internal

std::int64_t PaddedInput(const Block& block, const Recipe& recipe) {
  const std::int64_t pad = recipe.pad_to;
  return (block.in_width + pad - 1) / pad * pad;
}

Result<Workload> Lower(const Model& model, const Recipe& recipe) {
  GNOMON_TRY(CheckRecipe(recipe));
  internal::Lowering lowering(model, recipe);

  Op& copy = lowering.Add("input.copy", Op::Kind::kInputCopy, Op::Pass::kForward);
  const double label = 1;
  copy.read =
      lowering.Floats(lowering.batch() * (static_cast<double>(model.dense_features) + label)) +
      Bytes{lowering.batch() * sizeof(std::int64_t) *
            (model.LookupsPerSample() + static_cast<double>(model.tables.size()))};
  copy.write = copy.read;
  copy.keep = copy.read;

  lowering.EmbeddingForward();
  for (const Block& block : model.blocks) {
    switch (block.type) {
      case Block::Type::kMlp:
        lowering.MlpForward(block);
        break;
      case Block::Type::kDotInteraction:
        lowering.DotForward(block);
        break;
      case Block::Type::kDcnV2:
        lowering.CrossForward(block);
        break;
    }
  }
  const Bytes logits = lowering.Floats(lowering.batch());
  const bool our_loss = lowering.our_gemms();
  Op& loss = lowering.Elementwise("loss.fwd", Op::Pass::kForward, 2 * logits, logits);
  loss.framework_ops = our_loss ? internal::kOurForwardOps : kLossForwardOps;
  loss.fused = our_loss;
  Op& loss_backward = lowering.Elementwise("loss.bwd", Op::Pass::kBackward, 2 * logits, logits);
  loss_backward.framework_ops = our_loss ? internal::kOurBackwardOps : kLossBackwardOps;
  loss_backward.fused = our_loss;
  for (auto block = model.blocks.rbegin(); block != model.blocks.rend(); ++block) {
    switch (block->type) {
      case Block::Type::kMlp:
        lowering.MlpBackward(*block);
        break;
      case Block::Type::kDotInteraction:
        lowering.DotBackward(*block);
        break;
      case Block::Type::kDcnV2:
        lowering.CrossBackward(*block);
        break;
    }
  }
  lowering.EmbeddingBackward();
  lowering.DenseOptimizer();
  return std::move(lowering.workload);
}

}  // namespace gnomon
