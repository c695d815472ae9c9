#pragma once

/// Calibrate a GPU: measures the present CUDA device in under two minutes, one instrument a fact,
/// and states the results as a Device: its base file with measured facts. Include from any C++, no
/// CUDA header is needed.

#include <functional>
#include <string>
#include <vector>

#include "gnomon/device/device.h"
#include "gnomon/families/cuda/present_gpu.h"

namespace gnomon::cuda {

/// A large square product of one dtype, back to back on random data.
struct ReachedRate {
  DType dtype = DType::kBf16;
  std::string config;               ///< of family `cuda`
  FlopsPerSecond burst, sustained;  ///< in the first milliseconds; when power has settled
  Clocks clocks;                    ///< averages while it was sustained; 0 without NVML
};

/// What the instruments read. 0: not measured.
struct GpuReadings {
  PresentGpu gpu;
  std::vector<ReachedRate> rates;
  std::vector<std::string> skipped;  ///< dtypes without a rate, and why
  Hertz light_clock;                 ///< under a load that draws little power
  BytesPerSecond hbm_read, hbm_write, hbm_copy, hbm_random, hbm_unit, l2_read, l2_unit;
  Seconds l2_latency, hbm_latency;
  Seconds stream_launch;  ///< of one of many small kernels in a row in a stream, host included
  Seconds graph_kernel;   ///< of one of many in a graph
};

struct GpuCalibration {
  Device base, measured;
  GpuReadings readings;
};

/// The base with the readings as measured facts of that day (YYYY-MM-DD). A farther memory is
/// stated no faster and no sooner than a nearer one, as device files demand.
Result<Device> StateReadings(const Device& base, const GpuReadings& readings,
                             const std::string& day);

using CalibrateProgress = std::function<void(int done, int total, const std::string& what)>;

/// Runs every instrument on CUDA device `ordinal`. Error: as CalibrateGpu.
Result<GpuReadings> ReadInstruments(int ordinal, const CalibrateProgress& progress);

/// The device file of CUDA device `ordinal`, measured today. Error: this build has no CUDA, no such
/// device, no device file for it, a CUDA error.
Result<GpuCalibration> CalibrateGpu(int ordinal, const CalibrateProgress& progress);

}  // namespace gnomon::cuda
