// Branch and bound over the candidates of one problem.
//
//   a floor below every price; PriceTiles only where the floor does not exceed the slowest of the
//   fastest found so far
//
//   floor = start + max(units, memory) + exposed · min(units, memory) + reduction
//     units   of the busiest unit, as the price has them (RunOf), at the clock that its busy share
//             of matrix work leaves
//     memory  each operand and C from HBM once, at the rate of the units that work; all requests
//             from L2; a unit's through its own port
//
// What a price has beyond its floor is what caches lose of the operands. The few candidates of
// least floor are priced first: they are near the best, and most others then fall at their floor.
// Floors are sums in another order than prices and may come out high by rounding: kMargin takes
// that back, so that the result is exactly that of pricing every candidate (search_test compares
// them).
//
// Entry points: the header's.

#include "gnomon/families/cuda/search.h"

#include <array>
#include <cmath>
#include <limits>

#include "gnomon/gemm/gpu_load.h"

namespace gnomon::cuda {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Floors {
 public:
  explicit Floors(const Call& call) : call_(call) {
    const Problem& p = *call.problem;
    const double size = SizeOf(p.dtype), products = static_cast<double>(p.Products());
    n_ = static_cast<double>(p.n);
    k_ = static_cast<double>(p.k);
    m_ = static_cast<double>(p.m) / (p.grouped() ? products : 1);
    batch_ = static_cast<double>(p.batch);
    const double bytes_a = m_ * k_ * size * products;
    bytes_b_ = n_ * k_ * size;
    a_ = bytes_a;
    operands_ = bytes_a + products * bytes_b_;
    out_ = m_ * n_ * products;
    size_ = size;
    bytes_out_ = SizeOf(p.dtype_out);

    const TileMachine& machine = call.machines.front();
    const double hertz = machine.hertz;
    start_ = machine.start / hertz + call.traits.start_extra;
    per_hbm_byte_ = 1 / (call.traits.hbm_share * machine.hbm_rate * hertz);
    per_l2_byte_ = 1 / (machine.l2_rate * hertz);
    for (std::size_t i = 0; i < kClusterSizes; ++i) {
      const TileMachine& clusters = call.machines[i];
      per_unit_byte_[i] = clusters.hbm_unit_rate > 0 ? 1 / (clusters.hbm_unit_rate * hertz) : 0;
      per_port_byte_[i] = 1 / (clusters.l2_unit_rate * hertz);
    }
    per_cycle_ = 1 / call.highest;
    full_load_ = call.free_share > 0 ? call.ideal / call.free_share : kNever;
    // slowest · (ideal / t)^(3/4) · t
    static_assert(kPowerExponent == 0.75);
    heavy_ = call.slowest * std::pow(call.ideal, kPowerExponent);
  }

  double Of(const Candidate& candidate) const {
    const Block& block = *candidate.block;
    const TileKernel& kernel = block.cluster;
    const std::size_t at = block.cluster_index;
    const UnitRun run = RunOf(call_, candidate);
    double units = run.cycles * per_cycle_;
    if (units < full_load_) units = std::max(units, heavy_ * std::sqrt(std::sqrt(units)));

    const double machine_units = call_.machines[at].units;
    const double stored = out_ * kernel.bytes_c * candidate.split_k;
    const double moved = operands_ + stored;
    const double requested = a_ * candidate.grid.columns + bytes_b_ * candidate.grid.rows * batch_;
    double depth = run.steps * kernel.tile_k;
    if (!kernel.stream_k) depth = std::min(depth, k_);
    const double port =
        (std::min(m_, double(kernel.tile_m)) + std::min(n_, double(kernel.tile_n))) * depth *
        size_ * std::max(1.0, run.clusters / machine_units);
    const TileTraits& traits = kernel.stream_k ? call_.stream_traits : call_.traits;
    const double memory =
        traits.memory_latency +
        std::max({moved * per_hbm_byte_,
                  moved * per_unit_byte_[at] / std::min(machine_units, run.clusters),
                  requested * per_l2_byte_, port * per_port_byte_[at]});
    double rest = start_;
    if (kernel.stream_k) {
      const double tiles = candidate.grid.clusters;
      const double cut = run.clusters > tiles ? run.clusters - tiles : run.clusters;
      rest += 2 * cut * kernel.tile_m * kernel.tile_n * kernel.bytes_c * per_l2_byte_;
    } else if (candidate.split_k > 1) {
      rest += traits.reduction_start + (stored + out_ * bytes_out_) * per_l2_byte_;
    }
    constexpr double kMargin = 1 - 1e-9;  // some dozens of roundings of 2^-53 each are far below
    return (rest + std::max(units, memory) + traits.exposed_memory * std::min(units, memory)) *
           kMargin;
  }

 private:
  const Call& call_;
  double m_, n_, k_, batch_, a_, bytes_b_, operands_, out_, size_, bytes_out_;
  double start_, per_hbm_byte_, per_l2_byte_, per_cycle_, full_load_, heavy_;
  std::array<double, kClusterSizes> per_unit_byte_, per_port_byte_;
};

// The fastest so far, fastest first, ties by rank.
class Best {
 public:
  Best(std::span<TimedConfig> fastest, std::span<std::uint32_t> ranks)
      : fastest_(fastest), ranks_(ranks) {}

  // Seconds that a candidate must not exceed to be of use.
  double worst() const {
    return found_ < fastest_.size() ? kNever : fastest_[found_ - 1].time.value;
  }
  size_t found() const { return found_; }

  void Take(const Candidate& candidate, std::uint32_t rank, double seconds) {
    const auto before = [&](size_t i) {
      const double other = fastest_[i].time.value;
      return seconds < other || (seconds == other && rank < ranks_[i]);
    };
    if (found_ == fastest_.size() && !before(found_ - 1)) return;
    size_t at = found_ < fastest_.size() ? found_++ : found_ - 1;
    for (; at > 0 && before(at - 1); --at) {
      fastest_[at] = fastest_[at - 1];
      ranks_[at] = ranks_[at - 1];
    }
    fastest_[at] = {ToConfig(candidate.config()), {seconds}};
    ranks_[at] = rank;
  }

 private:
  std::span<TimedConfig> fastest_;
  std::span<std::uint32_t> ranks_;
  size_t found_ = 0;
};

}  // namespace

double SecondsOf(const Space& space, const Call& call, Candidate& candidate) {
  candidate.group_m = GroupOf(space, *call.problem, candidate);
  return PriceOf(call, candidate, KernelOf(call, candidate)).total() / call.hertz;
}

size_t FastestOf(const Device& device, Generation generation, const Space& space,
                 const Problem& problem, std::span<TimedConfig> fastest, size_t* priced) {
  thread_local std::vector<Candidate> candidates;
  thread_local std::vector<double> floors;
  thread_local std::vector<std::uint32_t> ranks;
  if (priced) *priced = 0;
  if (fastest.empty()) return 0;
  CandidatesFor(space, problem, candidates);
  floors.clear();
  ranks.assign(fastest.size(), 0);

  constexpr size_t kFirst = 3;  // candidates of least floor, priced before the others
  std::array<std::uint32_t, kFirst> first{};
  size_t firsts = 0;
  double last_floor = kNever;
  const Call call(device, space.machines, problem, generation);
  const Floors of(call);
  const auto count = static_cast<std::uint32_t>(candidates.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const double floor = of.Of(candidates[i]);
    floors.push_back(floor);
    if (floor >= last_floor) continue;
    size_t at = firsts < kFirst ? firsts++ : kFirst - 1;
    for (; at > 0 && floor < floors[first[at - 1]]; --at) first[at] = first[at - 1];
    first[at] = i;
    if (firsts == kFirst) last_floor = floors[first[kFirst - 1]];
  }

  Best best(fastest, ranks);
  const auto price = [&](std::uint32_t i) {
    const double seconds = SecondsOf(space, call, candidates[i]);
    best.Take(candidates[i], i, seconds);
    floors[i] = kNever;
    if (priced) ++*priced;
  };
  for (size_t i = 0; i < firsts; ++i)
    if (floors[first[i]] <= best.worst()) price(first[i]);
  for (std::uint32_t i = 0; i < count; ++i)
    if (floors[i] <= best.worst() && floors[i] < kNever) price(i);
  return best.found();
}

}  // namespace gnomon::cuda
