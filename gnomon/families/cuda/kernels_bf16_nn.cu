// Kernels of bf16, layout nn.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfBf16Nn, __nv_bfloat16, false, true)
