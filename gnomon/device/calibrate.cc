// Measures the present host and states it as a Device: base file host-x86-64-avx2 with measured
// facts.
//
// Every fact has one instrument (calibrate_peak, _bf16, _memory, _calls). All instruments run in
// turn, round after round, so that a disturbance of a second falls on all of them alike; a fact is
// the median of its rounds, peaks and the clock are the best, as only disturbance keeps a core from
// its peak.
//   flops per unit and clock = 2 lanes x FMA units, one or two by what peak / clock comes nearest
//   to; boost clock = one core's peak / rate; sustained clock = all cores' peak / rate; peak =
//   units x rate x boost.
// The last cache's capacity is where reads leave its rate: virtual machines report one that they
// share. Entry point: CalibrateHost. Not measured: NUMA, unlike cores, power.

#include "gnomon/device/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>

#include "gnomon/device/calibrate_calls.h"
#include "gnomon/device/calibrate_memory.h"
#include "gnomon/device/calibrate_peak.h"
#include "gnomon/device/host.h"
#include "gnomon/device/read.h"

namespace gnomon {
namespace {

constexpr std::size_t kMib = 1 << 20, kGib = 1 << 30;

double Digits(double value, int digits) {
  const std::string text = fmt::format("{:.{}g}", value, digits);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

std::string Today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

struct Probe {
  enum class Pick { kMedian, kMost };
  std::string name;  // of the fact, or of a number that several facts come from
  std::string what;
  Pick pick;
  std::function<double()> run;
  std::vector<double> seen = {};

  double Result() const {
    std::vector<double> sorted = seen;
    std::ranges::sort(sorted);
    return pick == Pick::kMost ? sorted.back() : sorted[sorted.size() / 2];
  }
};

constexpr std::string_view kLevels[] = {"l1", "l2", "llc", "dram"};

// What one level of the memory is measured over.
struct LevelPlan {
  std::string name;
  Region all, one, chase;
  Bytes capacity;
};

class Calibration {
 public:
  Calibration(const CalibrateOptions& options, int threads, Device device)
      : options_(options), threads_(threads), device_(std::move(device)) {}

  Result<Device> Run() {
    const Arena arena(ArenaBytes(), threads_);
    if (!arena.ok())
      return Fault(fmt::format("cannot map {} MiB to measure memory", ArenaBytes() / kMib));
    PlanArithmetic();
    PlanCalls();
    for (size_t i = 0; i < std::size(kLevels); ++i) PlanMemory(i);
    Report(0, "last-level cache");
    PlanLevels(arena);
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t i = 0; i < probes_.size(); ++i) {
        Report(round * static_cast<int>(probes_.size()) + static_cast<int>(i) + 1, probes_[i].what);
        probes_[i].seen.push_back(probes_[i].run());
      }
    }
    GNOMON_TRY(StateArithmetic());
    GNOMON_TRY(StateMemory());
    GNOMON_TRY(State("launch.call_us", Get("call") * 1e6, "call of a kernel through a pointer"));
    GNOMON_TRY(State("launch.fork_join_us", Get("fork_join") * 1e6,
                     "empty OpenMP region, one after another"));
    return std::move(device_);
  }

 private:
  void Report(int done, const std::string& what) const {
    if (options_.progress)
      options_.progress(done, options_.rounds * static_cast<int>(probes_.size()) + 1, what);
  }

  // A gibibyte leaves every cache behind; machines with little memory give a quarter of it.
  std::size_t ArenaBytes() const {
    const double bytes = std::min(HostMemory().value / 4, options_.most_memory.value);
    return std::max<std::size_t>(1, static_cast<std::size_t>(bytes) / kMib) * kMib;
  }

  std::size_t Each(double bytes, int threads) const {
    return std::max(kLineBytes, static_cast<std::size_t>(bytes) /
                                    static_cast<std::size_t>(threads) / kLineBytes * kLineBytes);
  }

  void PlanLevels(const Arena& arena) {
    constexpr double kUsualL1 = 32 << 10, kUsualL2 = 512 << 10;
    const HostCaches caches = ReadHostCaches();
    const double l1 = caches.l1.value > 0 ? caches.l1.value : kUsualL1;
    const double l2 = std::max(l1, caches.l2.value > 0 ? caches.l2.value : kUsualL2);
    const double all_l2 = l2 * threads_, whole = static_cast<double>(arena.bytes());
    const double smallest = std::min(2 * all_l2, whole / 4);
    reported_llc_ = caches.l3;
    double llc =
        EffectiveCache(arena, static_cast<std::size_t>(smallest), threads_, options_.probe_time / 2)
            .value;
    if (llc == 0) llc = caches.l3.value > 0 ? caches.l3.value : all_l2;
    if (caches.l3.value > 0) llc = std::min(llc, caches.l3.value);
    llc = std::min(std::max(llc, l2), whole / 2);
    // Midway between the level-2 caches and the end of the last one, on a scale of factors.
    const double llc_set = std::min(0.75 * llc, std::max(std::sqrt(all_l2 * llc), 1.5 * all_l2));
    const double llc_one = std::max(llc_set / threads_, std::min(llc_set, 4 * l2));
    const auto plan = [&](double capacity, double all, double one, double chase, bool shared) {
      levels_.push_back({std::string(kLevels[levels_.size()]),
                         {&arena, Each(all, threads_), threads_, shared},
                         {&arena, Each(one, 1), 1, shared},
                         {&arena, Each(chase, 1), 1, shared},
                         {capacity}});
    };
    plan(l1, l1 / 2 * threads_, l1 / 2, l1 / 2, false);
    plan(l2, l2 / 2 * threads_, l2 / 2, l2 / 2, false);
    plan(llc, llc_set, llc_one, llc_set, true);
    plan(HostMemory().value, whole, whole, whole / 2, true);
  }

  void Add(std::string name, std::string what, Probe::Pick pick, std::function<double()> run) {
    probes_.push_back({std::move(name), std::move(what), pick, std::move(run)});
  }

  void PlanArithmetic() {
    using enum Probe::Pick;
    const int all = threads_;
    const Seconds time = options_.probe_time;
    Add("clock", "clock", kMost, [time] { return CoreClock(time).value; });
    Add("fp32_one", "fp32 peak of one core", kMost, [time] { return FmaPeakFp32(1, time).value; });
    Add("fp32_all", "fp32 peak of all cores", kMost, [=] { return FmaPeakFp32(all, time).value; });
    Add("fp64_all", "fp64 peak of all cores", kMost, [=] { return FmaPeakFp64(all, time).value; });
    Add("fma_rate", "FMA latency", kMost, [time] { return 1 / FmaLatency(time).value; });
    Add("dot_all", "bf16 peak of vector units", kMost,
        [=] { return DotPeakBf16(all, time).value; });
    Add("tile_all", "bf16 peak of matrix units", kMost,
        [=] { return TilePeakBf16(all, time).value; });
  }

  void PlanCalls() {
    using enum Probe::Pick;
    const int all = threads_;
    const Seconds time = options_.probe_time;
    Add("call", "call cost", kMedian, [time] { return CallCost(time).value; });
    Add("fork_join", "fork-join cost", kMedian, [=] { return ForkJoinCost(all, time).value; });
  }

  // The regions are known once the last cache's size is.
  void PlanMemory(size_t level) {
    using enum Probe::Pick;
    const std::string name(kLevels[level]);
    const Seconds time = options_.probe_time;
    const auto& levels = levels_;
    Add(name + ".read_all", name + " read bandwidth", kMedian,
        [=, &levels] { return ReadBandwidth(levels[level].all, time).value; });
    Add(name + ".read_one", name + " read bandwidth of one core", kMedian,
        [=, &levels] { return ReadBandwidth(levels[level].one, time).value; });
    Add(name + ".write_all", name + " write bandwidth", kMedian,
        [=, &levels] { return WriteBandwidth(levels[level].all, time).value; });
    Add(name + ".random_all", name + " random-line bandwidth", kMedian,
        [=, &levels] { return RandomBandwidth(levels[level].all, time).value; });
    Add(name + ".latency", name + " latency", kMedian,
        [=, &levels] { return ChaseLatency(levels[level].chase, time).value; });
  }

  double Get(const std::string& name) const {
    const auto probe = std::ranges::find(probes_, name, &Probe::name);
    GNOMON_CHECK(probe != probes_.end(), "{}", name);
    return probe->Result();
  }

  Status State(const std::string& path, double value, const std::string& how, int digits = 4) {
    return SetFact(
        device_, path,
        {Digits(value, digits), FactKind::kMeasured, "gnomon device calibrate: " + how, Today()});
  }

  Status StateRate(const std::string& section, const std::string& dtype, double rate,
                   const std::string& how) {
    const std::string prefix = section + "." + dtype + ".";
    GNOMON_TRY(State(prefix + "flops_per_unit_clock", rate, how));
    const double peak = device_.units * device_.facts.at(prefix + "flops_per_unit_clock").value *
                        device_.boost_clock.value;
    constexpr double kTera = 1e12;
    return State(prefix + "peak_tflops", peak / kTera, "units x rate x boost clock, each measured",
                 6);
  }

  Status StateArithmetic() {
    constexpr double kMega = 1e6, kFlopsPerFma = 2;
    const double one = Get("fp32_one"), all = Get("fp32_all") / threads_, clock = Get("clock");
    const int lanes = VectorLanesFp32();
    // Two units where the peak lies beyond the geometric middle between one and two; off x86-64 the
    // clock is unknown and the two units of every current core are taken.
    const double per_clock = clock > 0 ? one / clock : std::numeric_limits<double>::max();
    const double one_unit = kFlopsPerFma * lanes;
    const double rate = one_unit * (per_clock > one_unit * std::sqrt(2.0) ? 2 : 1);
    const double boost = std::max(one, all) / rate;

    GNOMON_TRY(State("units.count", threads_, "cores in use"));
    GNOMON_TRY(State("clock.boost_mhz", boost / kMega, "fp32 FMA peak of one core / rate"));
    GNOMON_TRY(
        State("clock.sustained_mhz", all / rate / kMega, "fp32 FMA peak of all cores / rate"));
    const std::string isa = fmt::format("{}-bit vectors", lanes * 32);
    GNOMON_TRY(StateRate("vector", "fp32", rate,
                         fmt::format("{}, {} FMA units by peak / clock", isa, rate / one_unit)));
    const double sustained = device_.sustained_clock.value * threads_;
    GNOMON_TRY(StateRate("vector", "fp64", Get("fp64_all") / sustained,
                         "fp64 FMA peak of all cores / sustained clock"));
    GNOMON_TRY(State("execution.vector_bits", lanes * 32, "instruction set in use"));
    constexpr int kAvx512Lanes = 16;
    GNOMON_TRY(State("execution.vector_registers", lanes >= kAvx512Lanes ? 32 : 16,
                     "instruction set in use"));
    GNOMON_TRY(State("execution.fma_latency_cycles", boost / Get("fma_rate"),
                     "chain of dependent FMAs at the boost clock", 3));
    if (const double dot = Get("dot_all"); dot > 0) {
      GNOMON_TRY(StateRate("vector", "bf16", dot / sustained,
                           "VDPBF16PS peak of all cores / sustained clock"));
    }
    if (const double tile = Get("tile_all"); tile > 0) {
      GNOMON_TRY(StateRate(
          "matrix", "bf16", tile / sustained,
          "TDPBF16PS peak of all cores, from tile registers, / sustained clock; nominal is 1024"));
      for (Rate& known : device_.matrix) {
        if (known.dtype == DType::kBf16) known.shape = "16x16x32";
      }
    }
    return Done{};
  }

  Status StateMemory() {
    constexpr double kGiga = 1e9, kNano = 1e-9, kKib = 1024;
    // Noise must not turn the order of levels round: a farther one is no faster and answers no
    // sooner.
    double fastest = std::numeric_limits<double>::max(), soonest = 0;
    for (const LevelPlan& level : levels_) {
      const std::string prefix = "memory." + level.name + ".";
      const double read = fastest = std::min(fastest, Get(level.name + ".read_all"));
      const double latency = soonest = std::max(soonest, Get(level.name + ".latency"));
      const std::string over =
          fmt::format("over {} KiB a core", level.all.bytes_each / static_cast<std::size_t>(kKib));
      GNOMON_TRY(StateCapacity(level));
      GNOMON_TRY(State(prefix + "bandwidth_gb_per_s", read / kGiga, "all cores read " + over));
      GNOMON_TRY(State(prefix + "unit_bandwidth_gb_per_s",
                       std::min(read, Get(level.name + ".read_one")) / kGiga, "one core reads"));
      GNOMON_TRY(State(prefix + "write_bandwidth_gb_per_s", Get(level.name + ".write_all") / kGiga,
                       "plain stores of all cores"));
      GNOMON_TRY(State(prefix + "random_bandwidth_gb_per_s",
                       Get(level.name + ".random_all") / kGiga,
                       "all cores read independent random lines of 64 bytes"));
      GNOMON_TRY(
          State(prefix + "latency_ns", latency / kNano, "chain of dependent loads, small pages"));
    }
    return Done{};
  }

  Status StateCapacity(const LevelPlan& level) {
    const std::string prefix = "memory." + level.name + ".capacity_";
    if (level.name == "dram") {
      return State(prefix + "gib", level.capacity.value / static_cast<double>(kGib),
                   "memory this process may use");
    }
    if (level.name == "llc") {
      return State(
          prefix + "mib", level.capacity.value / static_cast<double>(kMib),
          fmt::format(
              "largest set still read at 0.8 of the cache's rate; the system reports {:.0f} MiB",
              reported_llc_.value / static_cast<double>(kMib)));
    }
    constexpr double kKib = 1024;
    return State(prefix + "kib", level.capacity.value / kKib, "reported by the system", 6);
  }

  const CalibrateOptions& options_;
  int threads_;
  Device device_;
  std::vector<LevelPlan> levels_;
  std::vector<Probe> probes_;
  Bytes reported_llc_;
};

}  // namespace

Result<Device> CalibrateHost(const CalibrateOptions& options) {
  const int usable = UsableCores();
  GNOMON_CHECK(options.rounds > 0 && options.probe_time.value > 0);
  if (options.threads < 0 || options.threads > usable) {
    return BadInput(fmt::format("{} threads asked for; this process may use 1 to {} cores",
                                options.threads, usable));
  }
  GNOMON_ASSIGN(const std::string base, device_schema::FindDeviceFile("host-x86-64-avx2"));
  GNOMON_ASSIGN(Device device, ReadDevice(base));
  GNOMON_ASSIGN(
      Device measured,
      Calibration(options, options.threads > 0 ? options.threads : usable, std::move(device))
          .Run());
  measured.id = "host";
  measured.name = CpuName();
  measured.calibrated = true;
  return measured;
}

}  // namespace gnomon
