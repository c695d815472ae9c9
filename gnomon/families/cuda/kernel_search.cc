// Branch and bound over the configs of one problem, in two levels.
//
//   a floor below every way to launch a tile; tiles in the order of their floors, until one's is
//   above the slowest of the fastest found so far
//   a floor below each way; priced only where that is not above it either
//   of kind vector every config is priced: they are few, and only where a side is skinny
//
//   floor = start + max(units, memory) + exposed · min(units, memory) + parts
//     units   tile: all k steps shared out evenly, one prologue and one epilogue; way: as the price
//             has it (RunOf); both at the clock that their busy share of matrix work leaves
//     memory  each operand and C from HBM once, at the rate of the units that work; all requests
//             from L2; a unit's through its own port
//     parts   way: adding them, as the price has it
//
// What a price has beyond its floor is what caches lose of the operands. Floors are sums in another
// order than prices and may come out high by rounding: kMargin takes that back, so that the result
// is exactly that of pricing every config (cuda_family_test compares them).

#include "gnomon/families/cuda/kernel_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gnomon/gemm/gpu_load.h"

namespace gnomon::cuda {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMargin = 1 - 1e-9;  // some dozens of roundings of 2^-53 each are far below

class Floors {
 public:
  explicit Floors(const KernelCall& kernel_call)
      : call_(kernel_call.call), pad_(kernel_call.pad_seconds) {
    const Problem& p = *call_.problem;
    const double products = static_cast<double>(p.Products());
    size_ = SizeOf(p.dtype);
    n_ = static_cast<double>(p.n);
    k_ = static_cast<double>(p.k);
    m_ = static_cast<double>(p.m) / (p.grouped() ? products : 1);
    batch_ = static_cast<double>(p.batch);
    a_ = m_ * k_ * size_ * products;
    b_ = n_ * k_ * size_;
    operands_ = a_ + products * b_;
    out_ = m_ * n_ * products;
    out_bytes_ = out_ * SizeOf(p.dtype_out);
    steps_ = std::ceil(k_ / StepDepth(p.dtype));

    const TileMachine& machine = call_.machines.front();
    const double hertz = machine.hertz;
    per_cycle_counted_ = 1 / hertz;
    start_ = machine.start / hertz + call_.traits.start_extra;
    per_hbm_byte_ = 1 / (call_.traits.hbm_share * machine.hbm_rate * hertz);
    per_l2_byte_ = 1 / (machine.l2_rate * hertz);
    per_cycle_ = 1 / call_.highest;
    full_load_ = call_.free_share > 0 ? call_.ideal / call_.free_share : kNever;
    // slowest · (ideal / t)^(3/4) · t
    static_assert(kPowerExponent == 0.75);
    heavy_ = call_.slowest * std::pow(call_.ideal, kPowerExponent);
    for (std::size_t i = 0; i < kClusterSizes; ++i) {
      const TileMachine& clusters = call_.machines[i];
      per_unit_byte_[i] = clusters.hbm_unit_rate > 0 ? 1 / (clusters.hbm_unit_rate * hertz) : 0;
      per_port_byte_[i] = 1 / (clusters.l2_unit_rate * hertz);
    }
  }

  double OfTile(const KernelCandidate& placed) const {
    const KernelTile& tile = *placed.tile;
    const Block& whole = tile.blocks.front();
    const double rounds = placed.grid.clusters / tile.workers;
    const double epilogue =
        std::min(whole.cluster.epilogue,
                 tile.blocks[static_cast<std::size_t>(Cut::kParts)].cluster.epilogue);
    const double cycles =
        whole.cluster.prologue + rounds * steps_ * whole.cluster.step_chain + epilogue;
    const double memory = Memory(placed, out_bytes_, tile.workers, k_ * rounds);
    return Sum(StartOf(placed), Stretched(cycles), memory);
  }

  double OfWay(const KernelCandidate& way) const {
    const TileKernel& kernel = way.block().cluster;
    const UnitRun run = RunOf(call_, way.candidate());
    const double workers = way.tile->workers;
    const double stored = way.cut == Cut::kParts ? out_ * kernel.bytes_c * way.split_k : out_bytes_;
    double depth = run.steps * kernel.tile_k;
    if (way.cut != Cut::kStream) depth = std::min(depth, k_);
    const double memory = Memory(way, stored, std::min(workers, run.clusters),
                                 depth * std::max(1.0, run.clusters / workers));
    double rest = StartOf(way);
    if (way.fix_up) {
      rest += FixUpCycles(way) * per_cycle_counted_;
    } else if (way.cut == Cut::kParts) {
      rest += call_.traits.reduction_start + (stored + out_bytes_) * per_l2_byte_;
    } else if (way.cut == Cut::kStream) {
      const double tiles = way.grid.clusters;
      const double cut = run.clusters > tiles ? run.clusters - tiles : run.clusters;
      rest += 2 * cut * kernel.tile_m * kernel.tile_n * kernel.bytes_c * per_l2_byte_;
    }
    return Sum(rest, Stretched(run.cycles), memory);
  }

 private:
  double StartOf(const KernelCandidate& candidate) const {
    return candidate.tile->kernel.kind == Kind::kPad ? start_ + pad_ : start_;
  }

  double Stretched(double cycles) const {
    const double seconds = cycles * per_cycle_;
    if (seconds >= full_load_) return seconds;
    return std::max(seconds, heavy_ * std::sqrt(std::sqrt(seconds)));
  }

  // `depth`: K of all tiles of the busiest worker.
  double Memory(const KernelCandidate& candidate, double stored, double working,
                double depth) const {
    const Block& block = candidate.tile->blocks.front();
    const std::size_t at = block.cluster_index;
    const double moved = operands_ + stored;
    const double requested = a_ * candidate.grid.columns + b_ * candidate.grid.rows * batch_;
    const double port =
        (std::min(m_, double(block.cluster.tile_m)) + std::min(n_, double(block.cluster.tile_n))) *
        depth * size_;
    return call_.traits.memory_latency +
           std::max({moved * per_hbm_byte_, moved * per_unit_byte_[at] / working,
                     requested * per_l2_byte_, port * per_port_byte_[at]});
  }

  double Sum(double rest, double units, double memory) const {
    return (rest + std::max(units, memory) +
            call_.traits.exposed_memory * std::min(units, memory)) *
           kMargin;
  }

  const Call& call_;
  const double pad_;
  double size_, m_, n_, k_, batch_, a_, b_, operands_, out_, out_bytes_, steps_;
  double start_, per_hbm_byte_, per_l2_byte_, per_cycle_, per_cycle_counted_, full_load_, heavy_;
  std::array<double, kClusterSizes> per_unit_byte_, per_port_byte_;
};

// The fastest so far, fastest first, ties by rank: the place in the enumeration.
class Best {
 public:
  Best(std::span<TimedConfig> fastest, std::span<std::size_t> ranks)
      : fastest_(fastest), ranks_(ranks) {}

  // Seconds that a config must not exceed to be of use.
  double worst() const {
    return found_ < fastest_.size() ? kNever : fastest_[found_ - 1].time.value;
  }
  std::size_t found() const { return found_; }

  void Take(const KernelConfig& config, std::size_t rank, double seconds) {
    const auto before = [&](std::size_t i) {
      const double other = fastest_[i].time.value;
      return seconds < other || (seconds == other && rank < ranks_[i]);
    };
    if (found_ == fastest_.size() && !before(found_ - 1)) return;
    std::size_t at = found_ < fastest_.size() ? found_++ : found_ - 1;
    for (; at > 0 && before(at - 1); --at) {
      fastest_[at] = fastest_[at - 1];
      ranks_[at] = ranks_[at - 1];
    }
    fastest_[at] = {ToConfig(config), {seconds}};
    ranks_[at] = rank;
  }

 private:
  std::span<TimedConfig> fastest_;
  std::span<std::size_t> ranks_;
  std::size_t found_ = 0;
};

// The space's tiles, those of kind copy with the problem's steps.
std::span<const KernelTile> TilesFor(const KernelCall& call, const KernelSpace& space) {
  if (space.kind.kind != Kind::kCopy) return space.tiles;
  thread_local std::vector<KernelTile> tiles;
  tiles = space.tiles;
  for (KernelTile& tile : tiles)
    if (tile.kernel.kind == Kind::kCopy) SetCopySteps(call, tile);
  return tiles;
}

template <class Way>
double SecondsOf(const KernelCall& call, const Way& candidate) {
  TileKernel kernel;
  return PriceOf(call, candidate, kernel).total() / call.call.hertz;
}

}  // namespace

void PriceAll(const Device& device, const KernelSpace& space, const Problem& problem,
              std::vector<Config>& configs, std::vector<double>& seconds) {
  const KernelCall call(device, space.machines, problem);
  PlacedTiles placed;
  PlaceTiles(TilesFor(call, space), problem, placed);
  std::array<KernelCandidate, kMostWays> ways;
  for (std::size_t i = 0; i < placed.count; ++i) {
    const std::size_t count = WaysOf(placed.of[i], placed.orders, problem, ways);
    for (std::size_t w = 0; w < count; ++w) {
      configs.push_back(ToConfig(ways[w].config()));
      seconds.push_back(SecondsOf(call, ways[w]));
    }
  }
  std::array<VectorWayTo, kMostVectorWays> vectors;
  const std::size_t count = VectorWaysOf(problem, vectors);
  for (std::size_t i = 0; i < count; ++i) {
    configs.push_back(ToConfig(vectors[i].config()));
    seconds.push_back(SecondsOf(call, vectors[i]));
  }
}

std::size_t FastestOf(const Device& device, const KernelSpace& space, const Problem& problem,
                      std::span<TimedConfig> fastest, std::size_t* priced) {
  if (priced) *priced = 0;
  if (fastest.empty()) return 0;
  thread_local std::vector<std::size_t> ranks;
  ranks.assign(fastest.size(), 0);
  Best best(fastest, ranks);

  const KernelCall call(device, space.machines, problem);
  PlacedTiles placed;
  PlaceTiles(TilesFor(call, space), problem, placed);
  const Floors floors(call);
  struct Floor {
    double seconds;
    std::size_t tile;
  };
  std::array<Floor, kMostTiles> order;
  for (std::size_t i = 0; i < placed.count; ++i) {
    const double seconds = floors.OfTile(placed.of[i]);
    std::size_t at = i;
    for (; at > 0 && seconds < order[at - 1].seconds; --at) order[at] = order[at - 1];
    order[at] = {seconds, i};
  }

  std::array<VectorWayTo, kMostVectorWays> vectors;
  const std::size_t vectors_count = VectorWaysOf(problem, vectors);
  for (std::size_t i = 0; i < vectors_count; ++i)
    best.Take(vectors[i].config(), kMostTiles * kMostWays + i, SecondsOf(call, vectors[i]));

  std::array<KernelCandidate, kMostWays> ways;
  std::array<double, kMostWays> of_ways;
  for (std::size_t i = 0; i < placed.count && order[i].seconds <= best.worst(); ++i) {
    const std::size_t tile = order[i].tile;
    const std::size_t count = WaysOf(placed.of[tile], placed.orders, problem, ways);
    std::size_t least = 0;
    for (std::size_t w = 0; w < count; ++w) {
      // Ways that differ in the order of tiles alone have one floor.
      const bool same = w > 0 && w < placed.orders;
      of_ways[w] = same ? of_ways[w - 1] : floors.OfWay(ways[w]);
      if (of_ways[w] < of_ways[least]) least = w;
    }
    const auto price = [&](std::size_t w) {
      if (of_ways[w] > best.worst()) return;
      best.Take(ways[w].config(), tile * kMostWays + w, SecondsOf(call, ways[w]));
      if (priced) ++*priced;
    };
    price(least);
    for (std::size_t w = 0; w < count; ++w)
      if (w != least) price(w);
  }
  return best.found();
}

}  // namespace gnomon::cuda
