// GEMM as blocks of dot products, for few rows or columns: nothing is packed, and each operand is
// read once where one of them has a single block of rows.
//
//   for blocks of mr rows, for blocks of nr columns (or the reverse): mr × nr dot products over all
//   of k
//
// Threads share out M, N, or K; K leaves partial sums that are added up at the end. Balanced blocks
// as in run_tile.cc. Not here: blocking for caches. With many rows and columns the register tiles
// are faster.

#include "gnomon/families/cpu/dot.h"
#include "gnomon/families/cpu/pack.h"
#include "gnomon/families/cpu/run.h"

namespace gnomon::cpu {
namespace {

constexpr std::int64_t kDepthGrain = 64;  // k values: whole vectors and cache lines for each thread
constexpr std::int64_t kCacheLine = 16;   // floats

// Calls visit(block) for the blocks of at most `most` that cut a range evenly.
template <class Visit>
void ForEachBlock(Range range, std::int64_t most, const Visit& visit) {
  if (range.size() == 0) return;
  const std::int64_t count = CeilDiv(range.size(), most);
  const std::int64_t base = range.size() / count, rest = range.size() % count;
  std::int64_t begin = range.begin;
  for (std::int64_t index = 0; index < count; ++index) {
    const std::int64_t end = begin + base + (index < rest ? 1 : 0);
    visit(Range{begin, end});
    begin = end;
  }
}

class DotWorker {
 public:
  explicit DotWorker(const Job& job)
      : job_(job),
        table_(job.bf16_in() ? DotKernelsBf16() : DotKernelsFp32()),
        element_(job.bf16_in() ? 2 : 4) {}

  // `partial`: sums go there, dense; otherwise finished values go to C.
  void Run(Range m, Range n, Range k, float* partial) {
    const std::int64_t mr = job_.config.mr, nr = job_.config.nr;
    if (job_.config.loop_n_outer) {
      ForEachBlock(n, nr, [&](Range cols) {
        ForEachBlock(m, mr, [&](Range rows) { Block(rows, cols, k, partial); });
      });
    } else {
      ForEachBlock(m, mr, [&](Range rows) {
        ForEachBlock(n, nr, [&](Range cols) { Block(rows, cols, k, partial); });
      });
    }
  }

 private:
  void Block(Range rows, Range cols, Range k, float* partial) {
    const Problem& p = job_.problem;
    alignas(64) float sum[kMaxDotSums];
    DotArgs args;
    // A single row of a transposed A, and a single column of B, are contiguous in k with a stride
    // of one row.
    args.a_stride = p.a_transposed() ? 0 : p.LeadingA();
    args.b_stride = p.b_transposed() ? p.LeadingB() : 0;
    args.a = static_cast<const char*>(job_.a) + element_ * (rows.begin * args.a_stride + k.begin);
    args.b = static_cast<const char*>(job_.b) + element_ * (cols.begin * args.b_stride + k.begin);
    args.k = k.size();
    args.sum = sum;
    table_.kernel[static_cast<size_t>(rows.size())][static_cast<size_t>(cols.size())](args);
    if (partial != nullptr) {
      for (std::int64_t i = rows.begin; i < rows.end; ++i)
        for (std::int64_t j = cols.begin; j < cols.end; ++j)
          partial[i * p.n + j] = sum[(i - rows.begin) * cols.size() + j - cols.begin];
    } else if (job_.bf16_out() || job_.bias != nullptr) {
      FinishBlock(rows, cols, sum);
    } else {
      for (std::int64_t i = rows.begin; i < rows.end; ++i)
        for (std::int64_t j = cols.begin; j < cols.end; ++j)
          static_cast<float*>(job_.c)[i * p.LeadingC() + j] =
              sum[(i - rows.begin) * cols.size() + j - cols.begin];
    }
  }

  void FinishBlock(Range rows, Range cols, const float* sum) {
    FinishArgs finish;
    finish.first = sum;
    finish.first_stride = cols.size();
    finish.rows = rows.size();
    finish.cols = cols.size();
    finish.bias = job_.bias == nullptr ? nullptr : job_.bias + cols.begin;
    finish.relu = job_.relu();
    finish.c_stride = job_.problem.LeadingC();
    finish.c = job_.ElementOfC(rows.begin, cols.begin);
    finish.bf16 = job_.bf16_out();
    Finish(finish);
  }

  const Job& job_;
  const DotKernels& table_;
  std::int64_t element_;
};

std::int64_t PartialSize(const Job& job) {
  return RoundUp(job.problem.m * job.problem.n, kCacheLine);
}

bool SplitsDepth(const Job& job, std::int64_t team_size) {
  return team_size > 1 && job.config.split == GemmConfig::Split::kK;
}

}  // namespace

WorkspaceSize DotWorkspace(const Job& job, std::int64_t team_size) {
  return {SplitsDepth(job, team_size) ? team_size * PartialSize(job) * 4 : 0, 0};
}

void RunDot(const Job& job, Team team, Workspace work) {
  const Problem& p = job.problem;
  DotWorker worker(job);
  Range m = {0, p.m}, n = {0, p.n};
  if (!SplitsDepth(job, team.size)) {
    if (job.config.split == GemmConfig::Split::kN) {
      n = Share(p.n, 1, team.rank, team.size);
    } else {
      m = Share(p.m, 1, team.rank, team.size);
    }
    worker.Run(m, n, {0, p.k}, nullptr);
    return;
  }
  float* sums = reinterpret_cast<float*>(work.shared);
  worker.Run(m, n, Share(p.k, kDepthGrain, team.rank, team.size),
             sums + team.rank * PartialSize(job));
  team.Barrier();
  const Range rows = Share(p.m, 1, team.rank, team.size);
  FinishArgs finish;
  finish.first = sums + rows.begin * p.n;
  finish.first_stride = finish.part_stride = p.n;
  finish.parts = finish.first + PartialSize(job);
  finish.part_count = team.size - 1;
  finish.part_size = PartialSize(job);
  finish.rows = rows.size();
  finish.cols = p.n;
  finish.bias = job.bias;
  finish.relu = job.relu();
  finish.c = job.ElementOfC(rows.begin, 0);
  finish.c_stride = p.LeadingC();
  finish.bf16 = job.bf16_out();
  Finish(finish);
}

}  // namespace gnomon::cpu
