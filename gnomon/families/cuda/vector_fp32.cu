// Kernels of kind vector for fp32.

#include "gnomon/families/cuda/vector_instances.cuh"

namespace gnomon::cuda {

const void* VectorKernelOfFp32(VectorKernelChoice choice) { return VectorKernelOf<float>(choice); }

}  // namespace gnomon::cuda
