#pragma once

/// The config space of family `cpu`: which ways to do a problem are worth timing. Internal to the
/// family.

#include <string>
#include <vector>

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cpu/model.h"

namespace gnomon::cpu {

/// Appends the configs of a problem on up to `units` cores, legal by construction: every one passes
/// CheckConfig on a machine with the device's registers. At least one for fp32 and bf16.
void EnumerateConfigs(const Machine& machine, const Problem& problem, int units,
                      std::vector<Config>& configs);

/// Why no kernel on the machine computes the problem with the config, and the nearest register tile
/// or block that is there; empty: one does. The same as CheckConfig, for any machine.
std::string WhyNot(const Machine& machine, const Problem& problem, const GemmConfig& config);

}  // namespace gnomon::cpu
