// Tests of reading and checking: a small device with every section, and one change a case.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gnomon/base/files.h"
#include "gnomon/device/check.h"
#include "gnomon/device/device.h"

namespace gnomon {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::string_view kDevice = R"(id = "toy"
name = "Toy GPU"
vendor = "Nobody"
arch = "toy1"
unit_kind = "CU"
kind = "gpu"
[units]
count = { value = 10, kind = "datasheet", source = "s", read = 2026-12-01 }
[clock]
boost_mhz = { value = 2000, kind = "datasheet", source = "s", read = 2026-12-01 }
sustained_mhz = { value = 1500, kind = "measured", source = "s", read = "2026-12-01" }
[[matrix]]
dtype = "bf16"
shape = "16x16x16"
flops_per_unit_clock = { value = 1000, kind = "derived", source = "s", read = 2026-12-01 }
peak_tflops = { value = 20, kind = "datasheet", source = "s", read = 2026-12-01 }
[[vector]]
dtype = "fp32"
flops_per_unit_clock = { value = 100, kind = "derived", source = "s", read = 2026-12-01 }
peak_tflops = { value = 2.01, kind = "datasheet", source = "s", read = 2026-12-01 }
[execution]
wave_width = { value = 64, kind = "datasheet", source = "s", read = 2026-12-01 }
vector_bits = { value = 2048, kind = "datasheet", source = "s", read = 2026-12-01 }
vector_registers = { value = 512, kind = "datasheet", source = "s", read = 2026-12-01 }
fma_latency_cycles = { value = 4.5, kind = "assumed", source = "s", read = 2026-12-01 }
register_file_kib = { value = 512, kind = "datasheet", source = "s", read = 2026-12-01 }
shared_memory_kib = { value = 64, kind = "datasheet", source = "s", read = 2026-12-01 }
[[memory]]
name = "l2"
scope = "die"
capacity_mib = { value = 4, kind = "datasheet", source = "s", read = 2026-12-01 }
bandwidth_gb_per_s = { value = 5000, kind = "assumed", source = "s", read = 2026-12-01 }
unit_bandwidth_gb_per_s = { value = 100, kind = "assumed", source = "s", read = 2026-12-01 }
latency_ns = { value = 100, kind = "assumed", source = "s", read = 2026-12-01 }
[[memory]]
name = "hbm"
scope = "device"
capacity_gb = { value = 80, kind = "datasheet", source = "s", read = 2026-12-01 }
bandwidth_gb_per_s = { value = 3000, kind = "measured", source = "s", read = 2026-12-01 }
peak_bandwidth_gb_per_s = { value = 3350, kind = "datasheet", source = "s", read = 2026-12-01 }
latency_ns = { value = 500, kind = "assumed", source = "s", read = 2026-12-01 }
line_bytes = { value = 128, kind = "assumed", source = "s", read = 2026-12-01 }
[launch]
call_us = { value = 4, kind = "assumed", source = "s", read = 2026-12-01 }
[[link]]
name = "ring"
count = { value = 7, kind = "datasheet", source = "s", read = 2026-12-01 }
bandwidth_gb_per_s = { value = 400, kind = "datasheet", source = "s", read = 2026-12-01 }
latency_us = { value = 5, kind = "assumed", source = "s", read = 2026-12-01 }
[host_link]
name = "pcie"
bandwidth_gb_per_s = { value = 50, kind = "assumed", source = "s", read = 2026-12-01 }
latency_us = { value = 1, kind = "assumed", source = "s", read = 2026-12-01 }
[power]
tdp_w = { value = 700, kind = "datasheet", source = "s", read = 2026-12-01 }
[framework]
op_us = { value = 8, kind = "assumed", source = "s", read = 2026-12-01 }
gemm_efficiency_bf16 = { value = 0.9, kind = "assumed", source = "s", read = 2026-12-01 }
)";

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  GNOMON_CHECK(at != std::string::npos, "the device has no '{}'", from);
  return text.replace(at, from.size(), to);
}

class ReadDeviceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gnomon_device_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = (folder_ / "toy.toml").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<Device> Read(std::string_view text) const {
    GNOMON_CHECK(WriteFile(path_, text).ok());
    return ReadDevice(path_);
  }
  Result<Device> ReadWith(std::string_view overlay) const {
    const std::string overlay_path = (folder_ / "overlay.toml").string();
    GNOMON_CHECK(WriteFile(path_, kDevice).ok() && WriteFile(overlay_path, overlay).ok());
    return ReadDevice(path_, overlay_path);
  }
  // The error without the folder.
  std::string ErrorText(const Result<Device>& device) const {
    if (device.ok()) return "no error";
    EXPECT_EQ(device.error().code, Error::Code::kBadInput);
    std::string text = device.error().Text();
    const std::string prefix = folder_.string() + "/";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(ReadDeviceFile, TurnsEveryUnitIntoSi) {
  const auto device = Read(kDevice);
  ASSERT_TRUE(device.ok()) << device.error().Text();
  EXPECT_EQ(device->id, "toy");
  EXPECT_EQ(device->kind, Device::Kind::kGpu);
  EXPECT_EQ(device->units, 10);
  EXPECT_DOUBLE_EQ(device->boost_clock.value, 2e9);
  EXPECT_DOUBLE_EQ(device->sustained_clock.value, 1.5e9);
  EXPECT_EQ(device->matrix.at(0).dtype, DType::kBf16);
  EXPECT_EQ(device->matrix.at(0).shape, "16x16x16");
  EXPECT_DOUBLE_EQ(device->matrix.at(0).peak.value, 20e12);
  EXPECT_DOUBLE_EQ(device->fma_latency_cycles, 4.5);
  EXPECT_DOUBLE_EQ(device->register_file.value, 512 * 1024);
  EXPECT_DOUBLE_EQ(device->memory.at(0).capacity.value, 4 << 20);
  EXPECT_EQ(device->memory.at(0).scope, MemoryLevel::Scope::kDie);
  EXPECT_EQ(device->memory.at(0).line_bytes, 64);
  EXPECT_DOUBLE_EQ(device->MainMemory().capacity.value, 80e9);
  EXPECT_DOUBLE_EQ(device->MainMemory().peak_bandwidth.value, 3350e9);
  EXPECT_DOUBLE_EQ(device->MainMemory().latency.value, 500e-9);
  EXPECT_EQ(device->MainMemory().line_bytes, 128);
  EXPECT_DOUBLE_EQ(device->launch.value, 4e-6);
  EXPECT_EQ(device->links.at(0).count, 7);
  EXPECT_DOUBLE_EQ(device->links.at(0).latency.value, 5e-6);
  EXPECT_EQ(device->host_link->name, "pcie");
  EXPECT_DOUBLE_EQ(device->tdp_watts, 700);
  EXPECT_DOUBLE_EQ(device->framework.op.value, 8e-6);
  EXPECT_DOUBLE_EQ(device->framework.gemm_efficiency.at(DType::kBf16), 0.9);
  EXPECT_FALSE(device->calibrated);
}

TEST_F(ReadDeviceFile, KeepsEveryFactWithItsSourceAndDate) {
  const auto device = Read(kDevice);
  ASSERT_TRUE(device.ok());
  const Fact& clock = device->facts.at("clock.sustained_mhz");
  EXPECT_DOUBLE_EQ(clock.value, 1500);
  EXPECT_EQ(clock.kind, FactKind::kMeasured);
  EXPECT_EQ(clock.read, "2026-12-01");
  EXPECT_EQ(device->facts.at("memory.hbm.bandwidth_gb_per_s").source, "s");
}

TEST_F(ReadDeviceFile, SustainedPeakIsUnitsTimesRateTimesSustainedClock) {
  const auto device = Read(kDevice);
  ASSERT_TRUE(device.ok());
  EXPECT_DOUBLE_EQ(device->SustainedPeak(DType::kBf16).value, 10 * 1000 * 1.5e9);
  EXPECT_DOUBLE_EQ(device->SustainedPeak(DType::kFp32).value, 10 * 100 * 1.5e9);
  EXPECT_DOUBLE_EQ(device->SustainedPeak(DType::kFp64).value, 0);
  EXPECT_EQ(device->FindRate(DType::kInt8), nullptr);
  EXPECT_EQ(device->FindMemory("l2"), &device->memory[0]);
  EXPECT_EQ(device->FindMemory("l9"), nullptr);
}

// What a GPU family needs to know of a unit: all optional in a file.
constexpr std::string_view kLimits = R"(
schedulers = { value = 4, kind = "datasheet", source = "s", read = 2026-12-01 }
max_waves = { value = 64, kind = "datasheet", source = "s", read = 2026-12-01 }
max_blocks = { value = 32, kind = "datasheet", source = "s", read = 2026-12-01 }
register_granularity = { value = 8, kind = "datasheet", source = "s", read = 2026-12-01 }
shared_memory_block_kib = { value = 63, kind = "datasheet", source = "s", read = 2026-12-01 }
shared_bytes_per_clock = { value = 128, kind = "derived", source = "s", read = 2026-12-01 }
tensor_memory_kib = { value = 256, kind = "datasheet", source = "s", read = 2026-12-01 }
matrix_latency_cycles = { value = 8.5, kind = "measured", source = "s", read = 2026-12-01 }
[clock]
max_mhz = { value = 2200, kind = "datasheet", source = "s", read = 2026-12-01 }
[launch]
kernel_us = { value = 2.5, kind = "measured", source = "s", read = 2026-12-01 }
)";

// The toy device with `limits` put where their tables are.
std::string WithLimits(std::string_view limits) {
  std::string text(kDevice);
  std::string table = "[execution]";
  for (size_t at = 0; at < limits.size();) {
    const size_t end = limits.find('\n', at);
    const std::string line(limits.substr(at, end - at));
    at = end + 1;
    if (line.starts_with('['))
      table = line;
    else if (!line.empty())
      text = Replaced(text, table, table + "\n" + line);
  }
  return text;
}

TEST_F(ReadDeviceFile, ReadsTheLimitsOfAUnitInSiAndLeavesThemZeroWhereAbsent) {
  const auto device = Read(WithLimits(kLimits));
  ASSERT_TRUE(device.ok()) << device.error().Text();
  EXPECT_EQ(device->schedulers, 4);
  EXPECT_EQ(device->max_waves, 64);
  EXPECT_EQ(device->max_blocks, 32);
  EXPECT_EQ(device->register_granularity, 8);
  EXPECT_DOUBLE_EQ(device->shared_memory_block.value, 63 * 1024);
  EXPECT_DOUBLE_EQ(device->shared_bytes_per_clock, 128);
  EXPECT_DOUBLE_EQ(device->tensor_memory.value, 256 * 1024);
  EXPECT_DOUBLE_EQ(device->matrix_latency_cycles, 8.5);
  EXPECT_DOUBLE_EQ(device->max_clock.value, 2.2e9);
  EXPECT_DOUBLE_EQ(device->kernel.value, 2.5e-6);
  const std::vector<DeviceCheck> checks = CheckDevice(*device);
  EXPECT_EQ(checks.size(), 13u);
  for (const DeviceCheck& check : checks)
    EXPECT_TRUE(device->facts.contains(check.key)) << check.key;

  const auto bare = Read(kDevice);
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare->schedulers + bare->max_waves + bare->max_blocks + bare->register_granularity, 0);
  EXPECT_EQ(bare->shared_memory_block.value + bare->shared_bytes_per_clock, 0);
  EXPECT_EQ(bare->tensor_memory.value + bare->matrix_latency_cycles, 0);
  EXPECT_EQ(bare->max_clock.value + bare->kernel.value, 0);
}

struct BadChange {
  std::string_view from, to, error;
};

TEST_F(ReadDeviceFile, RefusesBadLimitsOfAUnitWhereTheyStand) {
  const BadChange cases[] = {
      {"max_waves", "max_wave", "toy.toml:29:1: unknown key 'max_wave'; nearest is 'max_waves'"},
      {"shared_bytes_per_clock", "shared_bytes_a_clock",
       "unknown key 'shared_bytes_a_clock'; nearest is 'shared_bytes_per_clock'"},
      {"tensor_memory_kib", "tensor_memory",
       "'tensor_memory' lacks its unit; write 'tensor_memory_kib'"},
      {"max_mhz", "maximum_mhz", "unknown key 'maximum_mhz'; nearest is"},
      {"kernel_us", "kernel", "'kernel' lacks its unit; write 'kernel_us'"},
      {"value = 4,", "value = 4.5,", "'schedulers' is 4.5; it must be a whole number"},
      {"value = 63", "value = 80", "a workgroup's shared memory is within the unit's"},
      {"value = 32,", "value = 80,", "workgroups resident are within waves resident"},
      {"value = 2200", "value = 1900", "boost clock is within the highest clock"},
      // A 16x16x16 instruction does 8192 operations, at 1000 a clock at least 8.19 clocks.
      {"value = 8.5", "value = 8", "a dependent bf16 instruction waits for the unit's rate"},
      {"value = 4,", "value = 5,", "a full wave on each scheduler fits the registers"},
  };
  for (const BadChange& bad : cases) {
    EXPECT_THAT(ErrorText(Read(WithLimits(Replaced(std::string(kLimits), bad.from, bad.to)))),
                HasSubstr(std::string(bad.error)))
        << bad.from << " -> " << bad.to;
  }
}

TEST_F(ReadDeviceFile, NamesFileLineColumnKeyAndNearest) {
  const BadChange cases[] = {
      {"bandwidth_gb_per_s = { value = 5000", "bandwith_gb_per_s = { value = 5000",
       "toy.toml:32:1: unknown key 'bandwith_gb_per_s'; nearest is 'bandwidth_gb_per_s'"},
      {"bandwidth_gb_per_s = { value = 5000", "bandwidth = { value = 5000",
       "toy.toml:32:1: 'bandwidth' lacks its unit; write 'bandwidth_gb_per_s'"},
      {"[launch]", "[lunch]", "toy.toml:43:2: unknown key 'lunch'; nearest is 'launch'"},
      {"vendor = ", "vender = ", "toy.toml:3:1: unknown key 'vender'; nearest is 'vendor'"},
      {"kind = \"gpu\"", "kind = \"tpu\"",
       "toy.toml:6:8: unknown kind of device 'tpu'; nearest is 'gpu' (valid: gpu, cpu)"},
      {"kind = \"gpu\"", "kind = 3", "toy.toml:6:8: 'kind' must be a text in quotes"},
      {"arch = \"toy1\"", "arch = \"\"", "toy.toml:4:8: 'arch' is empty"},
      {"kind = \"datasheet\"", "kind = \"datashet\"",
       "toy.toml:8:30: unknown kind 'datashet'; nearest is 'datasheet'"},
      {", source = \"s\"", "", "toy.toml:8:9: 'count' lacks 'source'"},
      {"source = \"s\"", "source = \"\"", "toy.toml:8:52: 'source' is empty"},
      {"source = \"s\"", "sauce = \"s\"",
       "toy.toml:8:43: unknown key 'sauce'; nearest is 'source'"},
      {"read = 2026-12-01", "read = \"last week\"",
       "toy.toml:8:64: 'read' must be a date YYYY-MM-DD"},
      {"{ value = 2000, kind = \"datasheet\", source = \"s\", read = 2026-12-01 }", "2000",
       "toy.toml:10:13: 'boost_mhz' must be { value, kind, source, read }: a number needs its "
       "source"},
      {"value = 2000", "value = \"2 GHz\"",
       "toy.toml:10:23: the value of 'boost_mhz' must be a number"},
      {"value = 2000", "value = -2000",
       "toy.toml:10:23: 'boost_mhz' is -2000; it must be a positive finite number"},
      {"value = 2000", "value = 0", "toy.toml:10:23: 'boost_mhz' is 0; it must be"},
      {"value = 2000", "value = nan", "toy.toml:10:23: 'boost_mhz' is nan; it must be"},
      {"value = 2000", "value = inf", "toy.toml:10:23: 'boost_mhz' is inf; it must be"},
      {"value = 10,", "value = 10.5,", "toy.toml:8:19: 'count' is 10.5; it must be a whole number"},
      {"value = 10,", "value = 1e300,",
       "toy.toml:8:19: 'count' is 1e+300; it must be a whole number"},
      {"gemm_efficiency_bf16 = { value = 0.9", "gemm_efficiency_bf16 = { value = 1.2",
       "toy.toml:58:34: 'gemm_efficiency_bf16' is a share of the peak, at most 1"},
      {"dtype = \"bf16\"", "dtype = \"bf17\"",
       "toy.toml:13:9: unknown dtype 'bf17'; nearest is 'bf16'"},
      {"shape = \"16x16x16\"", "shape = \"16x16\"", "toy.toml:14:9: shape '16x16' must be MxNxK"},
      {"shape = \"16x16x16\"\n", "", "missing key 'shape'"},
      {"scope = \"die\"", "scope = \"dye\"",
       "toy.toml:30:9: unknown scope 'dye'; nearest is 'die'"},
      {"name = \"hbm\"", "name = \"l2\"", "toy.toml:36:8: memory 'l2' stands twice"},
      {"boost_mhz = { value = 2000, kind = \"datasheet\", source = \"s\", read = 2026-12-01 }\n",
       "", "toy.toml:9:1: missing key 'boost_mhz'"},
      {"[power]\ntdp_w = { value = 700, kind = \"datasheet\", source = \"s\", read = 2026-12-01 "
       "}\n",
       "", "toy.toml:1:1: missing table [power]"},
      {"[units]", "[units", "toy.toml:7:7:"},
  };
  for (const BadChange& bad : cases) {
    EXPECT_THAT(ErrorText(Read(Replaced(std::string(kDevice), bad.from, bad.to))),
                HasSubstr(std::string(bad.error)))
        << bad.from << " -> " << bad.to;
  }
}

TEST_F(ReadDeviceFile, RefusesValuesThatContradictEachOtherWhereTheyStand) {
  const BadChange cases[] = {
      {"value = 20,", "value = 20.5,",
       "toy.toml:16:25: matrix bf16: peak = units × rate × clock: stated 2.05e+13, against 2e+13"},
      {"value = 1500", "value = 2100", "toy.toml:11:27: sustained clock is within boost clock"},
      {"capacity_gb = { value = 80", "capacity_gb = { value = 0.001",
       "toy.toml:38:25: hbm outside l2: is no smaller"},
      {"bandwidth_gb_per_s = { value = 5000", "bandwidth_gb_per_s = { value = 2000",
       "toy.toml:39:32: hbm outside l2: is no faster"},
      {"latency_ns = { value = 500", "latency_ns = { value = 50",
       "toy.toml:41:24: hbm outside l2: answers no sooner"},
      {"value = 3350", "value = 2500", "toy.toml:39:32: hbm: reached bandwidth is within its peak"},
      {"unit_bandwidth_gb_per_s = { value = 100", "unit_bandwidth_gb_per_s = { value = 6000",
       "l2: one unit pulls no more than all"},
  };
  for (const BadChange& bad : cases) {
    EXPECT_THAT(ErrorText(Read(Replaced(std::string(kDevice), bad.from, bad.to))),
                HasSubstr(std::string(bad.error)))
        << bad.from << " -> " << bad.to;
  }
}

TEST_F(ReadDeviceFile, EmptyMissingAndDoublyStatedAreRefused) {
  EXPECT_EQ(ErrorText(Read("")), "toy.toml:1:1: the file is empty");
  EXPECT_THAT(ErrorText(ReadDevice((folder_ / "none.toml").string())),
              HasSubstr("none.toml: cannot read: No such file"));
  const std::string twice =
      Replaced(std::string(kDevice), "scope = \"die\"",
               "scope = \"die\"\ncapacity_kib = { value = 4096, kind = \"assumed\", "
               "source = \"s\", read = 2026-12-01 }");
  EXPECT_THAT(ErrorText(Read(twice)), HasSubstr("'capacity' is stated in two units"));
}

TEST_F(ReadDeviceFile, ChecksOfAGoodFileAllHoldAndNameTheirKeys) {
  const auto device = Read(kDevice);
  ASSERT_TRUE(device.ok());
  const std::vector<DeviceCheck> checks = CheckDevice(*device);
  EXPECT_EQ(checks.size(), 8u);
  for (const DeviceCheck& check : checks) {
    EXPECT_TRUE(check.holds) << check.what;
    EXPECT_TRUE(device->facts.contains(check.key)) << check.key;
  }
}

TEST_F(ReadDeviceFile, OverlayReplacesSingleValuesAndAddsRates) {
  const auto device = ReadWith(R"(overlay_of = "toy"
cpu = "this one"
[clock]
sustained_mhz = { value = 1900, kind = "measured", source = "run", read = 2026-12-02 }
[[memory]]
name = "l2"
capacity_kib = { value = 2048, kind = "measured", source = "run", read = 2026-12-02 }
[[vector]]
dtype = "fp64"
flops_per_unit_clock = { value = 50, kind = "measured", source = "run", read = 2026-12-02 }
peak_tflops = { value = 1, kind = "measured", source = "run", read = 2026-12-02 }
)");
  ASSERT_TRUE(device.ok()) << device.error().Text();
  EXPECT_DOUBLE_EQ(device->sustained_clock.value, 1.9e9);
  EXPECT_DOUBLE_EQ(device->boost_clock.value, 2e9);
  EXPECT_DOUBLE_EQ(device->memory[0].capacity.value, 2 << 20);
  EXPECT_FALSE(device->facts.contains("memory.l2.capacity_mib"));
  EXPECT_EQ(device->facts.at("memory.l2.capacity_kib").source, "run");
  EXPECT_DOUBLE_EQ(device->SustainedPeak(DType::kFp64).value, 10 * 50 * 1.9e9);
}

TEST_F(ReadDeviceFile, OverlayErrorsNameTheOverlay) {
  const BadChange cases[] = {
      {"", "overlay_of = \"tay\"\n", "overlay.toml:1:14: this overlay is for 'tay', not for 'toy'"},
      {"", "cpu = \"x\"\n", "overlay.toml:1:1: missing key 'overlay_of'"},
      {"", "overlay_of = \"toy\"\n[[memory]]\nname = \"l7\"\n",
       "overlay.toml:3:8: unknown memory 'l7'; nearest is 'l2'"},
      {"",
       "overlay_of = \"toy\"\n[clock]\nboost_mhz = { value = 2000, kind = \"assumed\", source = "
       "\"s\", read = 2026-12-01 }\n",
       "overlay.toml:3:36: 'boost_mhz' in an overlay must be \"measured\""},
      {"",
       "overlay_of = \"toy\"\n[clock]\nboost_mhz = { value = 1600, kind = \"measured\", source = "
       "\"s\", read = 2026-12-01 }\n",
       "toy.toml:16:25: matrix bf16: peak = units × rate × clock"},
  };
  for (const BadChange& bad : cases) {
    EXPECT_THAT(ErrorText(ReadWith(bad.to)), HasSubstr(std::string(bad.error))) << bad.to;
  }
}

TEST(ReadDevice, OverlayCannotNameAHostLinkThatTheBaseLacks) {
  const fs::path overlay = fs::temp_directory_path() / "gnomon_host_link_overlay.toml";
  ASSERT_TRUE(
      WriteFile(overlay.string(), "overlay_of = \"host-x86-64-avx2\"\n[host_link]\nname = \"x\"\n")
          .ok());
  const auto device =
      ReadDevice(GNOMON_SOURCE_DIR "/devices/host-x86-64-avx2.toml", overlay.string());
  fs::remove(overlay);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().Text(), overlay.string() + ":3:8: the base device has no host link");
}

TEST(SetFact, RefusesUnknownPathsAndBadValues) {
  Device device;
  const Fact fact{1, FactKind::kMeasured, "s", "2026-12-01"};
  for (const char* path : {"", "clock", "clock.boost", "clock.l1.boost_mhz", "memory.latency_ns",
                           "memory.l1.latency_ns", "link.x.count", "vector.fp33.peak_tflops"}) {
    EXPECT_FALSE(SetFact(device, path, fact).ok()) << path;
  }
  EXPECT_FALSE(SetFact(device, "clock.boost_mhz", {-1, FactKind::kMeasured, "s", "d"}).ok());
  EXPECT_TRUE(device.facts.empty());
  EXPECT_TRUE(SetFact(device, "framework.op_us", {2, FactKind::kMeasured, "s", "d"}).ok());
  EXPECT_DOUBLE_EQ(device.framework.op.value, 2e-6);
}

}  // namespace
}  // namespace gnomon
