// Families sm90 and sm100 as gemm/select.h sees them: candidates, prices, canonical strings.
//
// A cluster's cycles depend on the device and the dtypes alone and come ready from the space
// (space.h); a call places them on the problem (price.h). A candidate whose least time is kHopeless
// times the best so far is not priced: it is no rival.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "gnomon/families/cuda/cuda_gemm.h"
#include "gnomon/families/cuda/space.h"

namespace gnomon::cuda {
namespace {

constexpr double kHopeless = 1.5;

// Median |predicted / measured − 1| of the pick on held-out rows of the public bf16 timings, by
// what bounds it (accuracy_test.cc); other elements, layouts and products were never held
// against kernels of such a family.
struct Errors {
  double compute, memory, latency, launch;
};
constexpr Errors kHopperErrors = {0.052, 0.043, 0.05, 0.023};
constexpr Errors kBlackwellErrors = {0.074, 0.055, 0.075, 0.065};
constexpr double kUnmeasuredError = 0.2;

double ErrorOf(Generation generation, const Problem& problem, Bound bound) {
  const bool measured = (problem.dtype == DType::kBf16 || problem.dtype == DType::kFp16) &&
                        problem.layout == Layout::kNT && problem.Products() == 1;
  if (!measured) return kUnmeasuredError;
  const Errors& errors = generation == Generation::kSm90 ? kHopperErrors : kBlackwellErrors;
  switch (bound) {
    case Bound::kMemory:
    case Bound::kCache:
      return errors.memory;
    case Bound::kLatency:
      return errors.latency;
    case Bound::kLaunch:
      return errors.launch;
    case Bound::kCompute:
      break;
  }
  return errors.compute;
}

class TmaFamily : public Family {
 public:
  explicit TmaFamily(Generation generation) : generation_(generation) {}

  std::string_view name() const override {
    return generation_ == Generation::kSm90 ? "sm90" : "sm100";
  }

  Status Enumerate(const Device& device, const Problem& problem, int units,
                   std::vector<Config>& configs) const override {
    std::vector<double> seconds;
    return Price(device, problem, units, configs, seconds);
  }

  Status Price(const Device& device, const Problem& problem, int units,
               std::vector<Config>& configs, std::vector<double>& seconds) const override {
    const auto any = [] { return std::numeric_limits<double>::infinity(); };
    return Visit(device, problem, units, any, [&](const Candidate& candidate, double time) {
      configs.push_back(ToConfig(candidate.config()));
      seconds.push_back(time);
    });
  }

  Result<size_t> Fastest(const Device& device, const Problem& problem, int units,
                         std::span<TimedConfig> fastest) const override {
    size_t found = 0;
    if (fastest.empty()) return found;
    const auto worst = [&] {
      return found < fastest.size() ? std::numeric_limits<double>::infinity()
                                    : fastest[found - 1].time.value;
    };
    GNOMON_TRY(Visit(device, problem, units, worst, [&](const Candidate& candidate, double time) {
      if (time >= worst()) return;
      size_t at = found < fastest.size() ? found++ : found - 1;
      for (; at > 0 && time < fastest[at - 1].time.value; --at) fastest[at] = fastest[at - 1];
      fastest[at] = {ToConfig(candidate.config()), {time}};
    }));
    return found;
  }

  Seconds PredictTime(const Device& device, const Problem& problem,
                      const Config& config) const override {
    constexpr double kNever = 1e30;  // cannot be launched: no time is too long
    double seconds = kNever;
    WithPrice(device, problem, config,
              [&](const Call& call, const TileTime& time, const TileKernel&) {
                seconds = time.total() / call.hertz;
              });
    return {seconds};
  }

  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override {
    Prediction out;
    WithPrice(device, problem, config, [&](const Call& call, TileTime time, TileKernel kernel) {
      // In words, a workgroup is a CTA and not a cluster.
      const TileConfig c = FromConfig(config);
      time.workgroups *= c.cluster_m * c.cluster_n;
      kernel.tile_m = c.tile_m;
      kernel.tile_n = c.tile_n;
      out = ExplainTiles(call.machines.front(), time, kernel);
      out.relative_error = ErrorOf(generation_, problem, out.bound);
    });
    return out;
  }

  std::string Print(const Config& config) const override {
    return Text(generation_, FromConfig(config));
  }

  Result<Config> Parse(std::string_view text) const override {
    GNOMON_ASSIGN(const TileConfig config, ParseConfig(generation_, text));
    return ToConfig(config);
  }

 private:
  // Calls `take(call, time, kernel)` for a config that can run.
  template <class Take>
  void WithPrice(const Device& device, const Problem& problem, const Config& config,
                 Take take) const {
    const TileConfig c = FromConfig(config);
    const auto machine = TileMachineOf(device, problem.dtype, 0);
    if (!machine.ok() || !WhyNot(device, generation_, problem, c).empty()) return;
    const Block block = BlockOf(*machine, generation_, c, ElementBytesOf(problem));
    const Machines machines = MachinesOf(*machine);
    if (block.cluster.occupancy == 0 || machines.of_clusters[block.cluster_index].units < 1) return;
    const Call call(device, machines, problem, generation_);
    const Candidate candidate{&block, ClustersOf(problem, block.cluster), c.split_k, c.group_m};
    const TileKernel kernel = KernelOf(candidate, Place(call, candidate));
    take(call, PriceOf(call, candidate, kernel), kernel);
  }

  // Calls `take(candidate, seconds)` for each that is no more than `limit()` and not hopeless. The
  // least time leaves out what memory adds and so is a bound; kRounding: it is summed in another
  // order.
  template <class Limit, class Take>
  Status Visit(const Device& device, const Problem& problem, int units, Limit limit,
               Take take) const {
    GNOMON_TRY(CheckProblemFor(device, generation_, problem));
    GNOMON_ASSIGN(const Space* space, SpaceOf(device, generation_, problem, units));
    thread_local std::vector<Candidate> candidates;
    CandidatesFor(*space, problem, candidates);
    const Call call(device, space->machines, problem, generation_);
    constexpr double kRounding = 1 - 1e-9;
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : candidates) {
      const Placed placed = Place(call, candidate);
      const double least = placed.least * kRounding;
      if (least > kHopeless * best || least > limit()) continue;
      const double seconds =
          PriceOf(call, candidate, KernelOf(candidate, placed)).total() / call.hertz;
      best = std::min(best, seconds);
      take(candidate, seconds);
    }
    return Done{};
  }

  const Generation generation_;
};

}  // namespace

const Family& Sm90Family() {
  static const TmaFamily family(Generation::kSm90);
  return family;
}

const Family& Sm100Family() {
  static const TmaFamily family(Generation::kSm100);
  return family;
}

}  // namespace gnomon::cuda
