#pragma once

/// A linear layer: its parameters, their optimiser state and the kernels its three GEMMs use.

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>

#include "gnomon/codesign/plan.h"
#include "gnomon/train/ops.h"

namespace gnomon::train {

struct LayerSpec {
  std::string name;  ///< "bottom0"; layers of a cross network: "cross_v.0"
  std::string op;    ///< its GEMMs are OP.fwd, OP.dgrad and OP.wgrad (workload.h names them)
  std::int64_t in = 0, out = 0;  ///< as the model says
  std::int64_t padded_in = 0;    ///< zero columns behind: recipe.pad_to
  bool relu = false, bias = true;
  bool logit = false;  ///< its output is fp32 under every recipe
  bool input_gradient = true;
};

struct DenseLayer {
  LayerSpec spec;
  LinearArguments arguments;
  at::Tensor weight_state, bias_state;
};

/// Weights uniform in ±√(6/(in + out)) (Glorot and Bengio 2010), biases 0, each a pure function of
/// (seed, layer name, place): padding changes no value. Error: no kernel for one of its GEMMs.
Result<DenseLayer> BuildLayer(const LayerSpec& spec, const Plan& plan, std::uint64_t seed,
                              int threads);

/// The layer on x, as the recipe says: at::linear and at::relu, or ours.
at::Tensor Apply(const DenseLayer& layer, const Recipe& recipe, const at::Tensor& x);

/// Copies the master weights into the bf16 copy, if there is one.
void RefreshCopy(DenseLayer& layer);

}  // namespace gnomon::train
