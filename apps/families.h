#pragma once

/// The kernel families there are, for the commands that choose between them.

#include <string>
#include <vector>

#include "gnomon/gemm/family.h"

namespace gnomon::app {

/// `name` empty: all that are made for the device's kind (all, without a device). Error: no such
/// family; the nearest name.
Result<std::vector<const Family*>> Families(const std::string& name, const Device* device);

/// Families that can take a list of M with a B for each.
bool TakesGroups(const Family& family);

}  // namespace gnomon::app
