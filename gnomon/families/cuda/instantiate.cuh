#pragma once

/// Compiles the rows of kernel_table.h for one element type and layout.

#include <array>

#include "gnomon/families/cuda/gemm_kernel.cuh"
#include "gnomon/families/cuda/kernels.h"

// `list`: the function of kernels.h to define.
#define GNOMON_CUDA_KERNELS(list, Element, a_outer, b_outer)                                    \
  namespace gnomon::cuda {                                                                      \
  namespace {                                                                                   \
  template <bool kCopy, int kTileM, int kTileN, Consumers kConsumers, int kClusterM,            \
            int kClusterN>                                                                      \
  Kernel Made() {                                                                               \
    using I = Instance<Element, a_outer, b_outer, kCopy, kTileM, kTileN, kConsumers, kClusterM, \
                       kClusterN>;                                                              \
    return {kCopy,                                                                              \
            kTileM,                                                                             \
            kTileN,                                                                             \
            kConsumers,                                                                         \
            kClusterM,                                                                          \
            kClusterN,                                                                          \
            reinterpret_cast<const void*>(&GemmKernel<I>),                                      \
            I::kThreads,                                                                        \
            I::kShared};                                                                        \
  }                                                                                             \
  }                                                                                             \
  std::span<const Kernel> list() {                                                              \
    static const std::array kernels = {GNOMON_CUDA_TMA_TILES(GNOMON_CUDA_MADE_TMA)              \
                                           GNOMON_CUDA_COPY_TILES(GNOMON_CUDA_MADE_COPY)};      \
    return kernels;                                                                             \
  }                                                                                             \
  }
#define GNOMON_CUDA_MADE_TMA(m, n, consumers, cluster_m, cluster_n) \
  Made<false, m, n, Consumers::consumers, cluster_m, cluster_n>(),
#define GNOMON_CUDA_MADE_COPY(m, n, consumers, cluster_m, cluster_n) \
  Made<true, m, n, Consumers::consumers, cluster_m, cluster_n>(),
