#pragma once

/// Kind vector of family `cuda`: products with a side of at most kSkinny, on the vector units.
/// Which kernel does a problem, with which tiles, and how its work is laid out; read by the config
/// space, the model and the launcher.
///
/// One operand (`long`) is streamed, the other (`short`) is small and comes from caches:
///
///   dot   the long operand is stored with K innermost: lanes side by side along K, then added up
///   sum   stored with K outermost: lanes side by side along the long side, each its own sums;
///         also where K itself is at most kSkinny and both sides are long (B is the long operand)
///
/// A thread holds long_tile x short_tile sums. Eight warps of a CTA do a tile each; or, where there
/// are too few tiles for the device or K is split, all eight share the K of one tile.

#include <algorithm>
#include <array>
#include <cstdint>

#include "gnomon/families/cuda/vector_tiles.h"
#include "gnomon/gemm/problem.h"

namespace gnomon::cuda {

/// The tiles of both ways, either side long.
inline constexpr std::array<VectorTile, 15> kVectorTiles = {{{1, 1},
                                                             {4, 1},
                                                             {1, 4},
                                                             {4, 4},
                                                             {1, 8},
                                                             {8, 1},
                                                             {4, 8},
                                                             {8, 4},
                                                             {1, 16},
                                                             {16, 1},
                                                             {2, 16},
                                                             {16, 2},
                                                             {8, 8},
                                                             {8, 16},
                                                             {16, 8}}};

struct VectorPlan {
  VectorWay way = VectorWay::kDot;
  bool long_is_m = true;
  std::int64_t long_side = 0, short_side = 0;
  std::int32_t long_tile = 1, short_tile = 1;  ///< of a thread
  std::int32_t lanes = 32;  ///< dot: along K; sum: along the long side. The others of a warp take
                            ///< other rows (dot), other k (sum)
  std::int32_t warp_long = 1;                    ///< of the long side, in a warp's tile
  std::int64_t long_tiles = 1, short_tiles = 1;  ///< of warps
  std::int64_t tiles = 1;                        ///< all, of all products
  bool together = false;                         ///< the CTA's warps share K
  std::int32_t parts = 1;
  std::int64_t ctas = 1;
  std::int32_t chunk = 1;   ///< k that a warp takes at a time
  std::int64_t chunks = 1;  ///< of K
  std::int32_t sums = 1;    ///< floats of a tile, with its bias gradient, in whole 16 bytes
};

/// The way of a problem and its sides, without tiles.
inline VectorPlan VectorWayOf(const Problem& p) {
  VectorPlan plan;
  const bool both_long = p.m > kSkinny && p.n > kSkinny;
  plan.long_is_m = !both_long && p.n <= kSkinny && (p.m > kSkinny || p.m >= p.n);
  plan.long_side = plan.long_is_m ? p.m : p.n;
  plan.short_side = plan.long_is_m ? p.n : p.m;
  const bool outer = plan.long_is_m ? p.a_transposed() : !p.b_transposed();
  plan.way = outer || both_long || p.epilogue == Epilogue::kBiasGradient ? VectorWay::kSum
                                                                         : VectorWay::kDot;
  return plan;
}

/// Everything about a launch; `parts` of K. The tile fits the problem.
inline VectorPlan VectorPlanOf(const Problem& p, VectorTile tile, std::int32_t parts) {
  VectorPlan plan = VectorWayOf(p);
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const auto lanes_for = [&](std::int64_t runs) {
    std::int32_t lanes = 1;
    while (lanes < 32 && lanes < runs) lanes *= 2;
    return lanes;
  };
  plan.long_tile = plan.long_is_m ? tile.tile_m : tile.tile_n;
  plan.short_tile = plan.long_is_m ? tile.tile_n : tile.tile_m;
  if (plan.way == VectorWay::kDot) {
    plan.lanes = lanes_for(up(p.k, kVectorRun));
    plan.warp_long = plan.long_tile * (32 / plan.lanes);
    plan.chunk = plan.lanes * kVectorRun;
  } else {
    plan.lanes = lanes_for(up(plan.long_side, kVectorRun));
    plan.warp_long = plan.long_tile * plan.lanes;
    plan.chunk = 32 / plan.lanes;
  }
  plan.chunks = up(p.k, plan.chunk);
  plan.long_tiles = up(plan.long_side, plan.warp_long);
  plan.short_tiles = up(plan.short_side, plan.short_tile);
  plan.tiles = plan.long_tiles * plan.short_tiles * p.batch;
  const bool gradient = p.epilogue == Epilogue::kBiasGradient;
  plan.parts = parts;
  // A warp alone has one chunk under way while it multiplies another (dot), or up to eight (sum).
  const std::int32_t alone = plan.way == VectorWay::kDot ? 4 : 2 * kVectorWarps;
  plan.together =
      parts > 1 || gradient || (plan.tiles < kEnoughVectorWarps && plan.chunks >= alone);
  plan.ctas = plan.together ? plan.tiles * parts : up(plan.tiles, kVectorWarps);
  plan.sums = plan.warp_long * plan.short_tile;
  if (gradient) plan.sums += std::max(plan.warp_long, plan.short_tile);
  plan.sums = static_cast<std::int32_t>(up(plan.sums, 4) * 4);
  return plan;
}

/// Which problems kind vector does at all.
inline bool VectorDoes(const Problem& p) {
  constexpr std::int64_t kMostSide = (std::int64_t{1} << 31) - 1024;  // indices are 32 bits
  if (p.grouped() || std::min({p.m, p.n, p.k}) > kSkinny) return false;
  if (std::max({p.m, p.n, p.k}) > kMostSide) return false;
  switch (p.dtype) {
    case DType::kBf16:
    case DType::kFp16:
    case DType::kTf32:
    case DType::kFp32:
      break;
    case DType::kFp8E4m3:
    case DType::kFp8E5m2:
      if (p.layout != Layout::kNT || VectorWayOf(p).way == VectorWay::kSum) return false;
      break;
    default:
      return false;
  }
  if (p.epilogue == Epilogue::kBiasGradient && p.layout != Layout::kTN) return false;
  return p.dtype_out == DType::kBf16 || p.dtype_out == DType::kFp16 ||
         p.dtype_out == DType::kFp32 || p.dtype_out == DType::kTf32;
}

/// The tile is one of the problem's way, and not wider than its short side needs.
inline bool VectorFits(const Problem& p, VectorTile tile) {
  if (!VectorDoes(p)) return false;
  const VectorPlan way = VectorWayOf(p);
  const int long_tile = way.long_is_m ? tile.tile_m : tile.tile_n;
  const int short_tile = way.long_is_m ? tile.tile_n : tile.tile_m;
  if (!IsVectorTile(way.way, long_tile, short_tile)) return false;
  // 1, 4, 8, 16: the next narrower one does not cover the side.
  const int narrower = short_tile == 4 ? 1 : short_tile / 2;
  if (short_tile > 1 && narrower >= way.short_side) return false;
  return VectorPlanOf(p, tile, 1).tiles < (std::int64_t{1} << 31) - 1;
}

/// K can be cut into so many parts: each has work for its eight warps.
inline bool VectorSplitFits(const Problem& p, VectorTile tile, std::int32_t parts) {
  if (parts == 1) return true;
  if (parts < 1 || parts > kMostVectorParts) return false;
  const VectorPlan plan = VectorPlanOf(p, tile, parts);
  return plan.chunks >= std::int64_t{kVectorWarps} * parts && plan.tiles <= kVectorCounters;
}

/// Scratch: counters (the first kVectorCounters words, which a run leaves zero), then the parts.
inline std::int64_t VectorPartsBytes(const VectorPlan& plan) {
  return plan.parts > 1 ? plan.tiles * plan.parts * plan.sums * 4 : 0;
}
inline std::int64_t VectorWorkspaceBytes(const VectorPlan& plan) {
  return plan.parts > 1 ? std::int64_t{kVectorCounters} * 4 + VectorPartsBytes(plan) : 0;
}

}  // namespace gnomon::cuda
