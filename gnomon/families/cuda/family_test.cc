#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "gnomon/families/cuda/cuda_gemm.h"
#include "gnomon/families/cuda/needs.h"

namespace gnomon::cuda {
namespace {

using testing::HasSubstr;
using Sides = std::array<std::int64_t, 3>;

Device Get(const std::string& id) { return FindDevice(id).value(); }

const Family& FamilyOf(const Device& device) {
  return device.arch.starts_with("sm_90") ? Sm90Family() : Sm100Family();
}
Generation GenerationOf(const Device& device) {
  return device.arch.starts_with("sm_90") ? Generation::kSm90 : Generation::kSm100;
}

Problem Gemm(const Sides& sides, DType dtype = DType::kBf16, Layout layout = Layout::kNT) {
  Problem p;
  p.m = sides[0];
  p.n = sides[1];
  p.k = sides[2];
  p.dtype = dtype;
  p.dtype_out = DType::kBf16;
  p.layout = layout;
  return p;
}

TimedConfig Best(const Device& device, const Problem& problem, int units = 0) {
  std::array<TimedConfig, 1> best;
  const auto found = FamilyOf(device).Fastest(device, problem, units, best);
  EXPECT_TRUE(found.ok()) << found.error().Text();
  EXPECT_EQ(found.ok() ? *found : 0, 1u) << problem.Text();
  return best.front();
}
double Us(const Device& device, const Problem& problem, int units = 0) {
  return InMicroseconds(Best(device, problem, units).time);
}
TileConfig Pick(const Device& device, const Problem& problem) {
  return FromConfig(Best(device, problem).config);
}
double Time(const Device& device, const Problem& problem, const char* config) {
  const auto parsed = FamilyOf(device).Parse(config);
  EXPECT_TRUE(parsed.ok()) << parsed.error().Text();
  return InMicroseconds(FamilyOf(device).PredictTime(device, problem, *parsed));
}

const std::vector<Sides> kShapes = {{1, 4096, 4096},   {16, 7168, 2048},    {128, 512, 1024},
                                    {256, 512, 8192},  {1000, 1000, 1000},  {4096, 4096, 4096},
                                    {65536, 256, 512}, {8192, 28672, 4096}, {2048, 64, 65536}};

TEST(TmaFamilies, EnumerateOnlyWhatCanRun) {
  for (const char* id : {"h100", "h200", "b200", "b300"}) {
    const Device device = Get(id);
    const Family& family = FamilyOf(device);
    for (const DType dtype : {DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8E4m3,
                              DType::kInt8, DType::kMxFp8, DType::kMxFp6, DType::kMxFp4}) {
      for (const Sides& sides : std::vector<Sides>{{1, 8, 128},
                                                   {17, 48, 256},
                                                   {300, 4096, 64},
                                                   {256, 512, 8192},
                                                   {4096, 4096, 4096},
                                                   {2147483647, 16, 64}}) {
        const Problem p = Gemm(sides, dtype);
        std::vector<Config> configs;
        const Status status = family.Enumerate(device, p, 0, configs);
        const bool mx = dtype == DType::kMxFp8 || dtype == DType::kMxFp6 || dtype == DType::kMxFp4;
        if (mx && id[0] == 'h') {
          EXPECT_THAT(status.error().Text(), HasSubstr("no kernel for"));
          continue;
        }
        if (!status.ok()) {
          EXPECT_THAT(status.error().Text(), HasSubstr("no matrix rate")) << id << " " << p.Text();
          continue;
        }
        EXPECT_FALSE(configs.empty()) << id << " " << p.Text();
        std::set<std::string> seen;
        for (const Config& config : configs) {
          const std::string text = family.Print(config);
          EXPECT_EQ(WhyNot(device, GenerationOf(device), p, FromConfig(config)), "") << text;
          EXPECT_TRUE(seen.insert(text).second) << text << " twice";
          const auto back = family.Parse(text);
          ASSERT_TRUE(back.ok()) << back.error().Text();
          EXPECT_EQ(*back, config) << text;
        }
      }
    }
  }
}

TEST(TmaFamilies, RefuseAnOddKAndNameAnotherFamily) {
  std::vector<Config> configs;
  const Status status = Sm90Family().Enumerate(Get("h200"), Gemm({512, 512, 13}), 0, configs);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().Text(), HasSubstr("another family (triton)"));
  EXPECT_TRUE(configs.empty());
}

TEST(TmaFamilies, FastestIsTheLeastOfAllPrices) {
  for (const char* id : {"h200", "b200"}) {
    const Device device = Get(id);
    for (const Sides& sides : kShapes) {
      const Problem p = Gemm(sides);
      std::vector<Config> configs;
      std::vector<double> seconds;
      ASSERT_TRUE(FamilyOf(device).Price(device, p, 0, configs, seconds).ok());
      ASSERT_EQ(configs.size(), seconds.size());
      for (std::size_t i = 0; i < configs.size(); ++i)
        EXPECT_DOUBLE_EQ(FamilyOf(device).PredictTime(device, p, configs[i]).value, seconds[i])
            << FamilyOf(device).Print(configs[i]);
      std::array<TimedConfig, 3> fastest;
      ASSERT_EQ(*FamilyOf(device).Fastest(device, p, 0, fastest), fastest.size());
      std::vector<double> sorted = seconds;
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t i = 0; i < fastest.size(); ++i)
        EXPECT_EQ(fastest[i].time.value, sorted[i]) << id << " " << p.Text();
    }
  }
}

TEST(TmaFamilies, TermsAddUpToTheTime) {
  for (const char* id : {"h200", "b200"}) {
    const Device device = Get(id);
    for (const Sides& sides : kShapes) {
      const TimedConfig best = Best(device, Gemm(sides));
      const Prediction p = FamilyOf(device).Predict(device, Gemm(sides), best.config);
      double sum = 0;
      for (const Term& term : p.terms) sum += term.time.value;
      EXPECT_NEAR(sum, best.time.value, 1e-9 * sum);
      EXPECT_GT(p.relative_error, 0);
    }
  }
}

TEST(TmaFamilies, SplitATallK) {
  for (const char* id : {"h200", "b200"}) {
    const Device device = Get(id);
    const Problem p = Gemm({256, 512, 8192});
    const TileConfig c = Pick(device, p);
    EXPECT_TRUE(c.split_k > 1 || c.stream_k) << id;
    TileConfig whole = c;
    whole.split_k = 1;
    whole.stream_k = false;
    EXPECT_GT(FamilyOf(device).PredictTime(device, p, ToConfig(whole)).value,
              1.5 * Best(device, p).time.value);
  }
}

TEST(TmaFamilies, TakeLargeTilesForLargeSquares) {
  for (const std::int64_t side : {4096, 8192, 16384}) {
    const TileConfig hopper = Pick(Get("h200"), Gemm({side, side, side}));
    EXPECT_EQ(hopper.tile_m * hopper.tile_n, 128 * 256);
    EXPECT_EQ(hopper.consumers, 2);
    EXPECT_EQ(hopper.cluster_m * hopper.cluster_n, 2);
    const TileConfig blackwell = Pick(Get("b200"), Gemm({side, side, side}));
    EXPECT_GE(blackwell.tile_m * blackwell.tile_n, 128 * 256);
    EXPECT_EQ(blackwell.pair, 2);
  }
}

TEST(TmaFamilies, TurnTheInstructionForAFewRows) {
  const TileConfig c = Pick(Get("h200"), Gemm({8, 8192, 8192}));
  EXPECT_LT(c.tile_m, 64);
  EXPECT_FALSE(RowsAlongM(Generation::kSm90, c));
}

TEST(TmaFamilies, MoreStagesHideMoreLatency) {
  const Device h200 = Get("h200"), b200 = Get("b200");
  const Problem p = Gemm({64, 8192, 8192});
  double last = 1e9;
  for (const char* text :
       {"64x64x64.c1x1.s2.coop1.k1", "64x64x64.c1x1.s4.coop1.k1", "64x64x64.c1x1.s8.coop1.k1"}) {
    const double us = Time(h200, p, text);
    EXPECT_LT(us, last) << text;
    last = us;
  }
  EXPECT_LT(Time(b200, p, "64x64x64.c1x1.s8.mma1.acc1.k1"),
            0.9 * Time(b200, p, "64x64x64.c1x1.s2.mma1.acc1.k1"));
}

TEST(TmaFamilies, MulticastSparesL2) {
  const Problem p = Gemm({8192, 8192, 8192});
  EXPECT_LT(Time(Get("h200"), p, "128x256x64.c2x1.s4.coop2.k1.p.g8"),
            0.99 * Time(Get("h200"), p, "128x256x64.c1x1.s4.coop2.k1.p.g8"));
  // Where L2 has nothing to do it changes nothing.
  Device quick = Get("h200");
  for (MemoryLevel& level : quick.memory) {
    level.bandwidth = level.bandwidth * 1e3;
    level.unit_bandwidth = level.unit_bandwidth * 1e3;
  }
  EXPECT_NEAR(Time(quick, p, "128x256x64.c2x1.s4.coop2.k1.p.g8") /
                  Time(quick, p, "128x256x64.c1x1.s4.coop2.k1.p.g8"),
              1, 0.01);
}

TEST(TmaFamilies, APairTakesHalfOfTheCommonOperand) {
  const Problem p = Gemm({8192, 8192, 8192});
  EXPECT_LT(Time(Get("b200"), p, "128x256x64.c2x1.s4.mma2.acc2.k1.p.g8"),
            Time(Get("b200"), p, "128x256x64.c2x1.s4.mma1.acc2.k1.p.g8"));
}

TEST(TmaFamilies, PingPongAndASecondAccumulatorHideTheEpilogue) {
  const Problem p = Gemm({32768, 1024, 512});
  EXPECT_LT(Time(Get("h200"), p, "128x128x64.c1x1.s6.pp2.k1.p.g8"),
            0.95 * Time(Get("h200"), p, "128x128x64.c1x1.s6.coop2.k1.p.g8"));
  EXPECT_LT(Time(Get("b200"), p, "128x256x64.c2x1.s4.mma2.acc2.k1.p.g8"),
            0.95 * Time(Get("b200"), p, "128x256x64.c2x1.s4.mma2.acc1.k1.p.g8"));
  // One wave has no next tile.
  const Problem one = Gemm({1024, 1024, 512});
  EXPECT_NEAR(Time(Get("h200"), one, "128x128x64.c1x1.s6.pp2.k1.p") /
                  Time(Get("h200"), one, "128x128x64.c1x1.s6.coop2.k1.p"),
              1, 0.02);
}

TEST(TmaFamilies, MoreOfAnyResourceIsNeverSlower) {
  constexpr double kMore = 1.25, kSlack = 1 + 1e-9;
  for (const char* id : {"h200", "b200"}) {
    const Device device = Get(id);
    for (const Sides& sides : kShapes) {
      const Problem p = Gemm(sides);
      const double now = Us(device, p);
      Device more = device;
      for (MemoryLevel& level : more.memory) {
        level.bandwidth = level.bandwidth * kMore;
        level.unit_bandwidth = level.unit_bandwidth * kMore;
      }
      EXPECT_LE(Us(more, p), now * kSlack) << id << " bandwidth " << p.Text();
      more = device;
      more.sustained_clock = more.sustained_clock * kMore;
      more.max_clock = more.max_clock * kMore;
      more.boost_clock = more.boost_clock * kMore;
      EXPECT_LE(Us(more, p), now * kSlack) << id << " clock " << p.Text();
      // A stream-K grid is as large as the device: more CTAs cut its tiles into more parts.
      constexpr double kMoreParts = 1.02;
      double last = 1e30;
      for (const int units : {8, 20, 33, 64, 100, 120, 132}) {
        const double us = Us(device, p, units);
        EXPECT_LE(us, last * kMoreParts) << id << " " << units << " units " << p.Text();
        last = std::min(last, us);
      }
    }
  }
}

TEST(TmaFamilies, TwiceASideNeverTakesLess) {
  for (const char* id : {"h200", "b200"}) {
    const Device device = Get(id);
    for (const Sides& sides : kShapes) {
      const double now = Us(device, Gemm(sides));
      for (std::size_t side = 0; side < sides.size(); ++side) {
        Sides twice = sides;
        twice[side] *= 2;
        EXPECT_GE(Us(device, Gemm(twice)), now * (1 - 1e-9)) << id << " " << Gemm(twice).Text();
      }
    }
  }
}

TEST(TmaFamilies, NarrowerElementsAreFaster) {
  const Device device = Get("b200");
  const Sides sides = {8192, 8192, 8192};
  double last = 1e30;
  for (const DType dtype : {DType::kTf32, DType::kBf16, DType::kFp8E4m3, DType::kMxFp4}) {
    const double us = Us(device, Gemm(sides, dtype));
    EXPECT_LT(us, last) << Name(dtype);
    last = us;
  }
}

TEST(TmaFamilies, GroupsAndBatchesAreOneLaunch) {
  const Device device = Get("h200");
  Problem grouped = Gemm({1024, 1024, 1024});
  grouped.group_m = {512, 0, 100, 412};
  Problem batch = Gemm({256, 1024, 1024});
  batch.batch = 4;
  const double one = Us(device, Gemm({256, 1024, 1024}));
  EXPECT_GT(Us(device, grouped), one);
  EXPECT_LT(Us(device, grouped), 4 * one);
  EXPECT_GT(Us(device, batch), one);
  EXPECT_LT(Us(device, batch), 4 * one);
}

}  // namespace
}  // namespace gnomon::cuda
