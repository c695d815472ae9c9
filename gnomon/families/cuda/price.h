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

/// A block on a problem.
struct Candidate {
  const Block* block = nullptr;
  double clusters = 0;  ///< that hold a tile each, of all products
  std::int32_t split_k = 1, group_m = 1;
  TileConfig config() const;
};
double ClustersOf(const Problem& problem, const TileKernel& cluster);

/// What the call makes of a candidate's cycles.
struct Placed {
  double prologue = 0;  ///< cycles a tile: a persistent kernel's is paid once
  double epilogue = 0;  ///< cycles of a cluster, hidden as far as it is
  double stretch = 1;   ///< cycles at the machine's clock for one at the highest
  double least = 0;     ///< seconds, less what memory adds
};
Placed Place(const Call& call, const Candidate& candidate);

TileKernel KernelOf(const Candidate& candidate, const Placed& placed);
TileTime PriceOf(const Call& call, const Candidate& candidate, const TileKernel& kernel);

}  // namespace gnomon::cuda
