#pragma once

/// The parts of reading that stay inside device/: an overlay's own header, and where a base file
/// lies.

#include <string>
#include <string_view>

#include "gnomon/base/result.h"

namespace gnomon::device_schema {

/// What an overlay says of itself; `overlay_of` is empty in a base file.
struct OverlayHeader {
  std::string overlay_of;  ///< id of the base
  std::string cpu;         ///< CpuSignature of the machine it was taken on
};
Result<OverlayHeader> ReadOverlayHeader(const std::string& path);

/// Path of a base file by its id along the search folders (find.cc).
Result<std::string> FindDeviceFile(std::string_view id);

}  // namespace gnomon::device_schema
