// Config strings of family triton.
//
//   128x256x64.w8.s3.k1[.g4][.p][.e2][.i32][.kp2]
//   block m x n x k, warps, stages, split of K; then only what differs from the defaults
//
// Block sides and warps are powers of two, as tl.arange and num_warps demand. Equal configs have
// equal strings; Parse takes the optional fields in this order only.

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "gnomon/families/triton/triton_gemm.h"

namespace gnomon::triton {
namespace {

constexpr std::string_view kForm = "128x128x64.w4.s3.k1";

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view text) : text_(text) {}

  Result<TritonConfig> Read() {
    TritonConfig config;
    constexpr std::int32_t kMostSide = 1024, kMostWarps = 32, kMostStages = 8, kMostSplit = 4096;
    GNOMON_TRY(PowerOfTwo(config.block_m, kMostSide));
    GNOMON_TRY(Literal("x"));
    GNOMON_TRY(PowerOfTwo(config.block_n, kMostSide));
    GNOMON_TRY(Literal("x"));
    GNOMON_TRY(PowerOfTwo(config.block_k, kMostSide));
    GNOMON_TRY(Literal(".w"));
    GNOMON_TRY(PowerOfTwo(config.warps, kMostWarps));
    GNOMON_TRY(Literal(".s"));
    GNOMON_TRY(Number(config.stages, kMostStages));
    GNOMON_TRY(Literal(".k"));
    GNOMON_TRY(Number(config.split_k, kMostSplit));
    constexpr std::int32_t kMostGroup = 1 << 20, kMostPerUnit = 10, kMostPack = 2;
    if (Take(".g")) GNOMON_TRY(Number(config.group_m, kMostGroup));
    if (Take(".p")) config.persistent = true;
    if (Take(".e")) GNOMON_TRY(Number(config.waves_per_eu, kMostPerUnit));
    if (Take(".i")) GNOMON_TRY(Mfma(config.mfma));
    if (Take(".kp")) GNOMON_TRY(Number(config.kpack, kMostPack));
    if (at_ != text_.size()) return Wrong("the end");
    return config;
  }

 private:
  Error Wrong(std::string_view expected) const {
    const std::string_view rest = text_.substr(at_);
    return BadInput(
        fmt::format("config '{}', position {}: expected {}, found {} (a config of "
                    "family triton reads like {})",
                    text_, at_ + 1, expected,
                    rest.empty() ? "the end" : fmt::format("'{}'", rest.substr(0, 8)), kForm));
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

  Status PowerOfTwo(std::int32_t& value, std::int32_t most) {
    const size_t begin = at_;
    GNOMON_TRY(Number(value, most));
    if (std::has_single_bit(static_cast<std::uint32_t>(value))) return Done{};
    at_ = begin;
    return Wrong(fmt::format("a power of two up to {}", most));
  }

  Status Mfma(std::int32_t& value) {
    const size_t begin = at_;
    GNOMON_TRY(Number(value, 32));
    if (value == 16 || value == 32) return Done{};
    at_ = begin;
    return Wrong("16 or 32");
  }

  std::string_view text_;
  size_t at_ = 0;
};

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

Result<TritonConfig> ParseConfig(std::string_view text) { return ConfigReader(text).Read(); }

}  // namespace gnomon::triton
