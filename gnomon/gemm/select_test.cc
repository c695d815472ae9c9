#include "gnomon/gemm/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/toy_family.h"

namespace gnomon {
namespace {

using testing::HasSubstr;

Problem Square() {
  Problem p;
  p.m = p.n = p.k = 64;
  return p;
}

TEST(Select, GivesTheFastestFirst) {
  const ToyFamily toy({3, 1, 2});
  const Family* families[] = {&toy};
  const auto picks = Select(FixedCpu(), Square(), families, 0, 3);
  ASSERT_TRUE(picks.ok());
  ASSERT_EQ(picks->size(), 3u);
  EXPECT_EQ((*picks)[0].config.value[0], 2);
  EXPECT_EQ((*picks)[1].config.value[0], 3);
  EXPECT_EQ((*picks)[2].config.value[0], 1);
  EXPECT_EQ((*picks)[0].predicted.value, 1);
}

TEST(Select, KeepsTheOrderOfEnumerationOnTies) {
  const ToyFamily toy({2, 1, 1, 1});
  const Family* families[] = {&toy};
  const auto picks = Select(FixedCpu(), Square(), families, 0, 2);
  ASSERT_TRUE(picks.ok());
  EXPECT_EQ((*picks)[0].config.value[0], 2);
  EXPECT_EQ((*picks)[1].config.value[0], 3);
}

TEST(Select, ComparesFamilies) {
  const ToyFamily slow({5, 4}, "slow"), fast({6, 3}, "fast");
  const Family* families[] = {&slow, &fast};
  const auto picks = Select(FixedCpu(), Square(), families, 0, 2);
  ASSERT_TRUE(picks.ok());
  EXPECT_EQ((*picks)[0].family->name(), "fast");
  EXPECT_EQ((*picks)[1].family->name(), "slow");
}

class MeasuredToy : public ToyFamily {
 public:
  MeasuredToy(std::vector<double> times, double error)
      : ToyFamily(std::move(times)), error_(error) {}
  std::optional<double> PairError(const Device&) const override { return error_; }

 private:
  double error_;
};

TEST(Select, SaysHowSureItIsOfTheOrder) {
  constexpr double kOneDeviation = 0.841345;  // of a normal distribution below +1
  const MeasuredToy toy({1, std::exp(0.1), 1, 3}, 0.1);
  const Family* families[] = {&toy};
  const auto picks = Select(FixedCpu(), Square(), families, 0, 4);
  ASSERT_EQ(picks->size(), 4u);
  EXPECT_NEAR(*(*picks)[0].sure, 0.5, 1e-12);           // a tie
  EXPECT_NEAR(*(*picks)[1].sure, kOneDeviation, 1e-6);  // one deviation apart
  EXPECT_GT(*(*picks)[2].sure, 0.999);
  EXPECT_FALSE((*picks)[3].sure.has_value());  // nothing comes after it
  EXPECT_NEAR(*Select(FixedCpu(), Square(), families)->front().sure, 0.5, 1e-12);
}

TEST(Select, IsNotSureWhereNothingWasMeasured) {
  const ToyFamily never({2});
  const MeasuredToy toy({1}, 0.1);
  const Family* families[] = {&toy, &never};
  EXPECT_FALSE(Select(FixedCpu(), Square(), families)->front().sure.has_value());
}

TEST(Select, SaysWhyNoFamilyCan) {
  const ToyFamily toy({1});
  const Family* families[] = {&toy};
  Problem p = Square();
  p.dtype = DType::kFp64;
  const auto picks = Select(FixedCpu(), p, families);
  ASSERT_FALSE(picks.ok());
  EXPECT_THAT(picks.error().Text(), HasSubstr("toy: only fp32"));
}

TEST(Select, RefusesBadSidesAndUnits) {
  const ToyFamily toy({1});
  const Family* families[] = {&toy};
  Problem p = Square();
  p.k = 0;
  EXPECT_FALSE(Select(FixedCpu(), p, families).ok());
  EXPECT_FALSE(Select(FixedCpu(), Square(), families, 3).ok());
  EXPECT_FALSE(Select(FixedCpu(), Square(), families, -1).ok());
  EXPECT_FALSE(Select(FixedCpu(), Square(), families, 0, 0).ok());
}

}  // namespace
}  // namespace gnomon
