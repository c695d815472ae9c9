#pragma once

/// The config spaces of families sm90 and sm100 on one device for one kind of operands, with
/// everything priced that does not depend on the problem's sides. Internal to the families.

#include <vector>

#include "gnomon/families/cuda/price.h"

namespace gnomon::cuda {

struct Space {
  /// When a block is of use.
  enum class Use { kOneWave, kSplit, kWaves, kStream };
  /// What a first look at a block needs, close together: a problem looks at all of them.
  struct Outline {
    double slots = 0;  ///< clusters resident in the device at once
    Use use = Use::kOneWave;
  };
  /// The ways to run one tile in one cluster: blocks from `first` up to `last`.
  struct Tile {
    std::int32_t m = 0, n = 0;                  ///< of a CTA
    std::int32_t cluster_m = 1, cluster_n = 1;  ///< CTAs
    std::size_t rows = 0, columns = 0;          ///< of the cluster's sides in `sides`
    std::size_t first = 0, last = 0;
  };
  Machines machines;
  std::vector<Block> blocks;      ///< only what fits a unit
  std::vector<Outline> outlines;  ///< of the blocks, by position
  std::vector<Tile> tiles;        ///< large ones first
  std::vector<std::int32_t> sides;
};

/// What a space depends on beside the device and its units.
struct SpaceKind {
  DType dtype = DType::kBf16, dtype_out = DType::kBf16;
  friend bool operator==(const SpaceKind&, const SpaceKind&) = default;
};

/// Error: what TileMachineOf says; nothing fits a unit.
Result<Space> MakeSpace(const Device& device, Generation generation, const SpaceKind& kind,
                        int units);

/// A space made once a device, units and kind, and remembered by the calling thread.
Result<const Space*> SpaceOf(const Device& device, Generation generation, const Problem& problem,
                             int units);

/// Fills `candidates` with what is worth a look for the problem, every one able to run, their tile
/// order left open.
void CandidatesFor(const Space& space, const Problem& problem, std::vector<Candidate>& candidates);

/// Rows of clusters to walk together: what is resident at once is then near-square.
std::int32_t GroupOf(const Space& space, const Problem& problem, const Candidate& candidate);

}  // namespace gnomon::cuda
