#pragma once

/// What the operating system and CPUID say of the present machine. Private to device/.

#include <array>
#include <string>

#include "gnomon/base/units.h"
#include "gnomon/device/device.h"

namespace gnomon {

/// Cores this process may run on (sched_getaffinity), at least 1.
int UsableCores();

/// Model, stepping and a hash of the instruction sets: an overlay is only good for the same one.
std::string CpuSignature();

/// Brand name as CPUID gives it.
std::string CpuName();

/// Data caches from nearest to farthest; 0 where the system does not say.
struct HostCaches {
  Bytes l1, l2, l3;
  int line_bytes = 64;
};
HostCaches ReadHostCaches();

/// Main memory this process may use: physical memory, or its control group's limit if that is less.
Bytes HostMemory();

}  // namespace gnomon
