#pragma once

/// The parts of a training step as a user writes them with LibTorch's own operators.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace gnomon::train {

/// CPU autocast to bf16 while it lives, as `torch.autocast("cpu")` does.
class AutocastScope {
 public:
  explicit AutocastScope(bool enabled);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool enabled_;
};

/// Summed bags of one table (or of the merged one): [bags, dim].
at::Tensor StockBag(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                    bool sparse_gradient);

/// [batch, dim + pairs]: the dense vector, then the strict lower triangle of Z·Zᵀ. `vectors` are
/// [batch, dim] or [batch, n, dim], the dense one first. `triangle` is TriangleIndex of their
/// number.
at::Tensor StockInteraction(const std::vector<at::Tensor>& vectors,
                            const std::vector<at::Tensor>& triangle);
/// Rows i and columns j < i, i = 1 … vectors - 1.
std::vector<at::Tensor> TriangleIndex(std::int64_t vectors);

/// x with zero columns behind it up to `width`.
at::Tensor PadColumns(const at::Tensor& x, std::int64_t width);

/// Row-wise Adagrad from the gradient that autograd left: state += mean(g²), row -= lr·g/(√state +
/// ε). A sparse gradient is coalesced first; a dense one touches every row.
void StockRowwiseAdagrad(at::Tensor& weight, at::Tensor& state, double learning_rate,
                         double epsilon);

/// state += g², w -= lr·g/(√state + ε), tensor by tensor.
void StockAdagrad(at::Tensor& weight, at::Tensor& state, double learning_rate, double epsilon);

}  // namespace gnomon::train
