#pragma once

/// Files that are never half-written: content goes beside the target and is renamed over it.

#include <string>
#include <string_view>

#include "gnomon/base/result.h"

namespace gnomon {

/// Whole file as text; plain or gzip by its first bytes. A truncated gzip is an error.
Result<std::string> ReadFile(const std::string& path);

/// Writes aside in the same folder, fsyncs, renames. Permission and full disk are faults with the
/// system's reason; the old file stays as it was.
Status WriteFile(const std::string& path, std::string_view content);

}  // namespace gnomon
