// What a kernel costs before it does anything: a call through a pointer, and a parallel region.
//
// The call reads a problem of a dozen numbers and writes one vector, as the smallest GEMM does;
// what a framework adds on top of that is framework.op_us. The parallel region is OpenMP's, entered
// while its threads still spin from the region before; after a long serial part the system must
// wake them, which costs more and is not measured.

#include "gnomon/device/calibrate_calls.h"

#include <omp.h>

#include <array>
#include <cstddef>

#include "gnomon/device/calibrate_time.h"

namespace gnomon {
namespace {

struct SmallProblem {
  long m = 1, n = 16, k = 1, lda = 1, ldb = 16, ldc = 16, batch = 1, threads = 1;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
};

// The kernel behind the pointer: one row of sixteen numbers.
[[gnu::noinline]] void SmallKernel(const SmallProblem& problem) {
  for (long j = 0; j < problem.n; ++j) problem.c[j] = problem.a[0] * problem.b[j];
}

}  // namespace

Seconds CallCost(Seconds time) {
  constexpr std::size_t kCalls = 1 << 12;
  std::array<float, 16> b{}, c{};
  const float a = 2;
  SmallProblem problem;
  problem.a = &a, problem.b = b.data(), problem.c = c.data();
  void (*volatile kernel)(const SmallProblem&) = SmallKernel;
  return {1 / RateOfAll(1, time, [&](int) {
            for (std::size_t i = 0; i < kCalls; ++i) {
              kernel(problem);
              KeepAlive(c[0]);
            }
            return static_cast<double>(kCalls);
          })};
}

Seconds ForkJoinCost(int threads, Seconds time) {
  constexpr std::size_t kRegions = 1 << 6;
  std::size_t regions = 0;
  Seconds elapsed{0};
  const Seconds start = Now();
  while (elapsed < time) {
    for (std::size_t i = 0; i < kRegions; ++i) {
#pragma omp parallel num_threads(threads)
      KeepAlive(omp_get_thread_num());
    }
    regions += kRegions;
    elapsed = Now() - start;
  }
  return elapsed / static_cast<double>(regions);
}

}  // namespace gnomon
