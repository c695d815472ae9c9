// Config strings of families sm90 and sm100.
//
//   128x256x64.c2x1.s4.coop2.k1[.sk][.p][.g8]        sm90; pp2 instead of coop2: ping-pong
//   128x256x64.c2x1.s6.mma2.acc2.k1[.sk][.p][.g8]    sm100
//   tile of a CTA, cluster, stages, who multiplies, split of K; then what differs from the defaults
//
// Equal configs have equal strings; the optional fields come in this order only. What contradicts
// itself is refused here (two splits, a ping-pong of one tile); what a device lacks is needs.h's to
// say.

#include "gnomon/families/cuda/config.h"

#include <fmt/format.h>

#include "gnomon/gemm/config_text.h"

namespace gnomon::cuda {
namespace {

constexpr std::string_view kForm90 = "128x256x64.c2x1.s4.coop2.k1";
constexpr std::string_view kForm100 = "128x256x64.c2x1.s6.mma2.acc2.k1";

Status Consumers(ConfigText& text, TileConfig& config) {
  if (text.Take(".pp2")) {
    config.ping_pong = true;
    return Done{};
  }
  if (!text.Take(".coop")) return text.Wrong("'.coop1', '.coop2' or '.pp2'");
  return text.Number(config.consumers, 1, 2);
}

Status Accumulators(ConfigText& text, TileConfig& config) {
  GNOMON_TRY(text.Field(".mma", config.pair, 1, 2));
  return text.Field(".acc", config.accumulators, 1, 2);
}

Result<TileConfig> Read(Generation generation, std::string_view config_text) {
  constexpr std::int32_t kSideStep = 8, kMostSide = 256, kDepthStep = 16, kMostDepth = 512;
  constexpr std::int32_t kMostCluster = 16, kMostStages = 32, kMostSplit = 4096;
  constexpr std::int32_t kMostGroup = 1 << 20;
  const bool hopper = generation == Generation::kSm90;
  ConfigText text(config_text, hopper ? "sm90" : "sm100", hopper ? kForm90 : kForm100);
  TileConfig config;
  GNOMON_TRY(text.Multiple(config.tile_m, kSideStep, kMostSide));
  GNOMON_TRY(text.Literal("x"));
  GNOMON_TRY(text.Multiple(config.tile_n, kSideStep, kMostSide));
  GNOMON_TRY(text.Literal("x"));
  GNOMON_TRY(text.Multiple(config.tile_k, kDepthStep, kMostDepth));
  GNOMON_TRY(text.Literal(".c"));
  GNOMON_TRY(text.PowerOfTwo(config.cluster_m, kMostCluster));
  GNOMON_TRY(text.Literal("x"));
  GNOMON_TRY(text.PowerOfTwo(config.cluster_n, kMostCluster / config.cluster_m));
  GNOMON_TRY(text.Field(".s", config.stages, 1, kMostStages));
  GNOMON_TRY(hopper ? Consumers(text, config) : Accumulators(text, config));
  GNOMON_TRY(text.Field(".k", config.split_k, 1, kMostSplit));
  if (config.split_k == 1) config.stream_k = text.Take(".sk");
  if (!config.stream_k) config.persistent = text.Take(".p");
  if (config.ping_pong && !config.persistent && !config.stream_k)
    return text.Wrong("'.p': warpgroups that take turns need more than one tile");
  if (text.Take(".g")) GNOMON_TRY(text.Number(config.group_m, 1, kMostGroup));
  GNOMON_TRY(text.End());
  return config;
}

}  // namespace

Config ToConfig(const TileConfig& c) {
  return {{c.tile_m, c.tile_n, c.tile_k, c.cluster_m, c.cluster_n, c.stages, c.consumers,
           c.ping_pong ? 1 : 0, c.pair, c.accumulators, c.split_k, c.stream_k ? 1 : 0,
           c.persistent ? 1 : 0, c.group_m}};
}

TileConfig FromConfig(const Config& config) {
  std::size_t i = 0;
  const auto next = [&] { return config.value[i++]; };
  TileConfig c;
  c.tile_m = next();
  c.tile_n = next();
  c.tile_k = next();
  c.cluster_m = next();
  c.cluster_n = next();
  c.stages = next();
  c.consumers = next();
  c.ping_pong = next() != 0;
  c.pair = next();
  c.accumulators = next();
  c.split_k = next();
  c.stream_k = next() != 0;
  c.persistent = next() != 0;
  c.group_m = next();
  return c;
}

std::string Text(Generation generation, const TileConfig& c) {
  std::string text = fmt::format("{}x{}x{}.c{}x{}.s{}", c.tile_m, c.tile_n, c.tile_k, c.cluster_m,
                                 c.cluster_n, c.stages);
  if (generation == Generation::kSm90)
    text += c.ping_pong ? ".pp2" : fmt::format(".coop{}", c.consumers);
  else
    text += fmt::format(".mma{}.acc{}", c.pair, c.accumulators);
  text += fmt::format(".k{}", c.split_k);
  if (c.stream_k) text += ".sk";
  if (c.persistent) text += ".p";
  if (c.group_m > 1) text += fmt::format(".g{}", c.group_m);
  return text;
}

Result<TileConfig> ParseConfig(Generation generation, std::string_view text) {
  return Read(generation, text);
}

}  // namespace gnomon::cuda
