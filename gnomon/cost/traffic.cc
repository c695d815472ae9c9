// Where a GPU operator's bytes come from and how long they take.
//
//   time      = moved · Σ share_k / rate_k          over the caches nearest first, then main memory
//   share_k   = what Held(level) adds to the levels before it
//   Held      = 1.5 − footprint / capacity, cut to [0, 1]
//
// Memory-side caches ("llc") are left out: copies of 134 MB on MI355X, half of its Infinity Cache,
// run no faster than copies of 1 GB (HipKittens' rotary kernel). Held is 1 while half of the cache
// is enough and 0 at one and a half times its size: an LRU cache under a cyclic sweep loses its
// hits around its size, and two operators' data share it. Rates are those that the device file
// states as reached. Per-unit caches hold nothing between kernels.
//   kernel    = empty kernel + 2 · latency of main memory
//
// Left out: the far half of a divided L2, write-back traffic of what stays, power-of-two strides.

#include "gnomon/cost/traffic.h"

#include <algorithm>
#include <cmath>

#include "gnomon/cost/bandwidth.h"

namespace gnomon {
namespace {

constexpr double kHeldUntil = 1.5;  // of the capacity: no hits beyond
// Least that a GPU memory moves for a random access: a sector (NVIDIA 32 bytes; CDNA fetches 64).
constexpr Bytes kSector{32};
// Device files without kernel_us: smallest kernels inside CUDA graphs on H100 and H200.
constexpr Seconds kKernel{2.4e-6};

bool Holds(const Device& device, const MemoryLevel& level) {
  return &level != &device.MainMemory() && level.scope != MemoryLevel::Scope::kUnit &&
         level.name != "llc";
}

double Held(Bytes footprint, Bytes capacity) {
  return std::clamp(kHeldUntil - footprint / capacity, 0.0, 1.0);
}

}  // namespace

Seconds GpuStreamTime(const Device& device, Bytes moved, Bytes footprint) {
  const MemoryLevel& main = device.MainMemory();
  Seconds time{0};
  double below = 0;
  for (const MemoryLevel& level : device.memory) {
    if (!Holds(device, level)) continue;
    const double held =
        std::max(below, Held(footprint, TotalCapacity(device, level, device.units)));
    time += moved * (held - below) / std::max(level.bandwidth, main.bandwidth);
    below = held;
  }
  return time + moved * (1 - below) / main.bandwidth;
}

Seconds GpuRowsTime(const Device& device, double rows, Bytes row, Bytes footprint) {
  const Bytes whole{std::ceil(row / kSector) * kSector.value};
  return GpuStreamTime(device, rows * whole, footprint);
}

Seconds GpuKernelTime(const Device& device) {
  const Seconds empty = device.kernel.value > 0 ? device.kernel : kKernel;
  return empty + 2 * device.MainMemory().latency;
}

}  // namespace gnomon
