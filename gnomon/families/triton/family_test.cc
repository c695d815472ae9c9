#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "gnomon/base/fit_split.h"
#include "gnomon/base/statistics.h"
#include "gnomon/families/triton/space.h"
#include "gnomon/gemm/selector.h"
#include "gnomon/gemm/shapes.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon::triton {
namespace {

using testing::HasSubstr;

const std::array<const Family*, 1> kFamilies = {&GemmFamily()};

Device Card(const std::string& id) {
  return ReadDevice(GNOMON_SOURCE_DIR "/devices/" + id + ".toml").value();
}

TEST(TritonFamily, EnumeratesEachConfigOnceWithItsPrice) {
  for (const char* id : {"h200", "mi350x"}) {
    const Device card = Card(id);
    std::vector<Config> configs;
    std::vector<double> seconds;
    const Problem p = Gemm(256, 512, 8192);
    ASSERT_TRUE(GemmFamily().Price(card, p, 0, configs, seconds).ok());
    ASSERT_EQ(configs.size(), seconds.size());
    EXPECT_GT(configs.size(), 100u);
    std::map<std::string, int> seen;
    for (size_t i = 0; i < configs.size(); ++i) {
      EXPECT_EQ(++seen[GemmFamily().Print(configs[i])], 1);
      EXPECT_EQ(GemmFamily().PredictTime(card, p, configs[i]).value, seconds[i]);
    }
  }
}

TEST(TritonFamily, HasTermsThatAddUpToTheTime) {
  const Device card = Card("h200");
  for (const char* text : {"128x128x64.w4.s3.k1", "64x64x64.w4.s4.k8", "32x32x32.w4.s4.k1"}) {
    const Config config = GemmFamily().Parse(text).value();
    const Problem p = Gemm(1000, 512, 8191);
    const Prediction prediction = GemmFamily().Predict(card, p, config);
    double sum = 0;
    for (const Term& term : prediction.terms) sum += term.time.value;
    EXPECT_NEAR(sum, prediction.time.value, 1e-12);
    EXPECT_NEAR(GemmFamily().PredictTime(card, p, config).value, prediction.time.value, 1e-12);
  }
}

TEST(TritonFamily, NeverPicksWhatHasNoPlace) {
  const Device card = Card("h200");
  // Buffers of 4 x (256 + 128) x 128 x 2 bytes.
  const Config large = GemmFamily().Parse("256x128x128.w8.s4.k1").value();
  EXPECT_GT(GemmFamily().PredictTime(card, Gemm(4096, 4096, 4096), large).value, 1e20);
  // 2^32 tiles.
  const Config small = GemmFamily().Parse("32x32x32.w4.s4.k1").value();
  Problem wide = Gemm(std::int64_t{1} << 31, 2048, 16);
  EXPECT_GT(GemmFamily().PredictTime(card, wide, small).value, 1e20);
  const TritonConfig pick = FromConfig(Select(card, wide, kFamilies).value().front().config);
  EXPECT_GE(pick.block_m * pick.block_n, 2048);
}

TEST(TritonFamily, RefusesWhatItHasNoKernelFor) {
  Problem p = Gemm(64, 64, 64);
  EXPECT_THAT(Select(Card("host-x86-64-avx2"), p, kFamilies).error().Text(),
              HasSubstr("runs on GPUs"));
  p.dtype = DType::kMxFp4;
  EXPECT_THAT(Select(Card("b200"), p, kFamilies).error().Text(),
              HasSubstr("no plain kernel for mxfp4"));
}

TEST(TritonFamily, TakesGroupsAsTilesOfTheirOwn) {
  const Device card = Card("h200");
  const Config config = GemmFamily().Parse("128x128x64.w4.s3.k1").value();
  const auto time = [&](const Problem& p) {
    return GemmFamily().PredictTime(card, p, config).value;
  };
  Problem one = Gemm(8192, 4096, 1024), same = one;
  same.group_m = {8192};
  EXPECT_EQ(time(same), time(one));
  // Empty groups cost nothing.
  same.group_m = {0, 8192, 0};
  EXPECT_EQ(time(same), time(one));
  // 64 groups of 128 rows have the tiles of one product, and more of B to read.
  Problem groups = one;
  groups.group_m.assign(64, 128);
  EXPECT_EQ(RowsOfTiles(groups, 128), 64);
  EXPECT_GT(time(groups), time(one));
  // One row more in each: twice the tiles.
  groups.group_m.assign(64, 129);
  groups.m = 64 * 129;
  EXPECT_EQ(RowsOfTiles(groups, 128), 128);
  EXPECT_GT(time(groups), 1.5 * time(one));
  // Equal groups are a batch.
  Problem batch = Gemm(128, 4096, 1024);
  batch.batch = 64;
  groups.group_m.assign(64, 128);
  groups.m = 8192;
  EXPECT_DOUBLE_EQ(time(groups), time(batch));
}

TEST(TritonFamily, AsksForNoMoreUnitsThanItIsGiven) {
  const Device card = Card("h200");
  const Problem p = Gemm(4096, 4096, 4096);
  const Selector all(card, kFamilies), half(card, kFamilies, 66);
  EXPECT_GT(half.Select(p)->predicted.value, 1.8 * all.Select(p)->predicted.value);
  EXPECT_EQ(half.TimeOf(p, *half.Select(p)).value, half.Select(p)->predicted.value);
  EXPECT_EQ(half.Select(p)->config, Select(card, p, kFamilies, 66)->front().config);
}

TEST(TritonFamily, SaysHowSureItIsOnlyWhereItWasTimed) {
  const Problem p = Gemm(4096, 4096, 4096);
  const auto sure = Selector(Card("h200"), kFamilies).Select(p)->sure;
  ASSERT_TRUE(sure.has_value());
  EXPECT_GE(*sure, 0.5);
  EXPECT_LE(*sure, 1);
  EXPECT_FALSE(Selector(Card("mi350x"), kFamilies).Select(p)->sure.has_value());
  EXPECT_FALSE(Selector(Card("b200"), kFamilies).Select(p)->sure.has_value());
}

// The exhaustive sweep of an H200, shapes that no constant was fitted on.
class HeldOutSweep : public testing::Test {
 protected:
  struct Timed {
    double predicted = 0, measured = 0;
    Config config;
  };
  struct ShapeRows {
    Problem problem;
    std::vector<Timed> rows;  // fastest prediction first
    double best = 1e30;
  };

  static const std::vector<ShapeRows>& Shapes() {
    static const std::vector<ShapeRows> shapes = Read();
    return shapes;
  }

 private:
  static std::vector<ShapeRows> Read() {
    const Selector selector(Card("h200"), kFamilies);
    const auto rows =
        ReadMeasurements(GNOMON_SOURCE_DIR "/bench/results/h200_triton_sweep.csv").value();
    std::map<std::string, ShapeRows> shapes;
    for (const Measurement& row : rows) {
      const Problem& p = row.problem;
      if (row.family != "triton" || IsFitRow(fmt::format("{},{},{}", p.m, p.n, p.k))) continue;
      ShapeRows& shape = shapes[p.Text()];
      shape.problem = p;
      const Pick config{&GemmFamily(), GemmFamily().Parse(row.config).value(), {}, {}};
      shape.rows.push_back({selector.TimeOf(p, config).value, row.us * 1e-6, config.config});
      shape.best = std::min(shape.best, row.us * 1e-6);
    }
    std::vector<ShapeRows> out;
    for (auto& [name, shape] : shapes) {
      std::stable_sort(shape.rows.begin(), shape.rows.end(),
                       [](const Timed& a, const Timed& b) { return a.predicted < b.predicted; });
      out.push_back(std::move(shape));
    }
    return out;
  }
};

TEST_F(HeldOutSweep, IsPredictedWithinItsError) {
  std::vector<double> errors;
  for (const ShapeRows& shape : Shapes())
    for (const Timed& row : shape.rows)
      errors.push_back(std::abs(row.predicted / row.measured - 1));
  std::printf("%zu timings held out: median %.1f%%, p90 %.1f%%\n", errors.size(),
              100 * Median(errors), 100 * Quantile(errors, 0.9));
  EXPECT_GT(errors.size(), 10000u);
  EXPECT_LE(Median(errors), 0.10);
  EXPECT_LE(Quantile(errors, 0.9), 0.30);
}

TEST_F(HeldOutSweep, IsPickedNearItsBest) {
  std::vector<double> ratios, four;
  double log_sum = 0, log_four = 0;
  for (const ShapeRows& shape : Shapes()) {
    ratios.push_back(shape.best / shape.rows[0].measured);
    double first_four = 1e30;
    for (size_t i = 0; i < std::min<size_t>(4, shape.rows.size()); ++i)
      first_four = std::min(first_four, shape.rows[i].measured);
    log_sum += std::log(ratios.back());
    log_four += std::log(shape.best / first_four);
  }
  const double count = static_cast<double>(ratios.size());
  std::printf(
      "%zu shapes held out: best / pick %.3f, p10 %.3f, p5 %.3f, least %.3f, of four %.3f\n",
      ratios.size(), std::exp(log_sum / count), Quantile(ratios, 0.1), Quantile(ratios, 0.05),
      *std::min_element(ratios.begin(), ratios.end()), std::exp(log_four / count));
  EXPECT_GE(std::exp(log_sum / count), 0.94);
  EXPECT_GE(Quantile(ratios, 0.1), 0.82);
  EXPECT_GE(*std::min_element(ratios.begin(), ratios.end()), 0.70);
  EXPECT_GE(std::exp(log_four / count), 0.97);
}

TEST_F(HeldOutSweep, IsAsSureOfItsPickAsItIsRight) {
  double sure = 0, right = 0, errors = 0;
  const auto pair_error = GemmFamily().PairError(Card("h200"));
  for (const ShapeRows& shape : Shapes()) {
    const Timed &first = shape.rows[0], &second = shape.rows[1];
    sure += *Sureness({first.predicted}, {second.predicted}, pair_error, pair_error);
    right += first.measured < second.measured;
    const double off =
        std::log(first.predicted / second.predicted) - std::log(first.measured / second.measured);
    errors += off * off;
  }
  const double count = static_cast<double>(Shapes().size());
  std::printf("first beats second: said %.2f, is %.2f; pair error %.3f\n", sure / count,
              right / count, std::sqrt(errors / count));
  EXPECT_NEAR(sure / count, right / count, 0.1);
  EXPECT_NEAR(std::sqrt(errors / count), *pair_error, 0.1 * *pair_error);
}

TEST(TritonFamily, ComputesFp32AndFp64WhereOnlyVectorUnitsOrMmaSyncDo) {
  for (const char* id : {"a100", "h100", "h200", "b200"}) {
    const auto device = FindDevice(id);
    ASSERT_TRUE(device.ok()) << device.error().Text();
    for (const DType dtype : {DType::kFp32, DType::kFp64}) {
      Problem problem;
      problem.m = problem.n = problem.k = 2048;
      problem.dtype = problem.dtype_out = dtype;
      const Family* family = &GemmFamily();
      const auto picks = Select(*device, problem, {&family, 1});
      ASSERT_TRUE(picks.ok()) << id << ": " << picks.error().Text();
      // No faster than the device's best rate for the dtype at its highest clock.
      const Rate* rate = device->FindRate(dtype);
      const double peak = device->units * rate->flops_per_unit_clock *
                          std::max(device->max_clock.value, device->boost_clock.value);
      EXPECT_GT(picks->front().predicted.value, problem.flops().value / peak) << id;
      EXPECT_LT(picks->front().predicted.value, 4 * problem.flops().value / peak) << id;
    }
  }
}

}  // namespace
}  // namespace gnomon::triton
