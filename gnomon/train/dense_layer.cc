// A linear layer: parameters, state, and the choice of kernels for its forward, dgrad and wgrad.
//
// Under GemmBackend::kGnomon each GEMM runs the config that the plan names for it
// ("bottom1.wgrad"); for one that the plan does not name, gemm/select.h picks now. Under kLibrary
// LibTorch's own GEMM runs, with bias and ReLU as operators of their own unless the recipe fuses
// them.

#include "gnomon/train/dense_layer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "gnomon/device/device.h"
#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/gemm/select.h"
#include "gnomon/train/counter_random.h"

namespace gnomon::train {
namespace {

std::uint64_t HashName(const std::string& name) {
  std::uint64_t hash = 0;
  for (char c : name) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

Result<Config> KernelFor(const std::string& op, const Problem& problem, const Plan& plan,
                         int threads) {
  if (const auto named = plan.kernels.find(op); named != plan.kernels.end()) {
    auto parsed = cpu::GemmFamily().Parse(named->second);
    if (!parsed.ok()) return BadInput(parsed.error().message, "kernels." + op);
    return parsed;
  }
  GNOMON_ASSIGN(const Device device, FindDevice(plan.device.empty() ? "host" : plan.device));
  const std::array<const Family*, 1> families = {&cpu::GemmFamily()};
  GNOMON_ASSIGN(const std::vector<Pick> picks, Select(device, problem, families, threads));
  return picks.front().config;
}

Result<LinearKernels> ChooseKernels(const LayerSpec& spec, const Plan& plan, int threads) {
  const DType dtype = plan.recipe.dtype;
  const std::int64_t m = plan.recipe.batch, n = spec.out, k = spec.padded_in;
  LinearKernels kernels;
  Problem forward{.m = m, .n = n, .k = k, .layout = Layout::kNT, .dtype = dtype};
  forward.dtype_out = spec.logit ? DType::kFp32 : dtype;
  const bool relu_inside = spec.relu && plan.recipe.fused_linear;
  forward.epilogue = relu_inside ? Epilogue::kBiasRelu
                     : spec.bias ? Epilogue::kBias
                                 : Epilogue::kNone;
  GNOMON_ASSIGN(kernels.forward, KernelFor(spec.op + ".fwd", forward, plan, threads));
  if (spec.input_gradient) {
    Problem dgrad{
        .m = m, .n = k, .k = n, .layout = Layout::kNN, .dtype = dtype, .dtype_out = dtype};
    GNOMON_ASSIGN(kernels.dgrad, KernelFor(spec.op + ".dgrad", dgrad, plan, threads));
  }
  Problem wgrad{.m = n, .n = k, .k = m, .layout = Layout::kTN, .dtype = dtype};
  GNOMON_ASSIGN(kernels.wgrad, KernelFor(spec.op + ".wgrad", wgrad, plan, threads));
  return kernels;
}

at::Tensor InitialWeight(const LayerSpec& spec, std::uint64_t seed) {
  at::Tensor weight = at::zeros({spec.out, spec.padded_in}, at::kFloat);
  const auto bound = static_cast<float>(std::sqrt(6.0 / static_cast<double>(spec.in + spec.out)));
  const std::uint64_t layer = HashName(spec.name);
  auto* values = weight.data_ptr<float>();
  for (std::int64_t n = 0; n < spec.out; ++n) {
    for (std::int64_t k = 0; k < spec.in; ++k) {
      const std::uint64_t bits =
          RandomBits(seed, layer, static_cast<std::uint64_t>(n * spec.in + k));
      values[n * spec.padded_in + k] = bound * SignedUnit(static_cast<std::uint32_t>(bits));
    }
  }
  return weight;
}

}  // namespace

Result<DenseLayer> BuildLayer(const LayerSpec& spec, const Plan& plan, std::uint64_t seed,
                              int threads) {
  const Recipe& recipe = plan.recipe;
  const bool bf16 = recipe.dtype == DType::kBf16;
  const bool ours = recipe.gemm_backend == GemmBackend::kGnomon;
  DenseLayer layer;
  layer.spec = spec;
  LinearArguments& a = layer.arguments;
  a.weight = InitialWeight(spec, seed).set_requires_grad(true);
  layer.weight_state = at::zeros_like(a.weight).detach();
  if (spec.bias) {
    a.bias = at::zeros({spec.out}, at::kFloat).set_requires_grad(true);
    layer.bias_state = at::zeros({spec.out}, at::kFloat);
  }
  if (bf16 && (ours || recipe.fused_linear)) {
    a.weight_copy = at::empty(a.weight.sizes(), at::kBFloat16);
    RefreshCopy(layer);
  }
  a.relu = spec.relu && recipe.fused_linear;
  a.out = bf16 && !spec.logit ? at::kBFloat16 : at::kFloat;
  if (ours) {
    GNOMON_ASSIGN(const LinearKernels kernels, ChooseKernels(spec, plan, threads));
    a.kernels = Flatten(kernels);
  }
  return layer;
}

at::Tensor Apply(const DenseLayer& layer, const Recipe& recipe, const at::Tensor& x) {
  const LinearArguments& a = layer.arguments;
  if (recipe.gemm_backend == GemmBackend::kGnomon || recipe.fused_linear) {
    const at::Tensor y = Linear(a.weight_copy.defined() ? x.to(at::kBFloat16) : x, a);
    return layer.spec.relu && !a.relu ? at::relu(y) : y;
  }
  const at::Tensor y =
      at::linear(x, a.weight, a.bias.defined() ? c10::optional<at::Tensor>(a.bias) : c10::nullopt);
  return layer.spec.relu ? at::relu(y) : y;
}

void RefreshCopy(DenseLayer& layer) {
  at::NoGradGuard no_grad;
  if (layer.arguments.weight_copy.defined())
    layer.arguments.weight_copy.copy_(layer.arguments.weight);
}

}  // namespace gnomon::train
