// What a reader of a device wants: what it peaks at, how its memory is layered, and for every
// number whether it was measured, read off a datasheet, derived or assumed. Entry points: the
// header's.

#include "gnomon/report/device_report.h"

#include <fmt/format.h>

#include <cmath>

#include "gnomon/base/text_table.h"

namespace gnomon {

std::string JsonText(const Json& json) {
  // nlohmann-json writes null for NaN and infinity by itself.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string_view Name(FactKind kind) {
  switch (kind) {
    case FactKind::kDatasheet:
      return "datasheet";
    case FactKind::kMeasured:
      return "measured";
    case FactKind::kDerived:
      return "derived";
    case FactKind::kAssumed:
      return "assumed";
  }
  return "";
}

namespace {

std::string_view Name(MemoryLevel::Scope scope) {
  switch (scope) {
    case MemoryLevel::Scope::kUnit:
      return "unit";
    case MemoryLevel::Scope::kDie:
      return "die";
    case MemoryLevel::Scope::kDevice:
      return "device";
  }
  return "";
}

std::string ShowOrDash(BytesPerSecond rate) { return rate.value > 0 ? Show(rate) : "-"; }

std::string PeakText(const Device& device, DType dtype) {
  const FlopsPerSecond peak = device.SustainedPeak(dtype);
  return peak.value > 0 ? Show(peak) : "-";
}

// "partitions: dpx 2 × 152 CU, cpx 8 × 38 CU; ...": nothing where there are none.
std::string PartitionsText(const Device& device) {
  std::string text;
  for (const std::string_view mode : PartitionModes(device)) {
    const Result<Device> part = Partition(device, mode);
    if (!part || part->units == device.units) continue;
    text += fmt::format("{} {} {} × {} {}", text.empty() ? "partitions:" : ",", mode,
                        device.units / part->units, part->units, device.unit_kind);
  }
  return text.empty() ? text : text + "; any other number of units is a budget (--units)\n";
}

}  // namespace

std::string DeviceListText(std::span<const Device> devices) {
  TextTable table(
      {"id", "name", "units", "bf16 sustained", "fp32 sustained", "memory", "bandwidth"});
  for (const Device& device : devices) {
    const MemoryLevel& memory = device.MainMemory();
    table.Row({device.id, device.name, fmt::format("{} {}", device.units, device.unit_kind),
               PeakText(device, DType::kBf16), PeakText(device, DType::kFp32),
               Show(memory.capacity), Show(memory.bandwidth)});
  }
  return fmt::format("{} devices\n{}next: gnomon device show ID\n", devices.size(), table.Text());
}

Json DeviceListJson(std::span<const Device> devices) {
  Json list = Json::array();
  for (const Device& device : devices) {
    list.push_back({{"id", device.id},
                    {"name", device.name},
                    {"vendor", device.vendor},
                    {"units", device.units},
                    {"memory_bytes", device.MainMemory().capacity.value},
                    {"memory_bytes_per_s", device.MainMemory().bandwidth.value}});
  }
  return {{"devices", list}};
}

std::string DeviceText(const Device& device) {
  std::string text =
      fmt::format("{}: {}, {} {}, {} at {:.0f} MHz ({:.0f} MHz under matrix load)\n", device.id,
                  device.name, device.units, device.unit_kind, device.arch,
                  device.boost_clock.value / 1e6, device.sustained_clock.value / 1e6);

  if (device.schedulers > 0) {
    text += fmt::format(
        "each {}: {} schedulers, up to {} waves in {} workgroups, {} of registers, {} of shared "
        "memory ({} for one workgroup)\n",
        device.unit_kind, device.schedulers, device.max_waves, device.max_blocks,
        Show(device.register_file), Show(device.shared_memory), Show(device.shared_memory_block));
  }
  text += PartitionsText(device);

  TextTable rates({"rate", "unit", "flop/unit/clock", "peak", "sustained"});
  const auto add_rates = [&](const std::vector<Rate>& list, std::string_view unit) {
    for (const Rate& rate : list) {
      const FlopsPerSecond sustained{rate.flops_per_unit_clock * device.units *
                                     device.sustained_clock.value};
      rates.Row({std::string(Name(rate.dtype)), std::string(unit),
                 Significant(rate.flops_per_unit_clock, 5), Show(rate.peak), Show(sustained)});
    }
  };
  add_rates(device.matrix, "matrix");
  add_rates(device.vector, "vector");
  text += rates.Text();

  TextTable levels({"memory", "shared by", "capacity", "read", "read, one unit", "write",
                    "random lines", "latency"});
  for (const MemoryLevel& level : device.memory) {
    levels.Row({level.name, std::string(Name(level.scope)), Show(level.capacity),
                ShowOrDash(level.bandwidth), ShowOrDash(level.unit_bandwidth),
                ShowOrDash(level.write_bandwidth), ShowOrDash(level.random_bandwidth),
                level.latency.value > 0 ? Show(level.latency) : "-"});
  }
  text += levels.Text();

  TextTable facts({"fact", "value", "kind", "source"});
  for (const auto& [key, fact] : device.facts)
    facts.Row({key, Significant(fact.value, 6), std::string(Name(fact.kind)), fact.source});
  text += facts.Text();
  return text;
}

Json DeviceJson(const Device& device) {
  Json rates = Json::array();
  const auto add_rates = [&](const std::vector<Rate>& list, std::string_view unit) {
    for (const Rate& rate : list) {
      rates.push_back({{"dtype", Name(rate.dtype)},
                       {"unit", unit},
                       {"flops_per_unit_clock", rate.flops_per_unit_clock},
                       {"peak_flops_per_s", rate.peak.value}});
    }
  };
  add_rates(device.matrix, "matrix");
  add_rates(device.vector, "vector");
  Json memory = Json::array();
  for (const MemoryLevel& level : device.memory) {
    memory.push_back({{"name", level.name},
                      {"scope", Name(level.scope)},
                      {"capacity_bytes", level.capacity.value},
                      {"bytes_per_s", level.bandwidth.value},
                      {"latency_us", InMicroseconds(level.latency)}});
  }
  Json facts = Json::object();
  for (const auto& [key, fact] : device.facts) {
    facts[key] = {{"value", fact.value},
                  {"kind", Name(fact.kind)},
                  {"source", fact.source},
                  {"read", fact.read}};
  }
  Json partitions = Json::object();
  for (const std::string_view mode : PartitionModes(device)) {
    if (const Result<Device> part = Partition(device, mode); part.ok())
      partitions[std::string(mode)] = part->units;
  }
  return {{"id", device.id},         {"name", device.name},
          {"vendor", device.vendor}, {"arch", device.arch},
          {"units", device.units},   {"partition_units", partitions},
          {"rates", rates},          {"memory", memory},
          {"facts", facts},          {"calibrated", device.calibrated}};
}

std::string CheckText(const std::string& path, const Device& device,
                      std::span<const DeviceCheck> checks) {
  TextTable table({"relation", "stated", "derived", "holds"});
  size_t broken = 0;
  for (const DeviceCheck& check : checks) {
    broken += !check.holds;
    table.Row({check.what, Significant(check.stated, 5), Significant(check.derived, 5),
               check.holds ? "yes" : "NO"});
  }
  const std::string verdict =
      broken == 0
          ? fmt::format("{}: {} is consistent, {} relations hold", path, device.id, checks.size())
          : fmt::format("{}: {} contradicts itself in {} of {} relations", path, device.id, broken,
                        checks.size());
  return verdict + "\n" + table.Text();
}

Json CheckJson(const std::string& path, const Device& device, std::span<const DeviceCheck> checks) {
  Json list = Json::array();
  bool consistent = true;
  for (const DeviceCheck& check : checks) {
    consistent = consistent && check.holds;
    list.push_back({{"what", check.what},
                    {"stated", check.stated},
                    {"derived", check.derived},
                    {"holds", check.holds}});
  }
  return {{"file", path}, {"device", device.id}, {"consistent", consistent}, {"checks", list}};
}

}  // namespace gnomon
