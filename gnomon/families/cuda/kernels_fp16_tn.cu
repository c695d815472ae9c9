// Kernels of fp16, layout tn.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfFp16Tn, __half, true, true)
