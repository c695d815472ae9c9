// From readings to an overlay file that reads back: no GPU is needed.

#include "gnomon/families/cuda/calibrate_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "gnomon/base/files.h"
#include "gnomon/device/calibrate.h"
#include "gnomon/device/check.h"
#include "gnomon/gemm/library.h"

namespace gnomon::cuda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDay = "2026-12-01";

GpuReadings Readings() {
  GpuReadings r;
  r.gpu = {.id = "h200", .name = "NVIDIA H200", .driver = "580.1", .units = 132};
  r.rates = {{DType::kBf16, "tma.128x256.c2x1.both.k1.g8", {820e12}, {745e12}, {1455, 3201, 698}},
             {DType::kTf32, "tma.128x256.c2x1.both.k1.g8", {410e12}, {380e12}, {1500, 3201, 690}}};
  r.light_clock = {1980e6};
  r.hbm_read = {4200e9};
  r.hbm_write = {4000e9};
  r.hbm_copy = {4050e9};
  r.hbm_random = {2900e9};
  r.hbm_unit = {70e9};
  r.l2_read = {7000e9};
  r.l2_unit = {90e9};
  r.l2_latency = {140e-9};
  r.hbm_latency = {420e-9};
  r.stream_launch = {2.3e-6};
  r.graph_kernel = {1.4e-6};
  return r;
}

Device Stated(const GpuReadings& readings) {
  const Device base = FindDevice("h200").value();
  auto device = StateReadings(base, readings, kDay);
  EXPECT_TRUE(device.ok()) << device.error().Text();
  return device.ok() ? *device : base;
}

TEST(CalibrateGpu, StatesReadingsAsMeasuredFactsOfTheDay) {
  const Device device = Stated(Readings());
  EXPECT_DOUBLE_EQ(device.sustained_clock.value, 1455e6);
  EXPECT_DOUBLE_EQ(device.max_clock.value, 1980e6);
  EXPECT_DOUBLE_EQ(device.FindMemory("l2")->bandwidth.value, 7000e9);
  EXPECT_DOUBLE_EQ(device.FindMemory("l2")->unit_bandwidth.value, 90e9);
  EXPECT_DOUBLE_EQ(device.MainMemory().bandwidth.value, 4200e9);
  EXPECT_DOUBLE_EQ(device.MainMemory().write_bandwidth.value, 4000e9);
  EXPECT_DOUBLE_EQ(device.MainMemory().random_bandwidth.value, 2900e9);
  EXPECT_NEAR(device.MainMemory().latency.value, 420e-9, 1e-15);
  EXPECT_NEAR(device.launch.value, 2.3e-6, 1e-12);
  EXPECT_NEAR(device.kernel.value, 1.4e-6, 1e-12);
  const Rate* bf16 = device.FindRate(DType::kBf16);
  ASSERT_NE(bf16, nullptr);
  EXPECT_DOUBLE_EQ(bf16->burst.value, 820e12);
  EXPECT_DOUBLE_EQ(bf16->sustained.value, 745e12);
  EXPECT_EQ(device.FindRate(DType::kFp16)->sustained.value, 0);
  const Fact& fact = device.facts.at("memory.hbm.bandwidth_gb_per_s");
  EXPECT_EQ(fact.kind, FactKind::kMeasured);
  EXPECT_EQ(fact.read, kDay);
  EXPECT_THAT(fact.source, HasSubstr("NVIDIA H200, driver 580.1"));
  EXPECT_THAT(fact.source, HasSubstr("a copy reads and writes 4050 GB/s"));
  EXPECT_THAT(device.facts.at("matrix.bf16.sustained_tflops").source,
              HasSubstr("SM clock 1455 MHz, memory 3201 MHz, 698 W"));
}

TEST(CalibrateGpu, OverlayReadsBackPassesItsChecksAndHoldsOnlyWhatWasRead) {
  const Device base = FindDevice("h200").value();
  const Device measured = Stated(Readings());
  const fs::path folder =
      fs::temp_directory_path() / ("gnomon_calibrate_gpu_" + std::to_string(::getpid()));
  const std::string path = (folder / "h200-measured.toml").string();
  ASSERT_TRUE(WriteOverlay(measured, base, path).ok());
  const auto back = ReadDevice(path);
  ASSERT_TRUE(back.ok()) << back.error().Text();
  for (const DeviceCheck& check : CheckDevice(*back)) EXPECT_TRUE(check.holds) << check.what;
  for (const auto& [name, fact] : measured.facts) {
    EXPECT_EQ(back->facts.at(name).value, fact.value) << name;
    EXPECT_EQ(back->facts.at(name).source, fact.source) << name;
  }
  EXPECT_EQ(back->sustained_clock.value, measured.sustained_clock.value);
  const std::string text = ReadFile(path).value();
  EXPECT_THAT(text, HasSubstr("overlay_of = \"h200\""));
  EXPECT_THAT(text, Not(HasSubstr("cpu = ")));
  EXPECT_THAT(text, Not(HasSubstr("nvlink")));  // measured by others: the base file's to say

  // Among the device files it is a device of its own.
  ASSERT_EQ(::setenv("GNOMON_DEVICES", folder.c_str(), 1), 0);
  const auto found = FindDevice("h200-measured");
  ::unsetenv("GNOMON_DEVICES");
  fs::remove_all(folder);
  ASSERT_TRUE(found.ok()) << found.error().Text();
  EXPECT_EQ(found->id, "h200-measured");
  EXPECT_EQ(found->MainMemory().bandwidth.value, 4200e9);
}

TEST(CalibrateGpu, TheModelPrefersWhatWasMeasured) {
  const Device base = FindDevice("h200").value();
  GpuReadings slow = Readings();
  slow.hbm_read = {2000e9};
  const Device measured = Stated(slow);
  Problem stream;
  stream.m = 64;
  stream.n = stream.k = 16384;
  stream.dtype = stream.dtype_out = DType::kBf16;
  const double ratio =
      PredictLibrary(measured, stream, 0).time / PredictLibrary(base, stream, 0).time;
  EXPECT_GT(ratio, 1.5);
}

TEST(CalibrateGpu, WhatWasNotReadStaysTheBases) {
  GpuReadings nothing;
  nothing.gpu = {.id = "h200", .name = "NVIDIA H200", .driver = "", .units = 132};
  const Device base = FindDevice("h200").value();
  const Device device = Stated(nothing);
  for (const auto& [name, fact] : base.facts) {
    EXPECT_EQ(device.facts.at(name).value, fact.value) << name;
    EXPECT_EQ(device.facts.at(name).source, fact.source) << name;
  }
  EXPECT_EQ(device.facts.size(), base.facts.size());
}

TEST(CalibrateGpu, NoiseDoesNotTurnTheOrderOfMemories) {
  GpuReadings odd = Readings();
  odd.l2_read = {3900e9};   // below memory's
  odd.l2_latency = {5e-9};  // sooner than L1
  odd.hbm_latency = {100e-9};
  odd.hbm_unit = {9000e9};
  const Device device = Stated(odd);
  for (const DeviceCheck& check : CheckDevice(device)) EXPECT_TRUE(check.holds) << check.what;
  EXPECT_DOUBLE_EQ(device.MainMemory().bandwidth.value, 3900e9);
}

TEST(CalibrateGpu, ClockWithoutNvmlComesFromTheRateAndNeverExceedsBoost) {
  GpuReadings readings = Readings();
  readings.light_clock = {};
  readings.rates[0].clocks = {};
  const Device derived = Stated(readings);
  EXPECT_NEAR(derived.sustained_clock.value, 745e12 / (132 * 4096 * 0.95), 1e6);
  EXPECT_EQ(derived.max_clock.value, FindDevice("h200")->max_clock.value);
  readings.rates[0].clocks.sm_mhz = 1980;
  const Device held = Stated(readings);
  EXPECT_DOUBLE_EQ(held.sustained_clock.value, held.boost_clock.value);
  EXPECT_THAT(held.facts.at("clock.sustained_mhz").source, HasSubstr("1980 MHz, stated as boost"));
}

TEST(CalibrateGpu, APartOfAGpuIsRefused) {
  GpuReadings readings = Readings();
  readings.gpu.units = 60;
  const auto device = StateReadings(FindDevice("h200").value(), readings, kDay);
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(device.error().message, HasSubstr("has 60 SMs, its device file says 132"));
}

}  // namespace
}  // namespace gnomon::cuda
