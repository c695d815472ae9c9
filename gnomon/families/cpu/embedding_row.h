#pragma once

/// Prefetch of embedding rows: how far ahead, and which lines.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gnomon::cpu {

inline constexpr std::int64_t kLineBytes = 64;

/// Lines requested ahead of use. More than the ~16 fill buffers of a core, so that the queue is
/// full even where some of the rows hit a near cache.
inline constexpr std::int64_t kLinesAhead = 64;
inline constexpr std::int64_t kMostRowsAhead = 64;
inline constexpr std::int64_t kFewestRowsAhead = 4;

/// Rows of `dim` fp32 values to request ahead.
inline std::size_t AheadRows(std::int64_t dim) {
  const std::int64_t lines = std::max<std::int64_t>(1, dim * 4 / kLineBytes);
  return static_cast<std::size_t>(
      std::clamp(kLinesAhead / lines, kFewestRowsAhead, kMostRowsAhead));
}

/// Requests every line of `count` values into the second-level cache or nearer. With a constant
/// count this is a few instructions without a branch; asking for a line twice costs next to
/// nothing.
template <class T>
inline void PrefetchValues(const T* from, std::int64_t count) {
  constexpr auto kStep = kLineBytes / static_cast<std::int64_t>(sizeof(T));
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < count; i += kStep) __builtin_prefetch(from + i, 0, 2);
  __builtin_prefetch(reinterpret_cast<const char*>(from + count) - 1, 0, 2);
}

}  // namespace gnomon::cpu
