#include "gnomon/families/cuda/cuda_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "gnomon/families/cuda/kernel_search.h"
#include "gnomon/gemm/count_allocations.h"
#include "gnomon/gemm/selector.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon::cuda {
namespace {

using testing::HasSubstr;

const Device& H200() {
  static const Device device = FindDevice("h200").value();
  return device;
}

// Of all sizes, kinds and alignments that the family takes.
Problem Taken(std::mt19937& random, int i) {
  constexpr double kLog2OfHuge = 31, kLog2OfUsual = 17;
  Problem p = RandomProblem(random, i, i % 7 == 0 ? kLog2OfHuge : kLog2OfUsual);
  constexpr std::array kNarrow = {DType::kFp8E4m3, DType::kFp8E5m2, DType::kTf32};
  if (i % 4 == 3) {
    p.dtype = kNarrow[random() % kNarrow.size()];
    p.dtype_out = DType::kBf16;
    p.layout = Layout::kNT;
  }
  if (p.dtype_out == DType::kFp16 && p.dtype != DType::kFp16) p.dtype_out = DType::kFp32;
  if (p.dtype == DType::kTf32) p.dtype_out = DType::kTf32;
  if (p.layout == Layout::kTT && !VectorDoes(p)) p.layout = Layout::kNT;
  if (i % 10 == 1) p.workspace = Bytes{std::exp2(static_cast<double>(random() % 27))};
  return p;
}

// A grid that no tile of the table makes small enough to count.
bool TooMany(const Problem& p) {
  constexpr double kMost = 2147483647.0 - 132;
  return static_cast<double>(p.m) / 64 * static_cast<double>(p.n) / 16 *
             static_cast<double>(p.batch) >
         kMost / 64;
}

TimedConfig Best(const Device& device, const Problem& problem, int units = 0) {
  std::array<TimedConfig, 1> best;
  const auto found = CudaFamily().Fastest(device, problem, units, best);
  EXPECT_TRUE(found.ok()) << found.error().Text();
  EXPECT_EQ(found.ok() ? *found : 0, 1u) << problem.Text();
  return best.front();
}
double Us(const Device& device, const Problem& problem, int units = 0) {
  return InMicroseconds(Best(device, problem, units).time);
}
KernelConfig PickOf(const Problem& problem) {
  return KernelConfigFrom(Best(H200(), problem).config);
}
double Time(const Problem& problem, const char* config) {
  const auto parsed = CudaFamily().Parse(config);
  EXPECT_TRUE(parsed.ok()) << parsed.error().Text();
  return InMicroseconds(CudaFamily().PredictTime(H200(), problem, *parsed));
}

const std::vector<Problem>& Everyday() {
  constexpr Layout kNN = Layout::kNN, kTN = Layout::kTN;
  static const std::vector<Problem> problems = {Gemm(8192, 512, 13),
                                                Gemm(2048, 512, 3456),
                                                Gemm(2048, 3456, 512, DType::kBf16, kNN),
                                                Gemm(512, 13, 2048, DType::kBf16, kTN),
                                                Gemm(256, 512, 65536, DType::kBf16, kTN),
                                                Gemm(16384, 200, 704),
                                                Gemm(65536, 512, 256),
                                                Gemm(2048, 1, 256),
                                                Gemm(1, 256, 2048, DType::kBf16, kTN),
                                                Gemm(16, 64, 4096, DType::kBf16, kTN),
                                                Gemm(128, 16, 64),
                                                Gemm(32, 39, 2097152, DType::kBf16, kTN),
                                                Gemm(2097152, 32, 39),
                                                Gemm(8192, 8192, 8192),
                                                Gemm(4096, 4096, 4096, DType::kFp8E4m3),
                                                Gemm(4096, 4096, 4096, DType::kTf32),
                                                Gemm(367, 415, 27, DType::kFp16),
                                                Gemm(1, 1, 1)};
  return problems;
}

TEST(CudaFamily, EnumeratesAtLeastSixtyConfigsThatCanRun) {
  constexpr size_t kLeast = 60, kLeastOfCopies = 40, kMost = 288;
  std::mt19937 random(3);
  std::vector<Problem> problems = Everyday();
  for (int i = 0; i < 300; ++i) problems.push_back(Taken(random, i));
  for (const Problem& p : problems) {
    std::vector<Config> configs, again;
    const Status status = CudaFamily().Enumerate(H200(), p, 0, configs);
    ASSERT_TRUE(status.ok()) << p.Text() << ": " << status.error().Text();
    EXPECT_LE(configs.size(), kMost) << p.Text();
    // A workspace that padded copies do not fit leaves the copying kernels alone.
    const bool copies_only =
        !TmaLoads(p) && std::none_of(configs.begin(), configs.end(), [](const Config& config) {
          return KernelConfigFrom(config).kind == Kind::kPad;
        });
    if (!TooMany(p) && HasTiles(p.dtype, p.layout)) {
      EXPECT_GE(configs.size(), copies_only ? kLeastOfCopies : kLeast) << p.Text();
    }
    std::set<std::string> seen;
    for (const Config& config : configs) {
      const std::string text = CudaFamily().Print(config);
      EXPECT_EQ(CudaFamily().Refusal(H200(), p, config), "") << text << " on " << p.Text();
      EXPECT_TRUE(seen.insert(text).second) << text << " twice";
      const auto back = CudaFamily().Parse(text);
      ASSERT_TRUE(back.ok()) << back.error().Text();
      EXPECT_EQ(*back, config) << text;
    }
    ASSERT_TRUE(CudaFamily().Enumerate(H200(), p, 0, again).ok());
    EXPECT_EQ(again, configs) << p.Text();
  }
}

struct Card {
  const char* id;
  int units;  // 0: all
};
class CudaSearch : public testing::TestWithParam<Card> {};
INSTANTIATE_TEST_SUITE_P(Cards, CudaSearch,
                         testing::Values(Card{"h100", 0}, Card{"h200", 0}, Card{"h200", 33},
                                         Card{"h200", 1}),
                         [](const auto& card) {
                           return std::string(card.param.id) + "_" +
                                  (card.param.units ? std::to_string(card.param.units) : "all");
                         });

TEST_P(CudaSearch, FindsWhatPricingEveryConfigFinds) {
  constexpr size_t kTop = 3;
  constexpr int kProblems = 2000;
  const Device card = FindDevice(GetParam().id).value();
  std::mt19937 random(1);
  std::vector<Config> configs;
  std::vector<double> seconds;
  const auto ready = CudaFamily().Ready(card, GetParam().units);
  double priced_in_full = 0, all = 0;
  for (int i = 0; i < kProblems; ++i) {
    const Problem problem = Taken(random, i);
    configs.clear();
    seconds.clear();
    const Status status = CudaFamily().Price(card, problem, GetParam().units, configs, seconds);
    ASSERT_TRUE(status.ok()) << problem.Text() << ": " << status.error().Text();
    std::vector<size_t> order(configs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });

    std::array<TimedConfig, kTop> fastest;
    const size_t found = ready->Fastest(problem, fastest).value();
    ASSERT_EQ(found, std::min(kTop, order.size())) << problem.Text();
    for (size_t at = 0; at < found; ++at) {
      ASSERT_EQ(fastest[at].time.value, seconds[order[at]]) << problem.Text() << ", place " << at;
      ASSERT_EQ(fastest[at].config, configs[order[at]]) << problem.Text() << ", place " << at;
    }
    std::array<TimedConfig, 1> one;
    size_t priced = 0;
    const KernelSpace space = MakeKernelSpace(card, KindOf(problem), GetParam().units).value();
    ASSERT_EQ(FastestOf(card, space, problem, one, &priced), std::min<size_t>(1, found));
    if (found > 0) {
      ASSERT_EQ(one[0].config, fastest[0].config) << problem.Text();
    }
    priced_in_full += static_cast<double>(priced);
    all += static_cast<double>(configs.size());
  }
  EXPECT_LT(priced_in_full, 0.25 * all);  // else the floors are of no use
}

TEST_P(CudaSearch, PricesOneConfigAsItPricesThemAll) {
  const Device card = FindDevice(GetParam().id).value();
  const auto ready = CudaFamily().Ready(card, GetParam().units);
  for (const Problem& p : Everyday()) {
    std::vector<Config> configs;
    std::vector<double> seconds;
    ASSERT_TRUE(CudaFamily().Price(card, p, GetParam().units, configs, seconds).ok());
    for (size_t i = 0; i < configs.size(); ++i)
      EXPECT_DOUBLE_EQ(ready->TimeOf(p, configs[i]).value, seconds[i])
          << CudaFamily().Print(configs[i]) << " on " << p.Text();
  }
}

TEST(CudaFamily, AllocatesNothingOnceAKindOfProblemHasBeenSeen) {
  std::mt19937 random(4);
  std::vector<Problem> problems;
  for (int i = 0; i < 500; ++i) problems.push_back(Taken(random, i));
  const auto ready = CudaFamily().Ready(H200(), 0);
  std::array<TimedConfig, 2> fastest;
  for (const Problem& p : problems) ASSERT_TRUE(ready->Fastest(p, fastest).ok());
  const long before = AllocationsOfThisThread();
  for (const Problem& p : problems) ASSERT_TRUE(ready->Fastest(p, fastest).ok());
  EXPECT_EQ(AllocationsOfThisThread(), before);
}

TEST(CudaFamily, KeepsToTheWorkspace) {
  std::mt19937 random(6);
  size_t left_out = 0;
  for (int i = 0; i < 300; ++i) {
    Problem p = Taken(random, i);
    p.workspace.reset();
    std::vector<Config> all, granted;
    ASSERT_TRUE(CudaFamily().Enumerate(H200(), p, 0, all).ok());
    p.workspace = Bytes{i % 10 == 0 ? 0 : std::exp2(static_cast<double>(random() % 27))};
    ASSERT_TRUE(CudaFamily().Enumerate(H200(), p, 0, granted).ok());
    for (const Config& config : granted) {
      const KernelConfig c = KernelConfigFrom(config);
      if (c.split_k == 1 && !c.stream_k) continue;
      const Schedule schedule = ScheduleOf(p, c, H200().units);
      if (c.kind == Kind::kVector) continue;
      EXPECT_LE(ScratchOf(c, schedule.tiles, WorkersOf(H200().units, c)), *p.workspace) << Text(c);
      // As the launcher counts them.
      EXPECT_EQ(ScratchOf(c, schedule.tiles, WorkersOf(H200().units, c)).value,
                static_cast<double>(kCounterBytes) + PartialBytesOf(schedule, c))
          << Text(c);
      EXPECT_LE(CountersOf(schedule, c) * sizeof(unsigned), double{kCounterBytes}) << Text(c);
    }
    left_out += all.size() - granted.size();
  }
  EXPECT_GT(left_out, 100u);
}

TEST(CudaFamily, TermsAddUpToTheTime) {
  for (const Problem& p : Everyday()) {
    const TimedConfig best = Best(H200(), p);
    const Prediction prediction = CudaFamily().Predict(H200(), p, best.config);
    double sum = 0;
    for (const Term& term : prediction.terms) sum += term.time.value;
    EXPECT_NEAR(sum, best.time.value, 1e-9 * sum) << p.Text();
    EXPECT_GT(prediction.relative_error, 0);
  }
}

TEST(CudaFamily, CopiesWhatTmaCannotLoad) {
  EXPECT_NE(PickOf(Gemm(8192, 512, 27)).kind, Kind::kTma);
  EXPECT_NE(PickOf(Gemm(32, 39, 2097152, DType::kBf16, Layout::kTN)).kind, Kind::kTma);
  EXPECT_EQ(PickOf(Gemm(8192, 511, 512)).kind, Kind::kTma);  // only C is odd
  // Where both can, TMA is faster; and wider loads are faster than narrow ones.
  const Problem p = Gemm(8192, 512, 512);
  EXPECT_LT(Time(p, "tma.128x128.c1x1.both.k1"), Time(p, "copy.128x128.c1x1.both.k1"));
  double last = 1e30;
  for (const std::int64_t lda : {513, 514, 516, 520}) {
    Problem strided = p;
    strided.lda = strided.ldb = lda;
    const double us = Time(strided, "copy.128x128.c1x1.both.k1");
    EXPECT_LE(us, last) << lda;
    if (lda == 514) {
      EXPECT_LT(us, 0.99 * last);
    }
    last = us;
  }
}

TEST(CudaFamily, StoresRowsOfOddLengthMoreSlowly) {
  const char* const config = "tma.128x128.c1x1.both.k1";
  Problem odd = Gemm(65536, 512, 256);
  odd.ldc = 513;
  EXPECT_GT(Time(odd, config), 1.02 * Time(Gemm(65536, 512, 256), config));
}

TEST(CudaFamily, SplitsATallK) {
  for (const Problem& p :
       {Gemm(256, 512, 65536, DType::kBf16, Layout::kTN), Gemm(256, 512, 8192)}) {
    const KernelConfig c = PickOf(p);
    EXPECT_TRUE(c.split_k > 1 || c.stream_k) << p.Text();
    KernelConfig whole = c;
    whole.split_k = 1;
    whole.stream_k = whole.fix_up = false;
    EXPECT_GT(CudaFamily().PredictTime(H200(), p, ToConfig(whole)).value,
              1.5 * Best(H200(), p).time.value);
  }
}

TEST(CudaFamily, AddsFewPartsInTheKernelAndManyInASecondOne) {
  const Problem p = Gemm(64, 64, 65536);
  // Two parts are read sooner than a kernel starts; 64 parts of one tile come through one port.
  EXPECT_LT(Time(p, "tma.64x64.c1x1.turns.k2.fix"), Time(p, "tma.64x64.c1x1.turns.k2"));
  EXPECT_GT(Time(p, "tma.64x64.c1x1.turns.k64.fix"), Time(p, "tma.64x64.c1x1.turns.k64"));
}

TEST(CudaFamily, TakesLargeTilesForLargeSquares) {
  for (const std::int64_t side : {4096, 8192, 16384}) {
    const KernelConfig c = PickOf(Gemm(side, side, side));
    EXPECT_GE(c.tile_m * c.tile_n, 128 * 192) << side;
    EXPECT_EQ(c.consumers, Consumers::kBoth) << side;
  }
}

TEST(CudaFamily, HidesTheEpilogueWhereConsumersTakeTurns) {
  const Problem p = Gemm(32768, 1024, 512);
  EXPECT_LT(Time(p, "tma.128x128.c1x1.turns.k1.g8"), 0.95 * Time(p, "tma.128x128.c1x1.both.k1.g8"));
}

// Everyday problems and random ones.
std::vector<Problem> ManyProblems() {
  std::vector<Problem> problems = Everyday();
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    problems.push_back(Taken(random, i));
    problems.back().workspace.reset();
  }
  std::erase_if(problems, TooMany);
  return problems;
}

TEST(CudaFamily, MoreOfAnyResourceIsNeverSlower) {
  constexpr double kMore = 1.25, kSlack = 1 + 1e-9;
  for (const Problem& p : ManyProblems()) {
    const double now = Us(H200(), p);
    Device more = H200();
    for (MemoryLevel& level : more.memory) {
      level.bandwidth = level.bandwidth * kMore;
      level.unit_bandwidth = level.unit_bandwidth * kMore;
    }
    EXPECT_LE(Us(more, p), now * kSlack) << "bandwidth " << p.Text();
    more = H200();
    more.sustained_clock = more.sustained_clock * kMore;
    more.max_clock = more.max_clock * kMore;
    more.boost_clock = more.boost_clock * kMore;
    EXPECT_LE(Us(more, p), now * kSlack) << "clock " << p.Text();
    // Parts that fill more units are more parts to add, and which splits are tried depends on the
    // units (kernel_space.cc): the best for fewer may not be among them.
    constexpr double kMoreParts = 1.08;
    double last = 1e30;
    for (const int units : {1, 8, 20, 33, 64, 100, 120, 132}) {
      const double us = Us(H200(), p, units);
      EXPECT_LE(us, last * kMoreParts) << units << " units " << p.Text();
      last = std::min(last, us);
    }
  }
}

TEST(CudaFamily, TwiceASideNeverTakesLess) {
  // The launcher of kind vector lays skinny work out one way or another at thresholds.
  std::vector<Problem> problems = ManyProblems();
  std::erase_if(problems, VectorDoes);
  problems.insert(problems.end(), Everyday().begin(), Everyday().end());
  for (Problem p : problems) {
    p.ldc = 0;  // rows grow with the side
    const double now = Us(H200(), p);
    for (const auto side : {&Problem::m, &Problem::n, &Problem::k}) {
      Problem more = p;
      more.*side *= 2;
      if (side == &Problem::m)
        for (std::int64_t& m : more.group_m) m *= 2;
      // Rows twice as long may be loaded wider: then less time is right. And more CTAs fetch an
      // operand they share sooner than fewer do (tile_model.h, hbm_unit_rate). Which splits are
      // tried depends on the tiles: the best for twice the side may not be among those of once.
      constexpr double kSooner = 1e-2;
      const bool wider = LoadBytesOfA(more) > LoadBytesOfA(p) ||
                         LoadBytesOfB(more) > LoadBytesOfB(p) || TmaStores(more) > TmaStores(p);
      if (!wider && !TooMany(more)) {
        EXPECT_GE(Us(H200(), more), now * (1 - kSooner)) << more.Text();
      }
    }
  }
}

TEST(CudaFamily, GroupsInAnyOrderAreOneLaunch) {
  Problem grouped = Gemm(1024, 1024, 1024);
  grouped.group_m = {512, 0, 100, 412};
  const double one = Us(H200(), Gemm(256, 1024, 1024));
  const double us = Us(H200(), grouped);
  EXPECT_GT(us, one);
  EXPECT_LT(us, 4 * one);
  std::sort(grouped.group_m.begin(), grouped.group_m.end());
  do EXPECT_EQ(Us(H200(), grouped), us);
  while (std::next_permutation(grouped.group_m.begin(), grouped.group_m.end()));
}

TEST(CudaFamily, SelectsTheLeastAmongItsConfigs) {
  const Family* const families[] = {&CudaFamily()};
  const Selector selector(H200(), families);
  for (const Problem& p : Everyday()) {
    const Pick pick = selector.SelectCold(p).value();
    EXPECT_EQ(pick.config, Best(H200(), p).config);
    EXPECT_EQ(pick.predicted, Best(H200(), p).time);
  }
  EXPECT_THAT(selector.SelectCold(Gemm(64, 64, 64, DType::kInt8)).error().Text(),
              HasSubstr("no kernel for int8"));
}

}  // namespace
}  // namespace gnomon::cuda
