// Speed of a cold select over the whole space of family `cdna`: nothing of the problem is known,
// the space of its kind is. Every pick is checked against the least of all prices first. Median and
// 99th percentile of single calls stand in the counters.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <vector>

#include "gnomon/base/statistics.h"
#include "gnomon/families/hip/cdna_family.h"
#include "gnomon/gemm/selector.h"

namespace gnomon::hip {
namespace {

constexpr std::array kCards = {"mi250x", "mi300x", "mi350x"};
constexpr size_t kProblems = 2000;
const std::array<const Family*, 1> kFamilies = {&CdnaFamily()};

// Aligned and odd shapes of every size, all layouts, some batches.
std::vector<Problem> Problems() {
  std::mt19937 random(1);
  const auto side = [&](double most_log2) {
    return static_cast<std::int64_t>(
        std::exp2(static_cast<double>(random()) / 4294967296.0 * most_log2));
  };
  std::vector<Problem> problems;
  for (size_t i = 0; i < kProblems; ++i) {
    Problem p;
    p.m = side(16);
    p.n = side(14);
    p.k = side(14);
    if (i % 2 == 0)
      for (std::int64_t* s : {&p.m, &p.n, &p.k}) *s = (*s + 15) / 16 * 16;
    p.layout = static_cast<Layout>(i / 2 % 4);
    p.dtype = p.dtype_out = DType::kBf16;
    if (i % 5 == 0) p.batch = side(6);
    problems.push_back(p);
  }
  return problems;
}

bool Verified(const Device& card, const Selector& selector, const std::vector<Problem>& problems,
              double& configs_each) {
  std::vector<Config> configs;
  std::vector<double> seconds;
  double all = 0;
  for (const Problem& p : problems) {
    configs.clear();
    seconds.clear();
    if (!CdnaFamily().Price(card, p, 0, configs, seconds).ok()) return false;
    const auto least = std::min_element(seconds.begin(), seconds.end());
    const Result<Pick> pick = selector.SelectCold(p);
    if (!pick.ok() || pick->predicted.value != *least ||
        !(pick->config == configs[static_cast<size_t>(least - seconds.begin())]))
      return false;
    all += static_cast<double>(configs.size());
  }
  configs_each = all / static_cast<double>(problems.size());
  return true;
}

void BM_ColdSelect(benchmark::State& state) {
  const Device card = FindDevice(kCards[static_cast<size_t>(state.range(0))]).value();
  const Selector selector(card, kFamilies);
  const std::vector<Problem> problems = Problems();
  double configs = 0;
  if (!Verified(card, selector, problems, configs)) {
    state.SkipWithError("a pick is not the least of all prices");
    return;
  }
  std::vector<double> us;
  for (auto _ : state)
    for (const Problem& p : problems) {
      const auto begin = std::chrono::steady_clock::now();
      auto pick = selector.SelectCold(p);
      benchmark::DoNotOptimize(pick);
      const auto end = std::chrono::steady_clock::now();
      us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    }
  state.SetLabel(card.id);
  state.counters["median_us"] = Median(us);
  state.counters["p99_us"] = Quantile(us, 0.99);
  state.counters["configs"] = configs;
}
BENCHMARK(BM_ColdSelect)->DenseRange(0, kCards.size() - 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gnomon::hip
