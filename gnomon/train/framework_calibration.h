#pragma once

/// Measures eager LibTorch on this machine for the cost model.

#include "gnomon/base/result.h"
#include "gnomon/device/device.h"

namespace gnomon::train {

/// Puts framework.* facts (measured, with today's date) into the device. Takes a few seconds.
Status CalibrateFrameworkOn(Device& device);

}  // namespace gnomon::train
