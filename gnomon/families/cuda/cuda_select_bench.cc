// Speed of a cold select over the whole space of family `cuda`: what a launch of a shape that was
// never seen pays for its pick.

#include "gnomon/families/cuda/cuda_family.h"
#include "gnomon/gemm/select_bench.h"

namespace gnomon::cuda {
namespace {

// Every second problem has odd sides: kinds copy and, for skinny ones, vector.
void BM_ColdSelectOwnKernels(benchmark::State& state) {
  const Device card = FindDevice("h200").value();
  std::vector<Problem> problems = SelectBenchProblems({.odd_shapes = state.range(0) != 0});
  for (Problem& p : problems)
    if (p.layout == Layout::kTT) p.layout = Layout::kNT;
  TimeColdSelect(state, card, CudaFamily(), problems);
}
BENCHMARK(BM_ColdSelectOwnKernels)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gnomon::cuda
