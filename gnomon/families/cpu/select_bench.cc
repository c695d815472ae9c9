// How long `select` takes, cold: nothing is kept between calls. Shapes of recommendation models,
// and of every size.

#include "gnomon/gemm/select_bench.h"

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/gemm/fixed_devices.h"

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

Problem Named(const NamedShape& shape) {
  Problem p;
  p.m = shape.m;
  p.n = shape.n;
  p.k = shape.k;
  p.layout = shape.layout;
  return p;
}

void BM_Select(benchmark::State& state) {
  const NamedShape& shape = kShapes[state.range(0)];
  const Device device = FixedCpu();
  const Problem problem = Named(shape);
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
void BM_ColdShape(benchmark::State& state) {
  const NamedShape& shape = kShapes[state.range(0)];
  TimeColdSelect(state, FixedCpu(), cpu::GemmFamily(), {Named(shape)});
  state.SetLabel(shape.name);
}
BENCHMARK(BM_ColdShape)->DenseRange(0, std::size(kShapes) - 1)->Unit(benchmark::kMicrosecond);

void BM_ColdSelect(benchmark::State& state) {
  const DType dtype = state.range(0) == 0 ? DType::kFp32 : DType::kBf16;
  TimeColdSelect(state, FixedCpu(), cpu::GemmFamily(), SelectBenchProblems({.dtype = dtype}));
  state.SetLabel(std::string(Name(dtype)));
}
BENCHMARK(BM_ColdSelect)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gnomon
