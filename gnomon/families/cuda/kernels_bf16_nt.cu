// Kernels of bf16, layout nt.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfBf16Nt, __nv_bfloat16, false, false)
