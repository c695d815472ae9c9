#pragma once

/// One CTA, and one cluster of them, of a TMA kernel in cycles: what the tile model multiplies out.
/// Internal to the families.

#include "gnomon/families/cuda/needs.h"
#include "gnomon/gemm/tile_model.h"

namespace gnomon::cuda {

/// What differs between the generations: how a unit is fed, and what a tile costs beside its k
/// steps.
struct UnitCosts {
  double step_cycles = 0;      ///< of a k step: barrier, issue, barrier
  double load_latency = 0;     ///< of a k step's operands, in multiples of the HBM latency
  double epilogue_cycles = 0;  ///< an element of C: out of the accumulators, to L2
  double tile_cycles = 0;      ///< setting a tile up
  double memory_latency = 0;   ///< seconds: first byte from memory, last byte to it
  double exposed_memory = 0;   ///< share of the shorter of main loop and memory that is not hidden
};
const UnitCosts& CostsOf(Generation generation);

/// Traits of launches; `stream_k`: parts are added inside the kernel.
TileTraits TraitsOf(Generation generation, bool stream_k);

inline constexpr std::size_t kClusterSizes = 4;  ///< 1, 2, 4 and 8 CTAs

/// The machine as clusters of so many CTAs see it: a slot is the units of one cluster.
TileMachine MachineOfClusters(const TileMachine& machine, std::int32_t cluster);

/// A config, ready to be priced on any problem of its elements.
struct Block {
  TileConfig config;
  std::size_t cluster_index = 0;  ///< of Machines
  TileKernel cluster;  ///< split_k 1; a cluster is the workgroup, cycles of the highest clock
  double fix_up = 0;   ///< stream-K: cycles of one more part, written, read and added
  double hidden_epilogue = 0;  ///< share of the epilogue that may lie under the next tile's k steps
  bool epilogues_overlap = false;  ///< those of neighbouring tiles may lie under each other as well
};
/// Occupancy 0: it does not fit.
Block BlockOf(const TileMachine& machine, Generation generation, const TileConfig& config,
              const ElementBytes& bytes);

}  // namespace gnomon::cuda
