#pragma once

/// The config space of family `cdna`. Internal to the family.

#include <vector>

#include "gnomon/families/hip/cdna_config.h"

namespace gnomon::hip {

/// Appends the configs of a problem worth pricing on `units` units, every one of which passes
/// WhyNot. At least one unless no kernel can do the problem.
void EnumerateCdna(const Device& device, const Problem& problem, int units, Bytes workspace,
                   std::vector<Config>& configs);

}  // namespace gnomon::hip
