#pragma once

/// Compiles the kernels of kind vector for one element type.

#include "gnomon/families/cuda/vector_kernel.cuh"
#include "gnomon/families/cuda/vector_kernels.h"

namespace gnomon::cuda {

template <class Element>
const void* DotKernelOf(int long_tile, int short_tile, bool runs) {
#define GNOMON_CUDA_DOT(l, s)                                                    \
  if (long_tile == (l) && short_tile == (s))                                     \
    return runs ? reinterpret_cast<const void*>(&DotKernel<Element, l, s, true>) \
                : reinterpret_cast<const void*>(&DotKernel<Element, l, s, false>);
  GNOMON_CUDA_DOT_TILES(GNOMON_CUDA_DOT)
#undef GNOMON_CUDA_DOT
  return nullptr;
}

template <class Element, bool kGradient>
const void* SumKernelOf(int short_tile, bool runs) {
#define GNOMON_CUDA_SUM(l, s)                                                            \
  if (short_tile == (s))                                                                 \
    return runs ? reinterpret_cast<const void*>(&SumKernel<Element, s, true, kGradient>) \
                : reinterpret_cast<const void*>(&SumKernel<Element, s, false, kGradient>);
  GNOMON_CUDA_SUM_TILES(GNOMON_CUDA_SUM)
#undef GNOMON_CUDA_SUM
  return nullptr;
}

template <class Element>
const void* VectorKernelOf(VectorKernelChoice choice) {
  if (choice.way == VectorWay::kDot)
    return DotKernelOf<Element>(choice.long_tile, choice.short_tile, choice.runs);
  if constexpr (sizeof(Element) > 1) {
    return choice.gradient ? SumKernelOf<Element, true>(choice.short_tile, choice.runs)
                           : SumKernelOf<Element, false>(choice.short_tile, choice.runs);
  } else {
    return nullptr;  // layout nt only, whose long operand has K innermost
  }
}

}  // namespace gnomon::cuda
