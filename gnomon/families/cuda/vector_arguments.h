#pragma once

/// What the launcher hands to the kernels of kind vector (vector_kernel.cuh). For nvcc, and for
/// host code that includes CUDA's headers.

#include <cstdint>

#include "gnomon/families/cuda/kernel_arguments.h"

namespace gnomon::cuda {

/// Elements between neighbours along a side, along the other one, and between products.
struct VectorStrides {
  std::int64_t side = 0, other = 0, product = 0;
};

/// x is the long operand, y the short one; see vector_table.h.
struct VectorArguments {
  const void* x = nullptr;
  const void* y = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;      ///< of the type of C
  float* bias_gradient = nullptr;  ///< nothing: not asked for
  float* parts = nullptr;          ///< [tile][part][sums]
  unsigned* counters = nullptr;    ///< of each tile: parts that are there
  VectorStrides x_at, y_at;        ///< along its side, along K
  VectorStrides c_at;              ///< along the long side, along the short one
  std::int32_t long_side = 0, short_side = 0, k = 0;
  std::int32_t lanes = 32, warp_long = 0, chunk = 0, chunks = 0, parts_count = 1, sums = 0;
  std::int32_t long_tiles = 0, short_tiles = 0, tiles = 0;
  bool together = false;
  bool c_runs = false;            ///< C can be stored in whole runs along the long side
  bool bias_along_long = false;   ///< N is the long side
  bool gradient_of_long = false;  ///< M is the long side
  OutType type = OutType::kBf16;
  Activation activation = Activation::kNone;
};

}  // namespace gnomon::cuda
