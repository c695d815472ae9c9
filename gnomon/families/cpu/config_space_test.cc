#include "gnomon/families/cpu/config_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "gnomon/families/cpu/dot.h"
#include "gnomon/families/cpu/kernel.h"
#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/select.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon::cpu {
namespace {

using testing::HasSubstr;

Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout,
             DType dtype = DType::kFp32) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.layout = layout;
  p.dtype = p.dtype_out = dtype;
  return p;
}

// Sides of one, primes, tile edges, tall, wide, and ordinary ones, in every layout.
std::vector<Problem> ManyProblems(DType dtype) {
  std::vector<Problem> problems;
  for (const Layout layout : {Layout::kNN, Layout::kNT, Layout::kTN, Layout::kTT})
    for (const std::int64_t m : {1, 2, 5, 14, 15, 127, 4096})
      for (const std::int64_t n : {1, 13, 16, 33, 367, 1024})
        for (const std::int64_t k : {1, 31, 256, 3456})
          problems.push_back(Gemm(m, n, k, layout, dtype));
  return problems;
}

std::vector<Config> Space(const Device& device, const Problem& problem, int units = 0) {
  std::vector<Config> configs;
  const Status status = GemmFamily().Enumerate(device, problem, units, configs);
  EXPECT_TRUE(status.ok()) << status.error().Text();
  return configs;
}

void ExpectRegistersHold(const GemmConfig& c, int registers, const std::string& text) {
  if (c.kernel == GemmConfig::Kernel::kAmx) return;
  EXPECT_LE(c.mr * c.nr + c.nr + 1, registers) << text;
}

TEST(ConfigSpace, FitsSixteenAndThirtyTwoRegisters) {
  for (const int bits : {256, 512}) {
    const Device device = FixedCpu(bits);
    for (const Problem& problem : ManyProblems(DType::kFp32)) {
      const std::vector<Config> configs = Space(device, problem);
      ASSERT_FALSE(configs.empty()) << problem.Text();
      for (const Config& config : configs)
        ExpectRegistersHold(FromConfig(config), device.vector_registers,
                            GemmFamily().Print(config));
    }
  }
}

TEST(ConfigSpace, EveryConfigIsOneThatTheKernelsTake) {
  // The kernels check against this machine, so the device has no more registers than it.
  const Device device = FixedCpu(PanelTileKernels().registers == 32 ? 512 : 256);
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    Device host = device;
    if (!HasAmx()) host.matrix.clear();
    for (const Problem& problem : ManyProblems(dtype)) {
      for (const Config& config : Space(host, problem)) {
        const Status status = CheckConfig(problem, FromConfig(config));
        ASSERT_TRUE(status.ok()) << GemmFamily().Print(config) << ": " << status.error().Text();
      }
    }
  }
}

TEST(ConfigSpace, KeepsWithinTheUnitsAsked) {
  Device device = FixedCpu();
  device.units = 48;
  std::set<int> counts;
  for (const Config& config : Space(device, Gemm(4096, 1024, 1024, Layout::kNT), 12)) {
    const int threads = FromConfig(config).threads;
    EXPECT_LE(threads, 12);
    counts.insert(threads);
  }
  EXPECT_TRUE(counts.contains(12));
}

TEST(ConfigSpace, OffersOneThreadOnlyWhereWorkIsSmall) {
  const Device device = FixedCpu();
  for (const Config& config : Space(device, Gemm(2048, 1024, 1024, Layout::kNT)))
    EXPECT_EQ(FromConfig(config).threads, 2);
  for (const Config& config : Space(device, Gemm(4, 4, 4, Layout::kNT)))
    EXPECT_EQ(FromConfig(config).threads, 1);
}

TEST(ConfigSpace, HasNoConfigTwiceAndStaysSmall) {
  constexpr size_t kMost = 250;  // what `select` can price in microseconds
  for (const Problem& problem : ManyProblems(DType::kFp32)) {
    std::set<std::string> seen;
    const std::vector<Config> configs = Space(FixedCpu(), problem);
    EXPECT_LE(configs.size(), kMost) << problem.Text();
    for (const Config& config : configs) {
      const std::string text = GemmFamily().Print(config);
      EXPECT_TRUE(seen.insert(text).second) << problem.Text() << " has " << text << " twice";
    }
  }
}

TEST(ConfigSpace, UsesTilesForBf16WhereTheDeviceHasThem) {
  const Device amx = FixedCpu();
  bool tiles = false;
  for (const Config& config : Space(amx, Gemm(2048, 512, 256, Layout::kNT, DType::kBf16)))
    tiles |= FromConfig(config).kernel == GemmConfig::Kernel::kAmx;
  EXPECT_TRUE(tiles);
  for (const Config& config : Space(FixedCpu(256), Gemm(2048, 512, 256, Layout::kNT, DType::kBf16)))
    EXPECT_NE(FromConfig(config).kernel, GemmConfig::Kernel::kAmx);
}

TEST(Config, PrintAndParseAreEachOthersInverse) {
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    for (const Problem& problem : ManyProblems(dtype)) {
      for (const Config& config : Space(FixedCpu(), problem)) {
        const std::string text = GemmFamily().Print(config);
        const Result<Config> back = GemmFamily().Parse(text);
        ASSERT_TRUE(back.ok()) << back.error().Text();
        EXPECT_EQ(*back, config) << text;
      }
    }
  }
}

TEST(Config, HasAGoldenForm) {
  GemmConfig c;
  c.mr = 14;
  c.nr = 2;
  c.kc = 256;
  c.pack_b = true;
  c.threads = 2;
  EXPECT_EQ(GemmFamily().Print(ToConfig(c)), "tile.14x2.kc256.mc0.nc0.pa0.pb1.ln1.sM.t2");
  c.kernel = GemmConfig::Kernel::kDot;
  c.mr = 8;
  c.nr = 1;
  c.kc = 0;
  c.pack_b = false;
  c.loop_n_outer = false;
  c.split = GemmConfig::Split::kK;
  EXPECT_EQ(GemmFamily().Print(ToConfig(c)), "dot.8x1.kc0.mc0.nc0.pa0.pb0.ln0.sK.t2");
}

TEST(Config, ParseNamesThePlaceAndTheNearest) {
  const std::pair<const char*, const char*> cases[] = {
      {"tiel.14x2.kc0.mc0.nc0.pa0.pb1.ln1.sM.t2", "nearest is 'tile'"},
      {"tile.14y2.kc0.mc0.nc0.pa0.pb1.ln1.sM.t2", "position 8: expected 'x'"},
      {"tile.0x2.kc0.mc0.nc0.pa0.pb1.ln1.sM.t2", "position 6: expected a whole number from 1"},
      {"tile.14x2.kc-1.mc0.nc0.pa0.pb1.ln1.sM.t2", "position 13"},
      {"tile.14x2.kc0.mc0.nc0.pa2.pb1.ln1.sM.t2", "position 25: expected 0 or 1"},
      {"tile.14x2.kc0.mc0.nc0.pa0.pb1.ln1.sQ.t2", "expected M, N or K"},
      {"tile.14x2.kc0.mc0.nc0.pa0.pb1.ln1.sM", "expected '.t', found the end"},
      {"tile.14x2.kc0.mc0.nc0.pa0.pb1.ln1.sM.t2.x", "expected the end"},
      {"tile.14x2.kc99999999999.mc0.nc0.pa0.pb1.ln1.sM.t2", "position 13"},
      {"", "unknown kernel ''"}};
  for (const auto& [text, wanted] : cases) {
    const Result<Config> parsed = GemmFamily().Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, Error::Code::kBadInput);
    EXPECT_THAT(parsed.error().Text(), HasSubstr(wanted)) << text;
  }
}

TEST(Family, RefusesGpusAndTypesItHasNoKernelFor) {
  std::vector<Config> configs;
  EXPECT_FALSE(GemmFamily().Enumerate(FixedGpu(), Gemm(8, 8, 8, Layout::kNT), 0, configs).ok());
  EXPECT_FALSE(GemmFamily()
                   .Enumerate(FixedCpu(), Gemm(8, 8, 8, Layout::kNT, DType::kInt8), 0, configs)
                   .ok());
  EXPECT_FALSE(GemmFamily().Enumerate(FixedCpu(), Gemm(0, 8, 8, Layout::kNT), 0, configs).ok());
  EXPECT_TRUE(configs.empty());
}

TEST(Family, PricesWhatItEnumerates) {
  const Device device = FixedCpu();
  for (const Problem& problem :
       {Gemm(2048, 512, 13, Layout::kNT), Gemm(256, 512, 2048, Layout::kTN)}) {
    std::vector<Config> configs;
    std::vector<double> seconds;
    ASSERT_TRUE(GemmFamily().Price(device, problem, 2, configs, seconds).ok());
    ASSERT_EQ(configs, Space(device, problem, 2));
    for (size_t i = 0; i < configs.size(); ++i)
      EXPECT_EQ(seconds[i], GemmFamily().PredictTime(device, problem, configs[i]).value);
  }
}

}  // namespace
}  // namespace gnomon::cpu
