// Family `cpu` as gemm/select.h sees it: the config space, prices and canonical strings.
//
//   tile.14x2.kc256.mc0.nc0.pa0.pb1.ln1.sM.t2
//   kernel, rows x vectors, blocks of K, M and N (0: whole), packing of A and B, N loop outside (1)
//   or inside (0), the side that threads share, threads
//
// A string holds every field in this order, so that equal configs have equal strings and a file can
// be searched for one. Parse names the position of what it does not understand.

#include <fmt/format.h>

#include "gnomon/base/nearest.h"
#include "gnomon/families/cpu/config_space.h"
#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cpu/model.h"
#include "gnomon/gemm/config_text.h"

namespace gnomon::cpu {
namespace {

constexpr std::array<std::string_view, 3> kKernelNames = {"tile", "dot", "amx"};
constexpr std::string_view kSplitLetters = "MNK";
constexpr std::string_view kForm = "tile.14x2.kc256.mc0.nc0.pa0.pb1.ln1.sM.t2";

// Expected |predicted / measured − 1| of a pick: the median over shapes that no constant was fitted
// on (docs/model.md, "GEMM on a CPU"; bench/results/cpu_fp32_sweep.csv).
constexpr double kRelativeError = 0.10;
// The same of bf16 on AMX tiles, whose constants rest on fewer shapes.
constexpr double kAmxRelativeError = 0.22;

Status Kernel(ConfigText& text, GemmConfig& config) {
  const std::string_view word = text.text().substr(0, text.text().find('.'));
  for (size_t i = 0; i < kKernelNames.size(); ++i) {
    if (kKernelNames[i] != word) continue;
    config.kernel = static_cast<GemmConfig::Kernel>(i);
    return text.Literal(word);
  }
  return BadInput(UnknownName("kernel", word, kKernelNames),
                  fmt::format("config '{}', position 1", text.text()));
}

Result<GemmConfig> Read(std::string_view config_text) {
  ConfigText text(config_text, "cpu", kForm);
  GemmConfig config;
  GNOMON_TRY(Kernel(text, config));
  GNOMON_TRY(text.Field(".", config.mr));
  GNOMON_TRY(text.Field("x", config.nr));
  GNOMON_TRY(text.Field(".kc", config.kc, 0));
  GNOMON_TRY(text.Field(".mc", config.mc, 0));
  GNOMON_TRY(text.Field(".nc", config.nc, 0));
  GNOMON_TRY(text.Flag(".pa", config.pack_a));
  GNOMON_TRY(text.Flag(".pb", config.pack_b));
  GNOMON_TRY(text.Flag(".ln", config.loop_n_outer));
  GNOMON_TRY(text.Literal(".s"));
  size_t side = 0;
  GNOMON_TRY(text.Letter(kSplitLetters, side, "M, N or K"));
  config.split = static_cast<GemmConfig::Split>(side);
  GNOMON_TRY(text.Field(".t", config.threads));
  GNOMON_TRY(text.End());
  return config;
}

Status CheckDevice(const Device& device, const Problem& problem) {
  if (device.kind != Device::Kind::kCpu)
    return BadInput(fmt::format("family cpu runs on CPUs, and {} is none", device.id), "device");
  const auto known = [](DType dtype) { return dtype == DType::kFp32 || dtype == DType::kBf16; };
  if (!known(problem.dtype) || !known(problem.dtype_out))
    return BadInput(fmt::format("family cpu computes fp32 and bf16, not {} to {}",
                                Name(problem.dtype), Name(problem.dtype_out)),
                    "problem.dtype");
  if (problem.grouped())
    return BadInput("family cpu has no grouped kernel; run the groups one by one",
                    "problem.group_m");
  return CheckProblem(problem);
}

// The machine's facts looked up once, and room for the space kept.
class ReadyCpu : public ReadyFamily {
 public:
  ReadyCpu(const Device& device, int units)
      : device_(device), machine_(MachineOf(device)), units_(units > 0 ? units : device.units) {}

  Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const override {
    GNOMON_TRY(CheckDevice(device_, problem));
    thread_local std::vector<Config> configs;
    configs.clear();
    EnumerateConfigs(machine_, problem, units_, configs);
    size_t found = 0;
    for (const Config& config : configs) {
      const Seconds time = TimeOf(problem, config);
      if (found == fastest.size() && (found == 0 || time >= fastest[found - 1].time)) continue;
      size_t at = found < fastest.size() ? found++ : found - 1;
      for (; at > 0 && time < fastest[at - 1].time; --at) fastest[at] = fastest[at - 1];
      fastest[at] = {config, time};
    }
    return found;
  }

  Seconds TimeOf(const Problem& problem, const Config& config) const override {
    return {cpu::Price(machine_, problem, FromConfig(config)).Sum() / machine_.clock};
  }

 private:
  const Device device_;
  const Machine machine_;
  const int units_;
};

class CpuFamily : public Family {
 public:
  std::string_view name() const override { return "cpu"; }

  Status Enumerate(const Device& device, const Problem& problem, int units,
                   std::vector<Config>& configs) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    EnumerateConfigs(MachineOf(device), problem, units > 0 ? units : device.units, configs);
    return Done{};
  }

  Status Price(const Device& device, const Problem& problem, int units,
               std::vector<Config>& configs, std::vector<double>& seconds) const override {
    GNOMON_TRY(CheckDevice(device, problem));
    constexpr size_t kUsualSpace = 256;
    const size_t first = configs.size();
    configs.reserve(first + kUsualSpace);
    const Machine machine = MachineOf(device);
    EnumerateConfigs(machine, problem, units > 0 ? units : device.units, configs);
    seconds.reserve(configs.size());
    for (size_t i = first; i < configs.size(); ++i)
      seconds.push_back(cpu::Price(machine, problem, FromConfig(configs[i])).Sum() / machine.clock);
    return Done{};
  }

  Seconds PredictTime(const Device& device, const Problem& problem,
                      const Config& config) const override {
    const Machine machine = MachineOf(device);
    return {cpu::Price(machine, problem, FromConfig(config)).Sum() / machine.clock};
  }

  std::unique_ptr<ReadyFamily> Ready(const Device& device, int units) const override {
    return std::make_unique<ReadyCpu>(device, units);
  }

  Prediction Predict(const Device& device, const Problem& problem,
                     const Config& config) const override;

  std::string Refusal(const Device& device, const Problem& problem,
                      const Config& config) const override {
    const Status status = CheckDevice(device, problem);
    if (!status.ok()) return status.error().message;
    const GemmConfig c = FromConfig(config);
    if (c.threads > device.units)
      return fmt::format("{} threads on {} cores; nearest: t{}", c.threads, device.units,
                         device.units);
    return cpu::WhyNot(MachineOf(device), problem, c);
  }

  std::string Print(const Config& config) const override {
    const GemmConfig c = FromConfig(config);
    return fmt::format("{}.{}x{}.kc{}.mc{}.nc{}.pa{:d}.pb{:d}.ln{:d}.s{}.t{}",
                       kKernelNames[static_cast<size_t>(c.kernel)], c.mr, c.nr, c.kc, c.mc, c.nc,
                       c.pack_a, c.pack_b, c.loop_n_outer,
                       kSplitLetters[static_cast<size_t>(c.split)], c.threads);
  }

  Result<Config> Parse(std::string_view text) const override {
    GNOMON_ASSIGN(const GemmConfig config, Read(text));
    return ToConfig(config);
  }
};

Prediction CpuFamily::Predict(const Device& device, const Problem& problem,
                              const Config& config) const {
  const Machine machine = MachineOf(device);
  const GemmConfig c = FromConfig(config);
  const Parts parts = cpu::Price(machine, problem, c);
  struct Line {
    double cycles;
    const char* name;
    Bound bound;
    std::string why;
  };
  const std::string sides =
      c.kernel == GemmConfig::Kernel::kDot ? "dot products" : "register tiles";
  const std::array<Line, 10> lines = {{
      {parts.call, "call", Bound::kLaunch, "checks, workspace and plan of one call"},
      {parts.fork_join, "fork_join", Bound::kLaunch,
       fmt::format("parallel region of {} threads", c.threads)},
      {parts.pack_a, "pack_a", Bound::kCache, "A read from where it lies and written as panels"},
      {parts.pack_b, "pack_b", Bound::kCache, "B read from where it lies and written as panels"},
      {parts.multiply, "multiply", Bound::kCompute,
       fmt::format("{} of {} x {} at {:.3g} vector FMAs a cycle, {:.3g} GHz, operands in L1", sides,
                   c.mr, c.nr, machine.ports, machine.clock / 1e9)},
      {parts.overhead, "overhead", Bound::kLatency, "entering and leaving tiles and blocks"},
      {parts.stream, "stream",
       machine.capacity[kL2] >= problem.bytes().value ? Bound::kCache : Bound::kMemory,
       "operands from beyond L1, as far as multiplying does not hide it"},
      {parts.store, "store",
       machine.capacity[kL2] >= problem.bytes().value ? Bound::kCache : Bound::kMemory,
       "C to where it lies, again for every block of K"},
      {parts.barrier, "barrier", Bound::kLatency,
       "threads wait for each other around a shared panel"},
      {parts.reduce, "reduce", Bound::kCache, "partial sums of the threads added up"},
  }};
  Prediction out;
  out.relative_error = c.kernel == GemmConfig::Kernel::kAmx ? kAmxRelativeError : kRelativeError;
  double most = -1;
  for (const Line& line : lines) {
    if (line.cycles <= 0) continue;
    out.terms.push_back({line.name, {line.cycles / machine.clock}, line.why});
    if (line.cycles > most) {
      most = line.cycles;
      out.bound = line.bound;
    }
  }
  out.time = {parts.Sum() / machine.clock};
  return out;
}

}  // namespace

const Family& GemmFamily() {
  static const CpuFamily family;
  return family;
}

}  // namespace gnomon::cpu
