#pragma once

/// PredictMeasured: the predicted time of a row of a measured file, whatever ran: the one place
/// that decides which model speaks for which row.

#include <optional>
#include <span>

#include "gnomon/gemm/family.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon {

struct MeasuredPrediction {
  enum class By {
    kConfig,   ///< a family of ours, by the row's config string
    kTile,     ///< the kernel family's model, by the tile that the row states
    kName,     ///< the row's kernel name, read
    kLibrary,  ///< a library or kernel family that the project knows, as a black box
    kGeneric,  ///< a name that it does not know: the generic kernel
  };
  Seconds time;
  By by = By::kLibrary;
};

/// Nothing: the device has no rate for the dtype, or the family says that the config cannot run.
std::optional<MeasuredPrediction> PredictMeasured(const Device& device, const Measurement& row,
                                                  std::span<const Family* const> families);

}  // namespace gnomon
