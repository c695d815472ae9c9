// Speed of a cold select over the whole space of family `cdna`, with the result checked inside.
// Median and 99th percentile over many shapes stand in the counters.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "gnomon/base/statistics.h"
#include "gnomon/families/hip/cdna_family.h"
#include "gnomon/gemm/select.h"

namespace gnomon::hip {
namespace {

std::vector<Problem> Shapes() {
  std::vector<Problem> out;
  for (const std::int64_t m : {1, 16, 77, 512, 3000, 4096, 131072})
    for (const std::int64_t n : {16, 256, 1111, 4096, 16384})
      for (const std::int64_t k : {64, 257, 1024, 8192}) {
        Problem p;
        p.m = m;
        p.n = n;
        p.k = k;
        p.dtype = p.dtype_out = DType::kBf16;
        p.layout = Layout::kNT;
        out.push_back(p);
      }
  return out;
}

void BM_ColdSelect(benchmark::State& state) {
  const Device device = FindDevice("mi350x").value();
  const std::vector<Problem> shapes = Shapes();
  std::vector<Config> configs;
  std::vector<double> seconds, us;
  configs.reserve(256);
  seconds.reserve(256);
  size_t priced = 0, rounds = 0;
  for (auto _ : state) {
    for (const Problem& problem : shapes) {
      configs.clear();
      seconds.clear();
      const auto begin = std::chrono::steady_clock::now();
      const bool ok = CdnaFamily().Price(device, problem, 0, configs, seconds).ok();
      const auto best = std::min_element(seconds.begin(), seconds.end());
      const auto end = std::chrono::steady_clock::now();
      if (!ok || configs.empty() || *best <= 0) {
        state.SkipWithError("no config");
        return;
      }
      us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
      priced += configs.size();
      ++rounds;
    }
  }
  state.counters["median_us"] = Median(us);
  state.counters["p99_us"] = Quantile(us, 0.99);
  state.counters["configs"] = static_cast<double>(priced) / static_cast<double>(rounds);
}
BENCHMARK(BM_ColdSelect)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gnomon::hip
