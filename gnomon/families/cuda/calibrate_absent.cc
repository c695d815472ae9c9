// The calibration of a GPU in a build without CUDA: says so.

#include <fmt/format.h>

#include "gnomon/families/cuda/calibrate_gpu.h"

namespace gnomon::cuda {
namespace {

Error WithoutCuda(int ordinal) {
  return BadInput("this gnomon was built without CUDA (-DGNOMON_CUDA=ON)",
                  fmt::format("cuda:{}", ordinal));
}

}  // namespace

Result<GpuReadings> ReadInstruments(int ordinal, const CalibrateProgress&) {
  return WithoutCuda(ordinal);
}

Result<GpuCalibration> CalibrateGpu(int ordinal, const CalibrateProgress&) {
  return WithoutCuda(ordinal);
}

}  // namespace gnomon::cuda
