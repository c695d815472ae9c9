// Kernels of kind vector for fp8.

#include "gnomon/families/cuda/vector_instances.cuh"

namespace gnomon::cuda {

const void* VectorKernelOfFp8E4m3(VectorKernelChoice choice) {
  return VectorKernelOf<__nv_fp8_e4m3>(choice);
}
const void* VectorKernelOfFp8E5m2(VectorKernelChoice choice) {
  return VectorKernelOf<__nv_fp8_e5m2>(choice);
}

}  // namespace gnomon::cuda
