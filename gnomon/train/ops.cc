// Our operators in LibTorch: registered in the library `gnomon`, differentiable like its own.
//
//   gnomon::linear                forward, dgrad and wgrad are cpu::RunGemm with the plan's
//   configs; bias and
//                                 ReLU happen in the GEMM's epilogue, their gradient in one pass
//                                 (relu_backward.h)
//   gnomon::embedding_bag_adagrad all tables in one lookup; the backward is the optimiser's step
//   gnomon::dot_interaction       pairwise dots, triangle and concatenation in one kernel
//   gnomon::click_loss            sigmoid, cross entropy, mean and gradient in one pass
//   gnomon::dense_adagrad         one pass over all parameters, which refreshes the bf16 copies
//
// Each has a CPU kernel and an AutogradCPU kernel. The autograd nodes are written out rather than
// built on torch::autograd::Function, whose string-keyed context costs several microseconds a node.
// A node keeps detached tensors: nothing here is differentiated twice.

#include "gnomon/train/ops.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cpu/dense_adagrad.h"
#include "gnomon/families/cpu/embedding_bag.h"
#include "gnomon/families/cpu/interaction.h"
#include "gnomon/train/relu_backward.h"

namespace gnomon::train {
namespace {

using torch::autograd::collect_next_edges;
using torch::autograd::compute_requires_grad;
using torch::autograd::Node;
using torch::autograd::set_history;
using torch::autograd::variable_list;
using OptionalTensor = c10::optional<at::Tensor>;

constexpr std::size_t kConfigValues = std::tuple_size_v<decltype(Config::value)>;
enum Pass : std::size_t { kForward, kDgrad, kWgrad };
constexpr std::array<const char*, 3> kPassNames = {"gnomon::gemm_fwd", "gnomon::gemm_dgrad",
                                                   "gnomon::gemm_wgrad"};
// A profiler sees these parts of a node by name.
using NoInputs = c10::ArrayRef<const c10::IValue>;

DType ToDType(at::ScalarType type) {
  TORCH_CHECK(type == at::kFloat || type == at::kBFloat16, "gnomon operators take fp32 and bf16");
  return type == at::kFloat ? DType::kFp32 : DType::kBf16;
}

cpu::GemmConfig ConfigOf(at::IntArrayRef kernels, Pass pass) {
  Config config;
  for (std::size_t i = 0; i < kConfigValues; ++i)
    config.value[i] = static_cast<std::int32_t>(kernels[pass * kConfigValues + i]);
  return cpu::FromConfig(config);
}

at::Tensor Defined(const OptionalTensor& tensor) { return tensor ? *tensor : at::Tensor(); }
OptionalTensor Optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : c10::nullopt;
}
const float* FloatsOrNull(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

void Gemm(Problem problem, at::IntArrayRef kernels, Pass pass, const at::Tensor& a,
          const at::Tensor& b, const at::Tensor& c, const float* bias) {
  RECORD_FUNCTION(kPassNames[pass], NoInputs());
  problem.dtype = ToDType(a.scalar_type());
  problem.dtype_out = ToDType(c.scalar_type());
  const Status done = cpu::RunGemm(problem, ConfigOf(kernels, pass), a.data_ptr(), b.data_ptr(),
                                   c.data_ptr(), bias);
  TORCH_CHECK(done.ok(), done.ok() ? "" : done.error().Text());
}

// ---- linear

at::Tensor LinearForward(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                         const OptionalTensor& weight_copy, bool relu, at::ScalarType out,
                         at::IntArrayRef kernels) {
  const at::Tensor& w = x.scalar_type() == at::kFloat ? weight : *weight_copy;
  const at::Tensor b = Defined(bias);
  if (kernels.empty()) {
    at::Tensor y =
        at::linear(x, w, b.defined() ? OptionalTensor(b.to(x.scalar_type())) : c10::nullopt);
    if (relu) y.relu_();
    return y.to(out);
  }
  at::Tensor y = at::empty({x.size(0), w.size(0)}, x.options().dtype(out));
  Problem problem{.m = x.size(0), .n = w.size(0), .k = w.size(1), .layout = Layout::kNT};
  problem.epilogue = relu ? Epilogue::kBiasRelu : b.defined() ? Epilogue::kBias : Epilogue::kNone;
  Gemm(problem, kernels, kForward, x, w, y, FloatsOrNull(b));
  return y;
}

struct LinearBackward final : Node {
  at::Tensor x, w, y;  // y: only where ReLU needs it
  std::vector<std::int64_t> kernels;
  bool has_bias = false;

  std::string name() const override { return "gnomon::linear_backward"; }
  void release_variables() override { x = w = y = at::Tensor(); }

  variable_list apply(variable_list&& grads) override {
    variable_list inputs(3);  // x, weight, bias
    if (!grads[0].defined()) return inputs;
    const at::Tensor d_sum = Masked(std::move(grads[0]), inputs[2]);
    const std::int64_t m = x.size(0), n = w.size(0), k = w.size(1);
    if (task_should_compute_output(0)) {
      if (kernels.empty()) {
        inputs[0] = at::mm(d_sum, w);
      } else {
        inputs[0] = at::empty({m, k}, x.options());
        Gemm({.m = m, .n = k, .k = n, .layout = Layout::kNN}, kernels, kDgrad, d_sum, w, inputs[0],
             nullptr);
      }
    }
    if (task_should_compute_output(1)) {
      if (kernels.empty()) {
        inputs[1] = at::mm(d_sum.t(), x).to(at::kFloat);
      } else {
        inputs[1] = at::empty({n, k}, x.options().dtype(at::kFloat));
        Gemm({.m = n, .n = k, .k = m, .layout = Layout::kTN}, kernels, kWgrad, d_sum, x, inputs[1],
             nullptr);
      }
    }
    return inputs;
  }

  // The gradient before ReLU, in the operands' format; the bias gradient on the way. A gradient
  // that nobody else holds is masked in place: its memory is warm.
  at::Tensor Masked(at::Tensor d_out, at::Tensor& d_bias) const {
    RECORD_FUNCTION("gnomon::relu_backward", NoInputs());
    d_out = d_out.contiguous();
    const bool right_format = d_out.scalar_type() == x.scalar_type();
    const bool same = !y.defined() && right_format;
    if (same && !has_bias) return d_out;
    const bool ours = right_format && d_out.use_count() == 1 && d_out.storage().use_count() == 1;
    at::Tensor d_sum = same || ours ? d_out : at::empty(d_out.sizes(), x.options());
    if (has_bias) d_bias = at::empty({d_out.size(1)}, x.options().dtype(at::kFloat));
    ReluBackwardArguments arguments;
    arguments.rows = d_out.size(0);
    arguments.columns = d_out.size(1);
    arguments.d_out = d_out.data_ptr();
    arguments.out = y.defined() ? y.data_ptr() : nullptr;
    arguments.d_sum = same ? nullptr : d_sum.data_ptr();
    arguments.d_bias = has_bias ? d_bias.data_ptr<float>() : nullptr;
    arguments.d_out_dtype = ToDType(d_out.scalar_type());
    arguments.dtype = ToDType(x.scalar_type());
    ReluBackward(arguments, at::get_num_threads());
    return d_sum;
  }
};

at::Tensor LinearAutograd(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                          const OptionalTensor& weight_copy, bool relu, at::ScalarType out,
                          at::IntArrayRef kernels) {
  TORCH_CHECK(x.scalar_type() == at::kFloat || weight_copy,
              "a bf16 linear needs a bf16 weight copy");
  TORCH_CHECK(!relu || out == x.scalar_type(), "ReLU's output has the operands' format");
  const bool differentiate = compute_requires_grad(x, weight, bias);
  at::Tensor y;
  at::Tensor dense_x;
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    dense_x = x.contiguous();
    y = LinearForward(dense_x, weight, bias, weight_copy, relu, out, kernels);
  }
  if (differentiate) {
    auto node = std::make_shared<LinearBackward>();
    node->set_next_edges(collect_next_edges(x, weight, bias));
    node->x = dense_x.detach();
    node->w = (x.scalar_type() == at::kFloat ? weight : *weight_copy).detach();
    if (relu) node->y = y.detach();
    node->kernels = kernels.vec();
    node->has_bias = bias.has_value();
    set_history(y, node);
  }
  return y;
}

// ---- embedding bag with the optimiser in its backward

struct BagTables {
  std::vector<cpu::EmbeddingTable> tables;
  cpu::EmbeddingLookups lookups;
};

BagTables MakeBagTables(const at::Tensor& weight, const at::Tensor& state,
                        const at::Tensor& indices, const at::Tensor& offsets,
                        at::IntArrayRef table_rows) {
  BagTables bags;
  const std::int64_t dim = weight.size(1);
  float* w = weight.data_ptr<float>();
  float* s = state.data_ptr<float>();
  for (std::int64_t rows : table_rows) {
    bags.tables.push_back({w, s, rows});
    w += rows * dim;
    s += rows;
  }
  const auto tables = static_cast<std::int64_t>(table_rows.size());
  bags.lookups.batch = (offsets.numel() - 1) / tables;
  bags.lookups.indices = {indices.data_ptr<std::int64_t>(),
                          static_cast<std::size_t>(indices.numel())};
  bags.lookups.offsets = {offsets.data_ptr<std::int64_t>(),
                          static_cast<std::size_t>(offsets.numel())};
  return bags;
}

at::Tensor BagForward(const at::Tensor& weight, const at::Tensor& state, const at::Tensor& indices,
                      const at::Tensor& offsets, at::IntArrayRef table_rows, at::ScalarType out,
                      double, double) {
  const BagTables bags = MakeBagTables(weight, state, indices, offsets, table_rows);
  const auto tables = static_cast<std::int64_t>(table_rows.size());
  at::Tensor pooled =
      at::empty({bags.lookups.batch, tables, weight.size(1)}, weight.options().dtype(out));
  const Status done = cpu::EmbeddingForward(bags.tables, weight.size(1), bags.lookups,
                                            pooled.data_ptr(), ToDType(out), at::get_num_threads());
  TORCH_CHECK(done.ok(), done.ok() ? "" : done.error().Text());
  return pooled;
}

struct BagBackward final : Node {
  at::Tensor weight, state, indices, offsets;
  std::vector<std::int64_t> table_rows;
  cpu::AdagradParams params;

  std::string name() const override { return "gnomon::embedding_bag_adagrad_backward"; }
  void release_variables() override { weight = state = indices = offsets = at::Tensor(); }

  variable_list apply(variable_list&& grads) override {
    if (grads[0].defined()) {
      const at::Tensor grad = grads[0].contiguous();
      const BagTables bags = MakeBagTables(weight, state, indices, offsets, table_rows);
      cpu::EmbeddingBackwardAdagrad(bags.tables, weight.size(1), bags.lookups, grad.data_ptr(),
                                    ToDType(grad.scalar_type()), params, at::get_num_threads());
    }
    return variable_list(1);  // the table has been updated: it gets no gradient
  }
};

at::Tensor BagAutograd(const at::Tensor& weight, const at::Tensor& state, const at::Tensor& indices,
                       const at::Tensor& offsets, at::IntArrayRef table_rows, at::ScalarType out,
                       double learning_rate, double epsilon) {
  at::Tensor pooled;
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    pooled = BagForward(weight, state, indices, offsets, table_rows, out, learning_rate, epsilon);
  }
  if (compute_requires_grad(weight)) {
    auto node = std::make_shared<BagBackward>();
    node->set_next_edges(collect_next_edges(weight));
    node->weight = weight.detach();
    node->state = state;
    node->indices = indices;
    node->offsets = offsets;
    node->table_rows = table_rows.vec();
    node->params = {static_cast<float>(learning_rate), static_cast<float>(epsilon)};
    set_history(pooled, node);
  }
  return pooled;
}

// ---- dot interaction

cpu::InteractionShape ShapeOf(const at::Tensor& dense, const at::Tensor& embedding,
                              std::int64_t out_width) {
  return {.batch = dense.size(0),
          .tables = embedding.size(1),
          .dim = dense.size(1),
          .out_stride = out_width,
          .dtype = ToDType(dense.scalar_type())};
}

at::Tensor InteractionForward(const at::Tensor& dense, const at::Tensor& embedding,
                              std::int64_t out_width) {
  at::Tensor out = at::empty({dense.size(0), out_width}, dense.options());
  cpu::InteractionForward(ShapeOf(dense, embedding, out_width), dense.data_ptr(),
                          embedding.data_ptr(), out.data_ptr(), at::get_num_threads());
  return out;
}

struct InteractionBackward final : Node {
  at::Tensor dense, embedding;

  std::string name() const override { return "gnomon::dot_interaction_backward"; }
  void release_variables() override { dense = embedding = at::Tensor(); }

  variable_list apply(variable_list&& grads) override {
    variable_list inputs(2);
    if (!grads[0].defined()) return inputs;
    const at::Tensor d_out = grads[0].contiguous();
    inputs[0] = at::empty_like(dense);
    inputs[1] = at::empty_like(embedding);
    cpu::InteractionBackward(ShapeOf(dense, embedding, d_out.size(1)), dense.data_ptr(),
                             embedding.data_ptr(), d_out.data_ptr(), inputs[0].data_ptr(),
                             inputs[1].data_ptr(), at::get_num_threads());
    return inputs;
  }
};

at::Tensor InteractionAutograd(const at::Tensor& dense, const at::Tensor& embedding,
                               std::int64_t out_width) {
  TORCH_CHECK(dense.scalar_type() == embedding.scalar_type(), "interaction of two formats");
  at::Tensor out, dense_z, embedding_z;
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    dense_z = dense.contiguous();
    embedding_z = embedding.contiguous();
    out = InteractionForward(dense_z, embedding_z, out_width);
  }
  if (compute_requires_grad(dense, embedding)) {
    auto node = std::make_shared<InteractionBackward>();
    node->set_next_edges(collect_next_edges(dense, embedding));
    node->dense = dense_z.detach();
    node->embedding = embedding_z.detach();
    set_history(out, node);
  }
  return out;
}

// ---- loss

// Loss and, if wanted, its gradient. Sums go by blocks of fixed length, so that they do not depend
// on the number of threads.
double LossPass(const at::Tensor& logits, const at::Tensor& labels, float* gradient) {
  constexpr std::int64_t kBlock = 512;
  const std::int64_t count = logits.numel(), blocks = (count + kBlock - 1) / kBlock;
  const float* z = logits.data_ptr<float>();
  const float* y = labels.data_ptr<float>();
  const float scale = 1.0f / static_cast<float>(count);
  std::vector<double> sums(static_cast<std::size_t>(blocks), 0.0);
  const int threads = blocks < 8 ? 1 : at::get_num_threads();
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
  for (std::int64_t block = 0; block < blocks; ++block) {
    double sum = 0;
    for (std::int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
      const float e = std::exp(-std::abs(z[i]));
      sum += std::max(z[i], 0.0f) - z[i] * y[i] + std::log1p(e);
      if (gradient) gradient[i] = ((z[i] >= 0 ? 1.0f : e) / (1.0f + e) - y[i]) * scale;
    }
    sums[static_cast<std::size_t>(block)] = sum;
  }
  double total = 0;
  for (double sum : sums) total += sum;
  return total / static_cast<double>(count);
}

at::Tensor LossForward(const at::Tensor& logits, const at::Tensor& labels) {
  return at::scalar_tensor(LossPass(logits, labels, nullptr), logits.options());
}

struct LossBackward final : Node {
  at::Tensor gradient;

  std::string name() const override { return "gnomon::click_loss_backward"; }
  void release_variables() override { gradient = at::Tensor(); }
  variable_list apply(variable_list&& grads) override {
    if (!grads[0].defined()) return variable_list(1);
    const float scale = grads[0].data_ptr<float>()[0];
    return {scale == 1.0f ? gradient : gradient * scale};
  }
};

at::Tensor LossAutograd(const at::Tensor& logits, const at::Tensor& labels) {
  TORCH_CHECK(logits.is_contiguous() && logits.scalar_type() == at::kFloat,
              "logits are dense fp32");
  if (!compute_requires_grad(logits)) return LossForward(logits, labels);
  at::Tensor loss, gradient;
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    gradient = at::empty_like(logits);
    loss =
        at::scalar_tensor(LossPass(logits, labels, gradient.data_ptr<float>()), logits.options());
  }
  auto node = std::make_shared<LossBackward>();
  node->set_next_edges(collect_next_edges(logits));
  node->gradient = gradient;
  set_history(loss, node);
  return loss;
}

// ---- dense optimiser

void DenseAdagradKernel(at::TensorList weights, at::TensorList grads, at::TensorList states,
                        at::TensorList copies, double learning_rate, double epsilon) {
  std::vector<cpu::DenseParameter> parameters;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    TORCH_CHECK(grads[i].is_contiguous() && grads[i].scalar_type() == at::kFloat);
    cpu::DenseParameter parameter;
    parameter.weight = weights[i].data_ptr<float>();
    parameter.grad = grads[i].data_ptr<float>();
    parameter.state = states[i].data_ptr<float>();
    // An empty tensor stands for no copy: an operator's list cannot hold undefined ones.
    if (copies[i].numel() > 0)
      parameter.bf16_copy = static_cast<std::uint16_t*>(copies[i].data_ptr());
    parameter.size = weights[i].numel();
    parameters.push_back(parameter);
  }
  cpu::DenseAdagrad(parameters, {static_cast<float>(learning_rate), static_cast<float>(epsilon)},
                    at::get_num_threads());
}

template <class Signature>
auto Find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

TORCH_LIBRARY(gnomon, library) {
  library.def(
      "linear(Tensor x, Tensor weight, Tensor? bias, Tensor? weight_copy, bool relu, ScalarType "
      "out, "
      "int[] kernels) -> Tensor");
  library.def(
      "embedding_bag_adagrad(Tensor weight, Tensor state, Tensor indices, Tensor offsets, "
      "int[] table_rows, ScalarType out, float learning_rate, float epsilon) -> Tensor");
  library.def("dot_interaction(Tensor dense, Tensor embedding, int out_width) -> Tensor");
  library.def("click_loss(Tensor logits, Tensor labels) -> Tensor");
  library.def(
      "dense_adagrad(Tensor(a!)[] weights, Tensor[] grads, Tensor(b!)[] states, Tensor(c!)[] "
      "copies, "
      "float learning_rate, float epsilon) -> ()");
}

TORCH_LIBRARY_IMPL(gnomon, CPU, library) {
  library.impl("linear", TORCH_FN(LinearForward));
  library.impl("embedding_bag_adagrad", TORCH_FN(BagForward));
  library.impl("dot_interaction", TORCH_FN(InteractionForward));
  library.impl("click_loss", TORCH_FN(LossForward));
  library.impl("dense_adagrad", TORCH_FN(DenseAdagradKernel));
}

TORCH_LIBRARY_IMPL(gnomon, AutogradCPU, library) {
  library.impl("linear", TORCH_FN(LinearAutograd));
  library.impl("embedding_bag_adagrad", TORCH_FN(BagAutograd));
  library.impl("dot_interaction", TORCH_FN(InteractionAutograd));
  library.impl("click_loss", TORCH_FN(LossAutograd));
}

std::vector<std::int64_t> Flatten(const std::optional<LinearKernels>& kernels) {
  std::vector<std::int64_t> values;
  if (!kernels) return values;
  for (const Config* config : {&kernels->forward, &kernels->dgrad, &kernels->wgrad})
    values.insert(values.end(), config->value.begin(), config->value.end());
  return values;
}

at::Tensor Linear(const at::Tensor& x, const LinearArguments& a) {
  static const auto op = Find<decltype(LinearForward)>("gnomon::linear");
  return op.call(x, a.weight, Optional(a.bias), Optional(a.weight_copy), a.relu, a.out, a.kernels);
}

at::Tensor EmbeddingBagAdagrad(const at::Tensor& indices, const at::Tensor& offsets,
                               const EmbeddingArguments& a) {
  static const auto op = Find<decltype(BagForward)>("gnomon::embedding_bag_adagrad");
  return op.call(a.weight, a.state, indices, offsets, a.table_rows, a.out, a.learning_rate,
                 a.epsilon);
}

at::Tensor DotInteraction(const at::Tensor& dense, const at::Tensor& embedding,
                          std::int64_t out_width) {
  static const auto op = Find<decltype(InteractionForward)>("gnomon::dot_interaction");
  return op.call(dense, embedding, out_width);
}

at::Tensor ClickLoss(const at::Tensor& logits, const at::Tensor& labels) {
  static const auto op = Find<decltype(LossForward)>("gnomon::click_loss");
  return op.call(logits, labels);
}

void DenseAdagrad(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& states,
                  const std::vector<at::Tensor>& copies, double learning_rate, double epsilon) {
  static const auto op = Find<decltype(DenseAdagradKernel)>("gnomon::dense_adagrad");
  std::vector<at::Tensor> grads, known_copies;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    grads.push_back(weights[i].grad());
    known_copies.push_back(copies[i].defined() ? copies[i] : at::empty({0}));
  }
  op.call(weights, grads, states, known_copies, learning_rate, epsilon);
}

}  // namespace gnomon::train
