#include "gnomon/gemm/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/timing.h"
#include "gnomon/gemm/toy_family.h"

namespace gnomon {
namespace {

using testing::HasSubstr;

// The toy predicts 10, 20, 30, 40, 50 µs for c1 … c5.
ToyFamily Toy() { return ToyFamily({10e-6, 20e-6, 30e-6, 40e-6, 50e-6}); }

std::vector<Measurement> Rows(const std::string& body) {
  return ParseMeasurements(std::string(kMeasuredHeader) + "\n" + body, "m.csv").value();
}

std::string Row(int m, const std::string& config, double us, const std::string& family = "toy",
                const std::string& device = "fixed-avx512") {
  return fmt::format("{},{},fp32,fp32,nt,{},8,8,1,,,,,,,,{},hand made,{}\n", device, family, m, us,
                     config);
}

TEST(Evaluate, GivesTheRegretOfThePickOverTimedLosers) {
  // Shape 1: the pick c1 is best. Shape 2: c1 takes 20 where c5 takes 5; c3 (10) is in the first
  // four.
  const auto rows = Rows(Row(1, "c1", 10) + Row(1, "c2", 40) + Row(2, "c1", 20) + Row(2, "c2", 25) +
                         Row(2, "c3", 10) + Row(2, "c4", 30) + Row(2, "c5", 5));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok()) << out.error().Text();
  EXPECT_EQ(out->rows, 7);
  EXPECT_EQ(out->predicted, 7);
  ASSERT_TRUE(out->regret.has_value());
  EXPECT_NEAR(out->regret->geomean, std::sqrt(1.0 * 0.25), 1e-12);
  EXPECT_NEAR(out->regret->min, 0.25, 1e-12);
  EXPECT_NEAR(out->regret->p10, 0.25 + 0.1 * 0.75, 1e-12);
  EXPECT_NEAR(out->regret->top4_geomean, std::sqrt(1.0 * 0.5), 1e-12);
  ASSERT_EQ(out->shapes.size(), 2u);
  EXPECT_EQ(out->shapes[1].best, "c5");
  EXPECT_EQ(out->shapes[1].pick, "c1");
}

TEST(Evaluate, GivesTimeErrorAndRank) {
  // Predictions 10, 20, 30 against 10, 16, 60: errors 0, 0.25, 0.5; the order is right.
  const auto rows = Rows(Row(1, "c1", 10) + Row(2, "c2", 16) + Row(3, "c3", 60));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR(*out->median_abs_error, 0.25, 1e-12);
  EXPECT_NEAR(*out->p90_abs_error, 0.45, 1e-12);
  EXPECT_NEAR(*out->spearman, 1.0, 1e-12);
  EXPECT_FALSE(out->regret.has_value()) << "no shape has a loser";
  EXPECT_FALSE(out->family_choice.has_value());
}

TEST(Evaluate, RanksAReversedOrderAtMinusOne) {
  const auto rows = Rows(Row(1, "c1", 30) + Row(1, "c2", 20) + Row(1, "c3", 10));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR(*out->spearman, -1.0, 1e-12);
  EXPECT_NEAR(*out->spearman_within_shape, -1.0, 1e-12);
}

TEST(Evaluate, LeavesFiguresEmptyForFamiliesItDoesNotModel) {
  const auto rows = Rows(Row(1, "128x128", 10, "triton") + Row(1, "64x64", 20, "triton") +
                         Row(1, "not a config", 20, "toy"));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->not_modelled, 3);
  EXPECT_FALSE(out->median_abs_error.has_value());
  EXPECT_FALSE(out->spearman.has_value());
  EXPECT_FALSE(out->regret.has_value());
}

TEST(Evaluate, ChoosesBetweenFamilies) {
  const ToyFamily left({10e-6}, "left"), right({20e-6}, "right");
  const Family* families[] = {&left, &right};
  // `left` is always predicted faster; it is on shape 1 only, where it takes half the time.
  const auto rows = Rows(Row(1, "c1", 10, "left") + Row(1, "c1", 20, "right") +
                         Row(2, "c1", 40, "left") + Row(2, "c1", 10, "right"));
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(out->family_choice.has_value());
  EXPECT_EQ(out->family_choice->shapes, 2);
  EXPECT_EQ(out->family_choice->best_single_family, "right");
  EXPECT_NEAR(out->family_choice->best_single, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(out->family_choice->picked_best, 0.5, 1e-12);
  EXPECT_NEAR(out->family_choice->headroom_recovered, -1.0, 1e-12);
}

TEST(Evaluate, RefusesAFileOfAnotherDevice) {
  const auto rows = Rows(Row(1, "c1", 10, "toy", "h100"));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.error().Text(), HasSubstr("the file has h100"));
}

TEST(Evaluate, PredictsVendorLibrariesWithTheirModel) {
  const auto rows = Rows(Row(512, "", 10, "openblas") + Row(1024, "", 20, "openblas"));
  const auto out = Evaluate(FixedCpu(), rows, {});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->predicted, 2);
  EXPECT_NEAR(*out->spearman, 1.0, 1e-12);
}

TEST(Samples, GiveTheTimeOfOneCall) {
  Samples samples;
  EXPECT_TRUE(samples.empty());
  int calls = 0;
  ASSERT_TRUE(samples.Take([&] { return ++calls, Status(Done{}); }, {0}).ok());
  EXPECT_FALSE(samples.empty());
  EXPECT_GE(calls, 2) << "one to find the number of calls, one to time";
  EXPECT_GE(samples.Time().value, 0);
}

TEST(Samples, PassAFailureOn) {
  Samples samples;
  EXPECT_FALSE(samples.Take([] { return Status(BadInput("no")); }, {0}).ok());
}

}  // namespace
}  // namespace gnomon
