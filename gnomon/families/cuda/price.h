#pragma once

/// The price of a config on a problem. Internal to the families.

#include <array>

#include "gnomon/families/cuda/block.h"

namespace gnomon::cuda {

/// A device for one dtype, its units in clusters of each size.
struct Machines {
  std::array<TileMachine, kClusterSizes> of_clusters;
  double l2_bytes = 0;
};
Machines MachinesOf(const TileMachine& machine);

/// What one problem decides for all configs.
struct Call {
  Call(const Device& device, const Machines& machines, const Problem& problem,
       Generation generation);

  const Problem* problem;
  std::array<TileMachine, kClusterSizes> machines;  ///< memory as fast as L2's share of it makes it
  TileTraits traits, stream_traits;
  double ideal;  ///< seconds of the multiplications at full rate and the highest clock
  double kept;   ///< share of A and B that L2 still holds
  double hertz, highest, slowest, free_share;  ///< clocks: the machine's, the highest; under load
};

/// Tiles of whole clusters along C.
struct ClusterGrid {
  double rows = 0;  ///< of one product of a batch; of all groups
  double columns = 0;
  double clusters = 0;  ///< that hold a tile each, of all products
};
double ColumnsOfTiles(const Problem& problem, int tile_n);
ClusterGrid GridOf(const Problem& problem, double rows, double columns);
ClusterGrid GridOf(const Problem& problem, const TileKernel& cluster);

/// A block on a problem.
struct Candidate {
  const Block* block = nullptr;
  ClusterGrid grid;
  std::int32_t split_k = 1, group_m = 1;
  TileConfig config() const;
};

/// What the busiest unit does for a candidate, in cycles of the highest clock.
struct UnitRun {
  double clusters = 0;  ///< launched
  double steps = 0;     ///< k steps of each
  double prologue = 0;  ///< a tile: a persistent kernel's is paid once
  double epilogue = 0;  ///< of a cluster, hidden as far as it is
  double cycles = 0;    ///< of all its clusters, every wave counted whole
};
UnitRun RunOf(const Call& call, const Candidate& candidate);

/// What the busy share of the matrix units makes of a run: cycles at the machine's clock for one at
/// the highest.
double StretchOf(const Call& call, const UnitRun& run);

TileKernel KernelOf(const Call& call, const Candidate& candidate);
TileTime PriceOf(const Call& call, const Candidate& candidate, const TileKernel& kernel);

}  // namespace gnomon::cuda
