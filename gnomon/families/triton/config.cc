// Config strings of family triton.
//
//   128x256x64.w8.s3.k1[.g4][.p][.e2][.i32][.kp2]
//   block m x n x k, warps, stages, split of K; then only what differs from the defaults
//
// Block sides and warps are powers of two, as tl.arange and num_warps demand. Equal configs have
// equal strings; Parse takes the optional fields in this order only.

#include <fmt/format.h>

#include "gnomon/families/triton/triton_gemm.h"
#include "gnomon/gemm/config_text.h"

namespace gnomon::triton {
namespace {

constexpr std::string_view kForm = "128x128x64.w4.s3.k1";

Status Mfma(ConfigText& text, std::int32_t& value) {
  if (text.Take("16")) {
    value = 16;
    return Done{};
  }
  if (!text.Take("32")) return text.Wrong("16 or 32");
  value = 32;
  return Done{};
}

}  // namespace

Config ToConfig(const TritonConfig& c) {
  return {{c.block_m, c.block_n, c.block_k, c.warps, c.stages, c.split_k, c.group_m,
           c.persistent ? 1 : 0, c.waves_per_eu, c.mfma, c.kpack}};
}

TritonConfig FromConfig(const Config& config) {
  const auto& v = config.value;
  TritonConfig c;
  c.block_m = v[0];
  c.block_n = v[1];
  c.block_k = v[2];
  c.warps = v[3];
  c.stages = v[4];
  c.split_k = v[5];
  c.group_m = v[6];
  c.persistent = v[7] != 0;
  c.waves_per_eu = v[8];
  c.mfma = v[9];
  c.kpack = v[10];
  return c;
}

std::string Text(const TritonConfig& c) {
  const TritonConfig usual;
  std::string text = fmt::format("{}x{}x{}.w{}.s{}.k{}", c.block_m, c.block_n, c.block_k, c.warps,
                                 c.stages, c.split_k);
  if (c.group_m != usual.group_m) text += fmt::format(".g{}", c.group_m);
  if (c.persistent) text += ".p";
  if (c.waves_per_eu != usual.waves_per_eu) text += fmt::format(".e{}", c.waves_per_eu);
  if (c.mfma != usual.mfma) text += fmt::format(".i{}", c.mfma);
  if (c.kpack != usual.kpack) text += fmt::format(".kp{}", c.kpack);
  return text;
}

Result<TritonConfig> ParseConfig(std::string_view config_text) {
  constexpr std::int32_t kMostSide = 1024, kMostWarps = 32, kMostStages = 8, kMostSplit = 4096;
  constexpr std::int32_t kMostGroup = 1 << 20, kMostPerUnit = 10, kMostPack = 2;
  TritonConfig config;
  ConfigText text(config_text, "triton", kForm);
  GNOMON_TRY(text.PowerOfTwo(config.block_m, kMostSide));
  GNOMON_TRY(text.Literal("x"));
  GNOMON_TRY(text.PowerOfTwo(config.block_n, kMostSide));
  GNOMON_TRY(text.Literal("x"));
  GNOMON_TRY(text.PowerOfTwo(config.block_k, kMostSide));
  GNOMON_TRY(text.Literal(".w"));
  GNOMON_TRY(text.PowerOfTwo(config.warps, kMostWarps));
  GNOMON_TRY(text.Field(".s", config.stages, 1, kMostStages));
  GNOMON_TRY(text.Field(".k", config.split_k, 1, kMostSplit));
  if (text.Take(".g")) GNOMON_TRY(text.Number(config.group_m, 1, kMostGroup));
  config.persistent = text.Take(".p");
  if (text.Take(".e")) GNOMON_TRY(text.Number(config.waves_per_eu, 1, kMostPerUnit));
  if (text.Take(".i")) GNOMON_TRY(Mfma(text, config.mfma));
  if (text.Take(".kp")) GNOMON_TRY(text.Number(config.kpack, 1, kMostPack));
  GNOMON_TRY(text.End());
  return config;
}

}  // namespace gnomon::triton
