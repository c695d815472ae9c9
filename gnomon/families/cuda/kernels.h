#pragma once

/// The compiled kernels of kinds tma and copy: kernels_*.cu instantiate the rows of kernel_table.h,
/// one file an element type and layout.

#include <span>

#include "gnomon/families/cuda/kernel_table.h"

namespace gnomon::cuda {

struct Kernel {
  bool copy;  ///< kind copy, else tma
  int tile_m, tile_n;
  Consumers consumers;
  int cluster_m, cluster_n;
  const void* function;  ///< of CUDA: takes KernelArguments
  int threads;
  int shared_bytes;
};

std::span<const Kernel> KernelsOfBf16Nt();
std::span<const Kernel> KernelsOfBf16Nn();
std::span<const Kernel> KernelsOfBf16Tn();
std::span<const Kernel> KernelsOfFp16Nt();
std::span<const Kernel> KernelsOfFp16Nn();
std::span<const Kernel> KernelsOfFp16Tn();
std::span<const Kernel> KernelsOfFp8E4m3();
std::span<const Kernel> KernelsOfFp8E5m2();
std::span<const Kernel> KernelsOfTf32();

}  // namespace gnomon::cuda
