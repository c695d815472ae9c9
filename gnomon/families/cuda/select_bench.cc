// Speed of a cold select over the whole spaces of families `sm90` and `sm100`.

#include "gnomon/gemm/select_bench.h"

#include <array>

#include "gnomon/families/cuda/cuda_gemm.h"

namespace gnomon::cuda {
namespace {

constexpr std::array kCards = {"h100", "h200", "b200", "b300"};

void BM_ColdSelect(benchmark::State& state) {
  const Device card = FindDevice(kCards[static_cast<size_t>(state.range(0))]).value();
  const Family& family = card.arch.starts_with("sm_90") ? Sm90Family() : Sm100Family();
  // TMA loads no rows that are not whole 16 bytes.
  TimeColdSelect(state, card, family, SelectBenchProblems({.odd_shapes = false}));
}
BENCHMARK(BM_ColdSelect)->DenseRange(0, kCards.size() - 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gnomon::cuda
