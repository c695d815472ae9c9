#pragma once

/// GPU side of PredictLibrary.

#include <string_view>

#include "gnomon/device/device.h"
#include "gnomon/gemm/library.h"

namespace gnomon {

Prediction PredictGpuLibrary(const Device& device, const Problem& problem, double units,
                             const Rate& rate, const LibraryConditions& conditions,
                             std::string_view family);

}  // namespace gnomon
