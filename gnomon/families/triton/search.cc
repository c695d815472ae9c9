// Branch and bound over the space of one problem.
//
//   a bound below every price, first without a division, then with the waves counted out;
//   PriceTiles only where the bound does not exceed the slowest of the fastest found so far
//
//   price ≥ start + max(units, memory) + exposed · min(units, memory) + reduction
//     units   a unit's workgroups one after the other at full occupancy, at the fastest clock; then
//             with whole waves and the clock that this share of matrix work leaves
//     memory  each operand and C from HBM, each operand once a die from beyond L2, all requests
//     from
//             L2, a unit's through its own port
//
// The few configs of least bound are priced first: they are near the best, and most others then
// fall at the first bound. The bounds are products of reciprocals and may come out high by
// rounding: kMargin takes that back, so that the result is exactly that of pricing every config
// (search_test compares them). Valid for kernels without clusters, persistence or tiles that keep
// to one die, which is what the space holds.

#include "gnomon/families/triton/search.h"

#include <limits>

namespace gnomon::triton {
namespace {

constexpr double kMargin = 1 - 1e-9;  // some dozens of roundings of 2^-53 each are far below

struct Candidate {
  double bound = 0;  // cycles
  std::uint32_t entry = 0, log2_split = 0;
};

// What configs of one block of C and one split have in common.
struct Common {
  double share = 0;             // workgroups of a unit
  double memory = 0, rest = 0;  // rest: start and reduction
};

double StepsOf(std::int64_t steps, std::uint32_t log2_split) {
  return static_cast<double>((steps + (std::int64_t{1} << log2_split) - 1) >> log2_split);
}

class Bounds {
 public:
  Bounds(const Space& space, const Problem& problem)
      : space_(space), machine_(space.machine), traits_(space.traits), grid_(problem) {
    const double products = static_cast<double>(problem.Products());
    const double rows = static_cast<double>(problem.m) *
                        (problem.grouped() ? 1 : static_cast<double>(problem.batch));
    const double n = static_cast<double>(problem.n), k = static_cast<double>(problem.k);
    const double size = SizeOf(problem.dtype);
    bytes_a_ = rows * k * size;
    bytes_b_ = n * k * size;
    operands_ = bytes_a_ + products * bytes_b_;
    requests_b_ = problem.grouped() ? bytes_b_ : bytes_b_ * products;
    out_ = rows * n;
    rows_ = static_cast<double>(problem.m) / (problem.grouped() ? products : 1);
    columns_ = n;
    depth_bytes_ = k * size;
    bytes_out_ = SizeOf(problem.dtype_out);
    start_ = machine_.start + traits_.start_extra * machine_.hertz;
    latency_ = traits_.memory_latency * machine_.hertz;
    per_hbm_byte_ = 1 / machine_.hbm_rate;
    per_l2_byte_ = 1 / machine_.l2_rate;
    per_llc_byte_ = machine_.llc_rate > 0 ? 1 / machine_.llc_rate : 0;
    per_port_byte_ = 1 / machine_.l2_unit_rate;
    per_near_byte_ = 1 / (machine_.llc_rate > 0 ? machine_.llc_rate : machine_.l2_rate);
    cold_more_ = 1 / traits_.hbm_share - 1;
    fastest_clock_ = machine_.hertz / std::max(machine_.hertz, machine_.light_hertz);
  }

  const ProblemGrid& grid() const { return grid_; }

  Common CommonOf(std::uint32_t log2_m, std::uint32_t log2_n, std::uint32_t log2_split) const {
    Common common;
    const double split = 1 << log2_split;
    common.share = grid_.tiles(log2_m, log2_n) * split / machine_.units;
    constexpr double kPartialBytes = 4;
    const double stored = out_ * (log2_split > 0 ? kPartialBytes * split : bytes_out_);
    const double requested = bytes_a_ * grid_.tiles_n(log2_n) + requests_b_ * grid_.tiles_m(log2_m);
    const double beyond_l2 = std::min(machine_.dies * operands_, requested);
    const double moved = (machine_.llc_bytes > 0 ? operands_ : beyond_l2) + stored;
    const double tile = (std::min(rows_, static_cast<double>(1u << log2_m)) +
                         std::min(columns_, static_cast<double>(1u << log2_n))) *
                        depth_bytes_ / split;
    common.memory =
        latency_ +
        std::max({(moved + cold_more_ * std::min(moved, traits_.cold_bytes)) * per_hbm_byte_,
                  beyond_l2 * per_llc_byte_, requested * per_l2_byte_,
                  tile * std::max(1.0, common.share) * per_port_byte_});
    common.rest = start_;
    if (log2_split > 0)
      common.rest += (traits_.reduction_start + traits_.reduction_step * split) * machine_.hertz +
                     (stored + out_ * bytes_out_) * per_near_byte_;
    return common;
  }

  double Quick(const SpaceOutline& outline, const Common& common, double steps) const {
    const double alone = outline.alone + steps * outline.alone_step;
    const double shared = common.share * (outline.shared + steps * outline.shared_step);
    return Sum(common, std::max(alone, shared) * fastest_clock_);
  }

  double Waves(const Candidate& candidate) const {
    const SpaceEntry& entry = space_.entries[candidate.entry];
    const TileKernel& block = entry.block;
    const Common common =
        CommonOf(Log2(entry.config.block_m), Log2(entry.config.block_n), candidate.log2_split);
    const double steps = StepsOf(grid_.steps(Log2(entry.config.block_k)), candidate.log2_split);
    const double occupancy = block.occupancy;
    const auto together = [&](double j) {
      return block.prologue + steps * std::max(j * block.step_busy, block.step_chain) +
             block.epilogue + (j - 1) * block.epilogue_busy;
    };
    const double share = common.share;
    const double exact =
        std::max(1.0, share / occupancy) * together(std::clamp(share, 1.0, occupancy));
    const auto whole_share = static_cast<std::int64_t>(std::ceil(share));
    const auto places = static_cast<std::int64_t>(occupancy);
    const std::int64_t rest = whole_share % places;
    const std::int64_t full = whole_share / places;
    const double whole = static_cast<double>(full) * together(occupancy) +
                         (rest > 0 ? together(static_cast<double>(rest)) : 0);
    const double units = exact + traits_.wave_rounding * std::max(0.0, whole - exact);
    const double heavy = std::min(1.0, MatrixShare(block.matrix_cycles * steps * share, units));
    const double clock = machine_.light_hertz + (machine_.hertz - machine_.light_hertz) * heavy;
    return Sum(common, units * machine_.hertz / clock);
  }

 private:
  double Sum(const Common& c, double units) const {
    return (c.rest + std::max(units, c.memory) +
            traits_.exposed_memory * std::min(units, c.memory)) *
           kMargin;
  }

  const Space& space_;
  const TileMachine& machine_;
  const TileTraits& traits_;
  const ProblemGrid grid_;
  double bytes_a_, bytes_b_, operands_, requests_b_, out_, bytes_out_;
  double rows_, columns_, depth_bytes_;  // of one product
  double per_port_byte_, per_llc_byte_;
  double start_, latency_, per_hbm_byte_, per_l2_byte_, per_near_byte_;
  double cold_more_, fastest_clock_;
};

// The fastest so far, fastest first, ties by rank.
class Best {
 public:
  Best(std::span<TimedConfig> fastest, std::span<std::uint32_t> ranks)
      : fastest_(fastest), ranks_(ranks) {}

  // Seconds that a config must not exceed to be of use.
  double worst() const {
    return found_ < fastest_.size() ? std::numeric_limits<double>::infinity()
                                    : fastest_[found_ - 1].time.value;
  }
  size_t found() const { return found_; }

  void Take(const TritonConfig& config, std::uint32_t rank, double seconds) {
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
    fastest_[at] = {ToConfig(config), {seconds}};
    ranks_[at] = rank;
  }

 private:
  std::span<TimedConfig> fastest_;
  std::span<std::uint32_t> ranks_;
  size_t found_ = 0;
};

}  // namespace

size_t FastestOf(const Space& space, const Problem& problem, std::span<TimedConfig> fastest,
                 size_t* priced) {
  thread_local std::vector<Candidate> scratch;
  thread_local std::vector<std::uint32_t> ranks;
  if (priced) *priced = 0;
  if (fastest.empty()) return 0;
  // Half of the entries are not split: more than the enumeration can give.
  scratch.resize(std::max(scratch.size(), space.entries.size() * kMostLog2Split));
  Candidate* const candidates = scratch.data();
  std::uint32_t count = 0;
  ranks.assign(fastest.size(), 0);

  constexpr size_t kFirst = 4;  // configs of least bound, priced before the others
  std::array<std::uint32_t, kFirst> first{};
  size_t firsts = 0;
  constexpr double kDone = std::numeric_limits<double>::infinity();
  double last_bound = kDone;
  const Bounds bounds(space, problem);
  std::array<Common, kMostLog2Split + 1> common;
  const auto tile = [&](const SpaceTile& t, std::uint32_t last_split) {
    for (std::uint32_t split = 0; split <= last_split; ++split)
      common[split] = bounds.CommonOf(t.log2_m, t.log2_n, split);
  };
  const auto config = [&](size_t i, std::uint32_t log2_split, std::int64_t steps) {
    const double bound =
        bounds.Quick(space.outlines[i], common[log2_split], StepsOf(steps, log2_split));
    const std::uint32_t rank = count++;
    candidates[rank] = {bound, static_cast<std::uint32_t>(i), log2_split};
    if (bound >= last_bound) return;
    size_t at = firsts < kFirst ? firsts++ : kFirst - 1;
    for (; at > 0 && bound < candidates[first[at - 1]].bound; --at) first[at] = first[at - 1];
    first[at] = rank;
    if (firsts == kFirst) last_bound = candidates[first[kFirst - 1]].bound;
  };
  ForEachConfig(space, bounds.grid(), tile, config);

  Best best(fastest, ranks);
  const double hertz = space.machine.hertz;
  double worst = kDone;  // cycles
  const auto price = [&](std::uint32_t rank) {
    Candidate& c = candidates[rank];
    if (bounds.Waves(c) > worst) return;
    TritonConfig picked = space.entries[c.entry].config;
    TileKernel block = space.entries[c.entry].block;
    picked.split_k = block.split_k = 1 << c.log2_split;
    best.Take(picked, rank,
              PriceTiles(space.machine, space.traits, problem, block).total() / hertz);
    worst = best.worst() * hertz;
    c.bound = kDone;
    if (priced) ++*priced;
  };
  for (size_t i = 0; i < firsts; ++i)
    if (candidates[first[i]].bound <= worst) price(first[i]);
  for (std::uint32_t rank = 0; rank < count; ++rank)
    if (candidates[rank].bound <= worst && candidates[rank].bound < kDone) price(rank);
  return best.found();
}

}  // namespace gnomon::triton
