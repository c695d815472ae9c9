// Config strings of family cuda.
//
//   tma.128x256.c2x1.both.k1[.fix][.sk][.g8]     kind, tile of a CTA, cluster, who multiplies,
//   split copy.64x32.c1x1.turns.k4[.fix][.sk][.g8]     of K; then what differs from the defaults
//   pad.128x64.c1x1.turns.k1[.fix][.sk][.g8]
//   vector.8x4.k16
//
// Equal configs have equal strings; the optional fields come in this order only. What contradicts
// itself is refused here (parts of K to add where K is whole, two splits); whether there is such a
// kernel, and whether it can do a problem, is kernel_needs.h's to say.

#include "gnomon/families/cuda/kernel_config.h"

#include <fmt/format.h>

#include "gnomon/gemm/config_text.h"

namespace gnomon::cuda {
namespace {

constexpr std::string_view kForm = "tma.128x256.c2x1.both.k1.g8";
constexpr std::int32_t kMostSplit = 4096;

std::string_view Name(Consumers consumers) {
  switch (consumers) {
    case Consumers::kOne:
      return "one";
    case Consumers::kBoth:
      return "both";
    case Consumers::kTurns:
      return "turns";
  }
  return {};
}

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kTma:
      return "tma";
    case Kind::kCopy:
      return "copy";
    case Kind::kPad:
      return "pad";
    case Kind::kVector:
      return "vector";
  }
  return {};
}

Status ReadConsumers(ConfigText& text, Consumers& consumers) {
  GNOMON_TRY(text.Literal("."));
  for (const Consumers known : {Consumers::kBoth, Consumers::kTurns, Consumers::kOne}) {
    if (!text.Take(Name(known))) continue;
    consumers = known;
    return Done{};
  }
  return text.Wrong("'both', 'turns' or 'one'");
}

Status ReadTile(ConfigText& text, KernelConfig& c) {
  constexpr std::int32_t kSideStep = 8, kMostSide = 256, kMostCluster = 16;
  GNOMON_TRY(text.Multiple(c.tile_m, kSideStep, kMostSide));
  GNOMON_TRY(text.Literal("x"));
  GNOMON_TRY(text.Multiple(c.tile_n, kSideStep, kMostSide));
  GNOMON_TRY(text.Literal(".c"));
  GNOMON_TRY(text.PowerOfTwo(c.cluster_m, kMostCluster));
  GNOMON_TRY(text.Literal("x"));
  GNOMON_TRY(text.PowerOfTwo(c.cluster_n, kMostCluster / c.cluster_m));
  return ReadConsumers(text, c.consumers);
}

Status ReadVectorTile(ConfigText& text, KernelConfig& c) {
  constexpr std::int32_t kMostSide = 4096;
  c.consumers = Consumers::kOne;
  GNOMON_TRY(text.Number(c.tile_m, 1, kMostSide));
  GNOMON_TRY(text.Literal("x"));
  return text.Number(c.tile_n, 1, kMostSide);
}

}  // namespace

Config ToConfig(const KernelConfig& c) {
  return {{static_cast<std::int32_t>(c.kind), c.tile_m, c.tile_n,
           static_cast<std::int32_t>(c.consumers), c.cluster_m, c.cluster_n, c.split_k,
           c.fix_up ? 1 : 0, c.stream_k ? 1 : 0, c.group_m}};
}

KernelConfig KernelConfigFrom(const Config& config) {
  std::size_t i = 0;
  const auto next = [&] { return config.value[i++]; };
  KernelConfig c;
  c.kind = static_cast<Kind>(next());
  c.tile_m = next();
  c.tile_n = next();
  c.consumers = static_cast<Consumers>(next());
  c.cluster_m = next();
  c.cluster_n = next();
  c.split_k = next();
  c.fix_up = next() != 0;
  c.stream_k = next() != 0;
  c.group_m = next();
  return c;
}

std::string Text(const KernelConfig& c) {
  if (c.kind == Kind::kVector)
    return fmt::format("vector.{}x{}.k{}", c.tile_m, c.tile_n, c.split_k);
  std::string text = fmt::format("{}.{}x{}.c{}x{}.{}.k{}", Name(c.kind), c.tile_m, c.tile_n,
                                 c.cluster_m, c.cluster_n, Name(c.consumers), c.split_k);
  if (c.fix_up) text += ".fix";
  if (c.stream_k) text += ".sk";
  if (c.group_m > 1) text += fmt::format(".g{}", c.group_m);
  return text;
}

Result<KernelConfig> ParseKernelConfig(std::string_view config_text) {
  constexpr std::int32_t kMostGroup = 1 << 20;
  ConfigText text(config_text, "cuda", kForm);
  KernelConfig c;
  if (text.Take("vector.")) {
    c.kind = Kind::kVector;
    GNOMON_TRY(ReadVectorTile(text, c));
  } else if (text.Take("tma.") || text.Take("copy.") || text.Take("pad.")) {
    const char first = config_text.front();
    c.kind = first == 't' ? Kind::kTma : first == 'c' ? Kind::kCopy : Kind::kPad;
    GNOMON_TRY(ReadTile(text, c));
  } else {
    return text.Wrong("'tma.', 'copy.', 'pad.' or 'vector.'");
  }
  GNOMON_TRY(text.Field(".k", c.split_k, 1, kMostSplit));
  if (c.kind != Kind::kVector) {
    if (c.split_k > 1) c.fix_up = text.Take(".fix");
    if (c.split_k == 1) c.stream_k = text.Take(".sk");
    if (text.Take(".g")) GNOMON_TRY(text.Number(c.group_m, 2, kMostGroup));
  }
  GNOMON_TRY(text.End());
  return c;
}

}  // namespace gnomon::cuda
