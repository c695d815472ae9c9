// Lowers what joins dense and sparse features.
//
// Dot interaction, F = tables + 1 vectors z of `dim` values a sample:
//   stock: cat → Z·Zᵀ, a batch of F × F × dim → the triangle by index → cat with the dense;
//          backward: an accumulating index_put into zeros → two batched GEMMs, added → F slices
//   fused: one kernel forward, one backward; padding of the output is part of it
//
// Cross layers (DCNv2, low rank): x ← x0 ⊙ (U(V·x) + b) + x, each a pair of GEMMs with element
// passes.

#include "gnomon/workload/lowering.h"

namespace gnomon::internal {
namespace {

// Eager operators: cat, stack view, transpose; slices of the backward are views but for a copy
// each.
constexpr int kJoinOps = 3;
constexpr int kScatterOps = 3;  // zeros, index_put, views

// The two GEMMs of a cross layer: down to the rank, without bias, and up again.
Lowering::Linear Down(const Block& block, int layer) {
  return {.name = block.name + "_v",
          .in = block.in_width,
          .out = block.rank,
          .layer = layer,
          .bias = false,
          .relu = false};
}
Lowering::Linear Up(const Block& block, int layer) {
  return {.name = block.name + "_u",
          .in = block.rank,
          .out = block.in_width,
          .layer = layer,
          .bias = true,
          .relu = false};
}

double Vectors(const Model& model) { return static_cast<double>(model.tables.size()) + 1; }

}  // namespace

// Whether the vectors are joined in fp32: autocast joins a stock bag's fp32 with 16-bit dense
// vectors so.
bool Lowering::joins_fp32() const { return !half() || !our_gemms(); }

// Dense vector and pooled rows side by side.
void Lowering::Join(const Block& block, double values) {
  const Bytes bytes = joins_fp32() ? Floats(values) : Activations(values);
  Op& join = Elementwise(block.name + ".cat", Op::Pass::kForward, bytes, bytes);
  join.framework_ops = kJoinOps;
  join.keep = join.write;
  if (half() && joins_fp32()) {
    Op& cast = Elementwise(block.name + ".cast_x", Op::Pass::kForward, Floats(values),
                           Activations(values));
    cast.keep = cast.write;
  }
}

// Stock bags before our interaction kernel: one tensor, in the recipe's type.
void Lowering::JoinBags(const Block& block, double values) {
  const Bytes bytes = joins_fp32() ? Floats(values) : Activations(values);
  if (!recipe.fused_tables) {
    Op& join = Elementwise(block.name + ".cat", Op::Pass::kForward, bytes, bytes);
    join.framework_ops = kJoinOps;
  }
  if (half() && joins_fp32()) {
    Op& cast = Elementwise(block.name + ".cast_x", Op::Pass::kForward, Floats(values),
                           Activations(values));
    cast.keep = cast.write;
  }
}

// The gradient of the join: cast back where it was cast, then a copy for each table apart.
void Lowering::Split(const Block& block, double values) {
  if (half() && joins_fp32())
    Elementwise(block.name + ".cast_dx", Op::Pass::kBackward, Activations(values), Floats(values));
  const Bytes bytes = joins_fp32() ? Floats(values) : Activations(values);
  Op& slices = Elementwise(block.name + ".slices", Op::Pass::kBackward, bytes, bytes);
  slices.framework_ops =
      recipe.fused_tables || our_bags() ? 2 : static_cast<int>(model.tables.size()) + 1;
}

void Lowering::DotForward(const Block& block) {
  const auto pass = Op::Pass::kForward;
  const double vectors = Vectors(model), dim = static_cast<double>(model.embedding_dim);
  const double features = batch() * vectors * dim, pairs = batch() * vectors * (vectors - 1) / 2;
  const double dense = batch() * dim;
  if (recipe.fused_interaction) {
    double outputs = batch() * static_cast<double>(block.out_width);
    for (const Block& next : model.blocks)
      if (next.inputs[0] == block.name)
        outputs = batch() * static_cast<double>(PaddedInput(next, recipe));
    if (!our_bags()) JoinBags(block, features - dense);
    Op& op = Elementwise(block.name + ".fwd", pass, Activations(features), Activations(outputs));
    op.flops = {2 * dim * pairs};
    op.fused = true;
    op.framework_ops = kOurForwardOps;
    op.keep = op.write;
    return;
  }
  Join(block, features);
  const auto f = static_cast<std::int64_t>(vectors);
  Op& dots = Gemm(block.name + ".bmm", pass, f, f, model.embedding_dim, Layout::kNT);
  dots.problem.batch = recipe.batch;
  dots.fused = false;
  dots.keep = Activations(batch() * vectors * vectors);
  Op& gather = Elementwise(block.name + ".triangle", pass, Activations(pairs), Activations(pairs));
  gather.primitive = "index_element";
  gather.items = pairs;
  Op& concat = Elementwise(block.name + ".concat", pass, Activations(dense + pairs),
                           Activations(dense + pairs));
  concat.keep = concat.write;
}

void Lowering::DotBackward(const Block& block) {
  const auto pass = Op::Pass::kBackward;
  const double vectors = Vectors(model), dim = static_cast<double>(model.embedding_dim);
  const double features = batch() * vectors * dim, pairs = batch() * vectors * (vectors - 1) / 2;
  const double square = batch() * vectors * vectors, dense = batch() * dim;
  if (recipe.fused_interaction) {
    Op& op = Elementwise(block.name + ".bwd", pass, Activations(features + pairs + dense),
                         Activations(features));
    op.flops = {2 * 2 * dim * pairs};
    op.fused = true;
    op.framework_ops = kOurBackwardOps;
    if (!our_bags() && (!recipe.fused_tables || (half() && joins_fp32())))
      Split(block, features - dense);
    return;
  }
  Op& scatter = Elementwise(block.name + ".scatter", pass, Activations(pairs), Activations(square));
  scatter.primitive = "index_put_element";
  scatter.items = pairs;
  scatter.framework_ops = kScatterOps;
  const auto f = static_cast<std::int64_t>(vectors);
  for (const bool transposed : {false, true}) {
    // dZ·Z and (Zᵀ·dZ)ᵀ: the two factors of Z·Zᵀ are the same tensor.
    Op& dots = transposed
                   ? Gemm(block.name + ".bmm_dright", pass, model.embedding_dim, f, f, Layout::kTN)
                   : Gemm(block.name + ".bmm_dleft", pass, f, model.embedding_dim, f, Layout::kNN);
    dots.problem.batch = recipe.batch;
    dots.fused = false;
  }
  Elementwise(block.name + ".bmm_sum", pass, 2 * Activations(features), Activations(features));
  Split(block, features);
  Elementwise(block.name + ".dense_sum", pass, 2 * Floats(dense), Floats(dense));
}

void Lowering::CrossForward(const Block& block) {
  const auto pass = Op::Pass::kForward;
  const double values = batch() * static_cast<double>(block.in_width);
  Join(block, values);
  for (int layer = 0; layer < block.layers; ++layer) {
    LinearForward(Down(block, layer));
    LinearForward(Up(block, layer));
    // x0 ⊙ u, then + x.
    Op& mul = Elementwise(block.name + ".mul", pass, 2 * Activations(values), Activations(values));
    mul.layer = layer;
    Op& add = Elementwise(block.name + ".add", pass, 2 * Activations(values), Activations(values));
    add.layer = layer;
    add.keep = add.write;
  }
}

void Lowering::CrossBackward(const Block& block) {
  const auto pass = Op::Pass::kBackward;
  const double values = batch() * static_cast<double>(block.in_width);
  const Bytes x = Activations(values);
  for (int layer = static_cast<int>(block.layers) - 1; layer >= 0; --layer) {
    // du = g ⊙ x0, dx0 += g ⊙ u; later dx = g + Vᵀ(Uᵀ du).
    Op& mul = Elementwise(block.name + ".mul_bwd", pass, 4 * x, 2 * x);
    mul.framework_ops = 2;
    mul.layer = layer;
    Elementwise(block.name + ".x0_sum", pass, 2 * x, x).layer = layer;
    LinearBackward(Up(block, layer));
    LinearBackward(Down(block, layer));
    Elementwise(block.name + ".x_sum", pass, 2 * x, x).layer = layer;
  }
  Split(block, values);
}

}  // namespace gnomon::internal
