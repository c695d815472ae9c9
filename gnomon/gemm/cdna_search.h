#pragma once

/// The fastest of many ways to launch a problem on an AMD GPU without pricing every one. Families
/// say which ways there are; here is what they share.

#include <cstdint>
#include <span>
#include <vector>

#include "gnomon/gemm/cdna_model.h"
#include "gnomon/gemm/family.h"

namespace gnomon {

/// A tile of a family's space on one device.
struct CdnaTile {
  CdnaKernel kernel;  ///< its launch is CdnaLaunch's
  CdnaBlock block;
};

/// One way to launch a tile.
struct CdnaLaunch {
  std::uint32_t tile = 0;  ///< position in the space
  std::uint32_t task = 0;  ///< position in CdnaWays::tasks
  std::int32_t split_k = 1, mapping = 0;
  bool stream_k = false, non_temporal = false;
};

/// The ways to do one problem, in order of enumeration, and room to work in: kept between problems,
/// it is filled without allocating.
struct CdnaWays {
  std::vector<CdnaTask> tasks;
  std::vector<CdnaLaunch> launches;
  std::vector<double> floors;          ///< of the launches
  std::vector<std::uint32_t> fastest;  ///< positions in launches

  /// Empties all, with room for `tiles` tiles of `launches_each`.
  void Clear(size_t tiles, size_t launches_each);
};

/// Seconds of one way.
double PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                 const CdnaOperands& operands, std::span<const CdnaTile> tiles,
                 const CdnaWays& ways, const CdnaLaunch& launch);

/// Fills ways.fastest and the times of `fastest` with the ways of least time, exactly those that
/// pricing all of them gives (ties: the first), and returns how many there are. `priced`: how many
/// were priced in full.
size_t FastestCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const CdnaOperands& operands, std::span<const CdnaTile> tiles, CdnaWays& ways,
                   std::span<TimedConfig> fastest, size_t* priced = nullptr);

}  // namespace gnomon
