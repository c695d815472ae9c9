// What must hold of the picks of family `cdna` on any device.

#include <gtest/gtest.h>

#include "gnomon/families/hip/cdna_family.h"
#include "gnomon/gemm/breakpoints.h"
#include "gnomon/gemm/cdna_properties.h"
#include "gnomon/gemm/count_allocations.h"

namespace gnomon::hip {
namespace {

class CdnaPicks : public testing::TestWithParam<const char*> {
 protected:
  Device card_ = FindDevice(GetParam()).value();
  static constexpr double kMore = 1.3;
};
INSTANTIATE_TEST_SUITE_P(Cards, CdnaPicks, testing::ValuesIn(kCdnaCards));

TEST_P(CdnaPicks, AreNeverSlowerWithMoreBandwidth) {
  for (const MemoryLevel& level : card_.memory) {
    const Violations found = SlowerWith(CdnaFamily(), card_, [&](Device& d) {
      for (MemoryLevel& other : d.memory)
        if (other.name == level.name)
          for (BytesPerSecond* rate : {&other.bandwidth, &other.peak_bandwidth})
            rate->value *= kMore;
    });
    EXPECT_EQ(found.count, 0) << level.name << ": " << found.Text();
  }
}

TEST_P(CdnaPicks, AreNeverSlowerWithMoreCache) {
  const Violations found = SlowerWith(CdnaFamily(), card_, [](Device& d) {
    for (MemoryLevel& level : d.memory) level.capacity.value *= kMore;
  });
  EXPECT_EQ(found.count, 0) << found.Text();
}

TEST_P(CdnaPicks, AreNeverSlowerWithMoreUnits) {
  Violations found = SlowerWith(CdnaFamily(), card_, [](Device& d) { d.units *= 2; });
  EXPECT_EQ(found.count, 0) << "twice: " << found.Text();
  found = SlowerWith(CdnaFamily(), card_, [](Device& d) { d.units += d.dies; });
  EXPECT_EQ(found.count, 0) << "one a die: " << found.Text();
}

TEST_P(CdnaPicks, AreNeverSlowerWithAHigherClock) {
  const Violations found = SlowerWith(CdnaFamily(), card_, [](Device& d) {
    for (Hertz* clock : {&d.sustained_clock, &d.boost_clock, &d.max_clock}) clock->value *= kMore;
  });
  EXPECT_EQ(found.count, 0) << found.Text();
}

TEST_P(CdnaPicks, AreNeverFasterWithTwiceTheRows) {
  const Violations found = FasterWithTwiceTheRows(CdnaFamily(), card_);
  EXPECT_GT(found.tried, kCdnaProblems / 2);
  EXPECT_EQ(found.count, 0) << found.Text();
}

TEST_P(CdnaPicks, AreTheFastestOfAll) { ExpectTheFastestOfAll(CdnaFamily(), card_); }

TEST_P(CdnaPicks, AllocateNothingOnceTheKindIsKnown) {
  const std::array<const Family*, 1> families = {&CdnaFamily()};
  const Selector selector(card_, families);
  std::mt19937 random(9);
  std::vector<Problem> problems;
  for (int i = 0; i < kCdnaProblems; ++i) {
    problems.push_back(RandomCdnaProblem(random, i));
    if (problems.back().grouped()) problems.pop_back();  // the cache does not hold lists
  }
  const auto run = [&](bool cold) {
    for (const Problem& p : problems)
      ASSERT_TRUE((cold ? selector.SelectCold(p) : selector.Select(p)).ok());
  };
  for (const bool cold : {true, false}) {
    run(cold);
    const long before = AllocationsOfThisThread();
    run(cold);
    EXPECT_EQ(AllocationsOfThisThread(), before);
  }
  EXPECT_GT(AllocationsOfThisThread(), 0);  // the count counts
}

TEST_P(CdnaPicks, AreWithinTheToleranceAtEveryMOfARange) {
  const std::array<const Family*, 1> families = {&CdnaFamily()};
  const Selector selector(card_, families);
  constexpr int kMostLog2 = 24;
  std::mt19937 random(10);
  for (const Layout layout : {Layout::kNT, Layout::kTN}) {
    Problem p;
    p.m = 1;
    p.n = 1024;
    p.k = 512;
    p.layout = layout;
    p.dtype = p.dtype_out = DType::kBf16;
    const auto points = SelectRange(selector, p, 1, 1 << kMostLog2);
    ASSERT_TRUE(points.ok()) << points.error().Text();
    EXPECT_LT(points->size(), 1000u);
    for (int i = 0; i < 1000; ++i) {
      p.m = static_cast<std::int64_t>(
          std::exp2(static_cast<double>(random()) / 4294967296.0 * kMostLog2));
      EXPECT_LE(selector.TimeOf(p, points->Lookup(p.m)).value,
                selector.SelectCold(p)->predicted.value * (1 + kNearTie) * (1 + 1e-12))
          << p.m;
    }
  }
}

}  // namespace
}  // namespace gnomon::hip
