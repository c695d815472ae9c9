// Kernels of bf16, layout tn.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfBf16Tn, __nv_bfloat16, true, true)
