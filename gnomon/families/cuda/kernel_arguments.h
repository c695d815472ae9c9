#pragma once

/// What the launcher hands to the kernels of kinds tma and copy (gemm_kernel.cuh). For nvcc, and
/// for host code that includes CUDA's headers.

#include <cuda.h>

#include <cstdint>

#include "gnomon/families/cuda/schedule.h"

namespace gnomon::cuda {

inline constexpr int kMostGroups = 128;  ///< of one launch; more groups are more launches

inline constexpr int kBoxRowsOfC = 16;  ///< of C in a TMA box: a warp's

enum class OutType : std::int32_t { kBf16, kFp16, kFp32 };
enum class Activation : std::int32_t { kNone, kRelu, kGelu };

/// An operand as the copying producer reads it.
struct Matrix {
  const void* data = nullptr;
  std::int64_t leading = 0, product = 0;  ///< elements between stored rows, between products
  std::int32_t vector_bytes = 16;         ///< widest load that its rows allow
};

/// Where C goes and what is done to it on the way.
struct Output {
  void* c = nullptr;
  std::int64_t leading = 0, product = 0;  ///< elements
  std::int64_t n = 0;
  const void* bias = nullptr;      ///< of the type of C
  float* bias_gradient = nullptr;  ///< nothing: not asked for
  OutType type = OutType::kBf16;
  Activation activation = Activation::kNone;
  bool boxes = false;    ///< TMA can store it
  bool vectors = false;  ///< rows of whole 16 bytes
};

/// Partial sums of tiles that are cut along K: a slot of tile_m · tile_n values in the order of
/// the accumulators ([64-row block][8 columns][thread][4]), then tile_m of the bias gradient.
struct Partials {
  float* slots = nullptr;
  unsigned* counters = nullptr;  ///< of each warpgroup's share of a tile: parts that are there
  bool added_here = false;       ///< by the last to arrive; else by the second kernel
};

/// Rows of C of each product of a grouped GEMM, one after the other.
struct Groups {
  std::int32_t count = 0;  ///< 0: not grouped
  std::int32_t first_tile[kMostGroups + 1] = {};
  std::int32_t first_row[kMostGroups + 1] = {};
};

struct KernelArguments {
  CUtensorMap map_a, map_b, map_c;
  Schedule schedule;
  Output output;
  Partials partials;
  Matrix a, b;
  std::int32_t m = 0, k = 0;
  Groups groups;
};

}  // namespace gnomon::cuda
