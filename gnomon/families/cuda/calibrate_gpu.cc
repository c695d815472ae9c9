// From the readings of a GPU's instruments to facts of a device file.
//
//   sustained clock = the clock that NVML sees while a large bf16 product has run for over a
//   second, no higher than boost; without NVML, rate / (units × flops a unit and clock × 0.95)
//   highest clock   = what it sees under a load that draws little power, no lower than boost
//   bandwidth, latency, launch = as read, in the order that device files demand: noise must not
//   make a farther memory faster or sooner
//
// Peaks stay: units × rate × boost clock is a definition. Not stated: L1, links, power.
// Entry point: StateReadings.

#include "gnomon/families/cuda/calibrate_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gnomon::cuda {
namespace {

constexpr double kGiga = 1e9, kMega = 1e6, kTera = 1e12;
/// Matrix units busy in the largest products, of the clock's own limit: what the device files'
/// derived sustained clocks take.
constexpr double kBusyMatrixUnits = 0.95;

double Digits(double value, int digits) {
  const std::string text = fmt::format("{:.{}g}", value, digits);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

class Statement {
 public:
  Statement(const Device& base, const GpuReadings& readings, std::string day)
      : device_(base), readings_(readings), day_(std::move(day)) {
    where_ = readings.gpu.name;
    if (!readings.gpu.driver.empty()) where_ += ", driver " + readings.gpu.driver;
  }

  Result<Device> All() {
    if (readings_.gpu.units != device_.units)
      return BadInput(
          fmt::format("this {} has {} {}s, its device file says {}: a part of a GPU is "
                      "not calibrated",
                      readings_.gpu.name, readings_.gpu.units, device_.unit_kind, device_.units));
    GNOMON_TRY(Rates());
    GNOMON_TRY(ClocksUnderLoad());
    GNOMON_TRY(Memories());
    GNOMON_TRY(Put("launch.call_us", InMicroseconds(readings_.stream_launch),
                   "small kernels in a row in a stream, each"));
    GNOMON_TRY(Put("launch.kernel_us", InMicroseconds(readings_.graph_kernel),
                   "small kernels in a row in a CUDA graph, each"));
    device_.calibrated = true;
    return std::move(device_);
  }

 private:
  // Nothing that was not read is stated.
  Status Put(const std::string& path, double value, const std::string& how) {
    constexpr int kDigits = 4;
    if (value <= 0) return Done{};
    return SetFact(device_, path,
                   {Digits(value, kDigits), FactKind::kMeasured,
                    fmt::format("gnomon device calibrate on {}: {}", where_, how), day_});
  }

  Status Rates() {
    for (const ReachedRate& rate : readings_.rates) {
      const auto known = std::ranges::find(device_.matrix, rate.dtype, &Rate::dtype);
      if (known == device_.matrix.end()) continue;
      const std::string prefix = fmt::format("matrix.{}.", Name(rate.dtype));
      const std::string how = fmt::format("8192x8192x8192 nt on random data, {}", rate.config);
      GNOMON_TRY(
          Put(prefix + "burst_tflops", rate.burst.value / kTera, how + ", first milliseconds"));
      const std::string seen =
          rate.clocks.sm_mhz > 0
              ? fmt::format(" (SM clock {:.0f} MHz, memory {:.0f} MHz, {:.0f} W)",
                            rate.clocks.sm_mhz, rate.clocks.memory_mhz, rate.clocks.power_watts)
              : std::string();
      GNOMON_TRY(Put(prefix + "sustained_tflops", rate.sustained.value / kTera,
                     how + ", after a second" + seen));
    }
    return Done{};
  }

  Status ClocksUnderLoad() {
    const double boost = device_.boost_clock.value;
    if (readings_.light_clock.value >= boost)
      GNOMON_TRY(Put("clock.max_mhz", readings_.light_clock.value / kMega,
                     "as NVML sees it under a chain of dependent loads"));
    const auto bf16 = std::ranges::find(readings_.rates, DType::kBf16, &ReachedRate::dtype);
    const auto known = std::ranges::find(device_.matrix, DType::kBf16, &Rate::dtype);
    if (bf16 == readings_.rates.end() || known == device_.matrix.end()) return Done{};
    double clock = bf16->clocks.sm_mhz * kMega;
    std::string how = "as NVML sees it while a large bf16 product runs, after a second";
    if (clock <= 0) {
      clock =
          bf16->sustained.value / (device_.units * known->flops_per_unit_clock * kBusyMatrixUnits);
      how = fmt::format("sustained bf16 rate / (units x flops a unit and clock x {})",
                        kBusyMatrixUnits);
    }
    if (clock > boost) how += fmt::format("; {:.0f} MHz, stated as boost", clock / kMega);
    return Put("clock.sustained_mhz", std::min(clock, boost) / kMega, how);
  }

  // An order of the base that the readings would break holds back the reading.
  Status Memories() {
    const MemoryLevel* l1 = device_.FindMemory("l1");
    const MemoryLevel* l2 = device_.FindMemory("l2");
    const MemoryLevel& far = device_.MainMemory();
    if (l2 == nullptr || l2 == &far) return BadInput(device_.id + " has no l2 to state");
    const auto within = [](double read, double limit) { return std::min(read, limit); };
    const auto after = [](double read, double limit) {
      return read > 0 ? std::max(read, limit) : 0;
    };
    const double l2_read =
        within(readings_.l2_read.value, l1 ? l1->bandwidth.value : readings_.l2_read.value);
    const double l2_wait = after(readings_.l2_latency.value, l1 ? l1->latency.value : 0);
    const double far_read =
        within(readings_.hbm_read.value, l2_read > 0 ? l2_read : l2->bandwidth.value);
    const double far_wait =
        after(readings_.hbm_latency.value, l2_wait > 0 ? l2_wait : l2->latency.value);
    const std::string main = "memory." + far.name + ".";
    const auto rate = [&](const std::string& path, double value, const std::string& how) {
      return Put(path + "_gb_per_s", value / kGiga, how);
    };
    GNOMON_TRY(rate("memory.l2.bandwidth", l2_read, "16 MiB read again and again by every SM"));
    GNOMON_TRY(rate("memory.l2.unit_bandwidth", std::min(readings_.l2_unit.value, l2_read),
                    "the same by one SM"));
    GNOMON_TRY(Latency("memory.l2.latency_ns", l2_wait, "8 MiB"));
    std::string how = "2 GiB read once";
    if (readings_.hbm_copy.value > 0)
      how += fmt::format("; a copy reads and writes {:.0f} GB/s together",
                         readings_.hbm_copy.value / kGiga);
    GNOMON_TRY(rate(main + "bandwidth", far_read, how));
    GNOMON_TRY(rate(main + "write_bandwidth", readings_.hbm_write.value, "2 GiB written once"));
    GNOMON_TRY(rate(main + "random_bandwidth", readings_.hbm_random.value,
                    "rows of 128 bytes anywhere in 2 GiB"));
    GNOMON_TRY(rate(main + "unit_bandwidth", std::min(readings_.hbm_unit.value, far_read),
                    "64 MiB read once, cold, by one SM"));
    return Latency(main + "latency_ns", far_wait, "512 MiB");
  }

  Status Latency(const std::string& path, double seconds, const std::string& over) {
    constexpr double kNano = 1e-9;
    return Put(path, seconds / kNano, "chain of dependent loads in random order over " + over);
  }

  Device device_;
  const GpuReadings& readings_;
  std::string day_, where_;
};

}  // namespace

Result<Device> StateReadings(const Device& base, const GpuReadings& readings,
                             const std::string& day) {
  return Statement(base, readings, day).All();
}

}  // namespace gnomon::cuda
