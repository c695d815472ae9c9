// Families sm90 and sm100 as gemm/select.h sees them: candidates, prices, canonical strings.
//
// A cluster's cycles depend on the device and the dtypes alone and come ready from the space
// (space.h); a call places them on the problem (price.h), of few configs (search.h). Made ready for
// a device, the family also keeps its spaces.

#include <fmt/format.h>

#include "gnomon/families/cuda/cuda_gemm.h"
#include "gnomon/families/cuda/search.h"
#include "gnomon/gemm/kept_spaces.h"

namespace gnomon::cuda {
namespace {

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

constexpr Seconds kNever = {1e30};  // cannot be launched: no time is too long

// Calls `take(call, time, kernel)` for a config that can run on so many units.
template <class Take>
void WithPrice(const Device& device, Generation generation, int units, const Problem& problem,
               const Config& config, Take take) {
  const TileConfig c = FromConfig(config);
  const auto machine = TileMachineOf(device, problem.dtype, units);
  if (!machine.ok() || !WhyNot(device, generation, problem, c, units).empty()) return;
  const Block block = BlockOf(*machine, generation, c, ElementBytesOf(problem));
  const Machines machines = MachinesOf(*machine);
  if (block.cluster.occupancy == 0 || machines.of_clusters[block.cluster_index].units < 1) return;
  const Call call(device, machines, problem, generation);
  const Candidate candidate{&block, GridOf(problem, block.cluster), c.split_k, c.group_m};
  const TileKernel kernel = KernelOf(call, candidate);
  take(call, PriceOf(call, candidate, kernel), kernel);
}

Seconds TimeOn(const Device& device, Generation generation, int units, const Problem& problem,
               const Config& config) {
  Seconds seconds = kNever;
  WithPrice(device, generation, units, problem, config,
            [&](const Call& call, const TileTime& time, const TileKernel&) {
              seconds = {time.total() / call.hertz};
            });
  return seconds;
}

class ReadyTma : public ReadyFamily {
 public:
  ReadyTma(Generation generation, const Device& device, int units)
      : generation_(generation), device_(device), units_(units) {}

  Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const override {
    GNOMON_TRY(CheckProblemFor(device_, generation_, problem));
    const SpaceKind kind = {problem.dtype, problem.dtype_out};
    GNOMON_ASSIGN(const Space* space,
                  spaces_.Get(kind, [&] { return MakeSpace(device_, generation_, kind, units_); }));
    return FastestOf(device_, generation_, *space, problem, fastest);
  }

  Seconds TimeOf(const Problem& problem, const Config& config) const override {
    return TimeOn(device_, generation_, units_, problem, config);
  }

 private:
  const Generation generation_;
  const Device device_;
  const int units_;
  KeptSpaces<SpaceKind, Space> spaces_;
};

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
    GNOMON_ASSIGN(const Space* space, SpaceFor(device, problem, units));
    std::vector<Candidate> candidates;
    CandidatesFor(*space, problem, candidates);
    const Call call(device, space->machines, problem, generation_);
    for (Candidate& candidate : candidates) {
      seconds.push_back(SecondsOf(*space, call, candidate));
      configs.push_back(ToConfig(candidate.config()));
    }
    return Done{};
  }

  Result<size_t> Fastest(const Device& device, const Problem& problem, int units,
                         std::span<TimedConfig> fastest) const override {
    GNOMON_ASSIGN(const Space* space, SpaceFor(device, problem, units));
    return FastestOf(device, generation_, *space, problem, fastest);
  }

  std::unique_ptr<ReadyFamily> Ready(const Device& device, int units) const override {
    return std::make_unique<ReadyTma>(generation_, device, units);
  }

  Seconds PredictTime(const Device& device, const Problem& problem,
                      const Config& config) const override {
    return TimeOn(device, generation_, 0, problem, config);
  }

  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override {
    Prediction out;
    WithPrice(device, generation_, 0, problem, config,
              [&](const Call& call, TileTime time, TileKernel kernel) {
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

  std::string Refusal(const Device& device, const Problem& problem,
                      const Config& config) const override {
    return cuda::WhyNot(device, generation_, problem, FromConfig(config));
  }

  std::string Print(const Config& config) const override {
    return Text(generation_, FromConfig(config));
  }

  Result<Config> Parse(std::string_view text) const override {
    GNOMON_ASSIGN(const TileConfig config, ParseConfig(generation_, text));
    return ToConfig(config);
  }

 private:
  Result<const Space*> SpaceFor(const Device& device, const Problem& problem, int units) const {
    GNOMON_TRY(CheckProblemFor(device, generation_, problem));
    return SpaceOf(device, generation_, problem, units);
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
