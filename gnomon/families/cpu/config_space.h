#pragma once

/// The config space of family `cpu`: which ways to do a problem are worth timing. Internal to the
/// family.

#include <vector>

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cpu/model.h"

namespace gnomon::cpu {

/// Appends the configs of a problem on up to `units` cores, legal by construction: every one passes
/// CheckConfig on a machine with the device's registers. At least one for fp32 and bf16.
void EnumerateConfigs(const Machine& machine, const Problem& problem, int units,
                      std::vector<Config>& configs);

}  // namespace gnomon::cpu
