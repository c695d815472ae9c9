// Speed of `select` over the whole space of family triton: cold (nothing of the problem is known;
// the space of its kind is), cached, a look-up among break points. Each result is checked inside.
// Median and 99th percentile of single calls stand in the counters.

#include <benchmark/benchmark.h>

#include <chrono>
#include <random>

#include "gnomon/base/statistics.h"
#include "gnomon/families/triton/triton_gemm.h"
#include "gnomon/gemm/breakpoints.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon::triton {
namespace {

constexpr std::array kCards = {"h200", "b200", "mi300x", "mi350x"};
constexpr size_t kProblems = 2000;
const std::array<const Family*, 1> kFamilies = {&GemmFamily()};

Device Card(const std::string& id) {
  return ReadDevice(GNOMON_SOURCE_DIR "/devices/" + id + ".toml").value();
}

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

// Every pick against the least of all prices.
bool Verified(const Device& card, const Selector& selector, const std::vector<Problem>& problems,
              double& configs_each) {
  std::vector<Config> configs;
  std::vector<double> seconds;
  double all = 0;
  for (const Problem& p : problems) {
    configs.clear();
    seconds.clear();
    if (!GemmFamily().Price(card, p, 0, configs, seconds).ok()) return false;
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

void ColdTimes(benchmark::State& state, const Device& card, const Selector& selector,
               const std::vector<Problem>& problems) {
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

void BM_Cold(benchmark::State& state) {
  const Device card = Card(kCards[static_cast<size_t>(state.range(0))]);
  ColdTimes(state, card, Selector(card, kFamilies), Problems());
}
BENCHMARK(BM_Cold)->DenseRange(0, kCards.size() - 1)->Unit(benchmark::kMillisecond);

// Those that bench/origami/select_bench.py takes.
void BM_ColdShapes(benchmark::State& state) {
  const Device card = Card("mi350x");
  const Selector selector(card, kFamilies);
  const auto shapes =
      ReadShapes(GNOMON_SOURCE_DIR "/bench/shapes/triton_sweep.csv", DType::kBf16).value();
  std::vector<Problem> problems;
  for (const Shape& shape : shapes) problems.push_back(shape.problem);
  ColdTimes(state, card, selector, problems);
}
BENCHMARK(BM_ColdShapes)->Unit(benchmark::kMillisecond);

void BM_Cached(benchmark::State& state) {
  const Device card = Card(kCards[0]);
  const Selector selector(card, kFamilies);
  std::vector<Problem> problems = Problems();
  problems.resize(64);
  for (const Problem& p : problems) {
    const auto cold = selector.SelectCold(p);
    if (!selector.Select(p).ok() || !(selector.Select(p)->config == cold->config))
      state.SkipWithError("the cache gives another pick");
  }
  size_t at = 0;
  for (auto _ : state) {
    auto pick = selector.Select(problems[at]);
    benchmark::DoNotOptimize(pick);
    at = (at + 1) % problems.size();
  }
}
BENCHMARK(BM_Cached)->Unit(benchmark::kNanosecond);

void BM_Lookup(benchmark::State& state) {
  const Device card = Card(kCards[0]);
  const Selector selector(card, kFamilies);
  Problem p;
  p.m = 1;
  p.n = 1024;
  p.k = 512;
  p.dtype = p.dtype_out = DType::kBf16;
  const auto begin = std::chrono::steady_clock::now();
  const auto points = SelectRange(selector, p, 1, std::int64_t{1} << 31);
  const auto end = std::chrono::steady_clock::now();
  if (!points.ok()) {
    state.SkipWithError("no break points");
    return;
  }
  std::vector<std::int64_t> sizes;
  for (const Problem& other : Problems()) {
    p.m = other.m * other.n;  // up to 2^30
    sizes.push_back(p.m);
    if (selector.TimeOf(p, points->Lookup(p.m)).value >
        selector.SelectCold(p)->predicted.value * (1 + 1.01 * kNearTie)) {
      state.SkipWithError("a looked-up pick is too slow");
      return;
    }
  }
  size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(&points->Lookup(sizes[at]));
    at = (at + 1) % sizes.size();
  }
  state.counters["points"] = static_cast<double>(points->size());
  state.counters["build_ms"] = std::chrono::duration<double, std::milli>(end - begin).count();
}
BENCHMARK(BM_Lookup)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace gnomon::triton
