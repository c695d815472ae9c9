// RunGemm: checks that a config can do a problem, finds the memory, starts the threads.
//
// One parallel region a call, none at one thread. A batch is shared out whole GEMMs at a time where
// that keeps every thread busy (SharesBatch), otherwise the team does one GEMM after the other. All
// working memory of a call is one block that the calling thread keeps for its next call, so that a
// training loop allocates nothing. What the threads then do is in run_tile.cc, dot.cc and amx.cc.

#include "gnomon/families/cpu/run.h"

#include <fmt/format.h>
#include <omp.h>

#include <cstdlib>
#include <memory>

#include "gnomon/families/cpu/amx.h"
#include "gnomon/families/cpu/dot.h"
#include "gnomon/families/cpu/kernel.h"
#include "hwy/targets.h"

namespace gnomon::cpu {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kKeepBytes = std::int64_t{256}
                                    << 20;  // larger blocks go back after the call
constexpr std::int64_t kMaxThreads = 1024;
constexpr double kAddressSpace =
    140737488355328.0;  // 2^47 bytes: products of sides stay far inside int64

struct FreeMemory {
  void operator()(char* memory) const { std::free(memory); }
};

// The calling thread's working memory.
class Arena {
 public:
  char* Reserve(std::int64_t bytes) {
    if (bytes <= size_) return memory_.get();
    Release();
    const std::int64_t whole = RoundUp(bytes, kAlignment);
    memory_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, static_cast<size_t>(whole))));
    size_ = memory_ ? whole : 0;
    return memory_.get();
  }
  void Trim() {
    if (size_ > kKeepBytes) Release();
  }

 private:
  void Release() {
    memory_.reset();
    size_ = 0;
  }
  std::unique_ptr<char, FreeMemory> memory_;
  std::int64_t size_ = 0;
};

Error Illegal(const Problem& problem, std::string message) {
  return BadInput(fmt::format("config cannot do {}: {}", problem.Text(), message), "config");
}

Status CheckTile(const Problem& p, const GemmConfig& c) {
  const TileKernels& tables = PanelTileKernels();
  const std::int32_t most = MaxTileRows(c.nr, tables.registers);
  if (c.mr < 1 || c.mr > most)
    return Illegal(
        p,
        fmt::format("no register tile of {} rows x {} vectors; at {} vectors mr goes from 1 to {}",
                    c.mr, c.nr, c.nr, most));
  if (p.b_transposed() && !c.pack_b)
    return Illegal(p, "a transposed B must be packed (pack_b) for the tile kernel");
  if (p.dtype == DType::kBf16 && !(c.pack_a && c.pack_b))
    return Illegal(p,
                   "the tile kernel widens bf16 while packing; both pack_a and pack_b must be set");
  return Done{};
}

Status CheckDot(const Problem& p, const GemmConfig& c) {
  const std::int32_t most = MaxDotRows(c.nr, DotKernelsFp32().registers);
  if (c.mr < 1 || c.mr > most)
    return Illegal(
        p, fmt::format("no block of {} x {} dot products; at {} columns mr goes from 1 to {}", c.mr,
                       c.nr, c.nr, most));
  const bool a_along_k = !p.a_transposed() || (p.m == 1 && p.LeadingA() == 1);
  const bool b_along_k = p.b_transposed() || (p.n == 1 && p.LeadingB() == 1);
  if (!a_along_k || !b_along_k)
    return Illegal(p,
                   "the dot kernel needs both operands contiguous in k (layout nt, or a single row "
                   "or column)");
  if (c.pack_a || c.pack_b)
    return Illegal(p, "the dot kernel packs nothing; pack_a and pack_b must not be set");
  return Done{};
}

Status CheckAmx(const Problem& p, const GemmConfig& c) {
  if (!AmxUsable()) return Illegal(p, "this machine has no AMX bf16 tiles");
  if (p.dtype != DType::kBf16) return Illegal(p, "AMX tiles multiply bf16 only");
  if (!HasAmxBlock(c.mr, c.nr))
    return Illegal(
        p,
        fmt::format("no block of {} x {} AMX tiles (valid: 2 x 2, 1 x 1 to 1 x 4, 1 x 1 to 4 x 1)",
                    c.mr, c.nr));
  if (!c.pack_b) return Illegal(p, "AMX needs a packed B (pack_b)");
  if (!c.pack_a && (p.a_transposed() || p.k % kAmxDepth != 0))
    return Illegal(
        p,
        fmt::format("AMX needs a packed A (pack_a) where A is transposed or k is no multiple of {}",
                    kAmxDepth));
  return Done{};
}

WorkspaceSize NeedOf(const Job& job, std::int64_t team_size) {
  switch (job.config.kernel) {
    case GemmConfig::Kernel::kTile:
      return TileWorkspace(job, team_size);
    case GemmConfig::Kernel::kDot:
      return DotWorkspace(job, team_size);
    case GemmConfig::Kernel::kAmx:
      return AmxWorkspace(job, team_size);
  }
  return {};
}

void RunJob(const Job& job, Team team, Workspace work) {
  switch (job.config.kernel) {
    case GemmConfig::Kernel::kTile:
      return RunTile(job, team, work);
    case GemmConfig::Kernel::kDot:
      return RunDot(job, team, work);
    case GemmConfig::Kernel::kAmx:
      return RunAmx(job, team, work);
  }
}

Job JobOfBatch(const Job& first, std::int64_t index) {
  const Problem& p = first.problem;
  const std::int64_t in = p.dtype == DType::kBf16 ? 2 : 4,
                     out = p.dtype_out == DType::kBf16 ? 2 : 4;
  Job job = first;
  job.a = static_cast<const char*>(first.a) +
          index * in * p.LeadingA() * (p.a_transposed() ? p.k : p.m);
  job.b = static_cast<const char*>(first.b) +
          index * in * p.LeadingB() * (p.b_transposed() ? p.n : p.k);
  job.c = static_cast<char*>(first.c) + index * out * p.LeadingC() * p.m;
  return job;
}

// Threads that OpenMP grants may be fewer than asked for: `memory` holds for every number up to
// that.
void RunBatch(const Job& job, bool share_batch, WorkspaceSize size, char* memory, Team threads) {
  const Team team = share_batch ? Team{} : threads;
  const Range mine = share_batch ? Share(job.problem.batch, 1, threads.rank, threads.size)
                                 : Range{0, job.problem.batch};
  Workspace work;
  if (share_batch) {
    work.shared = memory + threads.rank * (size.shared + size.own);
    work.own = work.shared + size.shared;
  } else {
    work.shared = memory;
    work.own = memory + size.shared + threads.rank * size.own;
  }
  for (std::int64_t index = mine.begin; index < mine.end; ++index) {
    if (index != mine.begin) team.Barrier();  // the shared memory is free again
    RunJob(JobOfBatch(job, index), team, work);
  }
}

WorkspaceSize Most(WorkspaceSize a, WorkspaceSize b) {
  return {std::max(a.shared, b.shared), std::max(a.own, b.own)};
}

}  // namespace

bool SharesBatch(std::int64_t batch, std::int32_t threads) {
  constexpr std::int64_t kUnevenIsFine =
      4;  // one GEMM more on some threads is then at most a quarter
  return threads > 1 && batch > 1 && (batch % threads == 0 || batch >= kUnevenIsFine * threads);
}

Status CheckConfig(const Problem& problem, const GemmConfig& config) {
  GNOMON_TRY(CheckProblem(problem));
  const auto supported = [](DType dtype) { return dtype == DType::kFp32 || dtype == DType::kBf16; };
  if (!supported(problem.dtype) || !supported(problem.dtype_out))
    return Illegal(problem, "family cpu computes fp32 and bf16 only");
  if (problem.bytes().value >= kAddressSpace)
    return Illegal(problem, "the operands exceed 2^47 bytes");
  if (config.threads < 1 || config.threads > kMaxThreads)
    return Illegal(problem,
                   fmt::format("threads is {}; it must be 1 to {}", config.threads, kMaxThreads));
  if (config.mc < 0 || config.nc < 0 || config.kc < 0)
    return Illegal(problem, "mc, nc and kc must be 0 (the whole side) or more");
  switch (config.kernel) {
    case GemmConfig::Kernel::kTile:
      return CheckTile(problem, config);
    case GemmConfig::Kernel::kDot:
      return CheckDot(problem, config);
    case GemmConfig::Kernel::kAmx:
      return CheckAmx(problem, config);
  }
  return Illegal(problem, "unknown kernel");
}

Status RunGemm(const Problem& problem, const GemmConfig& config, const void* a, const void* b,
               void* c, const float* bias) {
  GNOMON_TRY(CheckConfig(problem, config));
  if (a == nullptr || b == nullptr || c == nullptr)
    return BadInput("an operand is null", "RunGemm");
  if (problem.epilogue != Epilogue::kNone && problem.epilogue != Epilogue::kBias &&
      problem.epilogue != Epilogue::kBiasRelu)
    return BadInput("the CPU kernels have the epilogues none, bias, and bias with ReLU", "RunGemm");
  if (HasBias(problem.epilogue) && bias == nullptr)
    return BadInput("the epilogue needs a bias, which is null", "RunGemm");
  const Job job{problem, config, a, b, c, problem.epilogue == Epilogue::kNone ? nullptr : bias};
  const bool share_batch = SharesBatch(problem.batch, config.threads);
  const std::int64_t threads = config.threads;

  thread_local Arena arena;
  WorkspaceSize size = NeedOf(job, share_batch ? 1 : threads);
  if (!share_batch && threads > 1) size = Most(size, NeedOf(job, 1));
  const std::int64_t bytes =
      share_batch ? threads * (size.shared + size.own) : size.shared + threads * size.own;
  char* memory = arena.Reserve(std::max(bytes, kAlignment));
  if (memory == nullptr)
    return Fault(fmt::format("no memory for {} bytes of packed operands", bytes), "RunGemm");
  if (threads == 1) {
    RunBatch(job, false, size, memory, Team{});
  } else {
#pragma omp parallel num_threads(config.threads)
    RunBatch(job, share_batch, size, memory, Team{omp_get_thread_num(), omp_get_num_threads()});
  }
  arena.Trim();
  return Done{};
}

std::string_view VectorTarget() {
  switch (PanelTileKernels().lanes) {
    case 16:
      return "AVX3";
    case 8:
      return "AVX2";
    default:
      return "SSE4";
  }
}

bool HasAmx() { return AmxUsable(); }

}  // namespace gnomon::cpu
