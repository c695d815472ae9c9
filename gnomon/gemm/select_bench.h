#pragma once

/// For the families' benches: problems of every size, and a cold select of each, timed one by one.
/// Cold: nothing of the problem is known, the space of its kind is.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "gnomon/base/statistics.h"
#include "gnomon/gemm/selector.h"

namespace gnomon {

/// What the problems of a bench have in common.
struct SelectBenchKind {
  DType dtype = DType::kBf16;
  bool odd_shapes = true;  ///< every second problem has sides that are no multiples of 16
};

/// Shapes of every size, all layouts, some batches; the same ones on every machine.
inline std::vector<Problem> SelectBenchProblems(const SelectBenchKind& kind = {}) {
  constexpr size_t kProblems = 2000;
  std::mt19937 random(1);
  // Not std::uniform_real_distribution: its values differ between libraries.
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
    if (!kind.odd_shapes || i % 2 == 0)
      for (std::int64_t* s : {&p.m, &p.n, &p.k}) *s = (*s + 15) / 16 * 16;
    p.layout = static_cast<Layout>(i / 2 % 4);
    p.dtype = p.dtype_out = kind.dtype;
    if (i % 5 == 0) p.batch = side(6);
    problems.push_back(p);
  }
  return problems;
}

/// Every pick is the first of the least of all prices. `configs_each`: how many there are to price.
inline bool PicksAreLeast(const Family& family, const Selector& selector,
                          const std::vector<Problem>& problems, double& configs_each) {
  std::vector<Config> configs;
  std::vector<double> seconds;
  double all = 0;
  for (const Problem& p : problems) {
    configs.clear();
    seconds.clear();
    if (!family.Price(selector.device(), p, 0, configs, seconds).ok()) return false;
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

/// Times cold selects of one family after checking every pick. Median and 99th percentile of single
/// calls stand in the counters.
inline void TimeColdSelect(benchmark::State& state, const Device& device, const Family& family,
                           const std::vector<Problem>& problems) {
  const Family* const families[] = {&family};
  const Selector selector(device, families);
  double configs = 0;
  if (!PicksAreLeast(family, selector, problems, configs)) {
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
  state.SetLabel(device.id);
  state.counters["median_us"] = Median(us);
  state.counters["p99_us"] = Quantile(us, 0.99);
  state.counters["configs"] = configs;
}

}  // namespace gnomon
