#pragma once

/// Our operators, registered with LibTorch as gnomon::linear, gnomon::embedding_bag_adagrad,
/// gnomon::dot_interaction, gnomon::click_loss and gnomon::dense_adagrad, each with its backward;
/// and the typed calls.

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "gnomon/gemm/family.h"

namespace gnomon::train {

/// The three GEMMs of a layer; no value: LibTorch's own GEMM does them.
struct LinearKernels {
  Config forward, dgrad, wgrad;
};

/// As an operator's argument: the configs' values behind one another, or nothing.
std::vector<std::int64_t> Flatten(const std::optional<LinearKernels>& kernels);

struct LinearArguments {
  at::Tensor weight;       ///< [N, K] fp32: the master, which gets the gradient
  at::Tensor bias;         ///< [N] fp32 or undefined
  at::Tensor weight_copy;  ///< [N, K] bf16 for a bf16 GEMM, or undefined
  bool relu = false;
  at::ScalarType out = at::kFloat;
  std::vector<std::int64_t> kernels;  ///< Flatten
};

/// relu(x·Wᵀ + bias) with bias and ReLU inside the GEMM. x is fp32, or bf16 with a bf16
/// weight_copy.
at::Tensor Linear(const at::Tensor& x, const LinearArguments& arguments);

struct EmbeddingArguments {
  at::Tensor weight;  ///< [total rows, dim]; requires grad so that backward is reached
  at::Tensor state;   ///< [total rows]
  std::vector<std::int64_t> table_rows;
  at::ScalarType out = at::kFloat;
  double learning_rate = 0.01, epsilon = 1e-8;
};

/// [batch, tables, dim] pooled rows; its backward is the optimiser's step on the looked-up rows.
/// `indices` and `offsets` in IndexLayout::kTableMajor.
at::Tensor EmbeddingBagAdagrad(const at::Tensor& indices, const at::Tensor& offsets,
                               const EmbeddingArguments& arguments);

/// [batch, out_width]: dense vector, pairwise dots (i > j), zeros.
at::Tensor DotInteraction(const at::Tensor& dense, const at::Tensor& embedding,
                          std::int64_t out_width);

/// Mean binary cross entropy of logits [batch] or [batch, 1] against labels [batch], fp32.
at::Tensor ClickLoss(const at::Tensor& logits, const at::Tensor& labels);

/// One pass over all parameters; `copies` (bf16, or undefined tensors) are refreshed.
void DenseAdagrad(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& states,
                  const std::vector<at::Tensor>& copies, double learning_rate, double epsilon);

}  // namespace gnomon::train
