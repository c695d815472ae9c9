#include "gnomon/gemm/library.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/gemm/fixed_devices.h"

namespace gnomon {
namespace {

Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.dtype = p.dtype_out = dtype;
  return p;
}

double Sum(const Prediction& prediction) {
  double sum = 0;
  for (const Term& term : prediction.terms) sum += term.time.value;
  return sum;
}

TEST(Library, TermsAddUpToTheTime) {
  for (const auto& [device, dtype] :
       {std::pair{FixedGpu(), DType::kBf16}, {FixedCpu(), DType::kFp32}}) {
    for (const std::int64_t m : {1, 17, 2048, 65536}) {
      for (const std::int64_t k : {1, 13, 4096}) {
        const Prediction p = PredictLibrary(device, Gemm(m, 512, k, dtype), 0);
        EXPECT_NEAR(Sum(p), p.time.value, 1e-12 * p.time.value);
        EXPECT_GT(p.time.value, 0);
      }
    }
  }
}

TEST(Library, IsBoundByMemoryWhenKIsSmallAndByComputeOnSquares) {
  const Device gpu = FixedGpu();
  EXPECT_EQ(PredictLibrary(gpu, Gemm(65536, 512, 13, DType::kBf16), 0).bound, Bound::kMemory);
  EXPECT_EQ(PredictLibrary(gpu, Gemm(8192, 8192, 8192, DType::kBf16), 0).bound, Bound::kCompute);
  EXPECT_EQ(PredictLibrary(gpu, Gemm(1, 64, 64, DType::kBf16), 0).bound, Bound::kLaunch);
}

TEST(Library, StaysAboveTheRooflines) {
  const Device gpu = FixedGpu();
  for (const std::int64_t side : {256, 1000, 4096, 10000}) {
    const Problem p = Gemm(side, side, side, DType::kBf16);
    const double time = PredictLibrary(gpu, p, 0).time.value;
    EXPECT_GT(time, p.flops().value / gpu.SustainedPeak(DType::kBf16).value);
    EXPECT_GT(time, p.bytes().value / gpu.MainMemory().bandwidth.value);
  }
}

TEST(Library, MoreBandwidthIsNeverSlowerAndMoreRowsNeverFaster) {
  const Device gpu = FixedGpu();
  Device wide = gpu;
  wide.memory.back().bandwidth = gpu.memory.back().bandwidth * 2;
  for (const std::int64_t m : {1, 100, 5000, 100000}) {
    const Problem p = Gemm(m, 384, 96, DType::kBf16), twice = Gemm(2 * m, 384, 96, DType::kBf16);
    EXPECT_LE(PredictLibrary(wide, p, 0).time.value, PredictLibrary(gpu, p, 0).time.value);
    EXPECT_GE(PredictLibrary(gpu, twice, 0).time.value, PredictLibrary(gpu, p, 0).time.value);
  }
}

TEST(Library, SplitsATallKAcrossUnits) {
  const Device gpu = FixedGpu();
  const double tall = PredictLibrary(gpu, Gemm(256, 512, 65536, DType::kBf16), 0).time.value;
  const double one_tile_a_unit = 2.0 * 128 * 128 * 65536 / (5000 * 2e9);
  EXPECT_LT(tall, one_tile_a_unit);
}

TEST(Library, HugeShapesStayFinite) {
  const Problem p = Gemm(std::int64_t{1} << 33, 4096, 4096, DType::kBf16);
  const double time = PredictLibrary(FixedGpu(), p, 0).time.value;
  EXPECT_TRUE(std::isfinite(time));
  EXPECT_GT(time, p.flops().value / FixedGpu().SustainedPeak(DType::kBf16).value);
}

TEST(Library, KnowsVendorNames) {
  EXPECT_TRUE(IsVendorLibrary("cublas"));
  EXPECT_TRUE(IsVendorLibrary("library"));
  EXPECT_FALSE(IsVendorLibrary("triton"));
}

}  // namespace
}  // namespace gnomon
