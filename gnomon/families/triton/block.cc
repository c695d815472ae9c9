// Cycles of one workgroup of a compiled Triton GEMM.
//
// A k step of wide operands is pipelined:
//   busy  = max(matrix, load issue)         throughput: what `occupancy` workgroups share
//   chain = √(matrix² + (latency/(buffers − 1))²) + barrier (+ serialised)     one workgroup alone:
//   two
//           queues, matrix instructions and copies in flight, wait for each other now and then
// With a narrow operand it is not: loads, shared memory stores, barrier and matrix follow each
// other
//   busy  = max + narrow_overlap · (sum − max) + spilled registers stored and loaded
//   chain = latency + load_share · loads + matrix + barrier + spilled · latency of the local memory
//   loads = warps · (narrow elements · line_cycles, or scattered_cycles where each thread has its
//   own line)
// The matrix part of a warpgroup instruction is the longer of the tensor cores and of shared
// memory:
//   every instruction reads 64 rows of A and its columns of B, and every tile is written there once
// Local memory: the share that fits beside shared memory in L1 costs `near`, the rest `far`.
//
// Constants without another source are fitted by least squares of log(predicted / measured) on the
// 85 shapes of bench/results/h200_triton_sweep.csv whose hash is even (gnomon/base/fit_split.h), 11
// thousand timings of Triton 3.6 on an H200; the other 89 shapes give the figures of
// docs/accuracy.md.
//
// Other GPUs: latencies come from their device files; the constants below stay and were never
// measured there.

#include "gnomon/families/triton/block.h"

namespace gnomon::triton {
namespace {

// Multiples of the HBM latency: a step waits for the slowest of many lines, under load.
constexpr double kPipelineLatency = 1.49, kNarrowLatency = 1.8;
constexpr double kSetupCycles = 1049;      // index arithmetic, first pointers
constexpr double kBarrierCycles = 53;      // of a k step
constexpr double kSerialCycles = 204;      // warpgroup instructions waited for one by one
constexpr double kStepIssue = 132;         // instructions of a k step that are not loads, a warp
constexpr double kCopyIssue = 2;           // a wide copy and its address
constexpr double kLineCycles = 4.67;       // L1, a warp's load of neighbouring elements
constexpr double kScatteredCycles = 14.1;  // L1, a warp's load of 32 different lines
constexpr double kNarrowOverlap = 0.74, kNarrowLoadShare = 0.84;
constexpr double kSpillNear = 15, kSpillFar = 141;  // cycles a spilled register: L1, beyond
constexpr double kSpillIssue = 5.5;                 // a warp's store and load of it
// mma.sync against the rate of the file's (warpgroup) instruction; on Hopper fitted, Ampere has no
// other.
constexpr double kSyncShareHopper = 0.29, kSyncShareAmpere = 0.85;
// Of the FMA rate beside addresses and barriers; assumed, never measured.
constexpr double kVectorShare = 0.85;
constexpr double kStoreRate =
    15;  // bytes of C a cycle of one unit: converted, through shared memory, to L2
constexpr double kNarrowStore = 3.87;  // cycles a warp's store of single elements
constexpr double kRegisterBytes = 4;
constexpr double kL1BesideShared =
    22528;  // L1 bytes of a unit that shared memory never takes (256 − 228 − tags, KiB)
constexpr double kLeastL1 = 8192;

double MatrixCycles(const TileMachine& machine, const CompiledKernel& kernel,
                    const TritonConfig& config, double element_bytes, double at_peak,
                    std::string_view arch) {
  if (kernel.path == MatrixPath::kSync) {
    // A thread's square of accumulators needs 2·√accumulators values of each k, two to a load;
    // loads and FMAs are issued in turn.
    if (machine.vector_units)
      return at_peak * (1 + 1 / std::sqrt(kernel.accumulators)) / kVectorShare;
    // fp64 has no other instruction: its rate is that of mma.sync everywhere.
    constexpr double kFp64Bytes = 8;
    const bool own_rate = arch.starts_with("sm_8") || element_bytes == kFp64Bytes;
    return at_peak / (own_rate ? kSyncShareAmpere : kSyncShareHopper);
  }
  const double m = config.block_m, n = config.block_n, k = config.block_k;
  constexpr double kRows = 64, kMostColumns = 256, kWarpsOfGroup = 4, kInstructionBytes = 32;
  const double groups = config.warps / kWarpsOfGroup;
  const double groups_m = std::min(groups, m / kRows);
  const double columns = std::min(kMostColumns, n / std::max(1.0, groups / groups_m));
  const double instructions = m * n * k * element_bytes / (kRows * columns * kInstructionBytes);
  const double read = instructions * (kRows + columns) * kInstructionBytes;
  const double written = (m + n) * k * element_bytes;
  return std::max(at_peak, (read + written) / machine.shared_rate);
}

}  // namespace

TileTraits LaunchTraits() {
  TileTraits traits;
  traits.wave_rounding = 1;  // equal workgroups started together end together
  traits.exposed_memory = 0.021;
  // Cold: DRAM pages and TLB entries are new to the kernel, and C's writes turn the bus round.
  traits.hbm_share = 0.508;
  traits.cold_bytes = 268435456;
  traits.memory_latency = 1.31e-6;
  traits.start_extra = 0.89e-6;  // two events, arguments, first instructions
  traits.reduction_start = 1.91e-6;
  traits.reduction_step = 0.148e-6;  // a loop of dependent loads, one part after the other
  return traits;
}

TileKernel BlockOf(const TileMachine& machine, std::string_view arch, const Specialisation& spec,
                   const TritonConfig& config, double element_bytes, double out_bytes) {
  const CompiledKernel compiled = Compile(machine, arch, spec, config, element_bytes);
  const double m = config.block_m, n = config.block_n, k = config.block_k, warps = config.warps;
  TileKernel block;
  block.tile_m = config.block_m;
  block.tile_n = config.block_n;
  block.tile_k = config.block_k;
  block.split_k = config.split_k;
  block.persistent = config.persistent;
  block.group_m = config.group_m;
  block.dies_apart = false;  // program ids go round the dies as they come
  constexpr double kPartialBytes = 4;
  block.bytes_c = config.split_k > 1 ? kPartialBytes : out_bytes;
  block.occupancy = Occupancy(machine, warps, compiled.registers, compiled.shared_bytes);
  if (block.occupancy == 0) return block;

  block.matrix_cycles = 2 * m * n * k / machine.matrix_flops;
  const double matrix =
      MatrixCycles(machine, compiled, config, element_bytes, block.matrix_cycles, arch);
  const double loads =
      warps * (compiled.narrow_a * kLineCycles +
               compiled.narrow_b * (spec.scattered_b ? kScatteredCycles : kLineCycles));
  const double issue =
      warps * (kStepIssue + kCopyIssue * compiled.wide_copies) / machine.schedulers;
  const double longest = std::max({matrix, loads, issue});

  if (compiled.narrow_a + compiled.narrow_b > 0) {
    const double local = compiled.spilled * compiled.threads * kRegisterBytes * block.occupancy;
    const double l1 = std::max(
        kLeastL1, machine.shared_bytes + kL1BesideShared - block.occupancy * compiled.shared_bytes);
    const double near = local > 0 ? std::min(1.0, l1 / local) : 1;
    block.step_busy = longest + kNarrowOverlap * (matrix + issue + loads - longest) +
                      compiled.spilled * warps * kSpillIssue;
    block.step_chain = kNarrowLatency * machine.hbm_latency +
                       kNarrowLoadShare * std::max(loads, issue) + matrix + kBarrierCycles +
                       compiled.spilled * (near * kSpillNear + (1 - near) * kSpillFar);
  } else {
    const double wait =
        kPipelineLatency * machine.hbm_latency / std::max(1.0, compiled.buffers - 1);
    block.step_busy = longest;
    block.step_chain = std::sqrt(matrix * matrix + wait * wait) + kBarrierCycles +
                       (compiled.serialised ? kSerialCycles : 0);
  }
  block.prologue = kSetupCycles + kPipelineLatency * machine.hbm_latency;
  block.epilogue = m * n * block.bytes_c / kStoreRate;
  if (!spec.wide_c) block.epilogue += m * n / compiled.threads * warps * kNarrowStore;
  block.epilogue_busy = block.epilogue;
  return block;
}

}  // namespace gnomon::triton
