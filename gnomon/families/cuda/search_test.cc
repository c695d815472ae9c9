#include "gnomon/families/cuda/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "gnomon/families/cuda/cuda_gemm.h"
#include "gnomon/gemm/count_allocations.h"
#include "gnomon/gemm/selector.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon::cuda {
namespace {

using testing::HasSubstr;

constexpr int kProblems = 2500;

// Of all sizes and kinds that TMA can load: what it cannot is rounded up. M stays odd where the
// layout lets it.
Problem Loadable(const Device& card, Generation generation, std::mt19937& random, int i) {
  constexpr double kLog2OfHuge = 31, kLog2OfUsual = 17;
  Problem p = RandomProblem(random, i, i % 7 == 0 ? kLog2OfHuge : kLog2OfUsual);
  constexpr std::array kNarrow = {DType::kFp8E4m3, DType::kInt8, DType::kTf32, DType::kMxFp8,
                                  DType::kMxFp4};
  if (i % 4 == 3) {
    const bool blackwell = generation == Generation::kSm100;
    p.dtype = kNarrow[random() % (blackwell ? kNarrow.size() : 3)];
    p.dtype_out = DType::kBf16;
    p.layout = Layout::kNT;
  }
  if (i % 10 == 1) p.workspace = Bytes{std::exp2(static_cast<double>(random() % 27))};
  const auto loads = [&] { return CheckProblemFor(card, generation, p).ok(); };
  if (p.ldc > 0) p.ldc = (p.ldc + 63) / 32 * 32;
  if (!loads()) {
    p.n = (p.n + 31) / 32 * 32;
    p.k = (p.k + 31) / 32 * 32;
  }
  if (!loads() && !p.grouped()) p.m = (p.m + 31) / 32 * 32;
  if (!loads()) p.layout = Layout::kNT;
  return p;
}

struct Card {
  const char* id;
  int units;  // 0: all
};

class TmaSearch : public testing::TestWithParam<Card> {
 protected:
  const Device card_ = FindDevice(GetParam().id).value();
  const Generation generation_ =
      card_.arch.starts_with("sm_90") ? Generation::kSm90 : Generation::kSm100;
  const Family& family_ = generation_ == Generation::kSm90 ? Sm90Family() : Sm100Family();
  const int units_ = GetParam().units;
};
INSTANTIATE_TEST_SUITE_P(Cards, TmaSearch,
                         testing::Values(Card{"h100", 0}, Card{"h200", 0}, Card{"h200", 33},
                                         Card{"b200", 0}, Card{"b200", 1}, Card{"b300", 0}),
                         [](const auto& card) {
                           return std::string(card.param.id) + "_" +
                                  (card.param.units ? std::to_string(card.param.units) : "all");
                         });

TEST_P(TmaSearch, FindsWhatPricingEveryConfigFinds) {
  constexpr size_t kTop = 3;
  std::mt19937 random(1);
  std::vector<Config> configs;
  std::vector<double> seconds;
  const auto ready = family_.Ready(card_, units_);
  double priced_in_full = 0, all = 0;
  for (int i = 0; i < kProblems; ++i) {
    const Problem problem = Loadable(card_, generation_, random, i);
    configs.clear();
    seconds.clear();
    const Status status = family_.Price(card_, problem, units_, configs, seconds);
    ASSERT_TRUE(status.ok()) << problem.Text() << ": " << status.error().Text();
    std::vector<size_t> order(configs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });

    std::array<TimedConfig, kTop> fastest, ready_fastest;
    size_t priced = 0;
    const Space& space = *SpaceOf(card_, generation_, problem, units_).value();
    const size_t found = FastestOf(card_, generation_, space, problem, fastest, &priced);
    ASSERT_EQ(found, std::min(kTop, order.size())) << problem.Text();
    ASSERT_EQ(*ready->Fastest(problem, ready_fastest), found) << problem.Text();
    for (size_t at = 0; at < found; ++at) {
      ASSERT_EQ(fastest[at].time.value, seconds[order[at]]) << problem.Text() << ", place " << at;
      ASSERT_EQ(fastest[at].config, configs[order[at]]) << problem.Text() << ", place " << at;
      ASSERT_EQ(ready_fastest[at].config, fastest[at].config) << problem.Text();
      ASSERT_EQ(ready_fastest[at].time, fastest[at].time) << problem.Text();
      ASSERT_EQ(ready->TimeOf(problem, fastest[at].config), fastest[at].time)
          << problem.Text() << " " << family_.Print(fastest[at].config);
    }
    priced_in_full += static_cast<double>(priced);
    all += static_cast<double>(configs.size());
  }
  EXPECT_LT(priced_in_full, 0.3 * all);  // else the floors are of no use
}

TEST_P(TmaSearch, GivesTheFirstOfManyWhenAskedForOne) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const Problem problem = Loadable(card_, generation_, random, i);
    std::array<TimedConfig, 1> one;
    std::array<TimedConfig, 200> many;
    const size_t found = *family_.Fastest(card_, problem, units_, many);
    ASSERT_EQ(*family_.Fastest(card_, problem, units_, one), std::min<size_t>(1, found));
    if (found > 0) {
      EXPECT_EQ(one[0].config, many[0].config) << problem.Text();
    }
    EXPECT_EQ(*family_.Fastest(card_, problem, units_, {}), 0u);
    std::vector<Config> configs;
    ASSERT_TRUE(family_.Enumerate(card_, problem, units_, configs).ok());
    EXPECT_EQ(configs.size(), found);
  }
}

TEST_P(TmaSearch, AllocatesNothingOnceTheKindIsKnown) {
  const Family* families[] = {&family_};
  const Selector selector(card_, families, units_);
  const auto run = [&] {
    std::mt19937 random(3);
    long allocations = 0;
    for (int i = 0; i < 500; ++i) {
      const Problem p = Loadable(card_, generation_, random, i);
      const long before = AllocationsOfThisThread();
      const auto pick = selector.SelectCold(p);
      if (pick.ok()) allocations += AllocationsOfThisThread() - before;
    }
    return allocations;
  };
  EXPECT_GT(run(), 0);  // the count counts
  EXPECT_EQ(run(), 0);
}

TEST(TmaSearchReasons, AreTheRealOnes) {
  const Family* families[] = {&Sm100Family()};
  const Device b200 = FindDevice("b200").value();
  const auto reason = [&](const Device& device, const Problem& p) {
    const auto pick = Selector(device, families).SelectCold(p);
    return pick.ok() ? std::string() : pick.error().Text();
  };
  EXPECT_THAT(reason(b200, Gemm(512, 512, 48, DType::kMxFp4)),
              HasSubstr("K is 48; mxfp4 has a scale for every 32"));
  EXPECT_THAT(reason(b200, Gemm(512, 512, 13)), HasSubstr("rows of A are not whole 16 bytes"));
  EXPECT_THAT(reason(b200, Gemm(std::int64_t{1} << 40, 4096, 64)),
              HasSubstr("no config's grid can be launched"));
  Device small = b200;
  small.shared_memory_block = {4096};
  EXPECT_THAT(
      reason(small, Gemm(512, 512, 512)),
      HasSubstr("no tile of family sm100 fits a unit of b200: 4096 bytes of shared memory"));
}

}  // namespace
}  // namespace gnomon::cuda
