// Family `triton` as gemm/select.h sees it: which splits of K a config is tried with, and its
// price.
//
// A workgroup's cycles depend on the device, the dtypes and which sides are multiples of 16, not on
// the sides themselves: they come ready from the space (space.h), and a call prices the grid only,
// of few configs (search.h). Made ready for a device, the family also keeps its spaces. AMD GPUs
// have a space and a model of their own (amd.h).

#include <fmt/format.h>

#include "gnomon/families/triton/amd.h"
#include "gnomon/families/triton/search.h"
#include "gnomon/gemm/kept_spaces.h"

namespace gnomon::triton {
namespace {

// Figures of the held-out shapes of bench/results/h200_triton_sweep.csv (docs/accuracy.md).
constexpr double kRelativeError = 0.09;
// Devices whose Triton kernels were never timed.
constexpr double kUncalibratedError = 0.3;
// Standard deviation of the difference of log(predicted / measured) between the two configs that
// are predicted fastest for a held-out shape (family_test.cc holds it against the sweep).
constexpr double kPairError = 0.08;

bool Calibrated(const Device& device) { return device.arch == "sm_90a"; }

Status CheckDevice(const Device& device, const Problem& problem) {
  if (device.kind != Device::Kind::kGpu || device.schedulers <= 0)
    return BadInput(fmt::format("family triton runs on GPUs, and {} is none", device.id), "device");
  switch (problem.dtype) {
    case DType::kMxFp8:
    case DType::kMxFp6:
    case DType::kMxFp4:
      return BadInput(fmt::format("family triton has no plain kernel for {}", Name(problem.dtype)),
                      "dtype");
    default:
      break;
  }
  return CheckProblem(problem);
}

bool CanLaunch(const Problem& problem, const TritonConfig& config) {
  const ProblemGrid grid(problem);
  return grid.tiles(Log2(config.block_m), Log2(config.block_n)) * config.split_k <= kMostPrograms &&
         (config.split_k == 1 || config.split_k <= grid.most_parts());
}

constexpr Seconds kNever = {1e30};  // cannot be launched: no time is too long

class ReadyTriton : public ReadyFamily {
 public:
  ReadyTriton(const Device& device, int units) : device_(device), units_(units) {}

  Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const override {
    GNOMON_ASSIGN(const Space* space, SpaceFor(problem));
    return FastestOf(*space, problem, fastest);
  }

  Seconds TimeOf(const Problem& problem, const Config& config) const override {
    const auto found = SpaceFor(problem);
    if (!found.ok()) return kNever;
    const Space& space = **found;
    const TritonConfig c = FromConfig(config);
    const TileKernel block = BlockOf(space.machine, device_.arch, SpecialisationOf(problem), c,
                                     SizeOf(problem.dtype), SizeOf(problem.dtype_out));
    if (block.occupancy == 0 || !CanLaunch(problem, c)) return kNever;
    return {PriceTiles(space.machine, space.traits, problem, block).total() / space.machine.hertz};
  }

 private:
  Result<const Space*> SpaceFor(const Problem& problem) const {
    GNOMON_TRY(CheckDevice(device_, problem));
    const SpaceKind kind = KindOf(problem);
    return spaces_.Get(kind, [&]() -> Result<Space> {
      GNOMON_ASSIGN(const TileMachine machine, MachineOf(device_, problem.dtype, units_));
      return MakeSpace(machine, device_.arch, kind);
    });
  }

  const Device device_;
  const int units_;
  KeptSpaces<SpaceKind, Space> spaces_;
};

class ReadyAmd : public ReadyFamily {
 public:
  ReadyAmd(const Device& device, int units) : device_(device), units_(units) {}

  Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const override {
    GNOMON_ASSIGN(const AmdSpace* space, SpaceFor(problem));
    return FastestAmd(*space, problem, fastest);
  }

  Seconds TimeOf(const Problem& problem, const Config& config) const override {
    const auto space = SpaceFor(problem);
    if (!space.ok()) return kNever;
    const auto time = PriceOneAmd(device_, **space, problem, FromConfig(config));
    return time.ok() ? Seconds{time->total} : kNever;
  }

 private:
  Result<const AmdSpace*> SpaceFor(const Problem& problem) const {
    GNOMON_TRY(CheckDevice(device_, problem));
    return spaces_.Get(problem.dtype, [&] { return MakeAmdSpace(device_, problem.dtype, units_); });
  }

  const Device device_;
  const int units_;
  KeptSpaces<DType, AmdSpace> spaces_;
};

class TritonFamily : public Family {
 public:
  std::string_view name() const override { return "triton"; }

  Status Enumerate(const Device& device, const Problem& problem, int units,
                   std::vector<Config>& configs) const override {
    std::vector<double> seconds;
    return Price(device, problem, units, configs, seconds);
  }

  Status Price(const Device& device, const Problem& problem, int units,
               std::vector<Config>& configs, std::vector<double>& seconds) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    if (IsAmd(device)) {
      GNOMON_ASSIGN(const AmdSpace* amd, AmdSpaceOf(device, problem.dtype, units));
      PriceAmd(*amd, problem, configs, seconds);
      return Done{};
    }
    GNOMON_ASSIGN(const Space* space, SpaceOf(device, problem, units));
    const ProblemGrid grid(problem);
    const auto price = [&](size_t i, std::uint32_t log2_split, std::int64_t) {
      TritonConfig config = space->entries[i].config;
      TileKernel block = space->entries[i].block;
      config.split_k = block.split_k = 1 << log2_split;
      configs.push_back(ToConfig(config));
      seconds.push_back(PriceTiles(space->machine, space->traits, problem, block).total() /
                        space->machine.hertz);
    };
    ForEachConfig(
        *space, grid, [](const SpaceTile&, std::uint32_t) {}, price);
    return Done{};
  }

  Result<size_t> Fastest(const Device& device, const Problem& problem, int units,
                         std::span<TimedConfig> fastest) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    if (IsAmd(device)) {
      GNOMON_ASSIGN(const AmdSpace* amd, AmdSpaceOf(device, problem.dtype, units));
      return FastestAmd(*amd, problem, fastest);
    }
    GNOMON_ASSIGN(const Space* space, SpaceOf(device, problem, units));
    return FastestOf(*space, problem, fastest);
  }

  std::unique_ptr<ReadyFamily> Ready(const Device& device, int units) const override {
    if (IsAmd(device)) return std::make_unique<ReadyAmd>(device, units);
    return std::make_unique<ReadyTriton>(device, units);
  }

  std::optional<double> PairError(const Device& device) const override {
    if (!Calibrated(device)) return std::nullopt;
    return kPairError;
  }

  Seconds PredictTime(const Device& device, const Problem& problem,
                      const Config& config) const override {
    if (IsAmd(device)) {
      const auto time = PriceOnAmd(device, problem, config);
      return time.ok() ? Seconds{time->total} : kNever;
    }
    const auto priced = PriceOne(device, problem, config);
    return priced.ok() && priced->block.occupancy > 0 && CanLaunch(problem, FromConfig(config))
               ? Seconds{priced->time.total() / priced->machine.hertz}
               : kNever;
  }

  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override {
    if (IsAmd(device)) {
      const auto space = CheckedAmdSpace(device, problem);
      if (!space.ok()) return {};
      const auto out = PredictAmd(device, **space, problem, FromConfig(config));
      return out.ok() ? *out : Prediction{};
    }
    const auto priced = PriceOne(device, problem, config);
    if (!priced.ok() || priced->block.occupancy == 0) return {};
    Prediction out = ExplainTiles(priced->machine, priced->time, priced->block);
    const bool timed = Calibrated(device) && problem.dtype == DType::kBf16;
    out.relative_error = timed ? kRelativeError : kUncalibratedError;
    return out;
  }

  std::string Print(const Config& config) const override { return Text(FromConfig(config)); }

  Result<Config> Parse(std::string_view text) const override {
    GNOMON_ASSIGN(const TritonConfig config, ParseConfig(text));
    return ToConfig(config);
  }

 private:
  struct Priced {
    TileMachine machine;
    TileKernel block;
    TileTime time;
  };

  static Result<const AmdSpace*> CheckedAmdSpace(const Device& device, const Problem& problem) {
    GNOMON_TRY(CheckDevice(device, problem));
    return AmdSpaceOf(device, problem.dtype, 0);
  }

  static Result<CdnaTime> PriceOnAmd(const Device& device, const Problem& problem,
                                     const Config& config) {
    GNOMON_ASSIGN(const AmdSpace* space, CheckedAmdSpace(device, problem));
    return PriceOneAmd(device, *space, problem, FromConfig(config));
  }

  Result<Priced> PriceOne(const Device& device, const Problem& problem,
                          const Config& config) const {
    Priced priced;
    GNOMON_TRY(CheckDevice(device, problem));
    GNOMON_ASSIGN(priced.machine, MachineOf(device, problem.dtype, 0));
    priced.block = BlockOf(priced.machine, device.arch, SpecialisationOf(problem),
                           FromConfig(config), SizeOf(problem.dtype), SizeOf(problem.dtype_out));
    if (priced.block.occupancy > 0)
      priced.time = PriceTiles(priced.machine, LaunchTraits(), problem, priced.block);
    return priced;
  }
};

}  // namespace

const Family& GemmFamily() {
  static const TritonFamily family;
  return family;
}

}  // namespace gnomon::triton
