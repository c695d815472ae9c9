#pragma once

/// How a GEMM is cut up: ranges, balanced blocks, the team of threads, and one GEMM of the batch
/// with its strides resolved. Internal to the family; run.cc is the entry.

#include <algorithm>
#include <cstdint>

#include "gnomon/families/cpu/cpu_gemm.h"

namespace gnomon::cpu {

constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t RoundUp(std::int64_t a, std::int64_t b) { return CeilDiv(a, b) * b; }

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Part `index` of `count` parts of [0, size) that differ by at most one `grain`.
constexpr Range Share(std::int64_t size, std::int64_t grain, std::int64_t index,
                      std::int64_t count) {
  const std::int64_t grains = CeilDiv(size, grain);
  const std::int64_t base = grains / count, rest = grains % count;
  const std::int64_t begin = index * base + std::min(index, rest);
  const std::int64_t end = begin + base + (index < rest ? 1 : 0);
  return {std::min(begin * grain, size), std::min(end * grain, size)};
}

/// Size of the blocks that cut `size` into as few as blocks of at most `block` allow, all but the
/// last equal.
constexpr std::int64_t BalancedBlock(std::int64_t size, std::int64_t block, std::int64_t grain) {
  if (size <= 0) return grain;
  if (block <= 0 || block >= size) return RoundUp(size, grain);
  return RoundUp(CeilDiv(size, CeilDiv(size, block)), grain);
}

/// The threads that work on one GEMM together. A team of one never meets a barrier.
struct Team {
  std::int64_t rank = 0, size = 1;
  void Barrier() const {
    if (size == 1) return;
#pragma omp barrier
  }
};

/// One GEMM of the batch.
struct Job {
  Problem problem;
  GemmConfig config;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const float* bias = nullptr;
  bool relu() const { return problem.epilogue == Epilogue::kBiasRelu; }
  bool bf16_in() const { return problem.dtype == DType::kBf16; }
  bool bf16_out() const { return problem.dtype_out == DType::kBf16; }
  void* ElementOfC(std::int64_t i, std::int64_t j) const {
    return static_cast<char*>(c) + (i * problem.LeadingC() + j) * (bf16_out() ? 2 : 4);
  }
};

/// What a team works in, carved from one allocation: `shared` for all, `own` for each thread.
struct Workspace {
  char* shared = nullptr;
  char* own = nullptr;  ///< of this thread
};
struct WorkspaceSize {
  std::int64_t shared = 0;  ///< bytes, multiples of a cache line
  std::int64_t own = 0;
};

/// One kernel's way to do a job with a team: what it needs, and the work of one thread.
WorkspaceSize TileWorkspace(const Job& job, std::int64_t team_size);
void RunTile(const Job& job, Team team, Workspace work);
WorkspaceSize DotWorkspace(const Job& job, std::int64_t team_size);
void RunDot(const Job& job, Team team, Workspace work);
WorkspaceSize AmxWorkspace(const Job& job, std::int64_t team_size);
void RunAmx(const Job& job, Team team, Workspace work);

}  // namespace gnomon::cpu
