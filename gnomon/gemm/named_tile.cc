// One workgroup of a kernel that is known by its name, in cycles of a unit.
//
//   step_busy  = max(matrix, shared memory, loads)        the unit's busiest pipe in one k step
//     matrix   = 2·m·n·k / rate, the rate times what the instruction reaches
//     shared   = bytes that are read from shared memory (and written to it through registers) /
//     rate loads    = (m + n)·k·size / bytes a clock between a unit and its cache
//   step_chain = max(matrix of this workgroup alone + what of shared does not hide behind it,
//                    latency / (stages − 1)) + bookkeeping
//   prologue   = first operands from memory; epilogue = the tile of C out through the same port
//
// Up to sm_89, and on vector units, every wave reads its operands into registers: waves that cut
// the tile along M read the columns of B again, and the other way round. wgmma (sm_90) and tcgen05
// (sm_100) read them from shared memory once an instruction: 64 or 128 rows, up to 256 columns. A
// kernel of an earlier generation reaches only a share of a later one's matrix rate. A name that
// does not state the depth has one of 128 bytes (a line, a TMA swizzle span); unstated stages fill
// shared memory. Left out: bank conflicts, scale factors of block-scaled formats, instruction issue
// beside the matrix pipe, padding of the loads at unaligned rows.
//
// Entry point: NamedTileOf.

#include "gnomon/gemm/named_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gnomon {
namespace {

using Library = KernelName::Library;

constexpr double kDepthBytes = 128;  // of a row in one k step where the name states no depth
constexpr int kMostStages = 16;      // the largest that nvjet names state
constexpr int kUsualGroup = 8;       // rows of tiles walked together where the name is silent
constexpr double kPartialBytes = 4;  // partial sums of a split are fp32
/// Waves of a workgroup: CUTLASS gives a warp of mma.sync 64x32 elements or twice that.
constexpr double kTileOfWarp = 64.0 * 32.0, kFewestWaves = 4, kMostWaves = 8;
/// Warps of the warpgroup that only loads (sm_90 and later).
constexpr double kProducerWarps = 4;
/// mma.sync on sm_90 against wgmma: 62.9% of peak (Luo et al., arXiv 2402.13499).
constexpr double kMmaSyncOnHopper = 0.629;
/// On sm_100 the same instructions keep Hopper's rate while tcgen05 doubled it. Assumed.
constexpr double kMmaSyncOnBlackwell = kMmaSyncOnHopper / 2;
/// Registers of a thread beside accumulators: operands, addresses, counters. Assumed.
constexpr double kOtherRegisters = 40;

double CeilDivide(double a, double b) { return std::ceil(a / b); }

// Generation of the instruction that multiplies.
enum class Mma { kSync, kWgmma, kTcgen05 };
Mma MmaOf(const Device& device, const KernelName& kernel) {
  const bool hopper = device.arch.starts_with("sm_90");
  const bool blackwell = device.arch.starts_with("sm_10");
  const bool early = kernel.library == Library::kCutlass2 || kernel.library == Library::kTriton ||
                     (kernel.library == Library::kXmma && kernel.arch != "sm_90" &&
                      !kernel.arch.starts_with("sm_10"));
  if (early || kernel.vector_units || (!hopper && !blackwell)) return Mma::kSync;
  return hopper ? Mma::kWgmma : Mma::kTcgen05;
}

/// What kernels lose beside what the hardware takes. Fitted on the rows whose hash is even
/// (base/fit_split.h) of measured/{h100,h200,b200}_bf16_library.csv, as the least over nvjet's
/// tiles, every twelfth row, and of a100_bf16_library.csv as the least over CUTLASS 2's, every
/// eighth.
struct Losses {
  double matrix_share;    ///< of the matrix rate inside the loop
  double step_overhead;   ///< cycles of a k step with no pipe busy: barrier, waits, loop
  double setup;           ///< cycles of a workgroup before its first load: arguments, addresses
  double start_us;        ///< beyond an empty kernel's
  double shared_exposed;  ///< share of shared-memory traffic that the own matrix work does not hide
  double exposed_memory, hbm_share, wave_rounding;  ///< TileTraits
  double error;                                     ///< median of |predicted / measured − 1|
};

Losses LossesOf(const KernelName& kernel, Mma mma) {
  // Loads run in a warp of their own and epilogues behind the next tile: little is left exposed. On
  // the odd rows the least over the menu is 9% (H100, B200) and 7% (H200) off; mma.sync 8% (A100).
  constexpr Losses kWarpSpecialized = {1.0, 0, 135, 0, 0.08, 0.03, 0.74, 0.0, 0.09};
  constexpr Losses kMmaSync = {1.0, 5, 2660, 0, 0.0, 0.42, 0.64, 0.32, 0.09};
  if (mma != Mma::kSync) return kWarpSpecialized;
  Losses losses = kMmaSync;
  // Nothing was fitted on vector units nor on Triton's kernels by name.
  constexpr double kNotFitted = 0.25;
  if (kernel.vector_units || kernel.library == Library::kTriton) losses.error = kNotFitted;
  return losses;
}

// The name's numbers with the silent ones filled in.
struct Filled {
  double m = 0, n = 0, k = 0;
  double waves = 4, waves_m = 2, waves_n = 2;
  double stages = 2;
};

// The squarest cut of the tile: the longer side is cut first.
void CutTile(Filled& filled) {
  filled.waves_m = filled.waves_n = 1;
  for (double left = filled.waves; left >= 2; left /= 2) {
    if (filled.m / filled.waves_m >= filled.n / filled.waves_n)
      filled.waves_m *= 2;
    else
      filled.waves_n *= 2;
  }
}

Filled Fill(const TileMachine& machine, const Problem& problem, const KernelName& kernel) {
  const double size = SizeOf(problem.dtype);
  Filled filled;
  filled.m = kernel.tile_m;
  filled.n = kernel.tile_n;
  filled.k = kernel.tile_k > 0 ? kernel.tile_k : kDepthBytes / size;
  filled.waves = kernel.waves > 0
                     ? kernel.waves
                     : std::clamp(filled.m * filled.n / kTileOfWarp, kFewestWaves, kMostWaves);
  if (kernel.waves_m > 0 && kernel.waves_n > 0) {
    filled.waves_m = kernel.waves_m;
    filled.waves_n = kernel.waves_n;
  } else {
    CutTile(filled);
  }
  if (kernel.stages > 0) {
    filled.stages = kernel.stages;
  } else if (!kernel.vector_units) {
    const double epilogue = filled.m * filled.n * SizeOf(problem.dtype_out) / 2;  // staged halves
    const double step = (filled.m + filled.n) * filled.k * size;
    filled.stages = std::clamp(std::floor((machine.shared_block_bytes - epilogue) / step), 2.0,
                               static_cast<double>(kMostStages));
  }
  return filled;
}

// Bytes a clock that a unit's first cache passes on (the file states its rate at the sustained
// clock), or the second where that is less.
double PortBytes(const Device& device, const TileMachine& machine) {
  const MemoryLevel* l1 = device.FindMemory("l1");
  const double first = l1 && l1->unit_bandwidth.value > 0
                           ? l1->unit_bandwidth.value / device.sustained_clock.value
                           : std::numeric_limits<double>::infinity();
  return std::min(machine.l2_unit_rate, first);
}

// Share of the matrix rate that the kernel's instructions reach.
double MatrixShare(const Device& device, const KernelName& kernel, const Filled& f, Mma mma) {
  if (mma == Mma::kSync) {
    if (device.arch.starts_with("sm_90")) return kMmaSyncOnHopper;
    return device.arch.starts_with("sm_10") ? kMmaSyncOnBlackwell : 1;
  }
  if (mma == Mma::kWgmma) return 1;
  // An instruction covers 128 rows of the SM's tensor memory; 64 use half of it.
  constexpr double kFullRows = 128;
  return std::min(1.0, (kernel.rows_along_m ? f.m : f.n) / kFullRows);
}

// Bytes that a k step moves to and from shared memory.
double SharedBytes(const KernelName& kernel, const Filled& f, double size, Mma mma) {
  const double depth = f.k * size;
  if (mma == Mma::kSync) {
    const double written = kernel.vector_units ? f.m + f.n : 0;  // no asynchronous copies
    return (f.waves_n * f.m + f.waves_m * f.n + written) * depth;
  }
  constexpr double kRowsOfWgmma = 64, kRowsOfTcgen05 = 128, kColumns = 256;
  const double rows = kernel.rows_along_m ? f.m : f.n, columns = kernel.rows_along_m ? f.n : f.m;
  const double instruction = mma == Mma::kWgmma ? kRowsOfWgmma : kRowsOfTcgen05;
  // Pairs of SMs read each half of the columns and pass it on.
  const double b = columns * CeilDivide(rows, instruction) / kernel.ctas_per_mma;
  return (rows * CeilDivide(columns, kColumns) + b) * depth;
}

double OccupancyOf(const TileMachine& machine, const KernelName& kernel, const Filled& f, Mma mma,
                   double step_bytes) {
  const double accumulators =
      mma == Mma::kTcgen05 ? 0 : f.m * f.n / (f.waves * machine.wave_width);  // tensor memory
  const double registers = std::min(accumulators + kOtherRegisters, machine.registers_per_thread);
  const double shared = std::min(f.stages * step_bytes, machine.shared_block_bytes);
  const double producers = mma == Mma::kSync ? 0 : kProducerWarps;
  const double resident = Occupancy(machine, f.waves + producers, registers, shared);
  return kernel.persistent ? 1 : std::max(1.0, resident);
}

}  // namespace

NamedTile NamedTileOf(const Device& device, const TileMachine& machine, const Problem& problem,
                      const KernelName& kernel, int split_k) {
  const Mma mma = MmaOf(device, kernel);
  const Losses losses = LossesOf(kernel, mma);
  const Filled f = Fill(machine, problem, kernel);
  const double size = SizeOf(problem.dtype), step_bytes = (f.m + f.n) * f.k * size;
  NamedTile out;
  out.relative_error = losses.error;
  out.traits.start_extra = losses.start_us * 1e-6;
  out.traits.exposed_memory = losses.exposed_memory;
  out.traits.hbm_share = losses.hbm_share;
  out.traits.wave_rounding = losses.wave_rounding;

  TileKernel& tile = out.kernel;
  tile.tile_m = kernel.tile_m;
  tile.tile_n = kernel.tile_n;
  tile.tile_k = std::max(1, static_cast<int>(f.k));
  tile.split_k = std::max(1, split_k);
  tile.stream_k = kernel.stream_k;
  tile.persistent = kernel.persistent || kernel.stream_k;
  tile.group_m = kernel.wgm != 0 ? std::abs(kernel.wgm) : kUsualGroup;
  tile.cluster_m = std::max(1, kernel.cluster_m);
  tile.cluster_n = std::max(1, kernel.cluster_n);
  tile.occupancy = OccupancyOf(machine, kernel, f, mma, step_bytes);
  tile.reads_past_cache = kernel.non_temporal_a && kernel.non_temporal_b;

  const double rate = kernel.vector_units ? machine.vector_flops
                                          : machine.matrix_flops * losses.matrix_share *
                                                MatrixShare(device, kernel, f, mma);
  const double matrix = 2 * f.m * f.n * f.k / rate;
  // Too few waves leave schedulers, and the matrix units behind them, without work.
  const double alone = matrix * std::max(1.0, machine.schedulers / f.waves);
  const double shared = SharedBytes(kernel, f, size, mma) / machine.shared_rate;
  const double port = PortBytes(device, machine), loads = step_bytes / port;
  tile.step_busy = std::max({matrix, shared, loads});
  // The clock falls with these; a kernel on vector units leaves it up.
  tile.matrix_cycles = kernel.vector_units ? 0 : 2 * f.m * f.n * f.k / machine.matrix_flops;
  const double ahead = f.stages - 1;
  tile.step_chain =
      losses.step_overhead +
      (ahead > 0 ? std::max(alone + losses.shared_exposed * shared, machine.l2_latency / ahead)
                 : alone + shared + machine.l2_latency + loads);

  // Partial sums of a split are fp32; stream-K stores whole tiles as they are wanted.
  tile.bytes_c = tile.split_k > 1 ? kPartialBytes : SizeOf(problem.dtype_out);
  tile.prologue = losses.setup + machine.hbm_latency + loads;
  tile.epilogue_busy = f.m * f.n * tile.bytes_c / port;
  tile.epilogue = machine.l2_latency + tile.epilogue_busy;
  if (kernel.reduces_alone && tile.split_k > 1) out.traits.reduction_start = device.kernel.value;
  return out;
}

}  // namespace gnomon
