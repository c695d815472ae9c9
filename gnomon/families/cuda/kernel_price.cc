// The price of one of our kernels: family sm90's model of a TMA kernel (block.h, price.h) with what
// is known of ours.
//
//   workers   persistent, one CTA a unit (shared memory is full of stages); tile after tile
//   step      = (multiply³ + load³ + chain³)^(1/3), as block.cc; multiply and load are its
//     chain   tma: step_cycles + load_latency / stages
//             copy: step_cycles + copy_latency + the longer of the producers' instructions, from
//             four warps, one a scheduler, and L1: a cycle for 4 bytes of 32 lanes, and writing
//             what came to shared memory
//   epilogue  = tile_cycles + bytes of C · epilogue_cycles; a part's bytes are fp32 sums
//   parts     added by a second kernel: its start, and all sums once through L2
//             by the last CTA of a tile (.fix): it alone reads them, through its own port to L2,
//             and then stores the tile; a wave's last CTAs do so side by side
//   pad       as tma; before it a kernel that copies what TMA cannot load
//   stream-K  whole waves and a cut rest do as many steps a worker as if all tiles were cut
//
// Not modelled: parts that arrive late because their CTAs started late; L2 slices near and far; TMA
// boxes that are mostly outside of the operand. Entry points: the header's.

#include "gnomon/families/cuda/kernel_price.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gnomon/gemm/gpu_load.h"

namespace gnomon::cuda {
namespace {

constexpr double kSum = sizeof(float);

double Cubed(double x) { return x * x * x; }

double FasterThanCounted(const TileMachine& machine) { return machine.light_hertz / machine.hertz; }

// Cycles of four producer warps for the rows of one operand in a k step of which `filled` is there.
// A copy moves 4 bytes at least; lines that then start inside a word are shifted afterwards.
double CopyCycles(const TileMachine& machine, double rows, double load_bytes, double filled) {
  constexpr double kLanes = 32, kWord = 4,
                   kShiftTouches = 3;  // of shared memory: two loads, a store
  const KernelCosts& costs = CostsOfKernels();
  const double width = std::max(kWord, load_bytes);
  const double copies = rows * kStepBytes * filled / (kLanes * width);
  const double shifted =
      rows * kStepBytes * filled / (kLanes * kWord) * std::max(0.0, 1 - load_bytes / kWord);
  const double issue =
      (copies * costs.copy_instructions + shifted * costs.shift_instructions) / machine.schedulers;
  const double l1 = copies * width / kWord + rows * kStepBytes * filled / machine.shared_rate +
                    shifted * kShiftTouches;
  return std::max(issue, l1);
}

void SetChain(Block& block, double chain) {
  block.cluster.step_chain = std::cbrt(Cubed(block.cluster.step_busy) + Cubed(chain));
}

TileConfig ShapeOf(const KernelKind& kind, const KernelConfig& kernel, Cut cut) {
  const bool a_outer = kind.layout == Layout::kTN, b_outer = kind.layout == Layout::kNN;
  TileConfig c;
  c.tile_m = kernel.tile_m;
  c.tile_n = kernel.tile_n;
  c.tile_k = StepDepth(kind.dtype);
  c.cluster_m = kernel.cluster_m;
  c.cluster_n = kernel.cluster_n;
  c.stages = StagesOf(kernel.kind == Kind::kCopy, kernel.tile_m, kernel.tile_n, kernel.consumers,
                      a_outer, b_outer);
  c.consumers = ConsumersOf(kernel.consumers);
  c.ping_pong = kernel.consumers == Consumers::kTurns;
  c.split_k = cut == Cut::kParts ? 2 : 1;
  c.stream_k = cut == Cut::kStream;
  c.persistent = true;
  return c;
}

}  // namespace

const KernelCosts& CostsOfKernels() {
  static constexpr KernelCosts costs;
  return costs;
}

KernelTile TileOf(const TileMachine& machine, const Machines& machines, const KernelKind& kind,
                  const KernelConfig& kernel) {
  const KernelCosts& costs = CostsOfKernels();
  const double faster = FasterThanCounted(machine);
  const double m = kernel.tile_m, n = kernel.tile_n;
  const double latency = machine.hbm_latency * faster;
  const ElementBytes bytes = ElementBytesOf(kind.dtype, kind.dtype_out);
  // Of a warpgroup: its rows of the tile, in chunks of 64 rows by 128 bytes.
  const double share = kernel.consumers == Consumers::kBoth ? 2 : 1;
  const double chunks =
      m / share / kWarpgroupRows * std::ceil(n * bytes.out / static_cast<double>(kStepBytes));
  const double plain =
      kind.boxes ? 0 : m * n * (kind.run ? costs.run_store_cycles : costs.plain_store_cycles);
  const double store = chunks * costs.chunk_cycles + plain / share;
  const double part = m * n * kSum / costs.part_rate;
  const double read = costs.part_latency + m * n * kSum / costs.part_read_rate;
  // K outermost: boxes of 64 rows of M or N have a row for every k.
  const auto rows = [&](double side, bool outer) {
    constexpr double kBox = 64;
    return outer ? std::ceil(side / kBox) * StepDepth(kind.dtype) : side;
  };
  const double taken = rows(m, kind.layout == Layout::kTN) / kernel.cluster_n +
                       rows(n, kind.layout != Layout::kNT) / kernel.cluster_m;

  KernelTile tile;
  tile.kernel = kernel;
  for (const Cut cut : {Cut::kWhole, Cut::kParts, Cut::kStream}) {
    const TileConfig shape = ShapeOf(kind, kernel, cut);
    Block& block = tile.blocks[static_cast<std::size_t>(cut)];
    block = BlockOf(machine, Generation::kSm90, shape, bytes);
    GNOMON_CHECK(block.cluster.occupancy > 0, "a kernel of the table that does not fit a unit");
    block.cluster.occupancy = 1;
    block.cluster.prologue = latency * costs.load_latency;
    block.cluster.step_busy =
        std::cbrt(Cubed(block.cluster.step_busy) + Cubed(taken * costs.row_cycles));
    const bool alone = kernel.cluster_m * kernel.cluster_n == 1;
    SetChain(block, costs.step_cycles + (alone ? 0 : costs.cluster_step) +
                        latency * costs.load_latency / shape.stages);
    block.cluster.epilogue = costs.tile_cycles + (cut == Cut::kParts ? part : store) +
                             (shape.ping_pong ? costs.turn_cycles : 0);
    block.cluster.epilogue_busy = block.cluster.epilogue;
    block.epilogues_overlap = shape.ping_pong;
    block.fix_up = part + read + costs.part_wait;
  }
  tile.workers = machines.of_clusters[tile.blocks.front().cluster_index].units;
  tile.fix_part = read / faster;
  tile.fix_once = (costs.part_wait + store) / faster;
  return tile;
}

KernelCall::KernelCall(const Device& device, const Machines& machines, const Problem& problem)
    : call(device, machines, problem, Generation::kSm90),
      load_bytes_a(LoadBytesOfA(problem)),
      load_bytes_b(LoadBytesOfB(problem)) {
  const auto straddles = [&](std::int64_t leading, std::int64_t columns, std::int64_t lines,
                             int load_bytes) {
    constexpr int kTmaBytes = 16;
    const double pitch = static_cast<double>(
        load_bytes >= kTmaBytes ? leading : PaddedLeading(columns, problem.dtype));
    return lines > 1 && std::fmod(pitch * SizeOf(problem.dtype), kStepBytes) != 0;
  };
  const Problem& p = problem;
  straddles_a = straddles(p.LeadingA(), p.a_transposed() ? p.m : p.k, p.a_transposed() ? p.k : p.m,
                          load_bytes_a);
  straddles_b = straddles(p.LeadingB(), p.b_transposed() ? p.k : p.n, p.b_transposed() ? p.n : p.k,
                          load_bytes_b);
  const KernelCosts& costs = CostsOfKernels();
  for (TileTraits* traits : {&call.traits, &call.stream_traits}) {
    traits->exposed_memory = costs.exposed_memory;
    traits->hbm_share = costs.hbm_share;
    traits->memory_latency = 0;  // of a cold start: in costs.start
    traits->start_extra = costs.start;
  }
  for (TileMachine& one : call.machines) {
    one.l2_unit_rate *= costs.unit_rate;
    one.hbm_unit_rate *= costs.unit_rate;
    one.l2_rate *= costs.l2_rate;
  }
  const auto settled = [&](double seconds) { return call.ideal / (call.ideal + seconds); };
  call.slowest *= costs.power * (1 + kSustainedLoss * settled(costs.burst)) /
                  (1 + kSustainedLoss * settled(kBurstSeconds));
  call.free_share = std::pow(call.slowest, -1 / kPowerExponent);
  call.traits.reduction_start = costs.reduce_start;
  call.traits.reduction_step = costs.reduce_step;
  // A kernel more; what is copied is read once and written once.
  const double bytes = 2 * PaddedBytesOf(problem).value;
  const TileMachine& machine = call.machines.front();
  if (bytes > 0)
    pad_seconds = costs.pad_start + bytes / (costs.pad_share * machine.hbm_rate * machine.hertz);
}

void SetCopySteps(const KernelCall& call, KernelTile& tile) {
  const KernelCosts& costs = CostsOfKernels();
  const TileMachine& machine = call.call.machines.front();
  const Problem& p = *call.call.problem;
  const double filled =
      std::min(1.0, static_cast<double>(p.k) / static_cast<double>(StepDepth(p.dtype)));
  const double latency = costs.copy_latency * machine.hbm_latency * FasterThanCounted(machine);
  const double copy = CopyCycles(machine, tile.kernel.tile_m, call.load_bytes_a, filled) +
                      CopyCycles(machine, tile.kernel.tile_n, call.load_bytes_b, filled);
  SetChain(tile.blocks.front(), costs.step_cycles + latency + copy);
  for (Block& block : tile.blocks) {
    block.cluster.step_chain = tile.blocks.front().cluster.step_chain;
    block.cluster.prologue = latency;
  }
}

KernelConfig KernelCandidate::config() const {
  KernelConfig c = tile->kernel;
  c.split_k = split_k;
  c.fix_up = fix_up;
  c.stream_k = cut == Cut::kStream;
  c.group_m = group_m;
  return c;
}

double FixUpCycles(const KernelCandidate& candidate) {
  const KernelTile& tile = *candidate.tile;
  const double rounds = std::ceil(candidate.grid.clusters / tile.workers);
  return rounds * (tile.fix_once + candidate.split_k * tile.fix_part);
}

TileTime PriceOf(const KernelCall& call, const KernelCandidate& candidate, TileKernel& kernel) {
  const Candidate placed = candidate.candidate();
  kernel = KernelOf(call.call, placed);
  const KernelCosts& costs = CostsOfKernels();
  // Of a tile's bytes, those of A are its rows'.
  const double rows = static_cast<double>(kernel.tile_m) / kernel.cluster_n,
               columns = static_cast<double>(kernel.tile_n) / kernel.cluster_m;
  const double straddling =
      ((call.straddles_a ? rows : 0) + (call.straddles_b ? columns : 0)) / (rows + columns);
  const bool boxes = candidate.tile->kernel.kind != Kind::kCopy;
  kernel.port_weight = boxes ? 1 + straddling * (costs.straddle - 1) : 1;
  kernel.l2_weight = kernel.port_weight;
  if (candidate.cut == Cut::kStream) {
    const auto tiles = static_cast<std::int64_t>(candidate.grid.clusters);
    const std::int64_t whole = WholeTiles(tiles, static_cast<int>(candidate.tile->workers));
    kernel.l2_weight *=
        1 + (costs.apart - 1) * static_cast<double>(tiles - whole) / static_cast<double>(tiles);
  }
  TileTime time = PriceOf(call.call, placed, kernel);
  if (candidate.fix_up) time.reduction = FixUpCycles(candidate);
  const KernelConfig& config = candidate.tile->kernel;
  if (config.cluster_m * config.cluster_n > 1)
    time.start += CostsOfKernels().cluster_start * call.call.hertz;
  if (config.kind == Kind::kPad) time.start += call.pad_seconds * call.call.hertz;
  return time;
}

}  // namespace gnomon::cuda
