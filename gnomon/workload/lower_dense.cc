// Lowers an MLP: for every layer Y = X·Wᵀ + b, then ReLU,
//
//   name.fwd    GEMM batch × out × in    nt      name.dgrad  dX = dZ·W    batch × in × out   nn
//   name.wgrad  dW = dZᵀ·X               out × in × batch                 tn
//
// with the passes around it that the recipe leaves standing. The first layer on raw counts has no
// dgrad. Only inputs are padded (PaddedInput): hidden widths are the model's own.

#include "gnomon/workload/lowering.h"

namespace gnomon::internal {

Op& Lowering::Gemm(std::string name, Op::Pass pass, std::int64_t m, std::int64_t n, std::int64_t k,
                   Layout layout) {
  Op& op = Add(std::move(name), Op::Kind::kGemm, pass);
  op.problem.m = m;
  op.problem.n = n;
  op.problem.k = k;
  op.problem.layout = layout;
  op.problem.dtype = recipe.dtype;
  op.problem.dtype_out = half() ? recipe.dtype : DType::kFp32;
  op.fused = recipe.gemm_backend == GemmBackend::kGnomon;
  return op;
}

void Lowering::LinearForward(const Linear& linear) {
  const double outputs = batch() * static_cast<double>(linear.out);
  const double inputs = batch() * static_cast<double>(linear.in);
  const double weights = static_cast<double>(linear.out) * static_cast<double>(linear.in);
  const double biases = linear.bias ? static_cast<double>(linear.out) : 0;
  Parameter(weights);
  if (linear.bias) Parameter(biases);

  if (half() && linear.input_is_fp32) {
    Op& cast = Elementwise(linear.name + ".cast_x", Op::Pass::kForward, Floats(inputs),
                           Activations(inputs));
    cast.layer = linear.layer;
    cast.keep = cast.write;
  }
  // Copies that outlive the step are refreshed by the fused optimiser, or one by one after a stock
  // one.
  if (half() && !(keeps_copies() && recipe.fused_optimizer)) {
    const double cast_biases = keeps_copies() ? 0 : biases;
    Op& cast = Elementwise(linear.name + ".cast_w", Op::Pass::kForward,
                           Floats(weights + cast_biases), Activations(weights + cast_biases));
    cast.layer = linear.layer;
    cast.keep = cast.write;
    cast.framework_ops = cast_biases > 0 ? 2 : 1;
  }
  if (linear.bias && !our_gemms()) {
    // addmm: the output is filled with the bias and the GEMM adds to it.
    Op& fill =
        Elementwise(linear.name + ".bias", Op::Pass::kForward, Bytes{0}, Activations(outputs));
    fill.framework_ops = 0;
    fill.layer = linear.layer;
  }
  const bool relu_inside = linear.relu && our_gemms() && recipe.fused_linear;
  Op& gemm = Gemm(linear.name + ".fwd", Op::Pass::kForward, recipe.batch, linear.out, linear.in,
                  Layout::kNT);
  gemm.layer = linear.layer;
  if (our_gemms() || recipe.fused_linear) gemm.framework_ops = kOurForwardOps;
  if (our_gemms()) {
    gemm.problem.epilogue = relu_inside   ? Epilogue::kBiasRelu
                            : linear.bias ? Epilogue::kBias
                                          : Epilogue::kNone;
    if (linear.logit) gemm.problem.dtype_out = DType::kFp32;
  }
  if (!linear.relu || relu_inside) {
    gemm.keep = Activations(outputs);
    return;
  }
  // The GEMM's own result is not kept: its backward needs input and weight only.
  Op& relu = Elementwise(linear.name + ".relu", Op::Pass::kForward, Activations(outputs),
                         Activations(outputs));
  relu.layer = linear.layer;
  relu.keep = relu.write;
}

void Lowering::LinearBackward(const Linear& linear) {
  const Bytes outputs = Activations(batch() * static_cast<double>(linear.out));
  const double weights = static_cast<double>(linear.out) * static_cast<double>(linear.in);
  const Bytes biases = Floats(static_cast<double>(linear.out));
  const auto pass = Op::Pass::kBackward;
  const auto tag = [&](Op& op) { op.layer = linear.layer; };
  if (recipe.fused_linear && linear.bias) {
    // One pass: dZ = dY where Y > 0, and its column sums; without ReLU, the sums alone.
    Op& op = Elementwise(linear.name + ".act_bwd", pass, linear.relu ? 2 * outputs : outputs,
                         (linear.relu ? outputs : Bytes{0}) + biases);
    op.fused = true;
    op.primitive = "fused_act_backward";
    op.items = batch() * static_cast<double>(linear.out);
    op.framework_ops = 0;  // inside the backward of our linear operator
    tag(op);
  } else {
    if (linear.relu) tag(Elementwise(linear.name + ".relu_bwd", pass, 2 * outputs, outputs));
    if (linear.bias) {
      Op& sums = Elementwise(linear.name + ".bias_grad", pass, outputs, biases);
      sums.fused = our_gemms();
      if (our_gemms()) {
        sums.framework_ops = 0;  // inside the backward of our linear operator
        sums.primitive = "fused_act_backward";
        sums.items = batch() * static_cast<double>(linear.out);
      }
      tag(sums);
    }
  }
  if (linear.needs_dgrad)
    tag(Gemm(linear.name + ".dgrad", pass, recipe.batch, linear.in, linear.out, Layout::kNN));
  Op& wgrad = Gemm(linear.name + ".wgrad", pass, linear.out, linear.in, recipe.batch, Layout::kTN);
  tag(wgrad);
  if (our_gemms()) {
    wgrad.problem.dtype_out = DType::kFp32;
    wgrad.framework_ops = kOurBackwardOps;
    // One node does dgrad and wgrad.
    if (linear.needs_dgrad) workload.ops[workload.ops.size() - 2].framework_ops = 0;
  } else if (half()) {
    const bool with_bias = linear.bias && !recipe.fused_linear;
    const double values = weights + (with_bias ? static_cast<double>(linear.out) : 0);
    Op& cast = Elementwise(linear.name + ".cast_dw", pass, Activations(values), Floats(values));
    cast.framework_ops = with_bias ? 2 : 1;
    tag(cast);
  }
}

std::vector<Lowering::Linear> Lowering::MlpLayers(const Block& block) const {
  std::vector<Linear> layers;
  std::int64_t in = PaddedInput(block, recipe);
  for (size_t i = 0; i < block.widths.size(); ++i) {
    const bool raw = i == 0 && block.inputs[0] == "dense";
    Linear linear;
    linear.name = block.name + std::to_string(i);
    linear.in = in;
    linear.out = block.widths[i];
    linear.relu = i + 1 < block.widths.size() || block.last_relu;
    linear.input_is_fp32 = raw;
    linear.logit = &block == &model.blocks.back() && i + 1 == block.widths.size();
    linear.needs_dgrad = !raw;
    layers.push_back(linear);
    in = block.widths[i];
  }
  return layers;
}

void Lowering::MlpForward(const Block& block) {
  // The reader of the data pads the counts; a fused interaction writes padded rows.
  const std::int64_t padded = PaddedInput(block, recipe);
  const Block* before = model.FindBlock(block.inputs[0]);
  const bool padded_already = before == nullptr || (before->type == Block::Type::kDotInteraction &&
                                                    recipe.fused_interaction);
  if (padded != block.in_width && !padded_already) {
    Op& pad = Elementwise(block.name + ".pad", Op::Pass::kForward,
                          Activations(batch() * static_cast<double>(block.in_width)),
                          Activations(batch() * static_cast<double>(padded)));
    pad.keep = pad.write;
  }
  for (const Linear& linear : MlpLayers(block)) LinearForward(linear);
}

void Lowering::MlpBackward(const Block& block) {
  const std::vector<Linear> layers = MlpLayers(block);
  for (auto linear = layers.rbegin(); linear != layers.rend(); ++linear) LinearBackward(*linear);
}

}  // namespace gnomon::internal
