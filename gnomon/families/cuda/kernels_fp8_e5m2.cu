// Kernels of fp8_e5m2, layout nt.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfFp8E5m2, __nv_fp8_e5m2, false, false)
