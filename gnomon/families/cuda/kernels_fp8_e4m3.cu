// Kernels of fp8_e4m3, layout nt.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfFp8E4m3, __nv_fp8_e4m3, false, false)
