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

#include "gnomon/families/hip/cdna_space.h"

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

const KernelFamilyTraits& TraitsOf(const Device& device, DType dtype) {
  const std::string_view arch = device.arch == "gfx90a" ? "gfx942" : std::string_view(device.arch);
  const KernelFamilyTraits* traits = FindKernelFamily("hipblaslt", arch, dtype);
  return traits ? *traits : GenericKernelFamily(arch, dtype);
}

class Cdna : public Family {
 public:
  std::string_view name() const override { return "cdna"; }

  Status Enumerate(const Device& device, const Problem& problem, int units,
                   std::vector<Config>& configs) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    EnumerateCdna(device, problem, UnitsOf(device, units), kUsualWorkspace, configs);
    return Done{};
  }

  Status Price(const Device& device, const Problem& problem, int units,
               std::vector<Config>& configs, std::vector<double>& seconds) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    GNOMON_ASSIGN(const CdnaMachine machine, CdnaMachineOf(device, problem.dtype, units));
    const KernelFamilyTraits& traits = TraitsOf(device, problem.dtype);
    const CdnaOperands operands = CdnaOperandsOf(problem);
    const size_t first = configs.size();
    EnumerateCdna(device, problem, UnitsOf(device, units), kUsualWorkspace, configs);
    seconds.reserve(configs.size());
    for (size_t i = first; i < configs.size(); ++i)
      seconds.push_back(
          PriceCdna(machine, traits, operands, KernelOf(FromConfig(configs[i]))).total);
    return Done{};
  }

  Seconds PredictTime(const Device& device, const Problem& problem,
                      const Config& config) const override {
    const CdnaMachine machine = MachineOf(device, problem);
    return {PriceCdna(machine, TraitsOf(device, problem.dtype), CdnaOperandsOf(problem),
                      KernelOf(FromConfig(config)))
                .total};
  }

  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override {
    const CdnaMachine machine = MachineOf(device, problem);
    const CdnaKernel kernel = KernelOf(FromConfig(config));
    const CdnaTime time =
        PriceCdna(machine, TraitsOf(device, problem.dtype), CdnaOperandsOf(problem), kernel);
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
  static int UnitsOf(const Device& device, int units) { return units > 0 ? units : device.units; }

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
