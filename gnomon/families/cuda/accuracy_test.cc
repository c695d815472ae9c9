// The pick of families sm90 and sm100 against the public bf16 timings of the vendor's library: the
// rows that no constant was fitted on.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "gnomon/base/fit_split.h"
#include "gnomon/base/statistics.h"
#include "gnomon/families/cuda/cuda_gemm.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon::cuda {
namespace {

struct Bar {
  const char* device;
  double median, p90;
};

class TmaPicksOnHeldOutRows : public testing::TestWithParam<Bar> {};

TEST_P(TmaPicksOnHeldOutRows, AreWithinTheBar) {
  const Bar bar = GetParam();
  const std::string path =
      std::string(GNOMON_SOURCE_DIR) + "/../shared/measured/" + bar.device + "_bf16_library.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no ../shared/measured beside the project";
  const Device device = FindDevice(bar.device).value();
  const Family& family = device.arch.starts_with("sm_90") ? Sm90Family() : Sm100Family();
  const auto rows = ReadMeasurements(path);
  ASSERT_TRUE(rows.ok()) << rows.error().Text();
  std::vector<double> errors;
  for (const Measurement& row : *rows) {
    const Problem& p = row.problem;
    if (IsFitRow(std::to_string(p.m) + "," + std::to_string(p.n) + "," + std::to_string(p.k)))
      continue;
    std::array<TimedConfig, 1> best;
    const auto found = family.Fastest(device, p, 0, best);
    ASSERT_TRUE(found.ok()) << found.error().Text();
    ASSERT_EQ(*found, 1u) << p.Text();
    errors.push_back(std::abs(InMicroseconds(best.front().time) / row.us - 1));
  }
  EXPECT_GT(errors.size(), 700u);
  EXPECT_LE(Quantile(errors, 0.5), bar.median);
  EXPECT_LE(Quantile(errors, 0.9), bar.p90);
}

INSTANTIATE_TEST_SUITE_P(Devices, TmaPicksOnHeldOutRows,
                         testing::Values(Bar{"h100", 0.045, 0.15}, Bar{"h200", 0.045, 0.135},
                                         Bar{"b200", 0.073, 0.2}, Bar{"b300", 0.073, 0.2}),
                         [](const auto& bar) { return std::string(bar.param.device); });

}  // namespace
}  // namespace gnomon::cuda
