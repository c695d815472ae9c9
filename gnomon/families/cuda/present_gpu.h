#pragma once

/// The GPUs of this machine: which device file is whose, and how fast they run right now. The names
/// are known to every build; what asks the machine needs a build with -DGNOMON_CUDA=ON. Include
/// from any C++, no CUDA header is needed.

#include <string>
#include <string_view>

#include "gnomon/base/result.h"

namespace gnomon::cuda {

/// Device id of a GPU by the name that its driver gives ("NVIDIA H200" → "h200"). Error: lists the
/// names there are device files for.
Result<std::string> GpuIdOf(std::string_view name);

/// The ordinal in "cuda:N" or "cuda" (0). Error: what a place looks like.
Result<int> ParseCudaPlace(std::string_view text);

// In builds with CUDA only:

/// Device id of CUDA device `ordinal`. Error: no driver, no such device, a GPU without device file.
Result<std::string> PresentGpuId(int ordinal);

/// The driver gives its name and NVML, where it is there, the driver's version ("580.95.05").
struct PresentGpu {
  std::string id, name, driver;
  int units = 0;
};
Result<PresentGpu> ReadPresentGpu(int ordinal);

struct Clocks {
  double sm_mhz = 0, memory_mhz = 0;
  double power_watts = 0;  ///< averaged by the driver; 0 where it does not say
};
/// As NVML sees them. Error: NVML cannot be loaded, or does not know the device.
Result<Clocks> ReadClocks(int ordinal);

}  // namespace gnomon::cuda
