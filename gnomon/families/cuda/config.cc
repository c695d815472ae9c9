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

#include <bit>
#include <charconv>

namespace gnomon::cuda {
namespace {

constexpr std::string_view kForm90 = "128x256x64.c2x1.s4.coop2.k1";
constexpr std::string_view kForm100 = "128x256x64.c2x1.s6.mma2.acc2.k1";

class ConfigReader {
 public:
  ConfigReader(Generation generation, std::string_view text)
      : generation_(generation), text_(text) {}

  Result<TileConfig> Read() {
    constexpr std::int32_t kSideStep = 8, kMostSide = 256, kDepthStep = 16, kMostDepth = 512;
    constexpr std::int32_t kMostCluster = 16, kMostStages = 32, kMostSplit = 4096;
    constexpr std::int32_t kMostGroup = 1 << 20;
    TileConfig config;
    GNOMON_TRY(Multiple(config.tile_m, kSideStep, kMostSide));
    GNOMON_TRY(Literal("x"));
    GNOMON_TRY(Multiple(config.tile_n, kSideStep, kMostSide));
    GNOMON_TRY(Literal("x"));
    GNOMON_TRY(Multiple(config.tile_k, kDepthStep, kMostDepth));
    GNOMON_TRY(Literal(".c"));
    GNOMON_TRY(PowerOfTwo(config.cluster_m, kMostCluster));
    GNOMON_TRY(Literal("x"));
    GNOMON_TRY(PowerOfTwo(config.cluster_n, kMostCluster / config.cluster_m));
    GNOMON_TRY(Literal(".s"));
    GNOMON_TRY(Number(config.stages, kMostStages));
    GNOMON_TRY(generation_ == Generation::kSm90 ? Consumers(config) : Accumulators(config));
    GNOMON_TRY(Literal(".k"));
    GNOMON_TRY(Number(config.split_k, kMostSplit));
    if (config.split_k == 1) config.stream_k = Take(".sk");
    if (!config.stream_k) config.persistent = Take(".p");
    if (config.ping_pong && !config.persistent && !config.stream_k)
      return Wrong("'.p': warpgroups that take turns need more than one tile");
    if (Take(".g")) GNOMON_TRY(Number(config.group_m, kMostGroup));
    if (at_ != text_.size()) return Wrong("the end");
    return config;
  }

 private:
  Status Consumers(TileConfig& config) {
    if (Take(".pp2")) {
      config.ping_pong = true;
      return Done{};
    }
    if (!Take(".coop")) return Wrong("'.coop1', '.coop2' or '.pp2'");
    return Number(config.consumers, 2);
  }

  Status Accumulators(TileConfig& config) {
    GNOMON_TRY(Literal(".mma"));
    GNOMON_TRY(Number(config.pair, 2));
    GNOMON_TRY(Literal(".acc"));
    return Number(config.accumulators, 2);
  }

  Error Wrong(std::string_view expected) const {
    const std::string_view rest = text_.substr(at_);
    const bool hopper = generation_ == Generation::kSm90;
    constexpr size_t kShown = 8;
    return BadInput(fmt::format(
        "config '{}', position {}: expected {}, found {} (a config of family {} reads like {})",
        text_, at_ + 1, expected,
        rest.empty() ? "the end" : fmt::format("'{}'", rest.substr(0, kShown)),
        hopper ? "sm90" : "sm100", hopper ? kForm90 : kForm100));
  }

  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Status Literal(std::string_view word) {
    if (!Take(word)) return Wrong(fmt::format("'{}'", word));
    return Done{};
  }

  Status Number(std::int32_t& value, std::int32_t most) {
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 1 || value > most || *begin == '0')
      return Wrong(fmt::format("a whole number from 1 to {}", most));
    at_ += static_cast<size_t>(end - begin);
    return Done{};
  }

  Status Multiple(std::int32_t& value, std::int32_t step, std::int32_t most) {
    const size_t begin = at_;
    if (Number(value, most).ok() && value % step == 0) return Done{};
    at_ = begin;
    return Wrong(fmt::format("a multiple of {} up to {}", step, most));
  }

  Status PowerOfTwo(std::int32_t& value, std::int32_t most) {
    const size_t begin = at_;
    if (Number(value, most).ok() && std::has_single_bit(static_cast<std::uint32_t>(value)))
      return Done{};
    at_ = begin;
    return Wrong(fmt::format("a power of two up to {}", most));
  }

  Generation generation_;
  std::string_view text_;
  size_t at_ = 0;
};

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
  return ConfigReader(generation, text).Read();
}

}  // namespace gnomon::cuda
