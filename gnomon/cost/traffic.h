#pragma once

/// Traffic: time to move bytes on a GPU whose operator may find part of them in its caches.

#include "gnomon/device/device.h"

namespace gnomon {

/// `moved` bytes of an operator that touches `footprint` different bytes, all units, streamed: the
/// part that fits stays in each cache from the operator before, the rest comes from main memory.
/// Memory-side caches count as main memory.
Seconds GpuStreamTime(const Device& device, Bytes moved, Bytes footprint);

/// `rows` rows of `row` bytes from random places among `footprint` bytes: whole sectors move.
Seconds GpuRowsTime(const Device& device, double rows, Bytes row, Bytes footprint);

/// Start and end of a kernel, and the first load and the last store, which nothing hides.
Seconds GpuKernelTime(const Device& device);

}  // namespace gnomon
