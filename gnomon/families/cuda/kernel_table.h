#pragma once

/// The GEMM kernels of family `cuda` for Hopper, one table for all: the config space enumerates it,
/// the launcher looks kernels up in it, and every kernels_*.cu compiles it for one element type and
/// layout. Read by host compilers and by nvcc.
///
/// A row: tile_m, tile_n of one CTA; who multiplies; cluster_m, cluster_n (CTAs that share operands
/// by multicast). K is walked in steps of one 128-byte swizzled row; stages are as many as shared
/// memory holds, up to kMostStages.

#include <cstddef>
#include <cstdint>

namespace gnomon::cuda {

/// kOne: a consumer warpgroup has the tile; kBoth: two of them halve its rows; kTurns (ping-pong):
/// two take a tile each, one multiplies while the other stores.
enum class Consumers { kOne, kBoth, kTurns };

// Accumulators bound the tile: 128 registers a thread, so 128 x 128 or 64 x 256 a warpgroup.
#define GNOMON_CUDA_TMA_TILES(X) \
  X(256, 128, kBoth, 1, 1)       \
  X(256, 128, kBoth, 2, 1)       \
  X(256, 128, kBoth, 1, 2)       \
  X(128, 256, kBoth, 1, 1)       \
  X(128, 256, kBoth, 2, 1)       \
  X(128, 256, kBoth, 1, 2)       \
  X(128, 192, kBoth, 1, 1)       \
  X(128, 192, kBoth, 2, 1)       \
  X(128, 128, kBoth, 1, 1)       \
  X(128, 128, kTurns, 1, 1)      \
  X(128, 128, kTurns, 2, 1)      \
  X(256, 64, kTurns, 1, 1)       \
  X(256, 32, kTurns, 1, 1)       \
  X(256, 16, kTurns, 1, 1)       \
  X(64, 256, kTurns, 1, 1)       \
  X(64, 256, kTurns, 2, 1)       \
  X(64, 192, kTurns, 1, 1)       \
  X(128, 64, kTurns, 1, 1)       \
  X(64, 128, kTurns, 1, 1)       \
  X(64, 96, kTurns, 1, 1)        \
  X(64, 64, kTurns, 1, 1)        \
  X(64, 32, kTurns, 1, 1)        \
  X(64, 16, kTurns, 1, 1)

// For operands that TMA cannot load (rows that are not whole 16 bytes): a warpgroup copies them.
// Only small products are faster so than through padded copies (kind pad, the TMA kernels).
#define GNOMON_CUDA_COPY_TILES(X) \
  X(128, 128, kBoth, 1, 1)        \
  X(128, 64, kTurns, 1, 1)        \
  X(64, 64, kTurns, 1, 1)         \
  X(64, 16, kTurns, 1, 1)

inline constexpr int kStepBytes = 128;     ///< of K in a k step, and of a swizzled row
inline constexpr int kWarpgroup = 128;     ///< threads
inline constexpr int kWarpgroupRows = 64;  ///< of C in one wgmma
inline constexpr int kSwizzleAtom = 1024;  ///< 8 rows of 128 bytes: what stages are aligned to
inline constexpr int kMostStages = 8;
inline constexpr int kSharedBytes = 232448;  ///< of a CTA: 227 KiB (CUDA programming guide, 9.0)
inline constexpr int kStagingBytes = 2 * kWarpgroupRows * kStepBytes;  ///< of C, a warpgroup
inline constexpr int kBarrierBytes = 256;

constexpr int ConsumersOf(Consumers consumers) { return consumers == Consumers::kOne ? 1 : 2; }

/// Bytes of A and B in a stage. An operand stored with K outermost comes in boxes of 64 rows.
constexpr int StageBytes(int tile_m, int tile_n, bool a_outer, bool b_outer) {
  const auto boxed = [](int rows, bool outer) { return outer ? (rows + 63) / 64 * 64 : rows; };
  return (boxed(tile_m, a_outer) + boxed(tile_n, b_outer)) * kStepBytes;
}
/// Kind copy: a word beside each line of a stage (copy_loader.cuh).
constexpr int SideBytes(int tile_m, int tile_n, bool a_outer, bool b_outer) {
  return StageBytes(tile_m, tile_n, a_outer, b_outer) / kStepBytes * 4;
}
constexpr int StagesOf(bool copy, int tile_m, int tile_n, Consumers consumers, bool a_outer,
                       bool b_outer) {
  const int room =
      kSharedBytes - kSwizzleAtom - kBarrierBytes - ConsumersOf(consumers) * kStagingBytes;
  const int most = room / (StageBytes(tile_m, tile_n, a_outer, b_outer) +
                           (copy ? SideBytes(tile_m, tile_n, a_outer, b_outer) : 0));
  return most < kMostStages ? most : kMostStages;
}

}  // namespace gnomon::cuda
