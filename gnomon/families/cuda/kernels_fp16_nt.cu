// Kernels of fp16, layout nt.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfFp16Nt, __half, false, false)
