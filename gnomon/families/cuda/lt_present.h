#pragma once

/// cuBLASLt on this machine's GPU, for family `cublaslt`. Internal to the family.

#include "gnomon/device/device.h"
#include "gnomon/families/cuda/cublaslt.h"

namespace gnomon::cuda {

/// The library, loaded once; the current CUDA device is the one that `device` describes. Error:
/// this build has no CUDA, the library or a GPU is missing, the GPU is another one.
Result<const CublasLt*> PresentCublasLt(const Device& device);

}  // namespace gnomon::cuda
