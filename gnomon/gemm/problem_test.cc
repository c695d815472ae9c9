#include "gnomon/gemm/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/gemm/prediction.h"

namespace gnomon {
namespace {

using testing::HasSubstr;

Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout = Layout::kNT) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.layout = layout;
  return p;
}

TEST(Layout, NamesRoundTrip) {
  for (const Layout layout : {Layout::kNN, Layout::kNT, Layout::kTN, Layout::kTT}) {
    const Result<Layout> parsed = ParseLayout(Name(layout));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, layout);
  }
}

TEST(Layout, UnknownNameListsTheValidOnes) {
  const Result<Layout> parsed = ParseLayout("nx");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Error::Code::kBadInput);
  EXPECT_THAT(parsed.error().Text(), HasSubstr("nx"));
  EXPECT_THAT(parsed.error().Text(), HasSubstr("nn, nt, tn, tt"));
}

TEST(Problem, LeadingDimensionsFollowTheLayout) {
  EXPECT_EQ(Gemm(2, 3, 5, Layout::kNN).LeadingA(), 5);
  EXPECT_EQ(Gemm(2, 3, 5, Layout::kNN).LeadingB(), 3);
  EXPECT_EQ(Gemm(2, 3, 5, Layout::kTT).LeadingA(), 2);
  EXPECT_EQ(Gemm(2, 3, 5, Layout::kTT).LeadingB(), 5);
  EXPECT_EQ(Gemm(2, 3, 5).LeadingC(), 3);
}

TEST(Problem, CountsOperationsAndBytes) {
  Problem p = Gemm(2, 3, 5);
  p.batch = 7;
  EXPECT_EQ(p.flops().value, 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(p.bytes().value, 7 * 4 * (2 * 5 + 5 * 3 + 2 * 3));
  p.dtype = DType::kBf16;
  EXPECT_EQ(p.bytes().value, 7 * (2 * (2 * 5 + 5 * 3) + 4 * 2 * 3));
}

TEST(Problem, HugeShapesDoNotWrap) {
  const Problem p = Gemm(std::int64_t{1} << 31, std::int64_t{1} << 20, std::int64_t{1} << 20);
  EXPECT_TRUE(CheckProblem(p).ok());
  EXPECT_EQ(p.flops().value, std::ldexp(1.0, 72));
}

TEST(Problem, TextNamesShapeLayoutAndType) {
  EXPECT_EQ(Gemm(2048, 512, 13).Text(), "2048x512x13 nt fp32");
  Problem p = Gemm(1, 2, 3, Layout::kTN);
  p.dtype = DType::kBf16;
  p.batch = 4;
  EXPECT_EQ(p.Text(), "1x2x3 tn bf16 batch 4 to fp32");
}

TEST(CheckProblem, RefusesZeroAndNegativeSides) {
  const std::pair<Problem, const char*> cases[] = {{Gemm(0, 1, 1), "problem.m: m is 0"},
                                                   {Gemm(1, -2, 1), "problem.n: n is -2"},
                                                   {Gemm(1, 1, 0), "problem.k: k is 0"}};
  for (const auto& [problem, text] : cases) {
    const Status status = CheckProblem(problem);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_THAT(status.error().Text(), HasSubstr(text));
  }
  Problem batch = Gemm(1, 1, 1);
  batch.batch = 0;
  EXPECT_FALSE(CheckProblem(batch).ok());
}

TEST(CheckProblem, RefusesALeadingDimensionBelowTheRow) {
  Problem p = Gemm(4, 4, 8);
  p.ldb = 7;
  const Status status = CheckProblem(p);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().Text(), HasSubstr("ldb is 7"));
  p.ldb = 8;
  EXPECT_TRUE(CheckProblem(p).ok());
}

TEST(CheckProblem, RefusesMoreElementsThanAddressesHold) {
  const Status status = CheckProblem(Gemm(std::int64_t{1} << 40, 1, std::int64_t{1} << 30));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().Text(), HasSubstr("2^62"));
}

TEST(CheckProblem, RefusesAWorkspaceBelowNothing) {
  Problem p = Gemm(4, 4, 8);
  p.workspace = Bytes{0};
  EXPECT_TRUE(CheckProblem(p).ok());
  for (const double bytes : {-1.0, std::nan("")}) {
    p.workspace = Bytes{bytes};
    EXPECT_THAT(CheckProblem(p).error().Text(), HasSubstr("problem.workspace"));
  }
}

TEST(Problem, SaysWhatPartialSumsTakeAndWhetherTheyAreGranted) {
  Problem p = Gemm(100, 30, 8);
  p.dtype = DType::kBf16;
  p.batch = 2;
  EXPECT_EQ(p.PartialSums(3).value, 3.0 * 4 * 100 * 30 * 2);
  p.dtype = DType::kFp64;
  EXPECT_EQ(p.PartialSums(1).value, 8.0 * 100 * 30 * 2);
  EXPECT_TRUE(p.Grants(Bytes{1e18})) << "nothing is said";
  p.workspace = Bytes{64};
  EXPECT_TRUE(p.Grants(Bytes{64}));
  EXPECT_FALSE(p.Grants(Bytes{65}));
}

TEST(Bound, HasANameForEach) {
  EXPECT_EQ(Name(Bound::kCompute), "compute");
  EXPECT_EQ(Name(Bound::kLaunch), "launch");
}

Problem Grouped(std::vector<std::int64_t> rows) {
  Problem p = Gemm(0, 32, 64);
  p.group_m = std::move(rows);
  for (const std::int64_t m : p.group_m) p.m += m;
  return p;
}

TEST(Problem, OfGroupsCountsBOnceAGroupWithRows) {
  const Problem p = Grouped({100, 0, 28});
  EXPECT_TRUE(CheckProblem(p).ok());
  EXPECT_EQ(p.Products(), 2);
  EXPECT_EQ(p.flops().value, 2.0 * 128 * 32 * 64);
  EXPECT_EQ(p.bytes().value, 4.0 * (128 * 64 + 2 * 32 * 64 + 128 * 32));
  EXPECT_THAT(p.Text(), HasSubstr("128x32x64"));
  EXPECT_THAT(p.Text(), HasSubstr("in 3 groups"));
}

TEST(CheckProblem, RefusesGroupsThatDoNotAddUp) {
  Problem p = Grouped({100, 28});
  p.m = 127;
  EXPECT_THAT(CheckProblem(p).error().Text(), HasSubstr("m is their sum"));
  p.m = 129;
  EXPECT_THAT(CheckProblem(p).error().Text(), HasSubstr("m is their sum"));
  p = Grouped({100, -1, 28});
  EXPECT_THAT(CheckProblem(p).error().Text(), HasSubstr("group 1 has -1 rows"));
  p = Grouped({100, 28});
  p.batch = 2;
  EXPECT_THAT(CheckProblem(p).error().Text(), HasSubstr("one or the other"));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  p = Gemm(8, 1, 1);
  p.group_m = {kHuge, kHuge, 8};
  EXPECT_FALSE(CheckProblem(p).ok());
}

}  // namespace
}  // namespace gnomon
