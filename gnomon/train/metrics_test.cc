#include "gnomon/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gnomon::train {
namespace {

TEST(Metrics, LogLossMatchesHandValues) {
  // z = 0 gives ln 2 whatever the label; z = ln 3 gives p = 3/4.
  const float log3 = std::log(3.0f);
  const std::vector<float> logits = {0, log3, log3}, labels = {1, 1, 0};
  const double expected = (std::log(2.0) + std::log(4.0 / 3) + std::log(4.0)) / 3;
  EXPECT_NEAR(LogLoss(logits, labels), expected, 1e-6);
}

TEST(Metrics, NormalizedEntropyOfTheBaseRateIsOne) {
  const std::vector<float> labels = {1, 0, 0, 0};
  const float base = std::log(0.25f / 0.75f);
  EXPECT_NEAR(NormalizedEntropy(std::vector<float>(4, base), labels), 1, 1e-6);
  EXPECT_LT(NormalizedEntropy(std::vector<float>{2, -2, -2, -2}, labels), 0.3);
}

TEST(Metrics, LargeLogitsDoNotOverflow) {
  EXPECT_NEAR(LogLoss(std::vector<float>{200, -200}, std::vector<float>{0, 1}), 200, 1e-3);
}

TEST(Metrics, AreaUnderCurveCountsOrderedPairsAndHalfOfTies) {
  // Positives score 3 and 1, negatives 1 and 0: of four pairs three are ordered, one is tied.
  EXPECT_DOUBLE_EQ(AreaUnderCurve(std::vector<float>{3, 1, 1, 0}, std::vector<float>{1, 1, 0, 0}),
                   3.5 / 4);
  EXPECT_DOUBLE_EQ(AreaUnderCurve(std::vector<float>{1, 1, 1}, std::vector<float>{1, 0, 0}), 0.5);
  EXPECT_DOUBLE_EQ(AreaUnderCurve(std::vector<float>{0, 1}, std::vector<float>{1, 0}), 0);
}

TEST(Metrics, AreNotANumberWhereLabelsAreAllAlike) {
  const std::vector<float> logits = {1, 2}, ones = {1, 1};
  EXPECT_TRUE(std::isnan(NormalizedEntropy(logits, ones)));
  EXPECT_TRUE(std::isnan(AreaUnderCurve(logits, ones)));
}

}  // namespace
}  // namespace gnomon::train
