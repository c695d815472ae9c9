// How fast the GEMM kernels are on shapes of recommendation models: one fitting config for each, at
// one and two threads. Every result is checked against the fp64 product of a few of its rows before
// it is timed. Counter: floating-point operations a second.

#include <benchmark/benchmark.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cpu/kernel.h"
#include "oracle/gemm.h"

namespace gnomon::cpu {
namespace {

using Kernel = GemmConfig::Kernel;
using Split = GemmConfig::Split;

struct Shape {
  const char* what;
  Layout layout;
  std::int64_t m, n, k;
  DType dtype;
  Kernel kernel;
  std::int32_t nr;  ///< mr is the most that goes with it
  Split split;
  std::int32_t kc;
};

constexpr Shape kShapes[] = {
    {"linear forward", Layout::kNT, 2048, 256, 512, DType::kFp32, Kernel::kTile, 4, Split::kM, 0},
    {"linear dgrad", Layout::kNN, 2048, 512, 256, DType::kFp32, Kernel::kTile, 4, Split::kM, 0},
    {"linear wgrad", Layout::kTN, 256, 512, 2048, DType::kFp32, Kernel::kTile, 2, Split::kK, 256},
    {"first layer", Layout::kNT, 2048, 512, 13, DType::kFp32, Kernel::kTile, 4, Split::kM, 0},
    {"last layer", Layout::kNT, 4096, 1, 256, DType::kFp32, Kernel::kDot, 1, Split::kM, 0},
    {"last layer wgrad", Layout::kTN, 1, 256, 4096, DType::kFp32, Kernel::kTile, 8, Split::kK, 128},
    {"linear forward", Layout::kNT, 2048, 256, 512, DType::kBf16, Kernel::kAmx, 2, Split::kM, 0},
    {"linear wgrad", Layout::kTN, 256, 512, 4096, DType::kBf16, Kernel::kAmx, 2, Split::kN, 512},
};

Problem ProblemOf(const Shape& shape) {
  Problem problem;
  problem.m = shape.m;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.layout = shape.layout;
  problem.dtype = problem.dtype_out = shape.dtype;
  return problem;
}

GemmConfig ConfigOf(const Shape& shape, std::int32_t threads) {
  GemmConfig config;
  config.kernel = shape.kernel;
  config.nr = shape.nr;
  config.mr = shape.kernel == Kernel::kTile  ? MaxTileRows(shape.nr, PanelTileKernels().registers)
              : shape.kernel == Kernel::kAmx ? 4 / shape.nr
                                             : 8;
  config.kc = shape.kc;
  config.pack_b = shape.kernel == Kernel::kAmx ||
                  (shape.kernel == Kernel::kTile && shape.layout == Layout::kNT);
  config.pack_a = shape.layout == Layout::kTN && shape.m > 1;
  config.loop_n_outer = shape.layout == Layout::kTN;
  config.split = shape.split;
  config.threads = threads;
  return config;
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

// Page-aligned; random values of both signs, because the oracle's tolerance is that of a random
// walk.
Memory MakeOperand(DType dtype, std::int64_t count) {
  constexpr std::int64_t kPage = 4096;
  Memory memory(
      std::aligned_alloc(kPage, static_cast<size_t>((count * 4 + kPage - 1) / kPage * kPage)));
  std::minstd_rand random(static_cast<unsigned>(count));
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = uniform(random);
    if (dtype == DType::kFp32) {
      static_cast<float*>(memory.get())[i] = value;
    } else {
      static_cast<std::uint16_t*>(memory.get())[i] =
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    }
  }
  return memory;
}

// The first rows of C against the oracle. A transposed A has them with the same leading dimension.
bool Verify(const Problem& problem, const void* a, const void* b, const void* c) {
  constexpr std::int64_t kRows = 3;
  Problem rows = problem;
  rows.lda = problem.LeadingA();
  rows.m = std::min(kRows, problem.m);
  const oracle::GemmReference want = oracle::Gemm(rows, a, b, nullptr);
  for (std::int64_t i = 0; i < rows.m * rows.n; ++i) {
    const size_t at = static_cast<size_t>(i);
    const double got = oracle::ReadElement(problem.dtype_out, c, i);
    if (!(std::abs(got - want.value[at]) <=
          oracle::Tolerance(rows, want.value[at], want.magnitude[at])))
      return false;
  }
  return true;
}

void RunShape(benchmark::State& state, const Shape& shape, std::int32_t threads) {
  const Problem problem = ProblemOf(shape);
  const GemmConfig config = ConfigOf(shape, threads);
  const Memory a = MakeOperand(problem.dtype, problem.m * problem.k);
  const Memory b = MakeOperand(problem.dtype, problem.n * problem.k);
  const Memory c = MakeOperand(problem.dtype_out, problem.m * problem.n);
  const Status status = RunGemm(problem, config, a.get(), b.get(), c.get(), nullptr);
  if (!status.ok()) {
    state.SkipWithError(status.error().Text().c_str());
    return;
  }
  if (!Verify(problem, a.get(), b.get(), c.get())) {
    state.SkipWithError("wrong result");
    return;
  }
  for (auto _ : state) {
    const Status again = RunGemm(problem, config, a.get(), b.get(), c.get(), nullptr);
    benchmark::DoNotOptimize(again.ok());
  }
  state.counters["flops"] =
      benchmark::Counter(problem.flops().value, benchmark::Counter::kIsIterationInvariantRate,
                         benchmark::Counter::kIs1000);
}

const int kRegistered = [] {
  for (const Shape& shape : kShapes)
    for (const std::int32_t threads : {1, 2}) {
      const std::string name = std::string(shape.what) + ", " + ProblemOf(shape).Text() +
                               ", threads " + std::to_string(threads);
      benchmark::RegisterBenchmark(name.c_str(), RunShape, shape, threads)
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  return 0;
}();

}  // namespace
}  // namespace gnomon::cpu
