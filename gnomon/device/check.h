#pragma once

/// Check: what a device file states against itself, one line a relation, as `gnomon device check`
/// prints.

#include <string>
#include <vector>

#include "gnomon/device/device.h"

namespace gnomon {

struct DeviceCheck {
  std::string what;  ///< "matrix bf16: peak = units × rate × clock"
  double stated = 0, derived = 0;
  bool holds = false;    ///< within 1%
  std::string key = {};  ///< TOML path of the stated value
};

/// peak = units × rate × boost clock for every dtype; memories grow and slow outwards and keep
/// below their peaks; clocks ordered.
std::vector<DeviceCheck> CheckDevice(const Device& device);

}  // namespace gnomon
