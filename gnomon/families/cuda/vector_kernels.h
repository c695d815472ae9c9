#pragma once

/// The compiled kernels of kind vector, by element type. Each takes VectorArguments. Nothing: there
/// is no such kernel.

#include "gnomon/families/cuda/vector_tiles.h"

namespace gnomon::cuda {

struct VectorKernelChoice {
  VectorWay way = VectorWay::kDot;
  int long_tile = 1, short_tile = 1;
  bool runs = false;      ///< operands are loaded eight elements at a time
  bool gradient = false;  ///< sums of A over K too
};

const void* VectorKernelOfBf16(VectorKernelChoice choice);
const void* VectorKernelOfFp16(VectorKernelChoice choice);
const void* VectorKernelOfFp32(VectorKernelChoice choice);
const void* VectorKernelOfFp8E4m3(VectorKernelChoice choice);
const void* VectorKernelOfFp8E5m2(VectorKernelChoice choice);

}  // namespace gnomon::cuda
