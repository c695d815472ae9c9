// cuBLASLt in a build without CUDA: says so.

#include "gnomon/families/cuda/lt_present.h"

namespace gnomon::cuda {
namespace {

Error WithoutCuda() {
  return BadInput(
      "cuBLASLt's candidates need a build with -DGNOMON_CUDA=ON; this one was built without CUDA");
}

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::Load() { return WithoutCuda(); }

Result<const CublasLt*> PresentCublasLt(const Device& device) {
  if (!device.arch.starts_with("sm_"))
    return BadInput(device.id + " is no NVIDIA GPU; cuBLASLt runs on those alone");
  return WithoutCuda();
}

}  // namespace gnomon::cuda
