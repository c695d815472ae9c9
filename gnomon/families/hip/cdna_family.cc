// Family `cdna` as gemm/select.h sees it: space, prices, canonical strings.
//
//   256x224x64.mi16x16x32.w4.pgr2.dtl1.sk4.str0.wgm8.nt0
//   macro tile, matrix instruction, waves, k steps under way, direct-to-LDS, parts of K, stream-K,
//   rows of tiles walked together, non-temporal loads
//
// Prices are those of gemm/cdna_model.h with hipBLASLt's numbers for the architecture. gfx90a has
// no public measurements here: it takes gfx942's, whose kernels are its nearest kin.

#include "gnomon/families/hip/cdna_family.h"

#include <fmt/format.h>

#include <memory>

#include "gnomon/families/hip/cdna_space.h"
#include "gnomon/gemm/kept_spaces.h"

namespace gnomon::hip {
namespace {

// Expected |predicted / measured − 1| of a pick: hipBLASLt rows of traces and reports that no
// constant was fitted on (gemm/cdna_library_test.cc). Architectures without such rows: a guess that
// says so.
constexpr double kRelativeError = 0.12;
constexpr double kUncalibratedError = 0.3;

Status CheckDevice(const Device& device, const Problem& problem) {
  if (device.kind != Device::Kind::kGpu || !device.arch.starts_with("gfx"))
    return BadInput(fmt::format("family cdna runs on AMD GPUs, and {} is none", device.id),
                    "device");
  if (InstructionsOf(device.arch, problem.dtype).empty())
    return BadInput(
        fmt::format("{} has no matrix instruction for {}", device.arch, Name(problem.dtype)),
        "problem.dtype");
  return CheckProblem(problem);
}

constexpr Seconds kNever = {1e30};  // cannot be launched: no time is too long

CdnaWays& Scratch() {
  thread_local CdnaWays ways;
  return ways;
}

Result<size_t> FastestOf(const CdnaSpace& space, const Problem& problem,
                         std::span<TimedConfig> fastest) {
  const CdnaOperands operands = CdnaOperandsOf(problem);
  CdnaWays& ways = Scratch();
  EnumerateCdna(space, problem, operands, ways);
  const size_t found =
      FastestCdna(space.machine, *space.traits, operands, space.tiles, ways, fastest);
  for (size_t i = 0; i < found; ++i)
    fastest[i].config = ToConfig(ConfigOf(space, ways.launches[ways.fastest[i]]));
  return found;
}

// A space made once a device, units and kind, and remembered by the calling thread.
Result<const CdnaSpace*> SpaceOf(const Device& device, const Problem& problem, int units) {
  struct Kept {
    std::string arch;
    CdnaKind kind;
    CdnaSpace space;
  };
  GNOMON_ASSIGN(const CdnaMachine machine, CdnaMachineOf(device, problem.dtype, units));
  const CdnaKind kind = KindOf(device.arch, problem);
  thread_local std::vector<std::unique_ptr<Kept>> kept;
  for (const auto& entry : kept)
    if (entry->kind == kind && entry->arch == device.arch && entry->space.machine == machine)
      return &entry->space;
  GNOMON_ASSIGN(CdnaSpace space, MakeSpace(device, kind, units));
  kept.push_back(std::make_unique<Kept>(Kept{device.arch, kind, std::move(space)}));
  return &kept.back()->space;
}

Seconds TimeOn(const Device& device, const CdnaMachine& machine, const KernelFamilyTraits& traits,
               const Problem& problem, const CdnaConfig& config, int units) {
  if (FindObstacle(CdnaLimits(device, problem, units), config) != Obstacle::kNone) return kNever;
  return {PriceCdna(machine, traits, CdnaOperandsOf(problem), KernelOf(config)).total};
}

class ReadyCdna : public ReadyFamily {
 public:
  ReadyCdna(const Device& device, int units) : device_(device), units_(units) {}

  Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const override {
    GNOMON_ASSIGN(const CdnaSpace* space, SpaceFor(problem));
    return FastestOf(*space, problem, fastest);
  }

  Seconds TimeOf(const Problem& problem, const Config& config) const override {
    const auto space = SpaceFor(problem);
    if (!space.ok()) return kNever;
    return TimeOn(device_, (*space)->machine, *(*space)->traits, problem, FromConfig(config),
                  units_);
  }

 private:
  Result<const CdnaSpace*> SpaceFor(const Problem& problem) const {
    GNOMON_TRY(CheckDevice(device_, problem));
    const CdnaKind kind = KindOf(device_.arch, problem);
    return spaces_.Get(kind, [&] { return MakeSpace(device_, kind, units_); });
  }

  const Device device_;
  const int units_;
  KeptSpaces<CdnaKind, CdnaSpace> spaces_;
};

class Cdna : public Family {
 public:
  std::string_view name() const override { return "cdna"; }

  Status Enumerate(const Device& device, const Problem& problem, int units,
                   std::vector<Config>& configs) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    GNOMON_ASSIGN(const CdnaSpace* space, SpaceOf(device, problem, units));
    CdnaWays& ways = Scratch();
    EnumerateCdna(*space, problem, CdnaOperandsOf(problem), ways);
    for (const CdnaLaunch& launch : ways.launches)
      configs.push_back(ToConfig(ConfigOf(*space, launch)));
    return Done{};
  }

  Status Price(const Device& device, const Problem& problem, int units,
               std::vector<Config>& configs, std::vector<double>& seconds) const override {
    GNOMON_TRY(Enumerate(device, problem, units, configs));
    GNOMON_ASSIGN(const CdnaSpace* space, SpaceOf(device, problem, units));
    const CdnaWays& ways = Scratch();
    const CdnaOperands operands = CdnaOperandsOf(problem);
    for (const CdnaLaunch& launch : ways.launches)
      seconds.push_back(
          PriceCdna(space->machine, *space->traits, operands, space->tiles, ways, launch));
    return Done{};
  }

  Result<size_t> Fastest(const Device& device, const Problem& problem, int units,
                         std::span<TimedConfig> fastest) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    GNOMON_ASSIGN(const CdnaSpace* space, SpaceOf(device, problem, units));
    return FastestOf(*space, problem, fastest);
  }

  std::unique_ptr<ReadyFamily> Ready(const Device& device, int units) const override {
    return std::make_unique<ReadyCdna>(device, units);
  }

  Seconds PredictTime(const Device& device, const Problem& problem,
                      const Config& config) const override {
    if (!CheckDevice(device, problem).ok()) return kNever;
    return TimeOn(device, MachineOf(device, problem), TraitsOf(device.arch, problem.dtype), problem,
                  FromConfig(config), 0);
  }

  std::string Refusal(const Device& device, const Problem& problem,
                      const Config& config) const override {
    const Status status = CheckDevice(device, problem);
    return status.ok() ? hip::WhyNot(device, problem, FromConfig(config)) : status.error().message;
  }

  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override {
    const CdnaMachine machine = MachineOf(device, problem);
    const CdnaKernel kernel = KernelOf(FromConfig(config));
    const CdnaTime time =
        PriceCdna(machine, TraitsOf(device.arch, problem.dtype), CdnaOperandsOf(problem), kernel);
    Prediction out = ExplainCdna(machine, time, kernel);
    out.relative_error = device.arch == "gfx90a" ? kUncalibratedError : kRelativeError;
    return out;
  }

  std::string Print(const Config& config) const override { return hip::Print(FromConfig(config)); }

  Result<Config> Parse(std::string_view text) const override {
    GNOMON_ASSIGN(const CdnaConfig config, hip::Parse(text));
    return ToConfig(config);
  }

 private:
  static CdnaMachine MachineOf(const Device& device, const Problem& problem) {
    const auto machine = CdnaMachineOf(device, problem.dtype, 0);
    GNOMON_CHECK(machine.ok(), "{}", machine.error().Text());
    return *machine;
  }
};

}  // namespace

const Family& CdnaFamily() {
  static const Cdna family;
  return family;
}

}  // namespace gnomon::hip
