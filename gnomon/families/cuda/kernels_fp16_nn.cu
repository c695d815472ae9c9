// Kernels of fp16, layout nn.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfFp16Nn, __half, false, true)
