// Published faults of kernel selection on AMD GPUs, each as a shape with the right side of the
// decision, and published times that the picks must be near. The sources stand at the tests.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "gnomon/families/hip/cdna_config.h"
#include "gnomon/families/hip/cdna_family.h"
#include "gnomon/gemm/select.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon::hip {
namespace {

const Device& Get(const std::string& id) {
  static std::map<std::string, Device> devices;
  if (!devices.contains(id)) devices[id] = FindDevice(id).value();
  return devices[id];
}

struct Choice {
  CdnaConfig config;
  double us = 0;
};
Choice Best(const Device& device, const Problem& problem, int units = 0) {
  const Family* families[] = {&CdnaFamily()};
  const auto picks = Select(device, problem, families, units);
  EXPECT_TRUE(picks.ok()) << picks.error().Text();
  if (!picks.ok()) return {};
  return {FromConfig(picks->front().config), InMicroseconds(picks->front().predicted)};
}

// The fastest that does not split K.
double BestWhole(const Device& device, const Problem& problem) {
  std::vector<Config> configs;
  std::vector<double> seconds;
  EXPECT_TRUE(CdnaFamily().Price(device, problem, 0, configs, seconds).ok());
  double least = 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    const CdnaConfig c = FromConfig(configs[i]);
    if (c.split_k == 1 && c.stream_k == 0 && (least == 0 || seconds[i] < least)) least = seconds[i];
  }
  return InMicroseconds({least});
}

double ReductionUs(const Problem& problem, const CdnaConfig& config) {
  for (const Term& term : CdnaFamily().Predict(Get("mi350x"), problem, ToConfig(config)).terms)
    if (term.name == "reduction") return InMicroseconds(term.time);
  return 0;
}

// facebookexperimental/triton #2269, #2289, #2329, MI350X: 124.7 µs whole, 24.1 µs split.
TEST(CdnaSelection, SplitsKWhereTilesAreFew) {
  const Choice pick = Best(Get("mi350x"), Gemm(2048, 256, 8192, DType::kFp16));
  EXPECT_GE(pick.config.split_k, 2);
  EXPECT_NEAR(pick.us / 24.1, 1, 0.25);
  EXPECT_GT(BestWhole(Get("mi350x"), Gemm(2048, 256, 8192, DType::kFp16)), 1.2 * pick.us);
}

// The same: 144.6 µs whole, 112.5 µs split. #2832 says that such timings left the kernel out that
// adds the parts; with it, the split still wins.
TEST(CdnaSelection, FillsTheUnitsThatLargeTilesLeaveIdle) {
  const Problem p = Gemm(2048, 4096, 8192, DType::kFp16);
  const Choice pick = Best(Get("mi350x"), p);
  EXPECT_EQ(pick.config.split_k, 2);
  EXPECT_EQ(pick.config.tile_m * pick.config.tile_n, 256 * 256);
  EXPECT_NEAR((pick.us - ReductionUs(p, pick.config)) / 112.5, 1, 0.15);
  CdnaConfig whole = pick.config;
  whole.split_k = 1;
  EXPECT_GT(InMicroseconds(CdnaFamily().PredictTime(Get("mi350x"), p, ToConfig(whole))),
            1.2 * pick.us);
}

// #2832: the kernel that adds 2, 4 and 8 parts of 1024×1024 takes 7.6, 9.0 and 15.1 µs.
TEST(CdnaSelection, ChargesTheReduction) {
  const Problem p = Gemm(1024, 1024, 12288, DType::kFp16);
  CdnaConfig c = {128, 128, 64, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  for (const auto& [parts, us] : std::map<int, double>{{4, 9.0}, {8, 15.1}}) {
    c.split_k = parts;
    EXPECT_NEAR(ReductionUs(p, c) / us, 1, 0.25) << parts;
  }
}

// ROCm/tritonBLAS issue 62: 128x256x128 was proposed for 128×36864×7168 on gfx950 and does not fit
// LDS once every asynchronous copy has its buffer.
TEST(CdnaSelection, CountsEveryAsynchronousBuffer) {
  const Problem p = Gemm(128, 36864, 7168, DType::kFp16);
  const CdnaConfig c = {128, 256, 128, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  EXPECT_EQ(WhyNot(Get("mi350x"), p, c), "196608 bytes of LDS; gfx950 has 163840");
  EXPECT_EQ(WhyNot(Get("mi350x"), p, Best(Get("mi350x"), p).config), "");
}

// ROCm/rocm-libraries pull 12195: 16x16 tiles of an 8 GiB result overflow 32-bit work-items.
TEST(CdnaSelection, KeepsTheGridIn32Bits) {
  const Problem p = Gemm(16777216 * 17LL, 256, 64, DType::kBf16);
  const CdnaConfig c = {16, 16, 64, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  EXPECT_NE(WhyNot(Get("mi350x"), p, c), "");
  const Choice pick = Best(Get("mi350x"), p);
  EXPECT_LT(NeedsOf(CdnaLimits(Get("mi350x"), p), pick.config).work_items, 4294967296.0);
}

// bitsandbytes pull 1934: with no workspace every candidate of the heuristic failed at launch.
TEST(CdnaSelection, HasAKernelWithoutAWorkspace) {
  Problem p = Gemm(2048, 4, 6144, DType::kInt8);
  std::vector<Config> configs;
  ASSERT_TRUE(CdnaFamily().Enumerate(Get("mi300x"), p, 0, configs).ok());
  size_t without = 0;
  p.workspace = Bytes{0};
  for (const Config& config : configs) {
    const CdnaConfig c = FromConfig(config);
    const std::string why = WhyNot(Get("mi300x"), p, c);
    EXPECT_EQ(why.empty(), c.split_k == 1 && c.stream_k == 0) << Print(c) << ": " << why;
    without += why.empty();
  }
  EXPECT_GT(without, 0u);
}

// ROCm/aiter pull 2559, MI355X, bf16: the library's default on short K, which stores bound; shapes
// whose hash is odd, as the even ones were fitted on.
TEST(CdnaSelection, KnowsWhatShortKCosts) {
  struct Default {
    std::int64_t m, n, k;
    double us;
  };
  for (const Default& row : {Default{131072, 7168, 512, 1071.5}, Default{131072, 2048, 512, 342.9},
                             Default{131072, 1536, 1536, 495.7},
                             Default{131072, 7168, 2048, 2700.3}, Default{65536, 7168, 256, 393.4},
                             Default{65536, 4096, 512, 340.4}, Default{65536, 7168, 1024, 766.0}})
    EXPECT_NEAR(Best(Get("mi355x"), Gemm(row.m, row.n, row.k, DType::kBf16)).us / row.us, 1, 0.2)
        << row.m << "x" << row.n << "x" << row.k;
}

// ROCm/hipBLASLt issue 1721: 16384³ fp8 ran at 28 TFLOP/s beside 907 at 8192³ (at 1005 MHz).
TEST(CdnaSelection, DoesNotFallOffWhereOperandsOutgrowTheCache) {
  const auto tflops = [](std::int64_t side) {
    const Problem p = Gemm(side, side, side, DType::kFp8E4m3Fnuz);
    return p.flops().value / Best(Get("mi300x"), p).us / 1e6;
  };
  EXPECT_GT(tflops(16384), 0.9 * tflops(8192));
}

// Odd K: no vector loads and no direct-to-LDS, yet a kernel; padding it would be worth more.
TEST(CdnaSelection, RunsOddK) {
  const Choice odd = Best(Get("mi350x"), Gemm(262144, 176, 257, DType::kFp16));
  EXPECT_EQ(odd.config.direct_to_lds, 0);
  EXPECT_GT(odd.us, Best(Get("mi350x"), Gemm(262144, 176, 264, DType::kFp16)).us);
}

// TheRock issue 7893 and aiter pull 3077: parts of a chip (38 CUs) and small ones (80 CUs) have
// kernels without a table of their own, and what is picked fills them.
TEST(CdnaSelection, AsksNoTableOfTheUnitCount) {
  const Problem p = Gemm(512, 4096, 4096, DType::kBf16);
  for (const int units : {38, 64, 80, 228}) {
    const Choice pick = Best(Get("mi300x"), p, units);
    const double tiles =
        std::ceil(512.0 / pick.config.tile_m) * std::ceil(4096.0 / pick.config.tile_n);
    const double waves = pick.config.stream_k ? 1 : tiles * pick.config.split_k / units;
    EXPECT_GT(waves / std::ceil(waves), 0.6) << units << " " << Print(pick.config);
    EXPECT_GT(pick.us, Best(Get("mi300x"), p).us);
  }
  EXPECT_GT(Best(Get("mi308x"), p).us, 2 * Best(Get("mi300x"), p).us);
}

// aiter issue 5380: decode shapes of a router gate, M of a few rows, N of 32 and 256.
TEST(CdnaSelection, TakesSmallTilesAndASplitForAGate) {
  for (const std::int64_t m : {8, 80, 88})
    for (const std::int64_t n : {32, 256}) {
      const Choice pick = Best(Get("mi300x"), Gemm(m, n, 6144, DType::kBf16));
      EXPECT_LE(pick.config.tile_m * pick.config.tile_n, 64 * 64);
      EXPECT_GE(pick.config.split_k, 2) << m << "x" << n;
      EXPECT_LT(pick.us, 25);
    }
}

}  // namespace
}  // namespace gnomon::hip
