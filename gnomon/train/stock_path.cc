// A training step's parts from LibTorch's own operators: what a user's script does, and so the
// baseline.
//
// Nothing is slowed down on purpose and nothing is tuned: embedding_bag, cat, bmm, advanced
// indexing of the triangle (as DLRM's and TorchRec's interaction do), sparse gradients with
// coalesce or dense ones, an Adagrad of several elementwise operators a tensor. The row-wise
// Adagrad has no operator in LibTorch; it is composed of index operators on the coalesced rows.

#include "gnomon/train/stock_path.h"

#include <ATen/autocast_mode.h>

namespace gnomon::train {

AutocastScope::AutocastScope(bool enabled) : enabled_(enabled) {
  if (!enabled_) return;
  at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  at::autocast::set_cpu_enabled(true);
}

AutocastScope::~AutocastScope() {
  if (!enabled_) return;
  at::autocast::clear_cache();
  at::autocast::set_cpu_enabled(false);
}

at::Tensor StockBag(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                    bool sparse_gradient) {
  constexpr std::int64_t kSum = 0;
  return std::get<0>(at::embedding_bag(weight, indices, offsets, /*scale_grad_by_freq=*/false, kSum,
                                       sparse_gradient));
}

std::vector<at::Tensor> TriangleIndex(std::int64_t vectors) {
  std::vector<std::int64_t> rows, columns;
  for (std::int64_t i = 1; i < vectors; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      rows.push_back(i);
      columns.push_back(j);
    }
  }
  return {at::tensor(rows, at::kLong), at::tensor(columns, at::kLong)};
}

at::Tensor StockInteraction(const std::vector<at::Tensor>& vectors,
                            const std::vector<at::Tensor>& triangle) {
  const at::Tensor& dense = vectors.front();
  const std::int64_t batch = dense.size(0), dim = dense.size(1);
  std::vector<at::Tensor> flat;
  for (const at::Tensor& vector : vectors) flat.push_back(vector.reshape({batch, -1}));
  const at::Tensor z = at::cat(flat, 1).view({batch, -1, dim});
  const at::Tensor dots = at::bmm(z, z.transpose(1, 2));
  const c10::List<c10::optional<at::Tensor>> index({c10::nullopt, triangle[0], triangle[1]});
  return at::cat({dense, at::index(dots, index)}, 1);
}

at::Tensor PadColumns(const at::Tensor& x, std::int64_t width) {
  if (x.size(1) == width) return x;
  return at::constant_pad_nd(x, {0, width - x.size(1)}, 0);
}

void StockRowwiseAdagrad(at::Tensor& weight, at::Tensor& state, double learning_rate,
                         double epsilon) {
  at::NoGradGuard no_grad;
  const at::Tensor& grad = weight.grad();
  if (!grad.is_sparse()) {
    state.add_(grad.square().mean(1));
    weight.addcdiv_(grad, state.sqrt().add_(epsilon).unsqueeze(1), -learning_rate);
    return;
  }
  const at::Tensor coalesced = grad.coalesce();
  const at::Tensor rows = coalesced._indices().squeeze(0), values = coalesced._values();
  state.index_add_(0, rows, values.square().mean(1));
  const at::Tensor divisor = state.index_select(0, rows).sqrt_().add_(epsilon).unsqueeze(1);
  weight.index_add_(0, rows, values / divisor, -learning_rate);
}

void StockAdagrad(at::Tensor& weight, at::Tensor& state, double learning_rate, double epsilon) {
  at::NoGradGuard no_grad;
  const at::Tensor& grad = weight.grad();
  state.addcmul_(grad, grad);
  weight.addcdiv_(grad, state.sqrt().add_(epsilon), -learning_rate);
}

}  // namespace gnomon::train
