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
  EXPECT_THAT(ids, IsSupersetOf({"b200", "h100", "h200", "host", "host-x86-64-avx2", "mi300x",
                                 "mi350x", "mi355x", "mtia2i"}));
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

TEST_F(FindDeviceTest, UnknownIdIsRefusedWithNearestAndList) {
  const auto device = FindDevice("mi30x");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, Error::Code::kBadInput);
  EXPECT_THAT(device.error().message,
              HasSubstr("unknown device 'mi30x'; nearest is 'mi300x' (valid: b200, h100,"));
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

TEST(ScaleToUnits, ScalesPeaksAndUnitMemoriesAndKeepsTheFileInAgreement) {
  Device device = ReadDevice(GNOMON_SOURCE_DIR "/devices/host-x86-64-avx2.toml").value();
  const Device before = device;
  ScaleToUnits(device, 2 * before.units);
  EXPECT_EQ(device.units, 2 * before.units);
  EXPECT_DOUBLE_EQ(device.SustainedPeak(DType::kFp32).value,
                   2 * before.SustainedPeak(DType::kFp32).value);
  EXPECT_DOUBLE_EQ(device.memory[0].bandwidth.value, 2 * before.memory[0].bandwidth.value);
  EXPECT_DOUBLE_EQ(device.MainMemory().bandwidth.value, before.MainMemory().bandwidth.value);
  ScaleToUnits(device, 1);
  EXPECT_DOUBLE_EQ(device.MainMemory().bandwidth.value, before.MainMemory().unit_bandwidth.value);
  EXPECT_DOUBLE_EQ(device.facts.at("units.count").value, 1);
  for (const DeviceCheck& check : CheckDevice(device)) EXPECT_TRUE(check.holds) << check.what;
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
