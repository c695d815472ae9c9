#include "gnomon/gemm/breakpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/toy_family.h"

namespace gnomon {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kMost = std::int64_t{1} << 31;

Problem AnyM(Layout layout = Layout::kNT) {
  Problem p;
  p.m = 1;
  p.n = p.k = 64;
  p.layout = layout;
  return p;
}

// Three tile heights: small ones waste nothing, tall ones are cheaper a row. With A along M, rows
// that are no multiple of 16 cost the tall ones double.
class TallFamily : public ToyFamily {
 public:
  TallFamily() : ToyFamily({1, 2, 3}, "tall") {}
  Seconds PredictTime(const Device&, const Problem& problem, const Config& config) const override {
    constexpr double kHeight[] = {16, 64, 256}, kCost[] = {1, 2.5, 6.5};
    const auto i = static_cast<size_t>(config.value[0] - 1);
    const bool narrow = problem.a_transposed() && problem.m % 16 != 0 && i > 0;
    return {10 +
            std::ceil(static_cast<double>(problem.m) / kHeight[i]) * kCost[i] * (narrow ? 4 : 1)};
  }
};

TEST(BreakPoints, WithoutToleranceArePicksOfSelectEverywhere) {
  const TallFamily family;
  const Family* families[] = {&family};
  for (const Layout layout : {Layout::kNT, Layout::kTN}) {
    const auto points = SelectRange(FixedCpu(), AnyM(layout), families, 3, 700, 0);
    ASSERT_TRUE(points.ok());
    for (std::int64_t m = 3; m <= 700; ++m) {
      Problem p = AnyM(layout);
      p.m = m;
      const Pick expected = Select(FixedCpu(), p, families)->front();
      EXPECT_EQ(family.PredictTime(FixedCpu(), p, points->Lookup(m).config).value,
                expected.predicted.value)
          << m;
    }
  }
}

TEST(BreakPoints, StandAtTheFirstMWhereThePickIsTooSlow) {
  const TallFamily family;
  const Family* families[] = {&family};
  constexpr double kTolerance = 0.05;
  const auto points = SelectRange(FixedCpu(), AnyM(), families, 1, 3000, kTolerance);
  ASSERT_TRUE(points.ok());
  ASSERT_EQ(points->lists().size(), 1u);
  Problem p = AnyM();
  size_t next = 0;
  Config kept;
  for (p.m = 1; p.m <= 3000; ++p.m) {
    const Pick best = Select(FixedCpu(), p, families)->front();
    if (p.m == 1 ||
        family.PredictTime(FixedCpu(), p, kept).value > (1 + kTolerance) * best.predicted.value) {
      ASSERT_LT(next, points->size());
      EXPECT_EQ(points->lists()[0][next].m, p.m);
      EXPECT_EQ(points->lists()[0][next].pick.config, best.config);
      kept = best.config;
      ++next;
    }
    EXPECT_EQ(points->Lookup(p.m).config, kept) << p.m;
  }
  EXPECT_EQ(next, points->size());
  EXPECT_GT(next, 2u);
}

TEST(BreakPoints, ReachFarInFewCalls) {
  const TallFamily family;
  const Family* families[] = {&family};
  const auto points = SelectRange(FixedCpu(), AnyM(), families, 1, kMost);
  ASSERT_TRUE(points.ok());
  EXPECT_LT(points->size(), 100u);
  EXPECT_EQ(points->Lookup(kMost).config.value[0], 3);  // the tallest
  EXPECT_EQ(points->Lookup(1).config.value[0], 1);
}

TEST(BreakPoints, FollowTheAlignmentOfAThatLiesAlongM) {
  const TallFamily family;
  const Family* families[] = {&family};
  const auto points = SelectRange(FixedCpu(), AnyM(Layout::kTN), families, 1, 4096);
  ASSERT_TRUE(points.ok());
  EXPECT_EQ(points->Lookup(2048).config.value[0], 3);
  EXPECT_EQ(points->Lookup(2047).config.value[0], 1);
  EXPECT_EQ(points->Lookup(2049).config.value[0], 1);
  EXPECT_EQ(points->Lookup(2056).config.value[0], 1);
}

TEST(BreakPoints, OfOneMAreOnePick) {
  const TallFamily family;
  const Family* families[] = {&family};
  for (const Layout layout : {Layout::kNT, Layout::kTN}) {
    const auto points = SelectRange(FixedCpu(), AnyM(layout), families, 48, 48);
    ASSERT_TRUE(points.ok());
    EXPECT_EQ(points->size(), 1u);
    EXPECT_EQ(points->Lookup(48).config.value[0], 2);
  }
}

TEST(BreakPoints, RefuseWhatHasNoOrder) {
  const TallFamily family;
  const Family* families[] = {&family};
  EXPECT_FALSE(SelectRange(FixedCpu(), AnyM(), families, 0, 5).ok());
  EXPECT_FALSE(SelectRange(FixedCpu(), AnyM(), families, 6, 5).ok());
  EXPECT_FALSE(SelectRange(FixedCpu(), AnyM(), families, 1, 5, -1).ok());
  Problem grouped = AnyM();
  grouped.group_m = {1};
  EXPECT_THAT(SelectRange(FixedCpu(), grouped, families, 1, 5).error().Text(),
              HasSubstr("a grouped problem"));
  Problem fp64 = AnyM();
  fp64.dtype = DType::kFp64;
  EXPECT_THAT(SelectRange(FixedCpu(), fp64, families, 1, 5).error().Text(), HasSubstr("only fp32"));
}

}  // namespace
}  // namespace gnomon
