// How long `select` takes, cold: nothing is kept between calls. Shapes of recommendation models.

#include <benchmark/benchmark.h>

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/selector.h"

namespace gnomon {
namespace {

struct NamedShape {
  const char* name;
  std::int64_t m, n, k;
  Layout layout;
};
constexpr NamedShape kShapes[] = {
    {"bottom0.fwd", 2048, 512, 13, Layout::kNT}, {"top0.dgrad", 4096, 367, 512, Layout::kNN},
    {"top0.wgrad", 512, 367, 4096, Layout::kTN}, {"over4.fwd", 2048, 1, 256, Layout::kNT},
    {"bottom3.fwd", 128, 16, 64, Layout::kNT},   {"cross_v.wgrad", 512, 3456, 8192, Layout::kTN}};

void BM_Select(benchmark::State& state) {
  const NamedShape& shape = kShapes[state.range(0)];
  const Device device = FixedCpu();
  Problem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.layout = shape.layout;
  const Family* family = &cpu::GemmFamily();
  std::vector<Config> configs;
  if (!family->Enumerate(device, problem, 0, configs).ok()) state.SkipWithError("cannot enumerate");
  for (auto _ : state) {
    auto picks = Select(device, problem, std::span(&family, 1));
    if (!picks.ok()) state.SkipWithError("cannot select");
    benchmark::DoNotOptimize(picks);
  }
  state.SetLabel(shape.name);
  state.counters["configs"] = static_cast<double>(configs.size());
  state.counters["ns_per_config"] = benchmark::Counter(
      static_cast<double>(configs.size()) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Select)->DenseRange(0, std::size(kShapes) - 1)->Unit(benchmark::kMicrosecond);

// The same through a selector, which looks the device up once and keeps its memory.
void BM_SelectorCold(benchmark::State& state) {
  const NamedShape& shape = kShapes[state.range(0)];
  Problem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.layout = shape.layout;
  const Family* family = &cpu::GemmFamily();
  const Selector selector(FixedCpu(), std::span(&family, 1));
  const auto expected = Select(FixedCpu(), problem, std::span(&family, 1));
  if (!(selector.SelectCold(problem)->config == expected->front().config))
    state.SkipWithError("another pick than Select's");
  for (auto _ : state) {
    auto pick = selector.SelectCold(problem);
    benchmark::DoNotOptimize(pick);
  }
  state.SetLabel(shape.name);
}
BENCHMARK(BM_SelectorCold)->DenseRange(0, std::size(kShapes) - 1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gnomon
