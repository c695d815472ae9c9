// The CUDA workbench of a build without CUDA: says so.

#include <fmt/format.h>

#include "gnomon/families/cuda/cuda_workbench.h"

namespace gnomon::cuda {
namespace {

Error WithoutCuda(int ordinal) {
  return BadInput("this gnomon was built without CUDA (-DGNOMON_CUDA=ON)",
                  fmt::format("cuda:{}", ordinal));
}

}  // namespace

Result<std::string> CudaDeviceId(int ordinal) { return WithoutCuda(ordinal); }

Result<std::unique_ptr<Workbench>> OpenCudaWorkbench(int ordinal, const Family&, bool) {
  return WithoutCuda(ordinal);
}

}  // namespace gnomon::cuda
