#pragma once

/// Bandwidth: which level of a device's memory a working set lives in, and how fast it streams from
/// there.

#include "gnomon/device/device.h"

namespace gnomon {

/// All of a level's instances together that `units` units use.
Bytes TotalCapacity(const Device& device, const MemoryLevel& level, int units);

/// The nearest level that holds the working set when it is shared out over `units`, beside what
/// else a step keeps there; else the main memory.
const MemoryLevel& LevelOf(const Device& device, Bytes working_set, int units);

/// Streaming rates of a level with `units` of the device's units pulling.
BytesPerSecond ReadBandwidth(const Device& device, const MemoryLevel& level, int units);
BytesPerSecond WriteBandwidth(const Device& device, const MemoryLevel& level, int units);

/// Time of one row of `row` bytes at a random place of the level, rows overlapping: the first line
/// at the random rate, the others at the streaming rate.
Seconds RandomRowTime(const Device& device, const MemoryLevel& level, Bytes row, int units);

}  // namespace gnomon
