// Speed of a cold select over the whole space of family `cdna`.

#include <array>

#include "gnomon/families/hip/cdna_family.h"
#include "gnomon/gemm/select_bench.h"

namespace gnomon::hip {
namespace {

constexpr std::array kCards = {"mi250x", "mi300x", "mi350x"};

void BM_ColdSelect(benchmark::State& state) {
  const Device card = FindDevice(kCards[static_cast<size_t>(state.range(0))]).value();
  TimeColdSelect(state, card, CdnaFamily(), SelectBenchProblems());
}
BENCHMARK(BM_ColdSelect)->DenseRange(0, kCards.size() - 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gnomon::hip
