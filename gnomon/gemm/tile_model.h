#pragma once

/// Tile model: the time of a GEMM kernel that cuts C into tiles, on a GPU of any vendor. A family
/// says what one workgroup does (`TileKernel`: tile, cycles of a k step, occupancy); this file says
/// what the device makes of the whole grid: waves of workgroups, the idle rest of the last wave,
/// what L2, last-level cache and HBM must deliver under the tile order, and the sum of a split.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// Facts of a device for one dtype, in cycles of `hertz`.
struct TileMachine {
  double hertz = 0;        ///< under matrix load
  double light_hertz = 0;  ///< with the matrix units idle
  double units = 0, units_per_die = 0, dies = 1;
  double matrix_flops = 0;    ///< a unit, a cycle
  bool vector_units = false;  ///< no matrix instruction for the dtype: these are the vector units'
  double vector_flops = 0;    ///< a unit, a cycle, fp32
  double schedulers = 4, wave_width = 32, max_waves = 0, max_blocks = 0;
  double registers = 0;             ///< 32-bit registers of a unit
  double registers_per_thread = 0;  ///< most a thread may use
  double register_granularity = 8;
  double shared_bytes = 0, shared_block_bytes = 0, shared_rate = 0;  ///< rate: bytes a cycle
  double l2_bytes = 0;                 ///< one die's (the device's where dies share it)
  double l2_unit_rate = 0;             ///< bytes a cycle of one unit alone
  double l2_rate = 0;                  ///< all units together
  double llc_bytes = 0, llc_rate = 0;  ///< 0: no last-level cache
  double hbm_rate = 0;
  /// Of one unit's share of what all fetch; 0: only its own port (l2_unit_rate) limits a unit. More
  /// workgroups that share operands then fetch less each, so that a larger M may come out faster.
  double hbm_unit_rate = 0;
  double l2_latency = 0, llc_latency = 0, hbm_latency = 0;  ///< cycles
  double line_bytes = 128;
  double start = 0;  ///< cycles of a kernel that does nothing (launch.kernel_us)
};

/// `hertz` 0: the sustained clock. Error: the device lacks a rate for the dtype or a fact that GPU
/// families need (names it).
Result<TileMachine> TileMachineOf(const Device& device, DType dtype, int units, Hertz clock = {});

/// What one workgroup of a kernel does. Cycles are those of one unit that has it alone.
struct TileKernel {
  int tile_m = 128, tile_n = 128, tile_k = 32;
  int split_k = 1;        ///< parts of K; each part is a workgroup
  bool stream_k = false;  ///< one grid of workgroups shares all k steps evenly
  bool persistent = false;
  int group_m = 1;                   ///< rows of tiles that are walked together, column by column
  int cluster_m = 1, cluster_n = 1;  ///< tiles that share operands through multicast
  double occupancy = 1;              ///< workgroups resident in a unit
  double matrix_cycles =
      0;                  ///< of a k step at the peak rate: what draws power; 0: clock stays down
  double step_busy = 0;   ///< cycles that one k step keeps the unit's busiest pipe
  double step_chain = 0;  ///< least cycles from one k step to the next of the same workgroup
  double prologue = 0;    ///< cycles before the first k step ends its wait
  double epilogue = 0;    ///< cycles after the last one, of the workgroup alone
  double epilogue_busy = 0;  ///< of these, cycles that other workgroups cannot use
  double bytes_c = 2;        ///< an element of C as the main kernel stores it
  /// What a byte asked of L2 costs it, and the unit's port, in bytes: more where rows begin inside
  /// a line, or where no neighbour asks for the same at the same time.
  double l2_weight = 1, port_weight = 1;
  bool dies_apart = true;         ///< neighbouring tiles run on one die (workgroups are remapped)
  bool reads_past_cache = false;  ///< non-temporal operands: each tile's reads go to memory
};

/// Constants of a kernel family or a library: how well its kernels do what the hardware allows.
struct TileTraits {
  double wave_rounding =
      0.5;  ///< 1: workgroups end together, a last wave costs a whole one; 0: never
  double exposed_memory = 0.2;  ///< share of the shorter of main loop and memory that is not hidden
  double hbm_share = 0.92;      ///< of the device file's streaming rate, for the first cold_bytes
  double cold_bytes = 1e30;     ///< beyond them pages are open and translated: the full rate
  double start_extra = 0;       ///< seconds before the first instruction beyond an empty kernel's
  double memory_latency = 0;    ///< seconds: first byte from a cold memory, last byte to it
  double reduction_start =
      0;  ///< seconds: the kernel that adds a split; 0: added in the same kernel
  double reduction_step = 0;  ///< seconds: one more part, read after the one before it
};

/// Bytes that one problem moves, and who delivers them.
struct TileTraffic {
  double requested = 0;  ///< by all workgroups, from L2 and beyond
  double beyond_l2 = 0;
  double from_hbm = 0;  ///< operands
  double stored = 0;    ///< C or partial sums
  double l2_hit() const { return requested > 0 ? 1 - beyond_l2 / requested : 0; }
  double llc_hit() const { return beyond_l2 > 0 ? 1 - from_hbm / beyond_l2 : 0; }
};
TileTraffic TrafficOf(const TileMachine& machine, const Problem& problem, const TileKernel& kernel);

/// Rows of tiles of all rows of C; every group of a grouped GEMM starts a new one.
double RowsOfTiles(const Problem& problem, int tile_m);

/// Cycles by cause; they add up to the time.
struct TileTime {
  double start = 0;      ///< launch, first instruction
  double prologue = 0;   ///< filling the pipeline, all waves
  double main_loop = 0;  ///< k steps of full waves
  double epilogue = 0;
  double last_wave = 0;                        ///< units idle while the last workgroups finish
  double memory = 0;                           ///< what memory adds to all of this
  double reduction = 0;                        ///< adding the parts of K
  double workgroups = 0, waves = 0, idle = 0;  ///< idle: share of the last wave, 0 to 1
  TileTraffic traffic;
  bool loop_is_chain = false;  ///< a k step waits for latency rather than for a pipe
  double total() const {
    return start + prologue + main_loop + epilogue + last_wave + memory + reduction;
  }
};
TileTime PriceTiles(const TileMachine& machine, const TileTraits& traits, const Problem& problem,
                    const TileKernel& kernel);

/// How far the clock has come down from light_hertz to hertz (1: all the way, at that share and
/// beyond) when the matrix units are busy for `matrix` of `units` cycles.
double MatrixShare(double matrix, double units);

/// Workgroups resident in a unit with these needs; 0: one alone does not fit.
double Occupancy(const TileMachine& machine, double waves, double registers_per_thread,
                 double shared_bytes);

/// Terms, bound and figures of a price. `what` names the kernel in the terms' reasons.
Prediction ExplainTiles(const TileMachine& machine, const TileTime& time, const TileKernel& kernel);

}  // namespace gnomon
