// The time of a grid of workgroups on a GPU, whatever family made the workgroup.
//
//   time = start + units + memory + reduction                          cycles, TileTime::total()
//   units: a unit runs b = workgroups / units of them, `occupancy` at a time, j together taking
//     T(j) = prologue + steps · max(j · step_busy, step_chain) + epilogue + (j − 1) · epilogue_busy
//     exact  = b/occupancy · T(occupancy)          had every unit the same share and no rest
//     whole  = ⌊⌈b⌉/occupancy⌋ · T(occupancy) + T(rest)      the busiest unit, wave by wave
//     units  = exact + wave_rounding · (whole − exact)       workgroups drift apart: between the
//     two
//   clock: units run at light_hertz when their matrix units idle and at hertz from a busy share of
//     kHeavyActivity on (power), in a straight line between
//   memory = what the slowest of L2, last-level cache, HBM and one unit's own port adds:
//     max(units, memory) − units, and a share of the shorter one that does not hide behind the
//     longer
//
// Traffic: tiles that are resident together share rows of A and columns of B; their number is what
// occupancy, units of a die and the tile order give. An operand that fits in a cache beside what
// streams past it is fetched once (`Kept`); else once for every set of resident tiles. Of a grouped
// GEMM every group with rows has its own tiles (⌈m of the group / tile⌉ rows of them) and its own
// B; the traffic is that of the mean group, once for each.
//
// Not modelled: imbalance between dies, TLB misses, clocks that change inside a kernel, bank and
// channel conflicts (families that know their addresses put those into the step).
//
// Entry points: the header's.

#include "gnomon/gemm/tile_model.h"

#include <fmt/format.h>

#include <string_view>

#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

// Of a count (not negative), by a conversion each way instead of a call of the C library.
double FloorOf(double value) {
  constexpr double kAllWhole = 4503599627370496.0;  // 2^52: from here on every double is whole
  return value < kAllWhole ? static_cast<double>(static_cast<std::int64_t>(value)) : value;
}
double CeilOf(double value) {
  const double floor = FloorOf(value);
  return floor < value ? floor + 1 : floor;
}

// Share of a footprint that a cache still holds when it comes round again: all of it up to half the
// capacity (the rest belongs to what streams past), nothing from one and a half capacities on.
double Kept(double capacity, double footprint) {
  constexpr double kGone = 1.5;
  return std::clamp(kGone - footprint / capacity, 0.0, 1.0);
}

// Rows and columns of tiles that `resident` neighbours in the tile order touch.
struct Region {
  double rows = 1, columns = 1;
};
Region RegionOf(double resident, double tiles_m, double tiles_n, double group_m) {
  const double group = std::min(group_m, tiles_m);
  if (resident >= group * tiles_n)  // several groups: all columns
    return {std::min(tiles_m, resident / tiles_n), tiles_n};
  if (resident <= group) return {std::max(1.0, resident), 1};
  return {group, resident / group};
}

// Bytes that a cache shared by `resident` neighbours must fetch for the whole problem: each set of
// resident tiles fetches its rows and columns once. Of what an operand fetches beyond its size, the
// cache serves the share that it has kept.
double Fetched(double resident, double capacity, double tiles_m, double tiles_n, double group_m,
               double bytes_a, double bytes_b) {
  const double tiles = tiles_m * tiles_n;
  const Region region = RegionOf(std::min(resident, tiles), tiles_m, tiles_n, group_m);
  const double sets = std::max(1.0, tiles / (region.rows * region.columns));
  const double a = std::max(bytes_a, sets * bytes_a * region.rows / tiles_m);
  const double b = std::max(bytes_b, sets * bytes_b * region.columns / tiles_n);
  // Before A's rows come round, the columns of a group have streamed past, and the other way.
  const double group_rows = std::min(group_m, tiles_m) / tiles_m * bytes_a;
  const double kept_a = Kept(capacity, group_rows + bytes_b / tiles_n * region.columns);
  const double kept_b = Kept(capacity, bytes_b + group_rows);
  return a + b - kept_a * (a - bytes_a) - kept_b * (b - bytes_b);
}

// Busy share of the matrix units at which the clock has come down to the sustained one: on an H200
// bf16 GEMMs of 50% to 83% ran at 1.57 to 1.71 GHz, of 1% to 7% at 1.76 to 1.93 (hardware counters,
// bench/triton_counters.py); the point between is fitted on the sweep of bench/results.
constexpr double kHeavyActivity = 0.3;

struct Grid {
  // Products: the batch, or the groups; m and tiles_m: of one, of groups the mean.
  double products = 1, m = 1;
  double tiles_m = 1, tiles_n = 1, tiles = 1;  // tiles: of all products
  double steps = 1;                            // k steps of a workgroup
  double workgroups = 1;
};

Grid GridOf(const TileMachine& machine, const Problem& problem, const TileKernel& kernel) {
  Grid grid;
  grid.products = static_cast<double>(problem.Products());
  grid.tiles_n = CeilOf(static_cast<double>(problem.n) / kernel.tile_n);
  if (problem.grouped()) {
    const double rows_of_tiles = RowsOfTiles(problem, kernel.tile_m);
    grid.m = static_cast<double>(problem.m) / grid.products;
    grid.tiles_m = rows_of_tiles / grid.products;
    grid.tiles = rows_of_tiles * grid.tiles_n;
  } else {
    grid.m = static_cast<double>(problem.m);
    grid.tiles_m = CeilOf(grid.m / kernel.tile_m);
    grid.tiles = grid.tiles_m * grid.tiles_n * grid.products;
  }
  const double steps = CeilOf(static_cast<double>(problem.k) / kernel.tile_k);
  if (kernel.stream_k) {
    grid.workgroups = std::min(machine.units * kernel.occupancy, grid.tiles * steps);
    grid.steps = CeilOf(grid.tiles * steps / grid.workgroups);
  } else {
    grid.workgroups = grid.tiles * kernel.split_k;
    grid.steps = CeilOf(steps / kernel.split_k);
  }
  return grid;
}

}  // namespace

Result<TileMachine> TileMachineOf(const Device& device, DType dtype, int units, Hertz clock) {
  TileMachine machine;
  const Rate* rate = nullptr;
  for (const Rate& entry : device.matrix)
    if (entry.dtype == dtype) rate = &entry;
  // fp32 and fp64 products also run on the vector units; narrower types are not worth it there.
  if (!rate && SizeOf(dtype) >= SizeOf(DType::kFp32) && dtype != DType::kTf32) {
    for (const Rate& entry : device.vector)
      if (entry.dtype == dtype) rate = &entry;
    machine.vector_units = rate != nullptr;
  }
  if (!rate) return BadInput(fmt::format("{} has no rate for {}", device.id, Name(dtype)), "dtype");
  const auto missing = [&](std::string_view key) {
    return BadInput(
        fmt::format("the device file of {} has no {}, which GPU kernels need", device.id, key),
        "device");
  };
  if (device.max_waves <= 0) return missing("execution.max_waves");
  if (device.max_blocks <= 0) return missing("execution.max_blocks");
  if (device.schedulers <= 0) return missing("execution.schedulers");
  if (device.shared_memory_block.value <= 0) return missing("execution.shared_memory_block_kib");
  if (device.shared_bytes_per_clock <= 0) return missing("execution.shared_bytes_per_clock");
  if (device.kernel.value <= 0) return missing("launch.kernel_us");
  const MemoryLevel* l2 = device.FindMemory("l2");
  if (!l2) return missing("memory 'l2'");

  machine.hertz = clock.value > 0 ? clock.value : device.sustained_clock.value;
  machine.light_hertz = machine.hertz;
  if (clock.value <= 0)
    machine.light_hertz = std::max(device.max_clock.value, device.boost_clock.value);
  machine.units = units > 0 ? units : device.units;
  machine.dies = std::max(1, device.dies);
  machine.units_per_die = machine.units / machine.dies;
  machine.matrix_flops = rate->flops_per_unit_clock;
  for (const Rate& entry : device.vector)
    if (entry.dtype == DType::kFp32) machine.vector_flops = entry.flops_per_unit_clock;
  machine.schedulers = device.schedulers;
  machine.wave_width = device.wave_width;
  machine.max_waves = device.max_waves;
  machine.max_blocks = device.max_blocks;
  constexpr double kRegisterBytes = 4;
  machine.registers = device.register_file.value / kRegisterBytes;
  machine.registers_per_thread = device.vector_registers;
  machine.register_granularity = std::max(1, device.register_granularity);
  machine.shared_bytes = device.shared_memory.value;
  machine.shared_block_bytes = device.shared_memory_block.value;
  machine.shared_rate = device.shared_bytes_per_clock;

  const double share = machine.units / device.units;  // a CU budget pulls less
  const auto per_cycle = [&](BytesPerSecond rate_of) { return rate_of.value / machine.hertz; };
  machine.l2_bytes = l2->capacity.value;
  machine.l2_rate = per_cycle(l2->bandwidth) * share;
  machine.l2_unit_rate = l2->unit_bandwidth.value > 0 ? per_cycle(l2->unit_bandwidth)
                                                      : machine.l2_rate / machine.units;
  machine.l2_latency = l2->latency.value * machine.hertz;
  machine.line_bytes = l2->line_bytes;
  if (const MemoryLevel* llc = device.FindMemory("llc")) {
    machine.llc_bytes = llc->capacity.value;
    machine.llc_rate = per_cycle(llc->bandwidth);
    machine.llc_latency = llc->latency.value * machine.hertz;
  }
  const MemoryLevel& hbm = device.MainMemory();
  machine.hbm_rate = per_cycle(hbm.bandwidth);
  machine.hbm_unit_rate =
      hbm.unit_bandwidth.value > 0 ? per_cycle(hbm.unit_bandwidth) : machine.l2_unit_rate;
  machine.hbm_latency = hbm.latency.value * machine.hertz;
  machine.start = device.kernel.value * machine.hertz;
  return machine;
}

double Occupancy(const TileMachine& machine, double waves, double registers_per_thread,
                 double shared_bytes) {
  constexpr double kReserved = 1024;  // shared memory the driver keeps a workgroup (CUDA); ROCm: 0
  const double granted =
      CeilOf(registers_per_thread / machine.register_granularity) * machine.register_granularity;
  if (granted > CeilOf(machine.registers_per_thread / machine.register_granularity) *
                    machine.register_granularity ||
      shared_bytes > machine.shared_block_bytes)
    return 0;
  const double by_registers = FloorOf(machine.registers / (granted * waves * machine.wave_width));
  const double reserved = machine.wave_width == 32 ? kReserved : 0;
  const double by_shared = shared_bytes > 0
                               ? FloorOf(machine.shared_bytes / (shared_bytes + reserved))
                               : machine.max_blocks;
  const double by_waves = FloorOf(machine.max_waves / waves);
  return std::max(0.0, std::min({by_registers, by_shared, by_waves, machine.max_blocks}));
}

double MatrixShare(double matrix, double units) { return matrix / units / kHeavyActivity; }

double RowsOfTiles(const Problem& problem, int tile_m) {
  if (!problem.grouped()) return CeilOf(static_cast<double>(problem.m) / tile_m);
  double rows = 0;
  for (const std::int64_t m : problem.group_m) rows += CeilOf(static_cast<double>(m) / tile_m);
  return rows;
}

namespace {

TileTraffic TrafficOf(const TileMachine& machine, const Problem& problem, const TileKernel& kernel,
                      const Grid& grid) {
  const double size = SizeOf(problem.dtype), batch = grid.products;
  const double m = grid.m, n = static_cast<double>(problem.n), k = static_cast<double>(problem.k);
  const double bytes_a = m * k * size, bytes_b = n * k * size;
  TileTraffic traffic;
  traffic.requested = batch * (bytes_a * grid.tiles_n / kernel.cluster_n +
                               bytes_b * grid.tiles_m / kernel.cluster_m);
  const double resident = machine.units * kernel.occupancy;
  double beyond = traffic.requested / batch;
  if (!kernel.reads_past_cache) {
    if (machine.dies > 1) {
      // A die holds its share of the resident tiles: neighbours, or every dies-th tile.
      const double die = kernel.dies_apart ? resident / machine.dies : resident;
      beyond = Fetched(die, machine.l2_bytes, grid.tiles_m, grid.tiles_n, kernel.group_m, bytes_a,
                       bytes_b) *
               (kernel.dies_apart ? 1.0 : machine.dies);
    } else {
      beyond = Fetched(resident, machine.l2_bytes, grid.tiles_m, grid.tiles_n, kernel.group_m,
                       bytes_a, bytes_b);
    }
    beyond = std::min(beyond, traffic.requested / batch);
  }
  double hbm = beyond;
  if (machine.llc_bytes > 0)
    hbm = std::min(beyond, Fetched(resident, machine.llc_bytes, grid.tiles_m, grid.tiles_n,
                                   kernel.group_m, bytes_a, bytes_b));
  traffic.beyond_l2 = batch * beyond;
  traffic.from_hbm = batch * hbm;
  const double parts = kernel.stream_k ? 1.0 : kernel.split_k;
  traffic.stored = batch * m * n * kernel.bytes_c * parts;
  return traffic;
}

// Operand bytes of one workgroup with a whole tile: that others read the same rows or columns at
// the same time does not bring them to this one any sooner.
double UnitBytes(const Grid& grid, const Problem& problem, const TileKernel& kernel) {
  const double rows = std::min(grid.m, static_cast<double>(kernel.tile_m));
  const double columns =
      std::min(static_cast<double>(problem.n), static_cast<double>(kernel.tile_n));
  double depth = grid.steps * kernel.tile_k;
  if (!kernel.stream_k) depth = std::min(depth, static_cast<double>(problem.k));
  return (rows / kernel.cluster_n + columns / kernel.cluster_m) * depth * SizeOf(problem.dtype);
}

}  // namespace

TileTraffic TrafficOf(const TileMachine& machine, const Problem& problem,
                      const TileKernel& kernel) {
  return TrafficOf(machine, problem, kernel, GridOf(machine, problem, kernel));
}

TileTime PriceTiles(const TileMachine& machine, const TileTraits& traits, const Problem& problem,
                    const TileKernel& kernel) {
  const Grid grid = GridOf(machine, problem, kernel);
  const double occupancy = kernel.occupancy, steps = grid.steps;
  const auto together = [&](double j) {
    return kernel.prologue + steps * std::max(j * kernel.step_busy, kernel.step_chain) +
           kernel.epilogue + (j - 1) * kernel.epilogue_busy;
  };
  const double share = grid.workgroups / machine.units;
  const double whole_share = CeilOf(share);
  const double full = FloorOf(whole_share / occupancy);
  const double rest = whole_share - full * occupancy;
  const double together_full = together(occupancy);
  const double whole = full * together_full + (rest > 0 ? together(rest) : 0);
  const double resident = std::clamp(share, 1.0, occupancy);
  const double rounds = std::max(1.0, share / occupancy);
  const double exact = rounds * together(resident);

  TileTime time;
  time.workgroups = grid.workgroups;
  time.waves = share / occupancy;
  time.idle = 1 - share / (full * occupancy + rest);
  time.loop_is_chain = kernel.step_chain > resident * kernel.step_busy;
  time.start = machine.start + traits.start_extra * machine.hertz;
  time.prologue = (kernel.persistent ? 1.0 : rounds) * kernel.prologue;
  time.main_loop = rounds * steps * std::max(resident * kernel.step_busy, kernel.step_chain);
  time.epilogue = rounds * (kernel.epilogue + (resident - 1) * kernel.epilogue_busy);
  time.last_wave = traits.wave_rounding * std::max(0.0, whole - exact);
  double units = time.prologue + time.main_loop + time.epilogue + time.last_wave;
  if (kernel.matrix_cycles > 0) {
    const double heavy = std::min(1.0, MatrixShare(kernel.matrix_cycles * steps * share, units));
    const double clock = machine.light_hertz + (machine.hertz - machine.light_hertz) * heavy;
    const double faster = machine.hertz / clock;  // cycles are counted at the sustained clock
    time.prologue *= faster;
    time.main_loop *= faster;
    time.epilogue *= faster;
    time.last_wave *= faster;
    units *= faster;
  }

  time.traffic = TrafficOf(machine, problem, kernel, grid);
  const double moved = time.traffic.from_hbm + time.traffic.stored;
  const double cold = std::min(moved, traits.cold_bytes);
  double memory = (cold / traits.hbm_share + (moved - cold)) / machine.hbm_rate;
  if (machine.hbm_unit_rate > 0) {
    const double active = std::min(machine.units, grid.workgroups);
    memory = std::max(memory, moved / (active * machine.hbm_unit_rate));
  }
  if (machine.llc_rate > 0) memory = std::max(memory, time.traffic.beyond_l2 / machine.llc_rate);
  memory = std::max({memory, time.traffic.requested * kernel.l2_weight / machine.l2_rate,
                     UnitBytes(grid, problem, kernel) * kernel.port_weight * std::max(1.0, share) /
                         machine.l2_unit_rate});
  memory += traits.memory_latency * machine.hertz;
  time.memory = std::max(0.0, memory - units) + traits.exposed_memory * std::min(memory, units);

  if (kernel.split_k > 1 || kernel.stream_k) {
    // Partial sums are read again, mostly from the cache that they were just written to.
    const double out = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                       static_cast<double>(problem.batch);
    // Stream-K: workgroups that end inside a tile leave it to the one that began it, which adds it
    // to its own; with more workgroups than tiles all but one of a tile's do.
    const double cut =
        grid.workgroups > grid.tiles ? grid.workgroups - grid.tiles : grid.workgroups;
    const double partials =
        kernel.stream_k ? 2 * cut * kernel.tile_m * kernel.tile_n * kernel.bytes_c
                        : out * (kernel.bytes_c * kernel.split_k + SizeOf(problem.dtype_out));
    const double near = machine.llc_rate > 0 ? machine.llc_rate : machine.l2_rate;
    time.reduction =
        (traits.reduction_start + traits.reduction_step * kernel.split_k) * machine.hertz +
        partials / near;
  }
  return time;
}

Prediction ExplainTiles(const TileMachine& machine, const TileTime& time,
                        const TileKernel& kernel) {
  Prediction out;
  const auto seconds = [&](double cycles) { return Seconds{cycles / machine.hertz}; };
  const auto add = [&](std::string name, double cycles, std::string why) {
    if (cycles != 0) out.terms.push_back({std::move(name), seconds(cycles), std::move(why)});
  };
  const std::string tile = fmt::format("{}x{}x{}", kernel.tile_m, kernel.tile_n, kernel.tile_k);
  add("start", time.start, "an empty kernel, and what this family adds");
  add("prologue", time.prologue,
      fmt::format("first operands on their way, {:.3g} waves", std::max(1.0, time.waves)));
  add("main loop", time.main_loop,
      fmt::format("{:.0f} workgroups of tile {}, {:.0f} a unit at once, {}", time.workgroups, tile,
                  kernel.occupancy,
                  time.loop_is_chain ? "a step waits for latency" : "a step fills its pipe"));
  add("epilogue", time.epilogue, "C converted and stored");
  add("last wave", time.last_wave, fmt::format("{:.0f}% of its places are empty", 100 * time.idle));
  add("memory", time.memory,
      fmt::format("{:.3g} MB from HBM, {:.3g} MB stored, L2 hits {:.0f}%",
                  time.traffic.from_hbm / 1e6, time.traffic.stored / 1e6,
                  100 * time.traffic.l2_hit()));
  add("reduction", time.reduction, fmt::format("{} parts of K added", kernel.split_k));
  const auto figure = [&](std::string name, double value, std::string unit, std::string why) {
    out.figures.push_back({std::move(name), value, std::move(unit), std::move(why)});
  };
  const TileTraffic& traffic = time.traffic;
  figure("workgroups", time.workgroups, "",
         kernel.split_k > 1 ? fmt::format("tiles of {}, {} parts of K each", tile, kernel.split_k)
                            : fmt::format("tiles of {}", tile));
  figure("occupancy", kernel.occupancy, "", "workgroups resident in a unit at once");
  figure("waves", time.waves, "",
         fmt::format("rounds of {:.0f} units full of workgroups", machine.units));
  figure("last wave idle", time.idle, "share", "places that no workgroup takes");
  figure("L2 hits", traffic.l2_hit(), "share",
         fmt::format("of {} that workgroups read", Show(Bytes{traffic.requested})));
  if (machine.llc_bytes > 0)
    figure("last-level hits", traffic.llc_hit(), "share",
           fmt::format("of {} beyond L2", Show(Bytes{traffic.beyond_l2})));
  figure("read from HBM", traffic.from_hbm, "bytes", "operands, and what the caches lost of them");
  figure("stored", traffic.stored, "bytes",
         kernel.split_k > 1 ? "partial sums of C" : "C as the kernel writes it");
  out.time = {};
  for (const Term& term : out.terms) out.time += term.time;

  const double loop = time.main_loop + time.last_wave;
  if (time.start > loop + time.memory + time.prologue + time.epilogue)
    out.bound = Bound::kLaunch;
  else if (time.memory > loop)
    out.bound = Bound::kMemory;
  else
    out.bound = time.loop_is_chain ? Bound::kLatency : Bound::kCompute;
  return out;
}

}  // namespace gnomon
