// What a device file states against itself.
//
// peak = units x flops per unit and clock x boost clock, for every rate;
// sustained clock <= boost clock;
// from one memory to the next one outwards: capacity does not shrink, bandwidth does not grow,
// latency does not fall; a unit alone pulls no more than all together; reached bandwidth <= peak
// bandwidth; where an execution limit is stated: a workgroup's share of shared memory <= the
// unit's; a wave with all its registers on each scheduler fits the register file; a workgroup has a
// wave, so no more workgroups than waves are resident; a dependent bf16 matrix instruction waits at
// least as long as the unit's rate needs for one. An equality holds within 1%, an order may be
// broken by 1%: data sheets round to three digits. Capacities are those of one instance (a 32 KiB
// L1 in each of 304 units is nearer than a 4 MiB L2).

#include "gnomon/device/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gnomon {
namespace {

constexpr double kTolerance = 0.01;
constexpr int kRegisterBytes = 4;  // of one lane
constexpr double kDecimal = 10;    // base of the numbers in a shape

bool About(double a, double b) { return std::abs(a - b) <= kTolerance * std::abs(b); }
bool AtMost(double a, double b) { return a <= b * (1 + kTolerance); }

// The path under which the file stated a capacity: the unit is its choice.
std::string CapacityKey(const Device& device, const MemoryLevel& level) {
  const std::string prefix = fmt::format("memory.{}.capacity", level.name);
  const auto fact = device.facts.lower_bound(prefix);
  return fact != device.facts.end() && fact->first.starts_with(prefix) ? fact->first : prefix;
}

void CheckRates(const Device& device, const std::vector<Rate>& rates, std::string_view unit,
                std::vector<DeviceCheck>& checks) {
  for (const Rate& rate : rates) {
    const double derived = device.units * rate.flops_per_unit_clock * device.boost_clock.value;
    checks.push_back({fmt::format("{} {}: peak = units × rate × clock", unit, Name(rate.dtype)),
                      rate.peak.value, derived, About(rate.peak.value, derived),
                      fmt::format("{}.{}.peak_tflops", unit, Name(rate.dtype))});
  }
}

void CheckLevel(const MemoryLevel& level, std::vector<DeviceCheck>& checks) {
  const auto key = [&](std::string_view name) {
    return fmt::format("memory.{}.{}", level.name, name);
  };
  if (level.unit_bandwidth.value > 0) {
    checks.push_back({level.name + ": one unit pulls no more than all", level.unit_bandwidth.value,
                      level.bandwidth.value,
                      AtMost(level.unit_bandwidth.value, level.bandwidth.value),
                      key("unit_bandwidth_gb_per_s")});
  }
  if (level.peak_bandwidth.value > 0) {
    checks.push_back({level.name + ": reached bandwidth is within its peak", level.bandwidth.value,
                      level.peak_bandwidth.value,
                      AtMost(level.bandwidth.value, level.peak_bandwidth.value),
                      key("bandwidth_gb_per_s")});
  }
}

void CheckOutwards(const Device& device, const MemoryLevel& near, const MemoryLevel& far,
                   std::vector<DeviceCheck>& checks) {
  const std::string pair = fmt::format("{} outside {}: ", far.name, near.name);
  const std::string prefix = "memory." + far.name;
  checks.push_back({pair + "is no smaller", far.capacity.value, near.capacity.value,
                    AtMost(near.capacity.value, far.capacity.value), CapacityKey(device, far)});
  checks.push_back({pair + "is no faster", far.bandwidth.value, near.bandwidth.value,
                    AtMost(far.bandwidth.value, near.bandwidth.value),
                    prefix + ".bandwidth_gb_per_s"});
  checks.push_back({pair + "answers no sooner", far.latency.value, near.latency.value,
                    AtMost(near.latency.value, far.latency.value), prefix + ".latency_ns"});
}

// Multiplications and additions of an instruction "MxNxK".
double ShapeFlops(std::string_view shape) {
  double flops = 2, extent = 0;
  for (const char c : shape) {
    if (c == 'x') {
      flops *= std::exchange(extent, 0);
    } else {
      extent = kDecimal * extent + (c - '0');
    }
  }
  return flops * extent;
}

// Limits that the file may leave out are not checked where it does.
void CheckExecution(const Device& device, std::vector<DeviceCheck>& checks) {
  const auto at_most = [&](std::string what, double less, double more, std::string path) {
    if (less > 0 && more > 0)
      checks.push_back({std::move(what), less, more, AtMost(less, more), std::move(path)});
  };
  at_most("boost clock is within the highest clock", device.boost_clock.value,
          device.max_clock.value, "clock.max_mhz");
  at_most("a workgroup's shared memory is within the unit's", device.shared_memory_block.value,
          device.shared_memory.value, "execution.shared_memory_block_kib");
  at_most("workgroups resident are within waves resident", device.max_blocks, device.max_waves,
          "execution.max_blocks");
  const double wave_registers =
      double{kRegisterBytes} * device.vector_registers * device.wave_width * device.schedulers;
  at_most("a full wave on each scheduler fits the registers", wave_registers,
          device.register_file.value, "execution.register_file_kib");
  const auto bf16 = std::ranges::find(device.matrix, DType::kBf16, &Rate::dtype);
  if (bf16 != device.matrix.end() && !bf16->shape.empty()) {
    at_most("a dependent bf16 instruction waits for the unit's rate",
            ShapeFlops(bf16->shape) / bf16->flops_per_unit_clock, device.matrix_latency_cycles,
            "execution.matrix_latency_cycles");
  }
}

}  // namespace

std::vector<DeviceCheck> CheckDevice(const Device& device) {
  std::vector<DeviceCheck> checks;
  checks.push_back({"sustained clock is within boost clock", device.sustained_clock.value,
                    device.boost_clock.value,
                    AtMost(device.sustained_clock.value, device.boost_clock.value),
                    "clock.sustained_mhz"});
  CheckExecution(device, checks);
  CheckRates(device, device.matrix, "matrix", checks);
  CheckRates(device, device.vector, "vector", checks);
  for (const MemoryLevel& level : device.memory) CheckLevel(level, checks);
  for (size_t i = 1; i < device.memory.size(); ++i) {
    CheckOutwards(device, device.memory[i - 1], device.memory[i], checks);
  }
  return checks;
}

}  // namespace gnomon
