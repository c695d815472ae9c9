// Dense Adagrad against its definition in fp64, over sizes around a vector and a block, with and
// without the bf16 copy, and rounding of that copy.

#include "gnomon/families/cpu/dense_adagrad.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "oracle/bf16.h"
#include "oracle/vector_level.h"

namespace gnomon::cpu {
namespace {

using oracle::Array;

// Every kernel test runs on every vector level.
class DenseAdagradTest : public oracle::VectorLevel {};
GNOMON_ON_EACH_LEVEL(DenseAdagradTest);

struct Parameter {
  Parameter(std::size_t size, unsigned seed)
      : weight(DType::kFp32, size),
        grad(DType::kFp32, size),
        state(DType::kFp32, size),
        copy(DType::kBf16, size) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> value(-1, 1), positive(0, 1);
    for (std::size_t i = 0; i < size; ++i) {
      weight.Set(i, value(random));
      grad.Set(i, value(random));
      state.Set(i, positive(random));
    }
  }
  DenseParameter View(bool with_copy) {
    return {static_cast<float *>(weight.data()), static_cast<const float *>(grad.data()),
            static_cast<float *>(state.data()),
            with_copy ? static_cast<std::uint16_t *>(copy.data()) : nullptr,
            static_cast<std::int64_t>(weight.size())};
  }
  Array weight, grad, state, copy;
};

constexpr AdagradParams kParams{0.03f, 1e-6f};
const std::vector<std::size_t> kSizes = {0,  1,   3,     7,     8,     15,   16,
                                         17, 100, 16383, 16384, 16385, 50001};

TEST_P(DenseAdagradTest, FollowsItsDefinition) {
  std::vector<Parameter> parameters, before;
  for (const std::size_t size : kSizes) parameters.emplace_back(size, static_cast<unsigned>(size));
  before = parameters;
  std::vector<DenseParameter> views;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    views.push_back(parameters[p].View(p % 2 == 0));
  DenseAdagrad(views, kParams, 1);

  const double unit = oracle::UnitRoundoff(DType::kFp32);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Parameter &after = parameters[p], &was = before[p];
    for (std::size_t i = 0; i < kSizes[p]; ++i) {
      const double state = was.state[i] + was.grad[i] * was.grad[i];
      const double step =
          kParams.learning_rate * was.grad[i] / (std::sqrt(state) + kParams.epsilon);
      ASSERT_NEAR(after.state[i], state, 2 * unit * state) << kSizes[p] << " " << i;
      ASSERT_NEAR(after.weight[i], was.weight[i] - step, 6 * unit * std::abs(step) + unit)
          << kSizes[p] << " " << i;
      if (p % 2 == 0) {
        ASSERT_EQ(after.copy[i],
                  oracle::FromBf16(oracle::ToBf16(static_cast<float>(after.weight[i]))));
      }
    }
    EXPECT_TRUE(after.weight.GuardsHold() && after.state.GuardsHold() && after.copy.GuardsHold());
    EXPECT_TRUE(p % 2 == 0 || after.copy.Untouched());
  }
}

TEST_P(DenseAdagradTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  Parameter one(200003, 5);
  const Parameter before = one;
  DenseAdagrad(std::vector{one.View(true)}, kParams, 1);
  for (const int threads : {0, 2, 3, 8}) {
    Parameter many = before;
    DenseAdagrad(std::vector{many.View(true)}, kParams, threads);
    EXPECT_TRUE(many.weight == one.weight && many.state == one.state && many.copy == one.copy);
  }
}

TEST_P(DenseAdagradTest, RoundsTheCopyToNearestEvenAndKeepsNan) {
  // A zero gradient leaves the weight alone, so that its rounding is seen by itself.
  const std::vector<float> weights = {1.00390625f,  // tie, lower neighbour even
                                      1.01171875f,  // tie, upper neighbour even
                                      1.00390637f,
                                      1.00390613f,
                                      -1.01171875f,
                                      3.4e38f,
                                      std::numeric_limits<float>::max(),
                                      std::numeric_limits<float>::infinity(),
                                      1e-40f,
                                      0.0f};
  Parameter parameter(weights.size() + 1, 1);
  for (std::size_t i = 0; i <= weights.size(); ++i) {
    parameter.weight.Set(i, i < weights.size() ? weights[i] : std::nanf("1"));
    parameter.grad.Set(i, 0);
  }
  DenseAdagrad(std::vector{parameter.View(true)}, kParams, 1);
  EXPECT_EQ(parameter.copy[0], 1.0);
  EXPECT_EQ(parameter.copy[1], 1.015625);
  EXPECT_EQ(parameter.copy[4], -1.015625);
  EXPECT_TRUE(std::isinf(parameter.copy[6]) && std::isinf(parameter.copy[7]));
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(parameter.copy[i], oracle::FromBf16(oracle::ToBf16(weights[i]))) << i;
  EXPECT_TRUE(std::isnan(parameter.copy[weights.size()]));
}

TEST_P(DenseAdagradTest, AcceptsNoParameters) { DenseAdagrad({}, kParams, 2); }

}  // namespace
}  // namespace gnomon::cpu
