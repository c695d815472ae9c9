#include "gnomon/families/hip/cdna_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "gnomon/families/hip/cdna_config.h"
#include "gnomon/gemm/select.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon::hip {
namespace {

using testing::HasSubstr;

const Device& Get(const std::string& id) {
  static std::map<std::string, Device> devices;
  if (!devices.contains(id)) devices[id] = FindDevice(id).value();
  return devices[id];
}

Pick Best(const Device& device, const Problem& problem, int units = 0) {
  const Family* families[] = {&CdnaFamily()};
  const auto picks = Select(device, problem, families, units);
  EXPECT_TRUE(picks.ok()) << picks.error().Text();
  return picks.ok() ? picks->front() : Pick{};
}

double Us(const Device& device, const Problem& problem) {
  return InMicroseconds(Best(device, problem).predicted);
}

TEST(CdnaConfig, PrintsAndReadsTheSameString) {
  const std::string text = "256x224x64.mi16x16x32.w4.pgr2.dtl1.sk4.str0.wgm8.nt0";
  const auto config = CdnaFamily().Parse(text);
  ASSERT_TRUE(config.ok()) << config.error().Text();
  const CdnaConfig c = FromConfig(*config);
  EXPECT_EQ(c.tile_m, 256);
  EXPECT_EQ(c.tile_n, 224);
  EXPECT_EQ(c.split_k, 4);
  EXPECT_EQ(c.mapping, 8);
  EXPECT_EQ(CdnaFamily().Print(*config), text);
}

TEST(CdnaConfig, RefusesNonsenseWithItsPlaceOrTheNearestInstruction) {
  const auto error = [](const char* text) { return CdnaFamily().Parse(text).error().Text(); };
  EXPECT_THAT(error("256x224x64.mi16x16x33.w4.pgr2.dtl1.sk4.str0.wgm8.nt0"),
              HasSubstr("no matrix instruction 16x16x33; nearest is 16x16x3"));
  EXPECT_THAT(error("256x224x64.mi16x16x32.w4.pgr2.dtl2.sk4.str0.wgm8.nt0"),
              HasSubstr("position 34: expected 0 or 1, found '2.sk4.st'"));
  EXPECT_THAT(error("256x224x64.mi16x16x32.w4.pgr2.dtl1.sk0.str0.wgm8.nt0"),
              HasSubstr("expected a whole number from 1"));
  EXPECT_THAT(error("256x224x64.mi16x16x32.w4.pgr2.dtl1.sk4.str0.wgm8.nt0x"),
              HasSubstr("expected the end, found 'x'"));
  EXPECT_THAT(error(""), HasSubstr("found the end"));
}

TEST(CdnaConfig, CountsRegistersAndLds) {
  // 256·256 accumulators over 4 waves of 64 lanes: 256 registers of 512; LDS: 2 · 512 · 64 · 2 B.
  const CdnaConfig c = {256, 256, 64, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  const CdnaNeeds needs = NeedsOf(CdnaLimits(Get("mi350x"), Gemm(4096, 4096, 4096)), c);
  EXPECT_GT(needs.registers, 256);
  EXPECT_LE(needs.registers, 512);
  EXPECT_DOUBLE_EQ(needs.lds.value, 131072);
  EXPECT_TRUE(WhyNot(Get("mi350x"), Gemm(4096, 4096, 4096), c).empty());
}

TEST(CdnaConfig, NamesWhatDoesNotFit) {
  const Problem p = Gemm(4096, 4096, 4096);
  const auto why = [](const char* device, const Problem& problem, const CdnaConfig& c) {
    return WhyNot(Get(device), problem, c);
  };
  CdnaConfig c = {256, 256, 64, 16, 16, 16, 4, 2, 0, 1, 0, 1, 0};
  EXPECT_THAT(why("mi300x", p, c), HasSubstr("131072 bytes of LDS; gfx942 has 65536"));
  c = {512, 256, 64, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  EXPECT_THAT(why("mi350x", p, c), HasSubstr("registers a lane; gfx950 has 512"));
  c = {128, 128, 64, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  EXPECT_THAT(why("mi300x", p, c), HasSubstr("gfx942 has no 16x16x32 instruction for bf16"));
  EXPECT_THAT(why("mi350x", Gemm(4096, 4096, 4097), c), HasSubstr("direct-to-LDS moves 16 bytes"));
  c = {128, 128, 48, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  EXPECT_THAT(why("mi350x", p, c), HasSubstr("not made of whole 16x16x32 instructions"));
  c = {128, 128, 64, 16, 16, 32, 4, 2, 1, 128, 0, 1, 0};
  EXPECT_THAT(why("mi350x", p, c), HasSubstr("fewer steps of 64 than 128 parts"));
}

TEST(CdnaFamily, EnumeratesOnlyWhatCanRun) {
  for (const char* id : {"mi250x", "mi300x", "mi308x", "mi350x", "mi355x"})
    for (const DType dtype : {DType::kFp64, DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt8,
                              DType::kFp8E4m3, DType::kFp8E4m3Fnuz, DType::kMxFp4})
      for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                            {1, 4096, 4096},
                                                                            {17, 33, 257},
                                                                            {4096, 4096, 4096},
                                                                            {131072, 7168, 256},
                                                                            {2147483647, 16, 64}}) {
        const Problem p = Gemm(m, n, k, dtype);
        std::vector<Config> configs;
        if (!CdnaFamily().Enumerate(Get(id), p, 0, configs).ok()) continue;
        std::set<std::string> seen;
        for (const Config& config : configs) {
          EXPECT_EQ(WhyNot(Get(id), p, FromConfig(config)), "") << CdnaFamily().Print(config);
          EXPECT_TRUE(seen.insert(CdnaFamily().Print(config)).second) << "twice";
          const auto back = CdnaFamily().Parse(CdnaFamily().Print(config));
          ASSERT_TRUE(back.ok());
          EXPECT_EQ(*back, config);
        }
        const bool mx_needs_blocks = dtype == DType::kMxFp4 && k % 32 != 0;
        EXPECT_EQ(configs.empty(), mx_needs_blocks) << id << " " << p.Text();
      }
}

TEST(CdnaFamily, RefusesWhatTheDeviceHasNot) {
  std::vector<Config> configs;
  const auto refused = [&](const char* id, DType dtype) {
    return CdnaFamily().Enumerate(Get(id), Gemm(64, 64, 64, dtype), 0, configs).error().Text();
  };
  EXPECT_THAT(refused("h100", DType::kBf16), HasSubstr("runs on AMD GPUs"));
  EXPECT_THAT(refused("mi300x", DType::kFp8E4m3), HasSubstr("gfx942 has no matrix instruction"));
  EXPECT_THAT(refused("mi350x", DType::kFp8E4m3Fnuz), HasSubstr("gfx950 has no matrix"));
  EXPECT_THAT(refused("mi300x", DType::kMxFp4), HasSubstr("for mxfp4"));
}

TEST(CdnaFamily, TermsAddUpToTheTimeThatSelectCompares) {
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 4096, 4096}, {256, 256, 8192}, {3072, 4096, 768}, {8192, 8192, 8192}}) {
    const Problem p = Gemm(m, n, k);
    std::vector<Config> configs;
    std::vector<double> seconds;
    ASSERT_TRUE(CdnaFamily().Price(Get("mi350x"), p, 0, configs, seconds).ok());
    ASSERT_EQ(configs.size(), seconds.size());
    for (size_t i = 0; i < configs.size(); ++i) {
      const Prediction prediction = CdnaFamily().Predict(Get("mi350x"), p, configs[i]);
      double sum = 0;
      for (const Term& term : prediction.terms) sum += term.time.value;
      EXPECT_NEAR(sum / prediction.time.value, 1, 1e-9) << CdnaFamily().Print(configs[i]);
      EXPECT_DOUBLE_EQ(prediction.time.value, seconds[i]);
      EXPECT_DOUBLE_EQ(CdnaFamily().PredictTime(Get("mi350x"), p, configs[i]).value, seconds[i]);
    }
  }
}

TEST(CdnaFamily, MoreWorkNeverTakesLess) {
  for (const char* id : {"mi300x", "mi350x"})
    for (std::int64_t m = 16; m <= 65536; m *= 2)
      for (const auto& [n, k] : std::vector<std::array<std::int64_t, 2>>{
               {512, 512}, {4096, 256}, {4096, 4096}, {7168, 2048}}) {
        const double one = Us(Get(id), Gemm(m, n, k));
        EXPECT_GE(Us(Get(id), Gemm(2 * m, n, k)), one * 0.999) << id << " " << m << "x" << n;
        EXPECT_GE(Us(Get(id), Gemm(m, n, 2 * k)), one * 0.999) << id << " " << m << "x" << n;
      }
}

TEST(CdnaFamily, MoreBandwidthAndClockAreNeverSlower) {
  const Device& base = Get("mi350x");
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {16, 8192, 8192}, {2048, 256, 8192}, {4096, 4096, 4096}, {131072, 7168, 256}}) {
    const Problem p = Gemm(m, n, k);
    const double us = Us(base, p);
    Device faster = base;
    faster.memory.back().peak_bandwidth = 1.5 * faster.memory.back().peak_bandwidth;
    EXPECT_LE(Us(faster, p), us * 1.0001);
    faster = base;
    faster.boost_clock = 1.2 * base.boost_clock;
    faster.sustained_clock = 1.2 * base.sustained_clock;
    EXPECT_LT(Us(faster, p), us);
  }
}

TEST(CdnaFamily, TakesGroupsAsTilesOfTheirOwn) {
  const Device& card = Get("mi350x");
  const Config config =
      CdnaFamily().Parse("128x128x64.mi16x16x32.w4.pgr2.dtl1.sk1.str0.wgm4.nt0").value();
  const auto time = [&](const Problem& p) {
    return CdnaFamily().PredictTime(card, p, config).value;
  };
  const Problem one = Gemm(8192, 4096, 1024);
  Problem groups = one;
  groups.group_m = {0, 8192, 0};
  EXPECT_EQ(time(groups), time(one));
  EXPECT_EQ(Us(card, groups), Us(card, one));
  groups.group_m.assign(64, 128);
  EXPECT_GT(time(groups), time(one));  // a B each
  Problem batch = Gemm(128, 4096, 1024);
  batch.batch = 64;
  EXPECT_DOUBLE_EQ(time(groups), time(batch));
  EXPECT_DOUBLE_EQ(Us(card, groups), Us(card, batch));
  groups.group_m.assign(64, 129);  // a row more than a tile: two
  groups.m = 64 * 129;
  EXPECT_GT(time(groups), 1.5 * time(one));
}

// 2^19 groups of one row in tiles of 16x16: more work-items than a launch has.
TEST(CdnaFamily, CountsTheGridOfGroups) {
  Problem groups = Gemm(1 << 19, 4096, 64);
  groups.group_m.assign(1 << 19, 1);
  const CdnaConfig small = {16, 16, 64, 16, 16, 32, 4, 2, 1, 1, 0, 1, 0};
  EXPECT_THAT(WhyNot(Get("mi350x"), groups, small), HasSubstr("work-items"));
  EXPECT_EQ(WhyNot(Get("mi350x"), Gemm(1 << 19, 4096, 64), small), "");
  EXPECT_EQ(WhyNot(Get("mi350x"), groups, FromConfig(Best(Get("mi350x"), groups).config)), "");
}

TEST(CdnaFamily, SaysNeverToWhatCannotRun) {
  const Config large =
      CdnaFamily().Parse("256x256x64.mi16x16x16.w4.pgr2.dtl0.sk1.str0.wgm1.nt0").value();
  EXPECT_GT(CdnaFamily().PredictTime(Get("mi300x"), Gemm(4096, 4096, 4096), large).value, 1e20);
  EXPECT_GT(CdnaFamily().Ready(Get("mi300x"), 0)->TimeOf(Gemm(4096, 4096, 4096), large).value,
            1e20);
  EXPECT_GT(CdnaFamily().PredictTime(Get("h100"), Gemm(64, 64, 64), large).value, 1e20);
}

TEST(CdnaFamily, IsTheSameEveryTime) {
  const Problem p = Gemm(3000, 1111, 2222);
  const Pick first = Best(Get("mi300x"), p);
  for (int i = 0; i < 3; ++i) {
    const Pick again = Best(Get("mi300x"), p);
    EXPECT_EQ(again.config, first.config);
    EXPECT_EQ(again.predicted.value, first.predicted.value);
  }
}

}  // namespace
}  // namespace gnomon::hip
