#pragma once

/// Devices as text and JSON: `gnomon device list | show | check | calibrate`.

#include <span>
#include <string>

#include "gnomon/device/check.h"
#include "gnomon/device/device.h"
#include "gnomon/report/json.h"

namespace gnomon {

std::string DeviceListText(std::span<const Device> devices);
Json DeviceListJson(std::span<const Device> devices);

/// Verdict line, rates, memory levels, then every fact with its kind and source.
std::string DeviceText(const Device& device);
Json DeviceJson(const Device& device);

std::string CheckText(const std::string& path, const Device& device,
                      std::span<const DeviceCheck> checks);
Json CheckJson(const std::string& path, const Device& device, std::span<const DeviceCheck> checks);

std::string_view Name(FactKind kind);

}  // namespace gnomon
