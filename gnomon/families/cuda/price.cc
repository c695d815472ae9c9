// From one cluster's cycles to the time of a call.
//
//   clock     the units' cycles are counted at the highest clock and stretched by the law of
//             gemm/gpu_load.h: matrix units that are always busy run at the sustained clock
//   memory    operands that earlier calls left in L2 do not come from memory; what is left of the
//             bytes makes memory as much faster
//   prologue  a persistent CTA loads ahead: its first tile pays, shared out over its tiles
//   epilogue  of every tile but a CTA's last, what the next tile's k steps are too short to hide
//   stream-K  a CTA ends ⌈tiles / CTAs⌉ tiles and adds the parts that a tile was cut into
//
// The rest, waves and traffic, is the tile model's (gemm/tile_model.h), a cluster its workgroup.

#include "gnomon/families/cuda/price.h"

#include <cmath>

#include "gnomon/gemm/gpu_load.h"

namespace gnomon::cuda {
namespace {

double Cubed(double x) { return x * x * x; }

double Side(std::int64_t value) { return static_cast<double>(value); }

// Of a count (not negative, below 2^62), without a call.
double FloorOf(double value) { return static_cast<double>(static_cast<std::int64_t>(value)); }
double CeilOf(double value) {
  const double floor = FloorOf(value);
  return floor < value ? floor + 1 : floor;
}

// Of a tile's epilogue, what its neighbours hide. Two warpgroups that take turns do two tiles in
// the longer of twice the main loop (one multiplies at a time) and main loop + epilogue (a
// warpgroup does its own one after the other).
double Hidden(const Block& block, double main_loop) {
  const double epilogue = block.cluster.epilogue;
  const double room = block.epilogues_overlap ? (epilogue + main_loop) / 2 : main_loop;
  return block.hidden_epilogue * std::min(epilogue, room);
}

// Cycles of the busiest unit: the tile model's with every wave counted whole.
double UnitCycles(const TileKernel& kernel, const UnitRun& run, double share) {
  const double occupancy = kernel.occupancy;
  const auto together = [&](double j) {
    return run.prologue + run.steps * std::max(j * kernel.step_busy, kernel.step_chain) +
           j * run.epilogue;
  };
  const double whole = CeilOf(share);
  if (whole <= occupancy) return together(whole);
  const double full = FloorOf(whole / occupancy);
  const double rest = whole - full * occupancy;
  return full * together(occupancy) + (rest > 0 ? together(rest) : 0);
}

}  // namespace

Machines MachinesOf(const TileMachine& machine) {
  Machines machines;
  for (std::size_t i = 0; i < kClusterSizes; ++i)
    machines.of_clusters[i] = MachineOfClusters(machine, 1 << i);
  machines.l2_bytes = machine.l2_bytes;
  return machines;
}

Call::Call(const Device& device, const Machines& all, const Problem& p, Generation generation)
    : problem(&p),
      machines(all.of_clusters),
      traits(TraitsOf(generation, false)),
      stream_traits(TraitsOf(generation, true)) {
  const TileMachine& machine = machines.front();
  hertz = machine.hertz;
  const double light = machine.light_hertz;
  ideal = p.flops().value / (machine.matrix_flops * machine.units * light);
  const ClockUnderLoad clock(device, p.dtype, ideal);
  highest = clock.hertz;
  slowest = clock.slowest;
  free_share = clock.free_share;

  const double size = ElementBytesOf(p).stored, batch = Side(p.batch),
               products = Side(p.Products());
  const double a = Side(p.m) * Side(p.k) * batch * size;
  const double b = Side(p.n) * Side(p.k) * (p.grouped() ? products : batch) * size;
  const double c = Side(p.m) * Side(p.n) * batch * SizeOf(p.dtype_out);
  kept = StillInL2(all.l2_bytes, kUsualCopies * (a + b + c));
  const double faster = (a + b + c) / ((1 - kept) * (a + b) + c);
  for (TileMachine& one : machines) {
    one.hbm_rate *= faster;
    one.hbm_unit_rate = std::min(one.hbm_unit_rate * faster, one.l2_unit_rate);
  }
}

TileConfig Candidate::config() const {
  TileConfig c = block->config;
  c.split_k = split_k;
  c.group_m = group_m;
  return c;
}

double ColumnsOfTiles(const Problem& problem, int tile_n) {
  return CeilOf(Side(problem.n) / tile_n);
}

ClusterGrid GridOf(const Problem& problem, double rows, double columns) {
  return {rows, columns, rows * columns * Side(problem.batch)};
}

ClusterGrid GridOf(const Problem& problem, const TileKernel& cluster) {
  return GridOf(problem, RowsOfTiles(problem, cluster.tile_m),
                ColumnsOfTiles(problem, cluster.tile_n));
}

UnitRun RunOf(const Call& call, const Candidate& candidate) {
  const Block& block = *candidate.block;
  const TileKernel& kernel = block.cluster;
  const double units = call.machines[block.cluster_index].units;
  const double tiles = candidate.grid.clusters;
  const double all_steps = CeilOf(Side(call.problem->k) / kernel.tile_k);
  UnitRun run;
  run.clusters = tiles * candidate.split_k;
  run.steps = candidate.split_k > 1 ? CeilOf(all_steps / candidate.split_k) : all_steps;
  run.prologue = kernel.prologue;
  run.epilogue = kernel.epilogue;
  if (kernel.stream_k) {
    run.clusters = std::min(units * kernel.occupancy, tiles * all_steps);
    run.steps = CeilOf(tiles * all_steps / run.clusters);
    const double ended = CeilOf(tiles / run.clusters);
    const double parts = std::max(1.0, run.clusters / tiles);
    const double hidden = Hidden(block, run.steps / ended * kernel.step_chain);
    run.epilogue = ended * kernel.epilogue - (ended - 1) * hidden + parts * block.fix_up;
  } else if (kernel.persistent) {
    const double waves = CeilOf(run.clusters / (units * kernel.occupancy));
    const double hidden = Hidden(block, run.steps * kernel.step_chain);
    run.prologue /= waves;
    run.epilogue -= (1 - 1 / waves) * hidden;
  }
  run.cycles = UnitCycles(kernel, run, run.clusters / units);
  return run;
}

double StretchOf(const Call& call, const UnitRun& run) {
  const double busy = call.ideal / (run.cycles / call.highest);
  const double slowed = busy <= call.free_share ? 1 : call.slowest * std::pow(busy, kPowerExponent);
  return call.hertz / call.highest * slowed;
}

TileKernel KernelOf(const Call& call, const Candidate& candidate) {
  const UnitRun run = RunOf(call, candidate);
  const double stretch = StretchOf(call, run);
  TileKernel kernel = candidate.block->cluster;
  kernel.split_k = candidate.split_k;
  kernel.group_m = candidate.group_m;
  kernel.persistent = false;  // the prologue is shared out already
  kernel.prologue = run.prologue * stretch;
  kernel.step_busy *= stretch;
  kernel.step_chain *= stretch;
  kernel.epilogue = kernel.epilogue_busy = run.epilogue * stretch;
  return kernel;
}

TileTime PriceOf(const Call& call, const Candidate& candidate, const TileKernel& kernel) {
  TileTime time =
      PriceTiles(call.machines[candidate.block->cluster_index],
                 kernel.stream_k ? call.stream_traits : call.traits, *call.problem, kernel);
  // Both are sums of cubes: of the pipes, and of the pipes and the wait. The longer one has the
  // name.
  time.loop_is_chain = Cubed(kernel.step_chain) > 2 * Cubed(kernel.step_busy);
  return time;
}

}  // namespace gnomon::cuda
