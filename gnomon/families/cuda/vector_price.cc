// Skinny products on the vector units: a roofline, and what a warp waits for.
//
//   time   = start + max(issue, chain) + what memory adds + parts
//   issue  = instructions of the busiest scheduler, one a cycle: a chunk of K is loads, a
//            conversion a value and a multiply-add a product of the thread's tile
//   chain  = rounds of resident CTAs · chunks a warp takes one after the other · a load's latency,
//            as many of them under way as the kernel keeps
//   memory = the longest of: operands and C from HBM once; what all tiles request, from L2
//   parts  = sums to L2 and back, and the wait for the last CTA to see them
//
// The plan of a launch is the launcher's (vector_table.h). Constants are the kernel's own counts or
// fitted on our sweep: pending. Entry points: the header's.

#include "gnomon/families/cuda/vector_price.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gnomon::cuda {
namespace {

constexpr double kResidentCtas = 4;   // of 8 warps: 64 registers a thread
constexpr double kLoadsUnderWay = 2;  // chunks: one multiplies while the next is on its way
constexpr double kReduceSteps = 10;   // instructions a sum: five shuffles and additions
constexpr double kPartGrowth = 2;     // from one number of parts to the next

double CeilOf(double a, double b) { return std::ceil(a / b); }

// Vector units win where an element of the long operand is used once or twice, or K is so short
// that there is nothing to multiply; else the matrix unit's multiplications cost nothing beside the
// same loads (sweep of bench/results: 0.2 to 1.0 times as fast elsewhere, 1.0 to 1.2 times here).
bool WorthVectors(const Problem& p) {
  if (!HasTiles(p.dtype, p.layout)) return true;  // no other kernel
  constexpr std::int64_t kFewUses = 2, kShortDepth = 32;
  const bool both_long = p.m > kSkinny && p.n > kSkinny;
  if (both_long ? p.k > kFewUses : std::min(p.m, p.n) > kFewUses && p.k > kShortDepth) return false;
  // A long operand that is loaded element by element reaches a tenth of what memory could give.
  constexpr double kLongBytes = 1 << 20;
  const VectorPlan way = VectorWayOf(p);
  const int loaded = way.long_is_m ? LoadBytesOfA(p) : LoadBytesOfB(p);
  const double size = SizeOf(p.dtype);
  return loaded >= std::min(16.0, kVectorRun * size) ||
         static_cast<double>(way.long_side) * static_cast<double>(p.k) * size <= kLongBytes;
}

}  // namespace

KernelConfig VectorWayTo::config() const {
  KernelConfig c;
  c.kind = Kind::kVector;
  c.consumers = Consumers::kOne;
  c.tile_m = tile.tile_m;
  c.tile_n = tile.tile_n;
  c.split_k = parts;
  return c;
}

std::size_t VectorWaysOf(const Problem& p, std::span<VectorWayTo, kMostVectorWays> ways) {
  std::size_t count = 0;
  if (!VectorDoes(p)) return count;
  if (!WorthVectors(p)) return count;
  const Bytes scratch = p.workspace.value_or(kUsualScratch);
  for (const VectorTile& tile : kVectorTiles) {
    if (!VectorFits(p, tile)) continue;
    for (std::int32_t parts = 1; VectorSplitFits(p, tile, parts);
         parts = static_cast<std::int32_t>(parts * kPartGrowth)) {
      const VectorPlan plan = VectorPlanOf(p, tile, parts);
      if (static_cast<double>(VectorWorkspaceBytes(plan)) > scratch.value) break;
      if (count < ways.size()) ways[count++] = {tile, parts};
    }
  }
  return count;
}

std::string WhyNotVector(const Problem& p, const KernelConfig& c) {
  if (!VectorDoes(p))
    return fmt::format("kind vector needs a side of at most {}; nearest kind: {}", kSkinny,
                       TmaLoads(p) ? "tma" : "copy");
  const VectorTile tile = {c.tile_m, c.tile_n};
  if (!VectorFits(p, tile)) {
    const auto apart = [&](const VectorTile& other) {
      return std::abs(std::log2(static_cast<double>(other.tile_m) / tile.tile_m)) +
             std::abs(std::log2(static_cast<double>(other.tile_n) / tile.tile_n));
    };
    const VectorTile* nearest = nullptr;
    for (const VectorTile& other : kVectorTiles)
      if (VectorFits(p, other) && (!nearest || apart(other) < apart(*nearest))) nearest = &other;
    if (!nearest) return "more tiles than kind vector can count";
    return fmt::format("no vector kernel of {}x{} for this problem; nearest: {}x{}", c.tile_m,
                       c.tile_n, nearest->tile_m, nearest->tile_n);
  }
  if (!VectorSplitFits(p, tile, c.split_k)) {
    std::int32_t most = c.split_k;
    while (most > 1 && !VectorSplitFits(p, tile, most)) most /= 2;
    return fmt::format("K cannot be cut into {} parts with work for every warp; nearest: k{}",
                       c.split_k, most);
  }
  const double needed = static_cast<double>(VectorWorkspaceBytes(VectorPlanOf(p, tile, c.split_k)));
  if (needed > p.workspace.value_or(kUsualScratch).value)
    return fmt::format("{:.0f} bytes of partial sums; the workspace has {:.0f}", needed,
                       p.workspace.value_or(kUsualScratch).value);
  return {};
}

TileTime PriceOf(const KernelCall& kernel_call, const VectorWayTo& way, TileKernel& kernel) {
  const KernelCosts& costs = CostsOfKernels();
  const Call& call = kernel_call.call;
  const Problem& p = *call.problem;
  const TileMachine& machine = call.machines.front();
  const VectorPlan plan = VectorPlanOf(p, way.tile, way.parts);
  const double tiles = static_cast<double>(plan.tiles), parts = plan.parts;
  const double ctas = static_cast<double>(plan.ctas);
  const double long_tile = plan.long_tile, short_tile = plan.short_tile;
  const double sums = long_tile * short_tile;

  // Dot: a lane has a run of K of every row of its tile; sum: a run of the long side at one k.
  const bool dot = plan.way == VectorWay::kDot;
  const double values = dot ? kVectorRun * (long_tile + short_tile) : long_tile + short_tile;
  const double products = dot ? kVectorRun * sums : sums;
  const double run_bytes = kVectorRun * SizeOf(p.dtype);
  const auto loads_of = [&](double load_bytes) { return std::max(1.0, run_bytes / load_bytes); };
  const double load_a = loads_of(kernel_call.load_bytes_a);
  const double load_b = loads_of(kernel_call.load_bytes_b);
  const double long_load = plan.long_is_m ? load_a : load_b;
  // Dot takes runs along K: element by element where the short operand has K outermost.
  const bool short_outer = plan.long_is_m ? !p.b_transposed() : p.a_transposed();
  const double short_load = dot && short_outer ? double{kVectorRun}
                            : plan.long_is_m   ? load_b
                                               : load_a;
  const double loads =
      dot ? long_tile * long_load + short_tile * short_load : long_load + short_tile;
  const double chunk = (loads + values + products) * costs.vector_instructions;

  const double warps = plan.together ? kVectorWarps * parts : 1;  // that share a tile's K
  const double chunks = CeilOf(static_cast<double>(plan.chunks), warps);
  const double warp = chunks * chunk + sums * kReduceSteps + costs.vector_tail;
  const double on_unit = CeilOf(ctas, machine.units);
  const double issue = on_unit * kVectorWarps / machine.schedulers * warp;
  const double rounds = CeilOf(on_unit, kResidentCtas);
  const double latency = costs.vector_latency * machine.hbm_latency * call.highest / call.hertz;
  // Element by element, a lane's loads wait for one another's address and line.
  const double scattered =
      (dot ? long_tile : 1) * (long_load - 1) + (dot ? short_tile * (short_load - 1) : 0);
  const double wait = latency + loads * costs.vector_load + scattered * costs.vector_scatter;
  const double chain = rounds * ((1 + chunks / kLoadsUnderWay) * wait + costs.vector_tail);

  kernel = {};
  kernel.tile_m = way.tile.tile_m;
  kernel.tile_n = way.tile.tile_n;
  kernel.tile_k = plan.chunk;
  kernel.split_k = plan.parts;
  kernel.occupancy = std::min(on_unit, kResidentCtas);

  TileTime time;
  const double to_counted = call.hertz / call.highest;  // vector units leave the clock alone
  time.start = machine.start + costs.vector_start * machine.hertz;
  time.main_loop = std::max(issue, chain) * to_counted;
  time.loop_is_chain = chain > issue;
  time.workgroups = ctas;
  time.waves = ctas / (machine.units * kernel.occupancy);

  const double size = SizeOf(p.dtype), batch = static_cast<double>(p.batch);
  const double k = static_cast<double>(p.k);
  const double long_bytes = static_cast<double>(plan.long_side) * k * size * batch;
  const double short_bytes = static_cast<double>(plan.short_side) * k * size * batch;
  time.traffic.from_hbm = time.traffic.beyond_l2 = long_bytes + short_bytes;
  time.traffic.requested = long_bytes * static_cast<double>(plan.short_tiles) +
                           short_bytes * static_cast<double>(plan.long_tiles);
  time.traffic.stored =
      static_cast<double>(p.m) * static_cast<double>(p.n) * SizeOf(p.dtype_out) * batch;
  const double moved = time.traffic.from_hbm + time.traffic.stored;
  const double working = std::min(machine.units, ctas);
  double memory = std::max(moved / (call.traits.hbm_share * machine.hbm_rate),
                           time.traffic.requested / machine.l2_rate);
  if (machine.hbm_unit_rate > 0) memory = std::max(memory, moved / working / machine.hbm_unit_rate);
  memory += call.traits.memory_latency * machine.hertz;
  time.memory = std::max(0.0, memory - time.main_loop) +
                call.traits.exposed_memory * std::min(memory, time.main_loop);

  if (plan.parts > 1) {
    const double bytes = tiles * parts * plan.sums * sizeof(float);
    const double own = parts * plan.sums * sizeof(float) * CeilOf(tiles, machine.units);
    time.reduction = costs.vector_part * machine.hertz + bytes / machine.l2_rate +
                     std::max(bytes / machine.l2_rate, own / machine.l2_unit_rate);
  }
  return time;
}

}  // namespace gnomon::cuda
