// A part of a device as a device: a budget of units, or a partition made of whole dies.
//
// A budget of units (WithUnits) leaves everything beyond the units where it is. What is shared is
// still there as a whole, but fewer units pull on it: its bandwidth is at most units x what one
// unit pulls alone, and at most what the nearer level passes on.
//
// A partition (Partition) is cut along dies that have a cache of their own. In memory mode NPSn
// with n partitions every partition owns its stacks; in NPS1 the stacks are interleaved, and as all
// partitions work at once each gets the same share. So the share is right for both, on one
// condition: a partition that works alone under NPS1 is predicted too slow. Not modelled: the lower
// latency of a partition's own stacks.
//
// Both keep the facts in step with the members and say in each source that it was scaled.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "gnomon/base/nearest.h"
#include "gnomon/device/device.h"

namespace gnomon {
namespace {

struct Mode {
  std::string_view name;
  int parts;  ///< partitions of the whole device; 0: one a die
};
constexpr std::array<Mode, 5> kModes = {
    {{"spx", 1}, {"dpx", 2}, {"tpx", 3}, {"qpx", 4}, {"cpx", 0}}};

constexpr std::string_view kCapacityKeys[] = {"capacity_kib", "capacity_mib", "capacity_gib",
                                              "capacity_gb"};

void ScaleFact(Device& device, const std::string& path, double by, const std::string& why) {
  const auto fact = device.facts.find(path);
  if (fact == device.facts.end() || by == 1) return;
  fact->second.value *= by;
  fact->second.source += "; " + why;
  if (fact->second.kind == FactKind::kMeasured) fact->second.kind = FactKind::kDerived;
}

void ScaleRates(Device& device, double by, const std::string& why) {
  for (auto [rates, section] :
       {std::pair{&device.matrix, "matrix"}, std::pair{&device.vector, "vector"}}) {
    for (Rate& rate : *rates) {
      rate.peak = rate.peak * by;
      rate.burst = rate.burst * by;
      rate.sustained = rate.sustained * by;
      for (const char* key : {"peak", "burst", "sustained"})
        ScaleFact(device, fmt::format("{}.{}.{}_tflops", section, Name(rate.dtype), key), by, why);
    }
  }
}

// All bandwidths of a level but that of a unit alone.
void ScaleBandwidth(Device& device, MemoryLevel& level, double by, const std::string& why) {
  level.bandwidth = level.bandwidth * by;
  level.write_bandwidth = level.write_bandwidth * by;
  level.random_bandwidth = level.random_bandwidth * by;
  level.peak_bandwidth = level.peak_bandwidth * by;
  for (const char* key : {"", "write_", "random_", "peak_"})
    ScaleFact(device, fmt::format("memory.{}.{}bandwidth_gb_per_s", level.name, key), by, why);
}

// No rate that is reached exceeds `limit`; what the data sheet promises stays.
void LimitBandwidth(Device& device, MemoryLevel& level, double limit, const std::string& why) {
  for (auto [rate, key] :
       {std::pair{&level.bandwidth, ""}, std::pair{&level.write_bandwidth, "write_"},
        std::pair{&level.random_bandwidth, "random_"}}) {
    if (rate->value <= limit) continue;
    ScaleFact(device, fmt::format("memory.{}.{}bandwidth_gb_per_s", level.name, key),
              limit / rate->value, why);
    rate->value = limit;
  }
}

void ScaleCapacity(Device& device, MemoryLevel& level, double by, const std::string& why) {
  level.capacity = level.capacity * by;
  for (const std::string_view key : kCapacityKeys)
    ScaleFact(device, fmt::format("memory.{}.{}", level.name, key), by, why);
}

void ScaleLink(Device& device, Link& link, const std::string& path, double by,
               const std::string& why) {
  link.bandwidth = link.bandwidth * by;
  ScaleFact(device, path, by, why);
}

bool HasOwnDies(const Device& device) {
  return device.dies > 1 && std::ranges::any_of(device.memory, [](const MemoryLevel& level) {
           return level.scope == MemoryLevel::Scope::kDie;
         });
}

int PartsOf(const Device& device, const Mode& mode) {
  return mode.parts == 0 ? device.dies : mode.parts;
}

}  // namespace

Device WithUnits(const Device& device, int units) {
  Device out = device;
  if (units == device.units) return out;
  const double factor = static_cast<double>(units) / device.units;
  const std::string why = fmt::format("scaled from {} to {} units", device.units, units);
  ScaleRates(out, factor, why);
  double nearer = std::numeric_limits<double>::infinity();  // what the level before lets through
  for (MemoryLevel& level : out.memory) {
    if (level.scope == MemoryLevel::Scope::kUnit) {
      ScaleBandwidth(out, level, factor, why);
    } else if (factor < 1) {
      const double pulled = level.unit_bandwidth.value > 0 ? level.unit_bandwidth.value * units
                                                           : level.bandwidth.value;
      LimitBandwidth(out, level, std::min(pulled, nearer), why);
    }
    nearer = level.bandwidth.value;
  }
  ScaleFact(out, "units.count", factor, why);
  out.units = units;
  return out;
}

std::vector<std::string_view> PartitionModes(const Device& device) {
  std::vector<std::string_view> names;
  if (!HasOwnDies(device)) return names;
  for (const Mode& mode : kModes) {
    const int parts = PartsOf(device, mode);
    if (device.dies % parts == 0 && device.units % parts == 0) names.push_back(mode.name);
  }
  return names;
}

Result<Device> Partition(const Device& device, std::string_view mode) {
  const std::vector<std::string_view> names = PartitionModes(device);
  if (names.empty()) {
    return BadInput(
        fmt::format("{} has no partitions: its dies share their caches; units can be given instead",
                    device.id));
  }
  if (std::ranges::find(names, mode) == names.end())
    return BadInput(UnknownName("partition mode of " + device.id, mode, names));
  const int parts = PartsOf(device, *std::ranges::find(kModes, mode, &Mode::name));
  if (parts == 1) return device;

  Device out = device;
  const double share = 1.0 / parts;
  const std::string why = fmt::format("one of {} partitions ({})", parts, mode);
  ScaleRates(out, share, why);
  for (MemoryLevel& level : out.memory) {
    ScaleBandwidth(out, level, share, why);
    if (level.scope == MemoryLevel::Scope::kDevice) ScaleCapacity(out, level, share, why);
  }
  for (Link& link : out.links)
    ScaleLink(out, link, fmt::format("link.{}.bandwidth_gb_per_s", link.name), share, why);
  if (out.host_link) ScaleLink(out, *out.host_link, "host_link.bandwidth_gb_per_s", share, why);
  out.tdp_watts *= share;
  ScaleFact(out, "power.tdp_w", share, why);
  out.units /= parts;
  ScaleFact(out, "units.count", share, why);
  out.dies /= parts;
  ScaleFact(out, "units.dies", share, why);
  out.name += fmt::format(", {}", why);
  return out;
}

}  // namespace gnomon
