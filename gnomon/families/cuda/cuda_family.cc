// Family cuda as gemm/select.h sees it: candidates, prices, canonical strings.
//
// Kernels in cycles depend on the device and the kind of problem alone and come ready from the
// space (kernel_space.h); a call places them on the problem (kernel_price.h), of few configs
// (kernel_search.h). Made ready for a device, the family keeps its spaces.

#include "gnomon/families/cuda/cuda_family.h"

#include "gnomon/families/cuda/kernel_search.h"
#include "gnomon/gemm/kept_spaces.h"

namespace gnomon::cuda {
namespace {

constexpr Seconds kNever = {1e30};  // cannot be launched: no time is too long
// Root mean square of log(predicted / measured), and standard deviation of the difference of two of
// a shape near its best: held-out shapes of our sweep on an H200 (bench/results/h200_cuda_*.csv).
constexpr double kError = 0.15, kPairError = 0.107;
constexpr double kUnmeasuredError = 0.25;  // on another Hopper GPU: its memory and clock differ
bool Measured(const Device& device) { return device.id.starts_with("h200"); }

Result<KernelSpace> SpaceFor(const Device& device, const Problem& problem, int units) {
  GNOMON_TRY(CheckKernelProblem(device, problem));
  return MakeKernelSpace(device, KindOf(problem), units);
}

// Calls `take(call, time, kernel)` for a config that can run on so many units.
template <class Take>
void WithPrice(const Device& device, int units, const Problem& problem, const Config& config,
               Take take) {
  const KernelConfig c = KernelConfigFrom(config);
  if (!WhyNot(device, problem, c, units).empty()) return;
  const auto machine = TileMachineOf(device, problem.dtype, units);
  if (!machine.ok()) return;
  const Machines machines = MachinesOf(*machine);
  KernelKind kind = KindOf(problem);
  kind.kind = c.kind;
  const KernelCall call(device, machines, problem);
  TileKernel kernel;
  if (c.kind == Kind::kVector) {
    const TileTime time = PriceOf(call, VectorWayTo{{c.tile_m, c.tile_n}, c.split_k}, kernel);
    return take(call.call, time, kernel);
  }
  KernelTile tile = TileOf(*machine, machines, kind, c);
  if (c.kind == Kind::kCopy) SetCopySteps(call, tile);
  KernelCandidate candidate{&tile, GridOf(problem, tile.blocks.front().cluster)};
  candidate.cut = c.stream_k ? Cut::kStream : c.split_k > 1 ? Cut::kParts : Cut::kWhole;
  candidate.split_k = c.split_k;
  candidate.fix_up = c.fix_up;
  candidate.group_m = c.group_m;
  const TileTime time = PriceOf(call, candidate, kernel);
  take(call.call, time, kernel);
}

Seconds TimeOn(const Device& device, int units, const Problem& problem, const Config& config) {
  Seconds seconds = kNever;
  WithPrice(device, units, problem, config,
            [&](const Call& call, const TileTime& time, const TileKernel&) {
              seconds = {time.total() / call.hertz};
            });
  return seconds;
}

class ReadyCuda : public ReadyFamily {
 public:
  ReadyCuda(const Device& device, int units) : device_(device), units_(units) {}

  Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const override {
    GNOMON_TRY(CheckKernelProblem(device_, problem));
    const KernelKind kind = KindOf(problem);
    GNOMON_ASSIGN(const KernelSpace* space,
                  spaces_.Get(kind, [&] { return MakeKernelSpace(device_, kind, units_); }));
    return FastestOf(device_, *space, problem, fastest);
  }

  Seconds TimeOf(const Problem& problem, const Config& config) const override {
    return TimeOn(device_, units_, problem, config);
  }

 private:
  const Device device_;
  const int units_;
  KeptSpaces<KernelKind, KernelSpace> spaces_;
};

class OwnKernels : public Family {
 public:
  std::string_view name() const override { return "cuda"; }

  Status Enumerate(const Device& device, const Problem& problem, int units,
                   std::vector<Config>& configs) const override {
    std::vector<double> seconds;
    return Price(device, problem, units, configs, seconds);
  }

  Status Price(const Device& device, const Problem& problem, int units,
               std::vector<Config>& configs, std::vector<double>& seconds) const override {
    GNOMON_ASSIGN(const KernelSpace space, SpaceFor(device, problem, units));
    PriceAll(device, space, problem, configs, seconds);
    return Done{};
  }

  Result<size_t> Fastest(const Device& device, const Problem& problem, int units,
                         std::span<TimedConfig> fastest) const override {
    GNOMON_ASSIGN(const KernelSpace space, SpaceFor(device, problem, units));
    return FastestOf(device, space, problem, fastest);
  }

  std::unique_ptr<ReadyFamily> Ready(const Device& device, int units) const override {
    return std::make_unique<ReadyCuda>(device, units);
  }

  Seconds PredictTime(const Device& device, const Problem& problem,
                      const Config& config) const override {
    return TimeOn(device, 0, problem, config);
  }

  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override {
    Prediction out;
    WithPrice(device, 0, problem, config, [&](const Call& call, TileTime time, TileKernel kernel) {
      // In words, a workgroup is a CTA and not a cluster.
      const KernelConfig c = KernelConfigFrom(config);
      time.workgroups *= c.cluster_m * c.cluster_n;
      kernel.tile_m = c.tile_m;
      kernel.tile_n = c.tile_n;
      out = ExplainTiles(call.machines.front(), time, kernel);
      out.relative_error = Measured(device) ? kError : kUnmeasuredError;
    });
    return out;
  }

  std::optional<double> PairError(const Device& device) const override {
    if (!Measured(device)) return std::nullopt;
    return kPairError;
  }

  std::string Refusal(const Device& device, const Problem& problem,
                      const Config& config) const override {
    return cuda::WhyNot(device, problem, KernelConfigFrom(config));
  }

  std::string Print(const Config& config) const override { return Text(KernelConfigFrom(config)); }

  Result<Config> Parse(std::string_view text) const override {
    GNOMON_ASSIGN(const KernelConfig config, ParseKernelConfig(text));
    return ToConfig(config);
  }
};

}  // namespace

const Family& CudaFamily() {
  static const OwnKernels family;
  return family;
}

}  // namespace gnomon::cuda
