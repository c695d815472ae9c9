#include "gnomon/gemm/library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>

#include "gnomon/base/fit_split.h"
#include "gnomon/base/statistics.h"
#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/library_families.h"
#include "gnomon/gemm/measurement_conditions.h"
#include "gnomon/gemm/shapes.h"

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
  EXPECT_EQ(PredictLibrary(gpu, Gemm(65536, 512, 16, DType::kBf16), 0).bound, Bound::kMemory);
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

// The fixed GPU with an L2 and a clock that falls under load.
Device GpuWithL2() {
  Device gpu = FixedGpu();
  MemoryLevel l2;
  l2.name = "l2";
  l2.capacity = {50e6};
  l2.bandwidth = {8e12};
  gpu.memory.insert(gpu.memory.begin(), l2);
  gpu.sustained_clock = {1.6e9};
  gpu.tdp_watts = 1000;
  return gpu;
}

double Us(const Device& device, const Problem& p, const LibraryConditions& conditions = {},
          std::string_view family = "library") {
  return InMicroseconds(PredictLibrary(device, p, 0, conditions, family).time);
}

TEST(Library, TermsAddUpUnderAllConditions) {
  const LibraryConditions all{.weight_copies = 1,
                              .cold_l2 = true,
                              .dirty_l2 = true,
                              .events = true,
                              .sustained = true,
                              .power_limit = 500,
                              .converts_a = true,
                              .scales_in_loop = true};
  for (const std::string_view family : {"cublas", "tlx", "cudnn", "nobody's"}) {
    for (const std::int64_t m : {1, 64, 2048, 65536}) {
      const Prediction p =
          PredictLibrary(GpuWithL2(), Gemm(m, 512, 8192, DType::kBf16), 0, all, family);
      EXPECT_NEAR(Sum(p), p.time.value, 1e-12 * p.time.value) << family << " " << m;
    }
  }
}

TEST(Library, MoreOfAnyResourceIsNeverSlower) {
  const Device gpu = GpuWithL2();
  Device units = gpu, clock = gpu, wide = gpu, cache = gpu;
  units.units = 137;
  clock.boost_clock = gpu.boost_clock * 1.1;
  clock.sustained_clock = gpu.sustained_clock * 1.1;
  wide.memory.back().bandwidth = gpu.memory.back().bandwidth * 1.3;
  cache.memory.front().capacity = gpu.memory.front().capacity * 2;
  for (const std::int64_t m : {1, 37, 129, 1000, 4097, 30000}) {
    for (const std::int64_t n : {64, 1536, 10240}) {
      for (const std::int64_t k : {32, 1000, 8192, 51200}) {
        const Problem p = Gemm(m, n, k, DType::kBf16);
        const double time = Us(gpu, p);
        for (const Device* more : {&units, &clock, &wide, &cache})
          EXPECT_LE(Us(*more, p), time * (1 + 1e-12)) << p.Text();
      }
    }
  }
}

TEST(Library, TwiceASideNeverTakesLess) {
  const Device gpu = GpuWithL2();
  for (const std::int64_t m : {1, 8, 37, 129, 1000, 4097}) {
    for (const std::int64_t n : {64, 1536, 10240}) {
      for (const std::int64_t k : {32, 1000, 8192, 51200}) {
        const double time = Us(gpu, Gemm(m, n, k, DType::kBf16)) * (1 - 1e-12);
        EXPECT_GE(Us(gpu, Gemm(2 * m, n, k, DType::kBf16)), time) << m << " " << n << " " << k;
        EXPECT_GE(Us(gpu, Gemm(m, 2 * n, k, DType::kBf16)), time) << m << " " << n << " " << k;
        EXPECT_GE(Us(gpu, Gemm(m, n, 2 * k, DType::kBf16)), time) << m << " " << n << " " << k;
      }
    }
  }
}

TEST(Library, RowsThatAreNoMultipleOf16BytesAreSlow) {
  const Device gpu = GpuWithL2();
  EXPECT_GT(Us(gpu, Gemm(8192, 1024, 479, DType::kBf16)),
            2 * Us(gpu, Gemm(8192, 1024, 480, DType::kBf16)));
  Problem padded = Gemm(8192, 1024, 479, DType::kBf16);
  padded.lda = padded.ldb = 480;
  EXPECT_LT(Us(gpu, padded), 1.1 * Us(gpu, Gemm(8192, 1024, 480, DType::kBf16)));
}

TEST(Library, WeightsThatFitTheL2AreReadFasterWhereNothingElseRuns) {
  const Device gpu = GpuWithL2();
  const Problem p = Gemm(16, 4096, 1024, DType::kBf16);  // 8 MB of weights
  const double same = Us(gpu, p, {.weight_copies = 1}), six = Us(gpu, p);
  const double cold = Us(gpu, p, {.cold_l2 = true});
  const double dirty = Us(gpu, p, {.cold_l2 = true, .dirty_l2 = true});
  EXPECT_LT(same, six);
  EXPECT_LT(six, cold);
  EXPECT_LT(cold, dirty);
}

TEST(Library, APowerLimitSlowsABusyGpuOnly) {
  const Device gpu = GpuWithL2();
  const LibraryConditions half{.power_limit = 500};
  const Problem large = Gemm(16384, 8192, 8192, DType::kBf16),
                small = Gemm(16, 512, 512, DType::kBf16);
  EXPECT_NEAR(Us(gpu, large, half) / Us(gpu, large), std::pow(2, 0.75), 0.02);
  EXPECT_EQ(Us(gpu, small, half), Us(gpu, small));
}

TEST(Library, ALongRunIsSlowerThanABurst) {
  const Device gpu = GpuWithL2();
  const Problem p = Gemm(8192, 8192, 8192, DType::kBf16);
  const double ratio = Us(gpu, p, {.sustained = true}) / Us(gpu, p);
  EXPECT_GT(ratio, 1.05);
  EXPECT_LT(ratio, 1.13);
}

TEST(Library, TheLastWaveCountsWhole) {
  const Device gpu = GpuWithL2();  // 100 units
  const double full = Us(gpu, Gemm(128 * 100, 256, 4096, DType::kBf16));
  const double one_more = Us(gpu, Gemm(128 * 101, 256, 4096, DType::kBf16));
  EXPECT_GT(one_more / full, 1.05);
}

TEST(Library, BatchIsOneLaunch) {
  const Device gpu = GpuWithL2();
  Problem batch = Gemm(64, 64, 64, DType::kBf16);
  const double one = Us(gpu, batch);
  batch.batch = 50;
  EXPECT_LT(Us(gpu, batch), 2 * one);
}

TEST(Library, AFamilyThatIsNotListedIsAnAverageAuthorsAndSaysSo) {
  const Device gpu = GpuWithL2();
  const Problem p = Gemm(4096, 4096, 4096, DType::kBf16);
  EXPECT_FALSE(FindLibraryFamily("nobody's").known);
  EXPECT_TRUE(FindLibraryFamily("cutlass").known);
  EXPECT_GT(Us(gpu, p, {}, "nobody's"), Us(gpu, p, {}, "cublas"));
  EXPECT_GT(PredictLibrary(gpu, p, 0, {}, "nobody's").relative_error, 0.2);
}

// ---- Public timings, rows that nothing was fitted on.

struct Pairs {
  std::vector<double> measured, predicted;
  double MedianError() const { return Quantile(Errors(), 0.5); }
  std::vector<double> Errors() const {
    std::vector<double> out;
    for (size_t i = 0; i < measured.size(); ++i)
      out.push_back(std::abs(predicted[i] / measured[i] - 1));
    return out;
  }
};

std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

double Spearman(const Pairs& pairs) {
  const std::vector<double> a = RanksOf(pairs.measured), b = RanksOf(pairs.predicted);
  const double mean_a = Mean(a), mean_b = Mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

std::string Measured(const std::string& file) {
  return std::string(GNOMON_SOURCE_DIR) + "/../shared/measured/" + file;
}

bool HeldOut(const Problem& p) {
  return !IsFitRow(std::to_string(p.m) + "," + std::to_string(p.n) + "," + std::to_string(p.k));
}

// Predicted and measured times of a file's held-out rows by `key`.
template <class Key>
std::map<std::string, Pairs> HeldOutPairs(const std::string& file, Key key) {
  std::map<std::string, Pairs> out;
  std::map<std::string, Device> devices;
  const auto rows = ReadMeasurements(Measured(file));
  EXPECT_TRUE(rows.ok()) << rows.error().Text();
  if (!rows.ok()) return out;
  for (const Measurement& row : *rows) {
    const std::string group = key(row);
    if (group.empty() || !HeldOut(row.problem)) continue;
    if (!devices.contains(row.device)) {
      auto device = FindDevice(row.device);
      EXPECT_TRUE(device.ok()) << device.error().Text();
      if (!device.ok()) return out;
      devices.emplace(row.device, *device);
    }
    const Prediction p =
        PredictLibrary(devices.at(row.device), row.problem, 0, ConditionsOf(row), row.family);
    out[group].measured.push_back(row.us);
    out[group].predicted.push_back(InMicroseconds(p.time));
  }
  return out;
}

struct Bar {
  const char* device;
  double median, p90, spearman;
};

class LibraryOnHeldOutRows : public testing::TestWithParam<Bar> {};

TEST_P(LibraryOnHeldOutRows, IsWithinItsBar) {
  const Bar bar = GetParam();
  const std::string file = std::string(bar.device) + "_bf16_library.csv";
  if (!std::filesystem::exists(Measured(file)))
    GTEST_SKIP() << "no ../shared/measured beside the project";
  const auto groups = HeldOutPairs(file, [](const Measurement&) { return std::string("all"); });
  ASSERT_EQ(groups.size(), 1u);
  const Pairs& pairs = groups.begin()->second;
  EXPECT_GT(pairs.measured.size(), 700u);
  EXPECT_LE(pairs.MedianError(), bar.median);
  EXPECT_LE(Quantile(pairs.Errors(), 0.9), bar.p90);
  EXPECT_GE(Spearman(pairs), bar.spearman);
}

INSTANTIATE_TEST_SUITE_P(Devices, LibraryOnHeldOutRows,
                         testing::Values(Bar{"a100", 0.065, 0.17, 0.997},
                                         Bar{"h100", 0.04, 0.13, 0.997},
                                         Bar{"h200", 0.04, 0.11, 0.998},
                                         Bar{"b200", 0.055, 0.16, 0.995},
                                         Bar{"b300", 0.058, 0.16, 0.995}),
                         [](const auto& bar) { return std::string(bar.param.device); });

TEST(LibraryOnReports, HeldOutGroupsAreWithin15Percent) {
  if (!std::filesystem::exists(Measured("kernel_work_reports.csv")))
    GTEST_SKIP() << "no ../shared/measured beside the project";
  const auto groups = HeldOutPairs("kernel_work_reports.csv", [](const Measurement& row) {
    const bool nvidia = row.device.starts_with("b") || row.device.starts_with("gb");
    return nvidia ? row.device + " " + std::string(Name(row.problem.dtype)) : std::string();
  });
  constexpr size_t kRows = 20;
  int checked = 0;
  for (const auto& [group, pairs] : groups) {
    if (pairs.measured.size() < kRows) continue;
    ++checked;
    EXPECT_LE(pairs.MedianError(), 0.15) << group;
  }
  EXPECT_GE(checked, 3);
}

TEST(LibraryOnReports, KernelFamiliesAreOrderedAcrossShapes) {
  if (!std::filesystem::exists(Measured("kernel_work_reports.csv")))
    GTEST_SKIP() << "no ../shared/measured beside the project";
  const auto groups = HeldOutPairs("kernel_work_reports.csv", [](const Measurement& row) {
    const bool wanted = row.device == "gb200" || (row.device == "b200" && row.family == "cublas");
    if (!wanted) return std::string();
    return row.device + " " + std::string(Name(row.problem.dtype)) + " " + row.family;
  });
  constexpr size_t kRows = 20;
  int checked = 0;
  for (const auto& [group, pairs] : groups) {
    if (pairs.measured.size() < kRows) continue;
    ++checked;
    EXPECT_GE(Spearman(pairs), 0.94) << group;
  }
  EXPECT_GE(checked, 4);
}

TEST(LibraryOnReports, CublasOnColdCachesAndOddRowsIsRankedAndTimed) {
  if (!std::filesystem::exists(Measured("h200_triton_bf16_sweep.csv")))
    GTEST_SKIP() << "no ../shared/measured beside the project";
  const auto groups = HeldOutPairs("h200_triton_bf16_sweep.csv", [](const Measurement& row) {
    return row.family == "cublas" ? row.family : std::string();
  });
  ASSERT_EQ(groups.size(), 1u);
  const Pairs& pairs = groups.begin()->second;
  EXPECT_LE(pairs.MedianError(), 0.10);
  EXPECT_GE(Spearman(pairs), 0.98);
}

TEST(Library, TakesGroupsAsProductsOfTheirOwn) {
  const auto time = [](const Device& device, const Problem& p) {
    return PredictLibrary(device, p, 0).time.value;
  };
  for (const Device& device : {FixedGpu(), FixedCpu()}) {
    const Problem one = Gemm(8192, 512, 1024, DType::kFp32);
    Problem groups = one;
    groups.group_m = {0, 8192};  // an empty group costs nothing
    EXPECT_EQ(time(device, groups), time(device, one));
    groups.group_m.assign(64, 128);
    Problem batch = Gemm(128, 512, 1024, DType::kFp32);
    batch.batch = 64;
    EXPECT_DOUBLE_EQ(time(device, groups), time(device, batch));
    // A B each; small products stay in a CPU's caches.
    if (device.kind == Device::Kind::kGpu) {
      EXPECT_GT(time(device, groups), time(device, one));
    }
  }
}

TEST(Library, KnowsVendorNames) {
  EXPECT_TRUE(IsVendorLibrary("cublas"));
  EXPECT_TRUE(IsVendorLibrary("library"));
  EXPECT_FALSE(IsVendorLibrary("triton"));
}

}  // namespace
}  // namespace gnomon
