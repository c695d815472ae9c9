#pragma once

/// A config of families sm90 and sm100: what it says, what it needs of a unit, whether it can run.
/// Internal to the families.

#include <string>
#include <string_view>

#include "gnomon/gemm/family.h"

namespace gnomon::cuda {

enum class Generation { kSm90, kSm100 };

/// sm90   "128x256x64.c2x1.s4.coop2.k1", ping-pong "128x128x64.c2x1.s6.pp2.k1.p"
/// sm100  "128x256x64.c2x1.s6.mma2.acc2.k1.p"
/// then only what differs from the defaults: ".sk" stream-K, ".p" persistent, ".g8" group_m
struct TileConfig {
  std::int32_t tile_m = 128, tile_n = 128, tile_k = 64;  ///< of one CTA
  std::int32_t cluster_m = 1, cluster_n = 1;             ///< CTAs that share operands by multicast
  std::int32_t stages = 4;
  std::int32_t consumers = 2;     ///< sm90: warpgroups that multiply
  bool ping_pong = false;         ///< sm90: they take turns, a tile each
  std::int32_t pair = 1;          ///< sm100: CTAs of one matrix instruction
  std::int32_t accumulators = 1;  ///< sm100: tiles that tensor memory holds
  std::int32_t split_k = 1;
  bool stream_k = false;     ///< one CTA a unit; the k steps of all tiles in a row
  bool persistent = false;   ///< one CTA a unit, tile after tile
  std::int32_t group_m = 1;  ///< rows of clusters that are walked together
  friend bool operator==(const TileConfig&, const TileConfig&) = default;
};

Config ToConfig(const TileConfig& config);
TileConfig FromConfig(const Config& config);

/// The canonical string and back. Error: position, what was expected, a well-formed example.
std::string Text(Generation generation, const TileConfig& config);
Result<TileConfig> ParseConfig(Generation generation, std::string_view text);

}  // namespace gnomon::cuda
