#pragma once

/// Instruments for caches and memory: read, write and random-line bandwidth, latency. Private to
/// device/.

#include <cstddef>

#include "gnomon/base/units.h"

namespace gnomon {

inline constexpr std::size_t kLineBytes = 64;  ///< of every x86-64 and most other CPUs

/// Memory that all instruments share, mapped as large allocations are, touched by the cores that
/// use it.
class Arena {
 public:
  Arena(std::size_t bytes, int threads);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  bool ok() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// What one bandwidth instrument goes over: `threads` slices of `bytes_each`, apart from each
/// other.
struct Region {
  const Arena* arena;
  std::size_t bytes_each;
  int threads;
  bool shared = true;  ///< random reads go over all slices, not only the thread's own
};

/// Bytes a second of all threads together, over about `time`.
BytesPerSecond ReadBandwidth(const Region& region, Seconds time);
BytesPerSecond WriteBandwidth(const Region& region, Seconds time);
/// Independent reads of whole lines in random order.
BytesPerSecond RandomBandwidth(const Region& region, Seconds time);
/// Load to use over one slice, a chain of dependent loads in an order no prefetcher follows.
Seconds ChaseLatency(const Region& region, Seconds time);

/// The largest working set of all cores together that is still read at four fifths of the last
/// cache's rate, from `smallest` (which must be in that cache) to the arena's size; 0 where memory
/// itself is as fast. Each size is read for a few times `time`.
Bytes EffectiveCache(const Arena& arena, std::size_t smallest, int threads, Seconds time);

}  // namespace gnomon
