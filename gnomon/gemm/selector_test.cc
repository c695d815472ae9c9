#include "gnomon/gemm/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/toy_family.h"

namespace gnomon {
namespace {

using testing::HasSubstr;

Problem Square(std::int64_t side) {
  Problem p;
  p.m = p.n = p.k = side;
  return p;
}

// Config 1 is the faster below M = 100, config 2 from there on; counts how often it is asked.
class CountingFamily : public ToyFamily {
 public:
  CountingFamily() : ToyFamily({1, 2}, "counting") {}
  Seconds PredictTime(const Device&, const Problem& problem, const Config& config) const override {
    ++asked;
    const double m = static_cast<double>(problem.m);
    return {config.value[0] == 1 ? m : 50 + m / 2};
  }
  std::optional<double> PairError(const Device&) const override { return 0.1; }
  mutable int asked = 0;
};

TEST(Selector, GivesThePickOfSelect) {
  const CountingFamily family;
  const ToyFamily slow({1e9}, "slow");
  const Family* families[] = {&slow, &family};
  const Selector selector(FixedCpu(), families);
  for (const std::int64_t side : {1, 99, 101, 5000}) {
    const Problem p = Square(side);
    const auto expected = Select(FixedCpu(), p, families);
    for (const auto& pick : {selector.SelectCold(p), selector.Select(p), selector.Select(p)}) {
      ASSERT_TRUE(pick.ok());
      EXPECT_EQ(pick->family, &family);
      EXPECT_EQ(pick->config, expected->front().config) << side;
      EXPECT_EQ(pick->predicted.value, expected->front().predicted.value);
      EXPECT_EQ(pick->sure, expected->front().sure);
    }
  }
}

TEST(Selector, AsksTheFamilyOnceForAProblem) {
  const CountingFamily family;
  const Family* families[] = {&family};
  const Selector selector(FixedCpu(), families);
  ASSERT_TRUE(selector.Select(Square(7)).ok());
  const int once = family.asked;
  ASSERT_TRUE(selector.Select(Square(7)).ok());
  EXPECT_EQ(family.asked, once);
  ASSERT_TRUE(selector.Select(Square(8)).ok());
  EXPECT_EQ(family.asked, 2 * once);
}

TEST(Selector, TellsProblemsApartThatDifferInOneField) {
  const CountingFamily family;
  const Family* families[] = {&family};
  const Selector selector(FixedCpu(), families);
  ASSERT_TRUE(selector.Select(Square(64)).ok());
  std::vector<Problem> others(11, Square(64));
  others[0].m = 65;
  others[1].n = 65;
  others[2].k = 65;
  others[3].batch = 2;
  others[4].layout = Layout::kTN;
  others[5].dtype_out = DType::kBf16;
  others[6].epilogue = Epilogue::kBias;
  others[7].lda = 65;
  others[8].ldc = 65;
  others[9].workspace = Bytes{0};
  others[10].workspace = Bytes{64};
  for (const Problem& p : others) {
    const int before = family.asked;
    ASSERT_TRUE(selector.Select(p).ok());
    EXPECT_GT(family.asked, before) << p.Text();
  }
}

TEST(Selector, DoesNotMixUpTwoSelectors) {
  const ToyFamily one({1, 2}), two({2, 1});
  const Family* first[] = {&one};
  const Family* second[] = {&two};
  const Selector a(FixedCpu(), first), b(FixedCpu(), second);
  EXPECT_EQ(a.Select(Square(64))->config.value[0], 1);
  EXPECT_EQ(b.Select(Square(64))->config.value[0], 2);
  EXPECT_EQ(a.Select(Square(64))->config.value[0], 1);
}

TEST(Selector, GivesTheSameFromSeveralThreads) {
  const CountingFamily family;
  const Family* families[] = {&family};
  const Selector selector(FixedCpu(), families);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int& mistakes : wrong)
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round)
        for (std::int64_t side = 1; side < 300; ++side)
          mistakes += selector.Select(Square(side))->config.value[0] != (side <= 100 ? 1 : 2);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(Selector, KeepsTheFirstFamilyOnTies) {
  const ToyFamily one({3, 1}, "one"), two({1, 3}, "two");
  const Family* families[] = {&one, &two};
  const Selector selector(FixedCpu(), families);
  EXPECT_EQ(selector.Select(Square(64))->family, &one);
}

TEST(Selector, SaysWhyNoFamilyCan) {
  const ToyFamily toy({1});
  const Family* families[] = {&toy};
  const Selector selector(FixedCpu(), families);
  Problem p = Square(64);
  p.dtype = DType::kFp64;
  EXPECT_THAT(selector.Select(p).error().Text(), HasSubstr("toy: only fp32"));
  p = Square(0);
  EXPECT_THAT(selector.Select(p).error().Text(), HasSubstr("m is 0"));
  EXPECT_FALSE(Selector(FixedCpu(), families, 3).Select(Square(64)).ok());
}

}  // namespace
}  // namespace gnomon
