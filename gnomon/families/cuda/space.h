#pragma once

/// The config spaces of families sm90 and sm100 on one device for one kind of operands, with
/// everything priced that does not depend on the problem's sides. Internal to the families.

#include <vector>

#include "gnomon/families/cuda/price.h"

namespace gnomon::cuda {

struct Space {
  /// The ways to run one tile: blocks from `first` up to `last`.
  struct Tile {
    std::int32_t m = 0, n = 0;
    std::size_t first = 0, last = 0;
  };
  Machines machines;
  std::vector<Block> blocks;  ///< only what fits a unit
  std::vector<Tile> tiles;    ///< large ones first
};

/// Built once a device, units and dtypes and remembered by the calling thread. Error: what
/// TileMachineOf says.
Result<const Space*> SpaceOf(const Device& device, Generation generation, const Problem& problem,
                             int units);

/// Fills `candidates` with what is worth pricing for the problem, every one able to run.
void CandidatesFor(const Space& space, const Problem& problem, std::vector<Candidate>& candidates);

}  // namespace gnomon::cuda
