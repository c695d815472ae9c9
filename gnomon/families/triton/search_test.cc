#include "gnomon/families/triton/search.h"

#include <gtest/gtest.h>

#include <random>

namespace gnomon::triton {
namespace {

// Sides of every size, as often odd as aligned; small and huge ones with their own weight.
Problem RandomProblem(std::mt19937& random, int i) {
  const auto side = [&](double most_log2) {
    // Not std::uniform_real_distribution: its values differ between libraries.
    const double share = static_cast<double>(random()) / 4294967296.0;
    return static_cast<std::int64_t>(std::exp2(share * most_log2));
  };
  Problem p;
  p.m = side(i % 7 == 0 ? 31 : 16);
  p.n = side(14);
  p.k = side(14);
  if (i % 2 == 0)
    for (std::int64_t* s : {&p.m, &p.n, &p.k}) *s = (*s + 15) / 16 * 16;
  p.layout = static_cast<Layout>(i / 2 % 4);
  p.dtype = p.dtype_out = i % 3 ? DType::kBf16 : DType::kFp16;
  if (i % 9 == 0) p.dtype_out = DType::kFp32;
  if (i % 5 == 0) p.batch = side(6);
  if (i % 11 == 0) p.ldc = p.n + static_cast<std::int64_t>(random() % 40);
  if (i % 13 == 0 && p.batch == 1) {
    p.group_m.assign(1 + random() % 40, p.m);
    for (std::int64_t& m : p.group_m) m = static_cast<std::int64_t>(random() % 3000);
    p.group_m.front() += 1;
    p.m = 0;
    for (const std::int64_t m : p.group_m) p.m += m;
  }
  return p;
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
    const Problem problem = RandomProblem(random, i);
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

TEST(SearchOfOnePlace, IsTheFirstOfMany) {
  const Device card = ReadDevice(GNOMON_SOURCE_DIR "/devices/h200.toml").value();
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const Problem problem = RandomProblem(random, i);
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
