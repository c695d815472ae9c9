// Kernels of kind vector for bf16.

#include "gnomon/families/cuda/vector_instances.cuh"

namespace gnomon::cuda {

const void* VectorKernelOfBf16(VectorKernelChoice choice) {
  return VectorKernelOf<__nv_bfloat16>(choice);
}

}  // namespace gnomon::cuda
