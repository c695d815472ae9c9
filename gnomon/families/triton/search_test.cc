#include "gnomon/families/triton/search.h"

#include <gtest/gtest.h>

#include <random>

#include "gnomon/gemm/test_problems.h"

namespace gnomon::triton {
namespace {

// Small and huge sides with their own weight.
Problem SearchProblem(std::mt19937& random, int i) {
  return RandomProblem(random, i, i % 7 == 0 ? 31 : 16);
}

class Search : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cards, Search, testing::Values("a100", "h100", "h200", "b200"));

TEST_P(Search, FindsWhatPricingEveryConfigFinds) {
  const Device card =
      ReadDevice(std::string(GNOMON_SOURCE_DIR "/devices/") + GetParam() + ".toml").value();
  std::mt19937 random(1);
  std::vector<Config> configs;
  std::vector<double> seconds;
  constexpr int kProblems = 1500;
  constexpr size_t kTop = 3;
  double priced_in_full = 0, all = 0;
  for (int i = 0; i < kProblems; ++i) {
    const Problem problem = SearchProblem(random, i);
    configs.clear();
    seconds.clear();
    ASSERT_TRUE(GemmFamily().Price(card, problem, 0, configs, seconds).ok()) << problem.Text();
    std::vector<size_t> order(configs.size());
    for (size_t at = 0; at < order.size(); ++at) order[at] = at;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });

    std::array<TimedConfig, kTop> fastest;
    size_t priced = 0;
    const Space& space = *SpaceOf(card, problem, 0).value();
    const size_t found = FastestOf(space, problem, fastest, &priced);
    ASSERT_EQ(found, std::min(kTop, order.size())) << problem.Text();
    for (size_t at = 0; at < found; ++at) {
      ASSERT_EQ(fastest[at].time.value, seconds[order[at]]) << problem.Text() << ", place " << at;
      ASSERT_EQ(fastest[at].config, configs[order[at]]) << problem.Text() << ", place " << at;
    }
    priced_in_full += static_cast<double>(priced);
    all += static_cast<double>(configs.size());
  }
  EXPECT_LT(priced_in_full, 0.2 * all);  // else the bounds are of no use
}

TEST_P(Search, KeepsToTheWorkspace) {
  const Device card =
      ReadDevice(std::string(GNOMON_SOURCE_DIR "/devices/") + GetParam() + ".toml").value();
  std::mt19937 random(6);
  size_t left_out = 0;
  for (int i = 0; i < 300; ++i) {
    Problem p = SearchProblem(random, i);
    std::vector<Config> all, granted;
    std::vector<double> seconds;
    ASSERT_TRUE(GemmFamily().Enumerate(card, p, 0, all).ok()) << p.Text();
    p.workspace = Bytes{i % 10 == 0 ? 0 : std::exp2(static_cast<double>(random() % 27))};
    ASSERT_TRUE(GemmFamily().Price(card, p, 0, granted, seconds).ok()) << p.Text();
    std::vector<Config> fitting;
    for (const Config& config : all) {
      const TritonConfig c = FromConfig(config);
      const bool fits = c.split_k == 1 || 4.0 * c.split_k * static_cast<double>(p.m) *
                                                  static_cast<double>(p.n) *
                                                  static_cast<double>(p.batch) <=
                                              p.workspace->value;
      EXPECT_EQ(GemmFamily().Refusal(card, p, config).empty(), fits) << Text(c);
      if (fits) fitting.push_back(config);
    }
    ASSERT_EQ(granted, fitting) << p.Text() << " with " << p.workspace->value << " bytes";
    left_out += all.size() - granted.size();
    std::array<TimedConfig, 1> fastest;
    ASSERT_EQ(GemmFamily().Fastest(card, p, 0, fastest).value(), 1u);
    const auto least = std::min_element(seconds.begin(), seconds.end());
    EXPECT_EQ(fastest[0].config, granted[static_cast<size_t>(least - seconds.begin())]) << p.Text();
  }
  EXPECT_GT(left_out, 100u);
}

TEST(SearchOfOnePlace, IsTheFirstOfMany) {
  const Device card = ReadDevice(GNOMON_SOURCE_DIR "/devices/h200.toml").value();
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const Problem problem = SearchProblem(random, i);
    const Space& space = *SpaceOf(card, problem, 0).value();
    std::array<TimedConfig, 1> one;
    std::array<TimedConfig, 50> many;
    ASSERT_EQ(FastestOf(space, problem, one), std::min<size_t>(1, FastestOf(space, problem, many)));
    EXPECT_EQ(one[0].config, many[0].config);
    EXPECT_EQ(FastestOf(space, problem, {}), 0u);
  }
}

}  // namespace
}  // namespace gnomon::triton
