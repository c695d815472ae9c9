#pragma once

/// The price of a config of family `cuda` on a problem. Internal to the family.

#include <array>

#include "gnomon/families/cuda/kernel_needs.h"
#include "gnomon/families/cuda/price.h"

namespace gnomon::cuda {

/// What our kernels cost beyond what a device file knows. Least weighted |log(predicted /
/// measured)| and least regret over the fit half (base/fit_split.h) of our sweeps on an H200
/// (bench/results/h200_cuda_*.csv); those of kind vector on its rows alone; held out:
/// docs/accuracy.md.
struct KernelCosts {
  /// Seconds beyond an empty kernel's: parameters and tensor maps fetched, barriers, and the part
  /// of the timing that is no kernel; CTAs of a cluster wait for each other.
  double start = 2.327e-06, cluster_start = 1.109e-06;
  double step_cycles = 244.9;    ///< a k step: barrier, issue, barrier
  double load_latency = 0.1315;  ///< of a k step's operands by TMA, in multiples of HBM's latency
  double cluster_step = 316.6;   ///< of a k step: CTAs of a cluster wait for each other's stages
  double row_cycles = 0.3;       ///< of the copy engine: a row of a box, whatever of it is there
  double tile_cycles = 1350;     ///< setting a tile up
  double turn_cycles = 267.2;    ///< handing the matrix unit over, where warpgroups take turns
  /// 64 rows of 128 bytes of C, a warpgroup: accumulators, shared memory, the wait for the buffer
  /// that the store before the last has to read, the store.
  double chunk_cycles = 917.8;
  /// An element of C, more, by plain stores where its rows are not whole 16 bytes: two bytes at a
  /// time; and where rows of at most a chunk are one run of memory, stored by words.
  double plain_store_cycles = 1.125;
  double run_store_cycles = 0.1545;
  double exposed_memory = 0.2941;  ///< share of the shorter of main loop and memory not hidden
  double hbm_share = 1;            ///< of the device file's streaming rate
  double unit_rate = 5.264;        ///< of what the device file lets one unit fetch: copies by TMA
  /// Times the device file's rate of L2: what several units ask for at once is read once.
  double l2_rate = 1.484;
  double apart = 2.119;     ///< a byte of stream-K's cut tiles: nobody asks for it at the same time
  double straddle = 2.693;  ///< a byte of rows that are not whole lines: every box row has two
  /// Seconds of matrix work after which the clock has come half of the way down to what the power
  /// limit leaves for long; shorter ones live on what the card has saved up while it waited.
  double burst = 0.0003629;
  double power = 0.8686;  ///< of the clock that dense matrix work leaves (gemm/gpu_load.h)
  /// Copying producers: the wait for a step's operands, in multiples of HBM's latency (one over the
  /// steps that copies are asked for ahead); instructions of a copy of 32 lanes: address, bounds,
  /// cp.async; and of shifting 32 words in place, where rows start inside a word: two loads, funnel
  /// shift, store. One a cycle and scheduler.
  double copy_latency = 1.909;
  double copy_instructions = 21.2;
  double shift_instructions = 162.5;
  /// Partial sums: bytes a cycle of a CTA, written or read by its consumer threads; and cycles
  /// until what one has written is seen by another.
  double part_rate = 12.55;       ///< written
  double part_read_rate = 117.5;  ///< read by a tile's last CTA
  double part_latency = 875.2;    ///< of the first bytes of each part, one part after the other
  double part_wait = 120.2;
  /// Seconds until the kernel that adds parts runs behind the first. A programmatic dependent
  /// launch has it resident when the first one ends: less than gpu_load.h's kSecondKernel.
  double reduce_start = 3.033e-06;
  double reduce_step = 1.622e-07;  ///< one more part in its loop
  double pad_start = 5.648e-07;    ///< the same of the kernel behind the one that pads
  double pad_share = 0.7444;  ///< of the streaming rate, read and written by the padding kernel
  /// Kind vector.
  double vector_part = 2.518e-06;   ///< seconds until the last CTA of a tile sees the others' parts
  double vector_start = 1.366e-06;  ///< as start
  double vector_latency = 1.3;      ///< a chunk's loads, in multiples of HBM's latency
  double vector_load = 66.74;       ///< cycles of one load more of the chunk
  double vector_scatter = 136.3;    ///< the same, more, where a run is loaded element by element
  double vector_instructions = 7.806;  ///< times those counted
  double vector_tail = 1294;           ///< a tile: indices, the epilogue, the store
};
const KernelCosts& CostsOfKernels();

/// What a problem decides about how kernels are built and priced, its sides apart.
struct KernelKind {
  DType dtype = DType::kBf16, dtype_out = DType::kBf16;
  Layout layout = Layout::kNT;
  Kind kind = Kind::kTma;
  bool boxes = true;  ///< C leaves by TMA
  bool run = false;   ///< else its rows are one run of memory, of at most a chunk's columns each
  friend bool operator==(const KernelKind&, const KernelKind&) = default;
};

/// How a kernel does its tiles: each in one go, cut into parts of K, or the last waves as stream-K.
enum class Cut { kWhole, kParts, kStream };

/// A row of kernel_table.h on a device, ready to be priced on any problem of its kind.
struct KernelTile {
  KernelConfig kernel;
  double workers = 0;           ///< clusters at once
  std::array<Block, 3> blocks;  ///< by Cut; a worker has one CTA a unit
  double fix_part = 0;          ///< cycles of one part read and added by a tile's last CTA
  double fix_once = 0;          ///< of its wait for them, and of storing the tile
};
/// Workers 0: the units do not hold a cluster.
KernelTile TileOf(const TileMachine& machine, const Machines& machines, const KernelKind& kind,
                  const KernelConfig& kernel);

/// One problem for all kernels.
struct KernelCall {
  KernelCall(const Device& device, const Machines& machines, const Problem& problem);
  Call call;
  int load_bytes_a, load_bytes_b;
  bool straddles_a, straddles_b;  ///< rows, as TMA loads them, do not begin at lines
  double pad_seconds = 0;         ///< of the copies of kind pad, in front of the kernel
};
/// A copying kernel's steps depend on the problem's alignment and depth: sets them.
void SetCopySteps(const KernelCall& call, KernelTile& tile);

struct KernelCandidate {
  const KernelTile* tile = nullptr;
  ClusterGrid grid;
  Cut cut = Cut::kWhole;
  std::int32_t split_k = 1;
  bool fix_up = false;
  std::int32_t group_m = 1;

  const Block& block() const { return tile->blocks[static_cast<std::size_t>(cut)]; }
  KernelConfig config() const;
  Candidate candidate() const { return {&block(), grid, split_k, group_m}; }
};

/// Cycles, at the machine's clock, that the last CTAs of all tiles spend on adding parts.
double FixUpCycles(const KernelCandidate& candidate);

/// Cycles by cause; `kernel`: what the tile model was told.
TileTime PriceOf(const KernelCall& call, const KernelCandidate& candidate, TileKernel& kernel);

}  // namespace gnomon::cuda
