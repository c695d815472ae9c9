// The schema of device files, as tables, and SetFact, which puts one number where its path says.
//
// A path is SECTION.KEY or SECTION.ENTRY.KEY. A number's unit is the suffix of its key, so SI =
// value x UnitOf(key); the table below is the only place where file units are turned into SI units.
// Capacities may be stated in one of several units; `instead_of` joins those keys into one choice.

#include "gnomon/device/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gnomon/base/nearest.h"

namespace gnomon {
namespace device_schema {
namespace {

using enum Need;

constexpr Key kUnitsKeys[] = {{"count", kAlways, true}, {"dies", kOptional, true}};
constexpr Key kClockKeys[] = {{"boost_mhz", kAlways}, {"max_mhz"}, {"sustained_mhz", kAlways}};
constexpr Key kRateKeys[] = {{"flops_per_unit_clock", kAlways},
                             {"peak_tflops", kAlways},
                             {"burst_tflops"},
                             {"sustained_tflops"}};
constexpr Key kExecutionKeys[] = {
    {"wave_width", kGpu, true},
    {"vector_bits", kAlways, true},
    {"vector_registers", kAlways, true},
    {"fma_latency_cycles", kAlways},
    {"register_file_kib", kGpu},
    {"shared_memory_kib", kGpu},
    {"shared_memory_block_kib"},
    {"shared_bytes_per_clock"},
    {"tensor_memory_kib"},
    {"schedulers", kOptional, true},
    {"max_waves", kOptional, true},
    {"max_blocks", kOptional, true},
    {"matrix_latency_cycles"},
    {"register_granularity", kOptional, true},
};
constexpr Key kMemoryKeys[] = {
    {"capacity_kib", kAlways, false, "capacity"},
    {"capacity_mib", kAlways, false, "capacity"},
    {"capacity_gib", kAlways, false, "capacity"},
    {"capacity_gb", kAlways, false, "capacity"},
    {"bandwidth_gb_per_s", kAlways},
    {"unit_bandwidth_gb_per_s"},
    {"write_bandwidth_gb_per_s"},
    {"random_bandwidth_gb_per_s"},
    {"peak_bandwidth_gb_per_s"},
    {"latency_ns", kAlways},
    {"line_bytes", kOptional, true},
};
constexpr Key kLaunchKeys[] = {{"call_us", kAlways}, {"kernel_us"}, {"fork_join_us", kCpu}};
constexpr Key kLinkKeys[] = {{"count", kAlways, true},
                             {"bandwidth_gb_per_s", kAlways},
                             {"reached_gb_per_s"},
                             {"latency_us", kAlways},
                             {"hop_us"},
                             {"bulk_us"}};
constexpr Key kHostLinkKeys[] = {
    {"count", kOptional, true}, {"bandwidth_gb_per_s", kAlways}, {"latency_us", kAlways}};
constexpr Key kPowerKeys[] = {{"tdp_w", kAlways}};
constexpr Key kFrameworkKeys[] = {
    {"op_us"},
    {"backward_op_us"},
    {"gemm_efficiency_fp64"},
    {"gemm_efficiency_fp32"},
    {"gemm_efficiency_tf32"},
    {"gemm_efficiency_fp16"},
    {"gemm_efficiency_bf16"},
    {"gemm_efficiency_fp8_e4m3"},
    {"gemm_efficiency_fp8_e5m2"},
    {"gemm_efficiency_fp8_e4m3fnuz"},
    {"gemm_efficiency_fp8_e5m2fnuz"},
    {"gemm_efficiency_mxfp8"},
    {"gemm_efficiency_mxfp6"},
    {"gemm_efficiency_mxfp4"},
    {"gemm_efficiency_int8"},
    // Per item of stock operators: gnomon/cost/primitives.h says what each item is.
    {"embedding_row_ns"},
    {"lookup_grad_row_ns"},
    {"coalesce_key_level_ns"},
    {"update_row_ns"},
    {"bmm_item_fp32_ns"},
    {"bmm_item_half_ns"},
    {"index_element_ns"},
    {"index_put_near_ns"},
    {"index_put_far_ns"},
    {"fused_lookup_row_ns"},
    {"fused_update_key_ns"},
    {"fused_update_row_ns"},
    {"fused_act_backward_ns"},
    {"cold_start_ns"},
};
constexpr std::string_view kMatrixText[] = {"shape"};
constexpr std::string_view kMemoryText[] = {"scope"};
constexpr std::string_view kHostLinkText[] = {"name"};

constexpr Section kSections[] = {
    {"units", Shape::kTable, kAlways, {}, {}, kUnitsKeys},
    {"clock", Shape::kTable, kAlways, {}, {}, kClockKeys},
    {"matrix", Shape::kArray, kGpu, "dtype", kMatrixText, kRateKeys},
    {"vector", Shape::kArray, kAlways, "dtype", {}, kRateKeys},
    {"execution", Shape::kTable, kAlways, {}, {}, kExecutionKeys},
    {"memory", Shape::kArray, kAlways, "name", kMemoryText, kMemoryKeys},
    {"launch", Shape::kTable, kAlways, {}, {}, kLaunchKeys},
    {"link", Shape::kArray, kOptional, "name", {}, kLinkKeys},
    {"host_link", Shape::kTable, kGpu, {}, kHostLinkText, kHostLinkKeys},
    {"power", Shape::kTable, kGpu, {}, {}, kPowerKeys},
    {"framework", Shape::kTable, kOptional, {}, {}, kFrameworkKeys},
};

struct Suffix {
  std::string_view text;
  double si;
};
// "_gb_per_s" before "_gb" is not needed: a suffix must end the key.
constexpr Suffix kSuffixes[] = {
    {"_mhz", 1e6},
    {"_tflops", 1e12},
    {"_kib", 1024.0},
    {"_mib", 1024.0 * 1024},
    {"_gb", 1e9},
    {"_gb_per_s", 1e9},
    {"_gib", 1024.0 * 1024 * 1024},
    {"_ns", 1e-9},
    {"_us", 1e-6},
};

}  // namespace

std::span<const Section> Sections() { return kSections; }

const Section* FindSection(std::string_view name) {
  const auto* found = std::ranges::find(kSections, name, &Section::name);
  return found == std::end(kSections) ? nullptr : found;
}

const Key* FindKey(const Section& section, std::string_view name) {
  const auto found = std::ranges::find(section.keys, name, &Key::name);
  return found == section.keys.end() ? nullptr : &*found;
}

double UnitOf(std::string_view key) {
  for (const Suffix& suffix : kSuffixes) {
    if (key.ends_with(suffix.text)) return suffix.si;
  }
  return 1;
}

std::optional<Path> ParsePath(std::string_view path) {
  const size_t first = path.find('.'), last = path.rfind('.');
  if (first == std::string_view::npos) return std::nullopt;
  Path parsed;
  parsed.section = FindSection(path.substr(0, first));
  if (parsed.section == nullptr) return std::nullopt;
  if ((first == last) != (parsed.section->shape == Shape::kTable)) return std::nullopt;
  if (first != last) parsed.entry = path.substr(first + 1, last - first - 1);
  parsed.key = FindKey(*parsed.section, path.substr(last + 1));
  if (parsed.key == nullptr) return std::nullopt;
  return parsed;
}

std::string JoinPath(const Section& section, std::string_view entry, std::string_view key) {
  return section.shape == Shape::kTable ? fmt::format("{}.{}", section.name, key)
                                        : fmt::format("{}.{}.{}", section.name, entry, key);
}

std::optional<FactKind> ParseFactKind(std::string_view text) {
  for (size_t i = 0; i < std::size(kFactKindNames); ++i) {
    if (kFactKindNames[i] == text) return static_cast<FactKind>(i);
  }
  return std::nullopt;
}

std::optional<MemoryLevel::Scope> ParseScope(std::string_view text) {
  for (size_t i = 0; i < std::size(kScopeNames); ++i) {
    if (kScopeNames[i] == text) return static_cast<MemoryLevel::Scope>(i);
  }
  return std::nullopt;
}

namespace {

Status SetRate(std::vector<Rate>& rates, const Path& path, double si) {
  GNOMON_ASSIGN(const DType dtype, ParseDType(path.entry));
  auto rate = std::ranges::find(rates, dtype, &Rate::dtype);
  if (rate == rates.end()) {
    rates.push_back({.dtype = dtype, .flops_per_unit_clock = 0, .peak = {}, .shape = {}});
    rate = std::prev(rates.end());
  }
  if (path.key->name == "peak_tflops") {
    rate->peak.value = si;
  } else if (path.key->name == "burst_tflops") {
    rate->burst.value = si;
  } else if (path.key->name == "sustained_tflops") {
    rate->sustained.value = si;
  } else {
    rate->flops_per_unit_clock = si;
  }
  return Done{};
}

Status SetMemory(MemoryLevel& level, std::string_view key, double si) {
  if (key.starts_with("capacity"))
    level.capacity.value = si;
  else if (key == "bandwidth_gb_per_s")
    level.bandwidth.value = si;
  else if (key == "unit_bandwidth_gb_per_s")
    level.unit_bandwidth.value = si;
  else if (key == "write_bandwidth_gb_per_s")
    level.write_bandwidth.value = si;
  else if (key == "random_bandwidth_gb_per_s")
    level.random_bandwidth.value = si;
  else if (key == "peak_bandwidth_gb_per_s")
    level.peak_bandwidth.value = si;
  else if (key == "latency_ns")
    level.latency.value = si;
  else
    level.line_bytes = static_cast<int>(si);
  return Done{};
}

Status SetLink(Link& link, std::string_view key, double si) {
  if (key == "count")
    link.count = static_cast<int>(si);
  else if (key == "bandwidth_gb_per_s")
    link.bandwidth.value = si;
  else if (key == "reached_gb_per_s")
    link.reached.value = si;
  else if (key == "hop_us")
    link.hop.value = si;
  else if (key == "bulk_us")
    link.bulk.value = si;
  else
    link.latency.value = si;
  return Done{};
}

Status SetFramework(Device::Framework& framework, std::string_view key, double si) {
  constexpr std::string_view kEfficiency = "gemm_efficiency_";
  if (key == "op_us")
    framework.op.value = si;
  else if (key == "backward_op_us")
    framework.backward_op.value = si;
  else if (constexpr std::string_view kItem = "_ns"; key.ends_with(kItem))
    framework.primitives[std::string(key.substr(0, key.size() - kItem.size()))].value = si;
  else {
    if (si > 1) return BadInput(fmt::format("'{}' is a share of the peak, at most 1", key));
    GNOMON_ASSIGN(const DType dtype, ParseDType(key.substr(kEfficiency.size())));
    framework.gemm_efficiency[dtype] = si;
  }
  return Done{};
}

// Tables whose keys are members of Device itself.
struct Count {
  std::string_view key;
  int Device::*member;
};
constexpr Count kCounts[] = {
    {"count", &Device::units},
    {"dies", &Device::dies},
    {"wave_width", &Device::wave_width},
    {"vector_bits", &Device::vector_bits},
    {"vector_registers", &Device::vector_registers},
    {"register_granularity", &Device::register_granularity},
    {"schedulers", &Device::schedulers},
    {"max_waves", &Device::max_waves},
    {"max_blocks", &Device::max_blocks},
};

double& ScalarMember(Device& device, std::string_view key) {
  if (key == "boost_mhz") return device.boost_clock.value;
  if (key == "max_mhz") return device.max_clock.value;
  if (key == "sustained_mhz") return device.sustained_clock.value;
  if (key == "fma_latency_cycles") return device.fma_latency_cycles;
  if (key == "matrix_latency_cycles") return device.matrix_latency_cycles;
  if (key == "register_file_kib") return device.register_file.value;
  if (key == "shared_memory_kib") return device.shared_memory.value;
  if (key == "shared_memory_block_kib") return device.shared_memory_block.value;
  if (key == "shared_bytes_per_clock") return device.shared_bytes_per_clock;
  if (key == "tensor_memory_kib") return device.tensor_memory.value;
  if (key == "call_us") return device.launch.value;
  if (key == "kernel_us") return device.kernel.value;
  if (key == "fork_join_us") return device.fork_join.value;
  return device.tdp_watts;
}

Status SetScalar(Device& device, std::string_view key, double si) {
  const auto* count = std::ranges::find(kCounts, key, &Count::key);
  if (count != std::end(kCounts))
    device.*(count->member) = static_cast<int>(si);
  else
    ScalarMember(device, key) = si;
  return Done{};
}

Status SetMember(Device& device, const Path& path, double si) {
  const std::string_view section = path.section->name, key = path.key->name;
  if (section == "matrix") return SetRate(device.matrix, path, si);
  if (section == "vector") return SetRate(device.vector, path, si);
  if (section == "framework") return SetFramework(device.framework, key, si);
  if (section == "host_link") {
    if (!device.host_link) device.host_link.emplace();
    return SetLink(*device.host_link, key, si);
  }
  if (section == "memory") {
    const auto level = std::ranges::find(device.memory, path.entry, &MemoryLevel::name);
    if (level != device.memory.end()) return SetMemory(*level, key, si);
    std::vector<std::string_view> names;
    for (const MemoryLevel& known : device.memory) names.push_back(known.name);
    return BadInput(UnknownName("memory", path.entry, names));
  }
  if (section == "link") {
    const auto link = std::ranges::find(device.links, path.entry, &Link::name);
    if (link == device.links.end()) return BadInput(fmt::format("no link '{}'", path.entry));
    return SetLink(*link, key, si);
  }
  return SetScalar(device, key, si);
}

}  // namespace
}  // namespace device_schema

Status SetFact(Device& device, const std::string& path, const Fact& fact) {
  namespace schema = device_schema;
  const auto parsed = schema::ParsePath(path);
  if (!parsed) return BadInput(fmt::format("'{}' names no key of a device file", path));
  const std::string_view key = parsed->key->name;
  if (!std::isfinite(fact.value) || fact.value <= 0) {
    return BadInput(
        fmt::format("'{}' is {}; it must be a positive finite number", key, fact.value));
  }
  if (parsed->key->whole &&
      (fact.value != std::floor(fact.value) || fact.value > std::numeric_limits<int>::max())) {
    return BadInput(fmt::format("'{}' is {}; it must be a whole number", key, fact.value));
  }
  GNOMON_TRY(schema::SetMember(device, *parsed, fact.value * schema::UnitOf(key)));
  // One of several units may stand for the same number: the new fact takes the old one's place.
  for (const schema::Key& other : parsed->section->keys) {
    if (!parsed->key->instead_of.empty() && other.instead_of == parsed->key->instead_of) {
      device.facts.erase(schema::JoinPath(*parsed->section, parsed->entry, other.name));
    }
  }
  device.facts[path] = fact;
  return Done{};
}

}  // namespace gnomon
