// Speed of `select` over the whole space of family triton: cold, cached, a look-up among break
// points. Each result is checked inside.

#include "gnomon/gemm/select_bench.h"

#include <array>

#include "gnomon/families/triton/triton_gemm.h"
#include "gnomon/gemm/breakpoints.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon::triton {
namespace {

constexpr std::array kCards = {"h200", "b200", "mi300x", "mi350x"};
const std::array<const Family*, 1> kFamilies = {&GemmFamily()};

Device Card(const std::string& id) {
  return ReadDevice(GNOMON_SOURCE_DIR "/devices/" + id + ".toml").value();
}

void BM_Cold(benchmark::State& state) {
  const Device card = Card(kCards[static_cast<size_t>(state.range(0))]);
  TimeColdSelect(state, card, GemmFamily(), SelectBenchProblems());
}
BENCHMARK(BM_Cold)->DenseRange(0, kCards.size() - 1)->Unit(benchmark::kMillisecond);

// Those that bench/origami/select_bench.py takes.
void BM_ColdShapes(benchmark::State& state) {
  const Device card = Card("mi350x");
  const auto shapes =
      ReadShapes(GNOMON_SOURCE_DIR "/bench/shapes/triton_sweep.csv", DType::kBf16).value();
  std::vector<Problem> problems;
  for (const Shape& shape : shapes) problems.push_back(shape.problem);
  TimeColdSelect(state, card, GemmFamily(), problems);
}
BENCHMARK(BM_ColdShapes)->Unit(benchmark::kMillisecond);

void BM_Cached(benchmark::State& state) {
  const Device card = Card(kCards[0]);
  const Selector selector(card, kFamilies);
  std::vector<Problem> problems = SelectBenchProblems();
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
  for (const Problem& other : SelectBenchProblems()) {
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
