// Tests of finding: the shipped devices, the present host with and without its overlay, and the
// round trip of a short calibration through the overlay file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "gnomon/base/files.h"
#include "gnomon/device/calibrate.h"
#include "gnomon/device/check.h"
#include "gnomon/device/device.h"
#include "gnomon/device/host.h"

namespace gnomon {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Sets variables for one test and puts them back.
class FindDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gnomon_find_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    setenv("GNOMON_DEVICES", GNOMON_SOURCE_DIR "/devices", 1);
    setenv("GNOMON_HOST", Path("host.toml").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("GNOMON_DEVICES");
    unsetenv("GNOMON_HOST");
    fs::remove_all(folder_);
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(FindDeviceTest, EveryShippedDeviceReadsAndAgreesWithItself) {
  const std::vector<std::string> ids = DeviceIds();
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  EXPECT_THAT(ids, IsSupersetOf({"a100", "b200", "b300", "gb200", "h100", "h200", "host",
                                 "host-x86-64-avx2", "mi250x", "mi300a", "mi300x", "mi308x",
                                 "mi325x", "mi350x", "mi355x", "mtia2i"}));
  for (const std::string& id : ids) {
    const auto device = FindDevice(id);
    ASSERT_TRUE(device.ok()) << device.error().Text();
    EXPECT_EQ(device->id, id);
    for (const DeviceCheck& check : CheckDevice(*device))
      EXPECT_TRUE(check.holds) << id << ": " << check.what;
    EXPECT_GT(device->SustainedPeak(DType::kFp32).value, 0) << id;
  }
}

TEST_F(FindDeviceTest, ShippedFiguresAreThoseOfTheirSources) {
  const auto h100 = FindDevice("h100"), mi350x = FindDevice("mi350x"),
             mi300x = FindDevice("mi300x");
  ASSERT_TRUE(h100.ok() && mi350x.ok() && mi300x.ok());
  EXPECT_DOUBLE_EQ(h100->FindRate(DType::kBf16)->peak.value, 989.4e12);
  EXPECT_DOUBLE_EQ(h100->MainMemory().peak_bandwidth.value, 3350e9);
  EXPECT_DOUBLE_EQ(mi350x->MainMemory().capacity.value, 288e9);
  EXPECT_DOUBLE_EQ(mi350x->shared_memory.value, 160 * 1024);
  EXPECT_EQ(mi350x->units, 256);
  EXPECT_EQ(mi350x->dies, 8);
  EXPECT_DOUBLE_EQ(mi300x->FindMemory("llc")->capacity.value, 256.0 * 1024 * 1024);
  // CDNA3 has the fnuz formats of fp8, CDNA4 the OCP ones.
  EXPECT_EQ(mi300x->FindRate(DType::kFp8E4m3), nullptr);
  EXPECT_NE(mi300x->FindRate(DType::kFp8E4m3Fnuz), nullptr);
  EXPECT_NE(mi350x->FindRate(DType::kFp8E4m3), nullptr);
}

TEST_F(FindDeviceTest, PeaksOfEveryPartAreThoseOfItsDataSheet) {
  const struct {
    std::string_view id;
    DType dtype;
    double tflops;
    int units;
  } sheets[] = {
      {"mi250x", DType::kFp16, 191.5, 110},
      {"mi250x", DType::kFp64, 47.9, 110},
      {"mi300x", DType::kFp8E4m3Fnuz, 2614.9, 304},
      {"mi300x", DType::kTf32, 653.7, 304},
      {"mi300a", DType::kBf16, 980.6, 228},
      {"mi300a", DType::kFp64, 122.6, 228},
      {"mi308x", DType::kFp16, 232, 80},
      {"mi325x", DType::kFp8E5m2Fnuz, 2614.9, 304},
      {"mi350x", DType::kFp8E4m3, 4613.7, 256},
      {"mi355x", DType::kMxFp4, 10066.3, 256},
      {"a100", DType::kTf32, 156, 108},
      {"a100", DType::kInt8, 624, 108},
      {"h100", DType::kBf16, 989.4, 132},
      {"h200", DType::kFp8E4m3, 1978.9, 132},
      {"b200", DType::kMxFp4, 9000, 148},
      {"gb200", DType::kBf16, 2500, 152},
      {"b300", DType::kMxFp8, 4500, 148},
      {"mtia2i", DType::kInt8, 354, 64},
  };
  for (const auto& sheet : sheets) {
    const Device device = FindDevice(sheet.id).value();
    EXPECT_EQ(device.units, sheet.units) << sheet.id;
    const Rate* rate = device.FindRate(sheet.dtype);
    ASSERT_NE(rate, nullptr) << sheet.id << " " << Name(sheet.dtype);
    EXPECT_NEAR(rate->peak.value / 1e12, sheet.tflops, 0.01 * sheet.tflops)
        << sheet.id << " " << Name(sheet.dtype);
  }
}

TEST_F(FindDeviceTest, FormatsAreThoseThatTheHardwareHas) {
  const auto has = [](std::string_view id, DType dtype) {
    const Device device = FindDevice(id).value();
    return std::ranges::find(device.matrix, dtype, &Rate::dtype) != device.matrix.end();
  };
  // Tensor float: CDNA 3 and NVIDIA only. Microscaling: CDNA 4 and Blackwell only.
  for (const char* id : {"mi300x", "mi325x", "a100", "h100", "b300"})
    EXPECT_TRUE(has(id, DType::kTf32)) << id;
  for (const char* id : {"mi250x", "mi350x", "mi355x"}) EXPECT_FALSE(has(id, DType::kTf32)) << id;
  for (const char* id : {"mi350x", "mi355x", "b200", "gb200", "b300"})
    for (const DType dtype : {DType::kMxFp8, DType::kMxFp6, DType::kMxFp4, DType::kFp8E4m3})
      EXPECT_TRUE(has(id, dtype)) << id << " " << Name(dtype);
  for (const char* id : {"mi250x", "mi300x", "a100", "h200"})
    EXPECT_FALSE(has(id, DType::kMxFp4)) << id;
  for (const char* id : {"mi300x", "mi300a", "mi308x", "mi325x"}) {
    EXPECT_TRUE(has(id, DType::kFp8E4m3Fnuz) && has(id, DType::kFp8E5m2Fnuz)) << id;
    EXPECT_FALSE(has(id, DType::kFp8E4m3)) << id;
  }
}

TEST_F(FindDeviceTest, EveryGpuStatesTheLimitsThatAGemmFamilyNeeds) {
  for (const std::string& id : DeviceIds()) {
    const Device device = FindDevice(id).value();
    if (device.kind != Device::Kind::kGpu || id == "mtia2i") continue;
    EXPECT_EQ(device.schedulers, 4) << id;
    EXPECT_EQ(device.max_waves, device.vendor == "AMD" ? 32 : 64) << id;
    EXPECT_EQ(device.max_blocks, 32) << id;
    EXPECT_EQ(device.register_granularity, 8) << id;
    EXPECT_GT(device.shared_memory_block.value, 0) << id;
    EXPECT_EQ(device.shared_bytes_per_clock, device.arch == "gfx950" ? 256 : 128) << id;
    EXPECT_GT(device.matrix_latency_cycles, 0) << id;
    EXPECT_GT(device.kernel.value, 0) << id;
    EXPECT_EQ(device.tensor_memory.value > 0, device.arch.starts_with("sm_10")) << id;
    for (const MemoryLevel& level : device.memory)
      EXPECT_GT(level.unit_bandwidth.value, 0) << id << " " << level.name;
  }
}

TEST_F(FindDeviceTest, UnknownIdIsRefusedWithNearestAndList) {
  const auto device = FindDevice("mi30x");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, Error::Code::kBadInput);
  EXPECT_THAT(device.error().message,
              HasSubstr("unknown device 'mi30x'; nearest is 'mi300x' (valid: a100,"));
}

TEST_F(FindDeviceTest, FirstFolderWinsAndAPathIsAFileItself) {
  const std::string text = ReadFile(GNOMON_SOURCE_DIR "/devices/h100.toml").value();
  ASSERT_TRUE(WriteFile(Path("h100.toml"), "# mine\n" + text).ok());
  ASSERT_TRUE(WriteFile(Path("other.toml"), text).ok());
  setenv("GNOMON_DEVICES", (folder_.string() + ":" GNOMON_SOURCE_DIR "/devices").c_str(), 1);
  EXPECT_TRUE(FindDevice("h100").ok());
  EXPECT_THAT(FindDevice("other").error().Text(),
              HasSubstr("the file states id 'h100', not 'other'"));
  EXPECT_EQ(FindDevice(Path("other.toml")).value().id, "h100");
  ASSERT_TRUE(WriteFile(Path("h100.toml"), "id = 1").ok());
  EXPECT_THAT(FindDevice("h100").error().Text(), HasSubstr(Path("h100.toml:1:6")));
}

TEST_F(FindDeviceTest, HostWithoutOverlayIsTheFallbackWithThisMachinesCores) {
  const auto host = FindDevice("host");
  ASSERT_TRUE(host.ok()) << host.error().Text();
  EXPECT_EQ(host->id, "host");
  EXPECT_FALSE(host->calibrated);
  EXPECT_EQ(host->units, UsableCores());
}

TEST_F(FindDeviceTest, OverlayOfAnotherCpuIsNotUsed) {
  ASSERT_TRUE(
      WriteFile(
          Path("host.toml"),
          "overlay_of = \"host-x86-64-avx2\"\ncpu = \"another\"\n[launch]\n"
          "call_us = { value = 77, kind = \"measured\", source = \"s\", read = 2026-12-01 }\n")
          .ok());
  const auto host = FindDevice("host");
  ASSERT_TRUE(host.ok()) << host.error().Text();
  EXPECT_FALSE(host->calibrated);
  EXPECT_LT(host->launch.value, 77e-6);
}

TEST_F(FindDeviceTest, ShortCalibrationReadsBackToTheSameValues) {
  int reports = 0, last = 0, total = 0;
  CalibrateOptions options;
  options.rounds = 1;
  options.probe_time = Seconds{0.001};
  options.most_memory = Bytes{32 << 20};
  options.progress = [&](int done, int of, const std::string& what) {
    EXPECT_FALSE(what.empty());
    EXPECT_GE(done, last);
    if (reports > 0) {
      EXPECT_EQ(of, total);
    }
    last = done, total = of, ++reports;
  };
  auto measured = CalibrateHost(options);
  ASSERT_TRUE(measured.ok()) << measured.error().Text();
  EXPECT_EQ(reports, total);
  ASSERT_TRUE(
      SetFact(*measured, "framework.op_us", {2.5, FactKind::kMeasured, "a \"run\"", "2026-12-01"})
          .ok());
  ASSERT_TRUE(WriteOverlay(*measured, Path("deep/host.toml")).ok());
  setenv("GNOMON_HOST", Path("deep/host.toml").c_str(), 1);

  const auto host = FindDevice("host");
  ASSERT_TRUE(host.ok()) << host.error().Text();
  EXPECT_TRUE(host->calibrated);
  std::set<std::string> kinds;
  for (const auto& [path, fact] : measured->facts) {
    ASSERT_TRUE(host->facts.contains(path)) << path;
    EXPECT_EQ(host->facts.at(path).value, fact.value) << path;
    EXPECT_EQ(host->facts.at(path).source, fact.source) << path;
    EXPECT_EQ(host->facts.at(path).kind, fact.kind) << path;
    EXPECT_EQ(host->facts.at(path).read, fact.read) << path;
  }
  EXPECT_EQ(host->framework.op.value, measured->framework.op.value);
  EXPECT_EQ(host->MainMemory().bandwidth.value, measured->MainMemory().bandwidth.value);
  EXPECT_EQ(host->SustainedPeak(DType::kFp32).value, measured->SustainedPeak(DType::kFp32).value);
  for (const DeviceCheck& check : CheckDevice(*host)) EXPECT_TRUE(check.holds) << check.what;
  EXPECT_EQ(FindDevice(Path("deep/host.toml")).value().facts.size(), host->facts.size());
}

TEST_F(FindDeviceTest, CalibrationRefusesMoreThreadsThanCores) {
  CalibrateOptions options;
  options.threads = UsableCores() + 1;
  EXPECT_THAT(CalibrateHost(options).error().message, HasSubstr("threads asked for"));
}

TEST_F(FindDeviceTest, OverlayIntoAFullDeviceIsAFault) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const auto host = FindDevice("host");
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(WriteOverlay(*host, "/dev/full").error().code, Error::Code::kInternal);
}

TEST(HostOverlayPath, FollowsItsVariablesInOrder) {
  setenv("GNOMON_HOST", "/a/b.toml", 1);
  EXPECT_EQ(HostOverlayPath(), "/a/b.toml");
  unsetenv("GNOMON_HOST");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(HostOverlayPath(), "/cache/gnomon/host.toml");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_THAT(HostOverlayPath(), HasSubstr("/.cache/gnomon/host.toml"));
}

}  // namespace
}  // namespace gnomon
