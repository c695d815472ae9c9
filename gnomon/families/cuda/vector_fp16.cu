// Kernels of kind vector for fp16.

#include "gnomon/families/cuda/vector_instances.cuh"

namespace gnomon::cuda {

const void* VectorKernelOfFp16(VectorKernelChoice choice) { return VectorKernelOf<__half>(choice); }

}  // namespace gnomon::cuda
