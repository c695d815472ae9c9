// Where data lives and how fast it comes.
//
//   stream(level, u) = min(bandwidth of all units, u × bandwidth of one unit)
//   random line      = the level's random rate where the device file has one, else
//                      CPU: line · outstanding misses · u / latency     GPU: half of the stream
//   row              = first line / random + rest / stream
//
// Device files state what is reached (the data sheet's peak stands beside it), so figures are taken
// as they are; but only half of a CPU's cache counts: a running step keeps other data there.
// Left out: NUMA, TLB misses beyond what the random rate contains, bank conflicts.

#include "gnomon/cost/bandwidth.h"

#include <algorithm>

namespace gnomon {
namespace {

// Gathers of embedding rows against streams on a GPU: 0.3 to 0.8 over published table-batched
// embedding kernels.
constexpr double kGpuRandomShare = 0.5;
// Share of a CPU cache that one op's data may count on while a step runs: the rest holds its
// neighbours' data.
constexpr double kResidentShare = 0.5;
// Misses a CPU core keeps in flight: L1 fill buffers of current server cores (10 Skylake, 16 Golden
// Cove).
constexpr double kOutstandingMisses = 12;

}  // namespace

Bytes TotalCapacity(const Device& device, const MemoryLevel& level, int units) {
  switch (level.scope) {
    case MemoryLevel::Scope::kUnit:
      return level.capacity * units;
    case MemoryLevel::Scope::kDie:
      return level.capacity * device.dies;
    case MemoryLevel::Scope::kDevice:
      break;
  }
  return level.capacity;
}

const MemoryLevel& LevelOf(const Device& device, Bytes working_set, int units) {
  for (const MemoryLevel& level : device.memory) {
    // A GPU's per-unit stores are scratchpads of a kernel: nothing stays there between kernels.
    const bool cpu = device.kind == Device::Kind::kCpu;
    const bool keeps = cpu || level.scope != MemoryLevel::Scope::kUnit;
    const Bytes room = TotalCapacity(device, level, units) * (cpu ? kResidentShare : 1);
    if (keeps && working_set <= room) return level;
  }
  return device.MainMemory();
}

BytesPerSecond ReadBandwidth(const Device& device, const MemoryLevel& level, int units) {
  if (device.kind == Device::Kind::kGpu) return level.bandwidth;
  const BytesPerSecond some = level.unit_bandwidth * units;
  if (some.value <= 0) return level.bandwidth * (static_cast<double>(units) / device.units);
  return std::min(level.bandwidth, some);
}

BytesPerSecond WriteBandwidth(const Device& device, const MemoryLevel& level, int units) {
  const BytesPerSecond read = ReadBandwidth(device, level, units);
  if (level.write_bandwidth.value <= 0 || level.bandwidth.value <= 0) return read;
  return read * (level.write_bandwidth / level.bandwidth);
}

Seconds RandomRowTime(const Device& device, const MemoryLevel& level, Bytes row, int units) {
  const Bytes line{static_cast<double>(level.line_bytes)};
  const BytesPerSecond stream = ReadBandwidth(device, level, units);
  BytesPerSecond random = stream;
  if (device.kind == Device::Kind::kGpu) {
    random = level.random_bandwidth.value > 0 ? std::min(stream, level.random_bandwidth)
                                              : level.bandwidth * kGpuRandomShare;
  } else if (level.random_bandwidth.value > 0) {
    random = std::min(stream, level.random_bandwidth * (static_cast<double>(units) / device.units));
  } else if (level.latency.value > 0) {
    random = std::min(stream, line * (kOutstandingMisses * units) / level.latency);
  }
  const Bytes first = std::min(row, line);
  return first / random + (row - first) / stream;
}

}  // namespace gnomon
