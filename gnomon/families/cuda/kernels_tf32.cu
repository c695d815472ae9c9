// Kernels of tf32, layout nt.

#include "gnomon/families/cuda/instantiate.cuh"

GNOMON_CUDA_KERNELS(KernelsOfTf32, Tf32, false, false)
