#pragma once

/// The kernels of kind vector, one table for all: the config space enumerates it and vector_*.cu
/// compile it. For host compilers and nvcc; vector_table.h says what the kernels are for.

#include <cstdint>

namespace gnomon::cuda {

inline constexpr int kSkinny = 16;      ///< rows, columns or depth
inline constexpr int kVectorRun = 8;    ///< elements that a lane loads at once
inline constexpr int kVectorWarps = 8;  ///< of a CTA
inline constexpr int kMostVectorParts = 512;
/// Output tiles of a split K, at most: as many counters as every workspace begins with.
inline constexpr int kVectorCounters = 32 * 1024;
/// Warps from which on the device has enough to do without sharing K: 16 on each of 132 units.
inline constexpr int kEnoughVectorWarps = 2048;

enum class VectorWay { kDot, kSum };

/// Sums of one thread.
struct VectorTile {
  std::int32_t tile_m = 1, tile_n = 1;
  friend constexpr bool operator==(const VectorTile&, const VectorTile&) = default;
};

// Instances: X(long_tile, short_tile). A thread of dot keeps at most 32 sums beside its loads.
#define GNOMON_CUDA_DOT_TILES(X) X(1, 1) X(4, 1) X(1, 4) X(4, 4) X(1, 8) X(4, 8) X(1, 16) X(2, 16)
#define GNOMON_CUDA_SUM_TILES(X) X(8, 1) X(8, 4) X(8, 8) X(8, 16)

/// The tile is one of the way's.
constexpr bool IsVectorTile(VectorWay way, int long_tile, int short_tile) {
#define GNOMON_CUDA_IS_TILE(l, s) || (long_tile == (l) && short_tile == (s))
  return way == VectorWay::kDot ? false GNOMON_CUDA_DOT_TILES(GNOMON_CUDA_IS_TILE)
                                : false GNOMON_CUDA_SUM_TILES(GNOMON_CUDA_IS_TILE);
#undef GNOMON_CUDA_IS_TILE
}

}  // namespace gnomon::cuda
