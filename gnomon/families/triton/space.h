#pragma once

/// The config space of family triton on one device for one kind of problem, with everything priced
/// that does not depend on M, N and K.

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "gnomon/families/triton/block.h"

namespace gnomon::triton {

struct SpaceEntry {
  TritonConfig config;  ///< split_k 1 or 2: not split or split
  TileKernel block;
};

/// What a first look at an entry needs, close together: a problem looks at all of them.
struct SpaceOutline {
  double alone = 0,
         alone_step = 0;  ///< cycles of a workgroup that has the unit alone: once, a step
  double shared = 0, shared_step = 0;  ///< cycles that it keeps others out for
  std::uint32_t log2_k = 0;            ///< of the block's depth
  bool split = false;
};

/// The entries [begin, end) have the same block of C.
struct SpaceTile {
  std::uint32_t log2_m = 0, log2_n = 0;
  size_t begin = 0, end = 0;
};

struct Space {
  TileMachine machine;
  TileTraits traits;
  std::vector<SpaceEntry> entries;     ///< only what can be launched
  std::vector<SpaceOutline> outlines;  ///< of the entries, by position
  std::vector<SpaceTile> tiles;        ///< of the entries, in order
};

/// What a space depends on beside the device.
struct SpaceKind {
  DType dtype = DType::kBf16, dtype_out = DType::kBf16;
  Specialisation spec;
  friend bool operator==(const SpaceKind&, const SpaceKind&) = default;
};
SpaceKind KindOf(const Problem& problem);

/// TileMachineOf without a limit to what one unit gets of HBM. Error: as there.
Result<TileMachine> MachineOf(const Device& device, DType dtype, int units);

Space MakeSpace(const TileMachine& machine, std::string_view arch, const SpaceKind& kind);

/// A space made once a device, units and kind, and remembered by the calling thread.
/// Error: what MachineOf says.
Result<const Space*> SpaceOf(const Device& device, const Problem& problem, int units);

inline std::uint32_t Log2(std::int32_t power_of_two) {
  return static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint32_t>(power_of_two)));
}

/// What the configs of one problem share: tiles along each side and k steps, by log2 of the block's
/// side.
class ProblemGrid {
 public:
  explicit ProblemGrid(const Problem& problem);

  double tiles_m(size_t log2_m) const { return rows_[log2_m]; }
  double tiles_n(size_t log2_n) const { return columns_[log2_n]; }
  double tiles(size_t log2_m, size_t log2_n) const {
    return rows_[log2_m] * columns_[log2_n] * batch_;
  }
  std::int64_t steps(size_t log2_k) const { return steps_[log2_k]; }
  /// Parts of K whose partial sums the problem's workspace holds.
  double most_parts() const { return most_parts_; }
  /// Blocks far larger than the problem only compute masked elements.
  bool Oversized(size_t log2_m, size_t log2_n) const {
    return log2_m > most_m_ || log2_n > most_n_;
  }

 private:
  static constexpr size_t kSides = 11;  // 1 to 1024
  std::array<double, kSides> rows_{}, columns_{};
  std::array<std::int64_t, kSides> steps_{};
  double batch_ = 1, most_parts_ = std::numeric_limits<double>::infinity();
  size_t most_m_ = 0, most_n_ = 0;
};

/// The launch grid counts programs in 32 bits.
inline constexpr double kMostPrograms = 2147483647.0;
/// Parts of K worth trying for a config: powers of two that leave two steps each, to 2^6.
inline constexpr std::uint32_t kMostLog2Split = 6;

/// Calls tile(t, last) for every block of C that suits the problem, `last` being log2 of the most
/// parts that its configs are split into, and after it config(i, log2_split, steps) for the space's
/// entries with that block, in their order; `steps` are those of the whole K.
template <class VisitTile, class VisitConfig>
void ForEachConfig(const Space& space, const ProblemGrid& grid, VisitTile tile,
                   VisitConfig config) {
  constexpr double kMostWaves = 4;
  constexpr std::int64_t kLeastSteps = 8;
  const double most_split = std::min(kMostPrograms, kMostWaves * space.machine.units);
  for (const SpaceTile& t : space.tiles) {
    if (grid.Oversized(t.log2_m, t.log2_n)) continue;
    const double tiles = grid.tiles(t.log2_m, t.log2_n);
    if (tiles > kMostPrograms) continue;
    std::uint32_t last_split = 0;
    while (last_split < kMostLog2Split && tiles * (2 << last_split) <= most_split &&
           (2 << last_split) <= grid.most_parts())
      ++last_split;
    tile(t, last_split);
    for (size_t i = t.begin; i < t.end; ++i) {
      const std::int64_t steps = grid.steps(space.outlines[i].log2_k);
      const bool split = space.outlines[i].split;
      std::uint32_t last = split ? last_split : 0;
      if (split && steps < kLeastSteps) last = 0;
      for (std::uint32_t s = split ? 1 : 0; s <= last && (s == 0 || steps >= (2 << s)); ++s)
        config(i, s, steps);
    }
  }
}

}  // namespace gnomon::triton
