#pragma once

/// Lowering: the workload under construction, shared by the files that lower one kind of block
/// each.

#include <string>
#include <utility>

#include "gnomon/workload/workload.h"

namespace gnomon::internal {

// What one of our operators costs in eager ones: argument checks, allocation of outputs, an
// autograd node with its saved tensors (train_bench: linear, linear_backward, detach, empty and
// accumulation of a step).
inline constexpr int kOurForwardOps = 5, kOurBackwardOps = 4;

/// Backward passes are appended in reverse, so each block gives its forward ops at once and its
/// backward ops when asked.
class Lowering {
 public:
  Lowering(const Model& what, const Recipe& how) : model(what), recipe(how) {
    workload.model = model.id;
  }

  const Model& model;
  const Recipe& recipe;
  Workload workload;

  double batch() const { return static_cast<double>(recipe.batch); }
  bool half() const { return recipe.dtype == DType::kBf16 || recipe.dtype == DType::kFp16; }
  bool our_gemms() const { return recipe.gemm_backend == GemmBackend::kGnomon; }
  /// 16-bit copies of the weights that outlive a step; autocast makes them anew in each.
  bool keeps_copies() const { return half() && (our_gemms() || recipe.fused_linear); }
  /// Bytes of `count` activation values.
  Bytes Activations(double count) const {
    return {count * (half() ? SizeOf(recipe.dtype) : sizeof(float))};
  }
  static Bytes Floats(double count) { return {count * sizeof(float)}; }

  /// Appends an op that waits for the one before it, and gives it for further detail.
  Op& Add(std::string name, Op::Kind kind, Op::Pass pass);
  Op& Elementwise(std::string name, Op::Pass pass, Bytes read, Bytes write);
  Op& Gemm(std::string name, Op::Pass pass, std::int64_t m, std::int64_t n, std::int64_t k,
           Layout layout);
  void Parameter(double values) {
    workload.dense_parameters += values;
    ++workload.parameter_tensors;
  }

  // One linear layer Y[M,N] = X[M,K]·W[N,K]ᵀ (+ bias, ReLU).
  struct Linear {
    std::string name;
    std::int64_t in = 0, out = 0;
    int layer = 0;
    bool bias = true, relu = true;
    bool input_is_fp32 = false;  ///< 16-bit recipes must cast it
    bool logit = false;          ///< its output is fp32 from our GEMMs
    bool needs_dgrad = true;
  };
  void LinearForward(const Linear& linear);
  void LinearBackward(const Linear& linear);

  void MlpForward(const Block& block);
  void MlpBackward(const Block& block);
  void DotForward(const Block& block);
  void DotBackward(const Block& block);
  void CrossForward(const Block& block);
  void CrossBackward(const Block& block);
  void EmbeddingForward();
  void EmbeddingBackward();
  void DenseOptimizer();

 private:
  std::vector<Linear> MlpLayers(const Block& block) const;
  bool our_bags() const { return recipe.embedding_update == EmbeddingUpdate::kFused; }
  bool joins_fp32() const;
  void Join(const Block& block, double values);
  void JoinBags(const Block& block, double values);
  void Split(const Block& block, double values);
};

}  // namespace gnomon::internal
