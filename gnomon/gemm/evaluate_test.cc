#include "gnomon/gemm/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/base/fit_split.h"
#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/predict_measured.h"
#include "gnomon/gemm/roofline.h"
#include "gnomon/gemm/timing.h"
#include "gnomon/gemm/toy_family.h"

namespace gnomon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The toy predicts 10, 20, 30, 40, 50 µs for c1 … c5.
ToyFamily Toy() { return ToyFamily({10e-6, 20e-6, 30e-6, 40e-6, 50e-6}); }

std::vector<Measurement> Rows(const std::string& body) {
  return ParseMeasurements(std::string(kMeasuredHeader) + "\n" + body, "m.csv").value();
}

std::string Row(int m, const std::string& config, double us, const std::string& family = "toy",
                const std::string& device = "fixed-avx512") {
  return fmt::format("{},{},fp32,fp32,nt,{},8,8,1,,,,,,,,{},hand made,{}\n", device, family, m, us,
                     config);
}

TEST(Evaluate, GivesTheRegretOfThePickOverTimedLosers) {
  // Shape 1: the pick c1 is best. Shape 2: c1 takes 20 where c5 takes 5; c3 (10) is in the first
  // four.
  const auto rows = Rows(Row(1, "c1", 10) + Row(1, "c2", 40) + Row(2, "c1", 20) + Row(2, "c2", 25) +
                         Row(2, "c3", 10) + Row(2, "c4", 30) + Row(2, "c5", 5));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok()) << out.error().Text();
  EXPECT_EQ(out->rows, 7);
  EXPECT_EQ(out->predicted, 7);
  ASSERT_TRUE(out->regret.has_value());
  EXPECT_NEAR(out->regret->geomean, std::sqrt(1.0 * 0.25), 1e-12);
  EXPECT_NEAR(out->regret->min, 0.25, 1e-12);
  EXPECT_NEAR(out->regret->p10, 0.25 + 0.1 * 0.75, 1e-12);
  EXPECT_NEAR(out->regret->top4_geomean, std::sqrt(1.0 * 0.5), 1e-12);
  ASSERT_EQ(out->shapes.size(), 2u);
  EXPECT_EQ(out->shapes[1].best, "c5");
  EXPECT_EQ(out->shapes[1].pick, "c1");
}

TEST(Evaluate, GivesTimeErrorAndRank) {
  // Predictions 10, 20, 30 against 10, 16, 60: errors 0, 0.25, 0.5; the order is right.
  const auto rows = Rows(Row(1, "c1", 10) + Row(2, "c2", 16) + Row(3, "c3", 60));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR(*out->median_abs_error, 0.25, 1e-12);
  EXPECT_NEAR(*out->p90_abs_error, 0.45, 1e-12);
  EXPECT_NEAR(*out->spearman, 1.0, 1e-12);
  EXPECT_FALSE(out->regret.has_value()) << "no shape has a loser";
  EXPECT_FALSE(out->family_choice.has_value());
}

TEST(Evaluate, RanksAReversedOrderAtMinusOne) {
  const auto rows = Rows(Row(1, "c1", 30) + Row(1, "c2", 20) + Row(1, "c3", 10));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR(*out->spearman, -1.0, 1e-12);
  EXPECT_NEAR(*out->spearman_within_shape, -1.0, 1e-12);
}

TEST(Evaluate, PredictsFamiliesItDoesNotKnowByAGenericKernelAndSaysSo) {
  const auto rows = Rows(Row(1, "128x128", 10, "wonder") + Row(2, "64x64", 20, "wonder") +
                         Row(3, "not a config", 20, "toy") + Row(4, "c1", 10, "toy"));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->predicted, 4);
  EXPECT_EQ(out->not_modelled, 0);
  EXPECT_EQ(out->generic, 3);
  EXPECT_THAT(out->generic_families, ElementsAre("toy", "wonder"));
  EXPECT_FALSE(out->regret.has_value()) << "what a generic kernel speaks for is no config of ours";
}

TEST(Evaluate, CountsWhatTheDeviceHasNoRateFor) {
  Device bare = FixedGpu();
  bare.matrix.clear();
  bare.vector.clear();
  const auto rows = Rows(Row(1, "c1", 10, "wonder", "fixed-gpu"));
  const auto out = Evaluate(bare, rows, {});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->not_modelled, 1);
  EXPECT_EQ(out->predicted, 0);
  EXPECT_FALSE(out->median_abs_error.has_value());
  EXPECT_FALSE(out->spearman.has_value());
}

TEST(Evaluate, TakesTheLeastOfRepeatedTimings) {
  const auto rows = Rows(Row(1, "c1", 30) + Row(1, "c1", 10) + Row(1, "c1", 20) + Row(2, "c2", 20));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->rows, 4);
  EXPECT_EQ(out->repeats, 2);
  EXPECT_EQ(out->predicted, 2);
  EXPECT_NEAR(*out->median_abs_error, 0, 1e-12);
}

TEST(Evaluate, GivesHeldOutFiguresBesideThoseOfAllRows) {
  // "m,8,8": find rows of either half, and let those of the fit half be exact.
  std::string body;
  int held_out = 0;
  for (int m = 1; m <= 40; ++m) {
    const bool fit = IsFitRow(fmt::format("{},8,8", m));
    held_out += !fit;
    body += Row(m, "c1", fit ? 10 : 5);
  }
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), Rows(body), families);
  ASSERT_TRUE(out.ok());
  ASSERT_GT(held_out, 5);
  EXPECT_EQ(out->timings, 40);
  EXPECT_EQ(out->held_out.timings, held_out);
  EXPECT_NEAR(*out->held_out.median_abs_error, 1.0, 1e-12);
  EXPECT_LT(*out->median_abs_error, 1.0);
  EXPECT_NEAR(out->held_out.roofline->median, 1.0, 0.05) << "fitted on the other half only";
}

TEST(Evaluate, BreaksErrorsDownBySizeFamilyAndDtype) {
  // 2·m·8·8 flops: m = 1 has 128, m = 100 has 12800.
  const auto rows =
      Rows(Row(1, "c1", 10) + Row(2, "c1", 5) + Row(100, "c2", 10) + Row(100, "", 7, "openblas"));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  ASSERT_EQ(out->decades.size(), 2u);
  EXPECT_EQ(out->decades[0].name, "100 to 1000 FLOP");
  EXPECT_EQ(out->decades[0].model.timings, 2);
  EXPECT_NEAR(out->decades[0].model.median, 0.5, 1e-12);
  EXPECT_EQ(out->decades[1].name, "10 to 100 KFLOP");
  ASSERT_EQ(out->families.size(), 2u);
  EXPECT_EQ(out->families[1].name, "fixed-avx512 toy");
  EXPECT_EQ(out->families[1].model.timings, 3);
  EXPECT_NEAR(out->families[1].model.p90, 1.0, 1e-12);
  ASSERT_EQ(out->dtypes.size(), 1u);
  EXPECT_EQ(out->dtypes[0].name, "fixed-avx512 fp32");
}

TEST(Evaluate, SaysWhereTheWinnerStandsInOurOrder) {
  // Winners: c1 (first by prediction) and c3 (third).
  const auto rows = Rows(Row(1, "c1", 10) + Row(1, "c2", 40) + Row(2, "c1", 20) + Row(2, "c2", 25) +
                         Row(2, "c3", 5) + Row(2, "c4", 30));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok() && out->tile_rank.has_value());
  EXPECT_EQ(out->tile_rank->winners, 2);
  EXPECT_EQ(out->tile_rank->median_rank, 2);
  EXPECT_EQ(out->tile_rank->median_candidates, 3);
  EXPECT_EQ(out->tile_rank->first, 0.5);
  EXPECT_EQ(out->tile_rank->top4, 1);
}

TEST(Evaluate, RanksAStatedTileAmongThoseThatTheFileNames) {
  const auto device = FindDevice("mi355x");
  ASSERT_TRUE(device.ok()) << device.error().Text();
  // On a large square a tile of 16x64 is far behind one of 256x256, on one row the other way.
  const auto row = [](int m, int tile_m, int tile_n, double us) {
    return fmt::format("mi355x,aiter-asm,bf16,bf16,nt,{},8192,8192,1,{},{},64,,,,1,{},x,\n", m,
                       tile_m, tile_n, us);
  };
  const auto right = Evaluate(*device, Rows(row(8192, 256, 256, 700) + row(1, 16, 64, 30)), {});
  ASSERT_TRUE(right.ok() && right->tile_rank.has_value());
  EXPECT_EQ(right->tile_rank->median_candidates, 2);
  EXPECT_EQ(right->tile_rank->first, 1);
  const auto wrong = Evaluate(*device, Rows(row(8192, 16, 64, 700) + row(1, 256, 256, 30)), {});
  ASSERT_TRUE(wrong.ok() && wrong->tile_rank.has_value());
  EXPECT_EQ(wrong->tile_rank->first, 0);
  EXPECT_EQ(wrong->tile_rank->top4, 1);
}

TEST(Evaluate, TakesEachRowsOwnDevice) {
  const auto rows = Rows(Row(1, "c1", 10) + Row(1, "c1", 10, "toy", "fixed-gpu") +
                         Row(1, "c1", 10, "toy", "other"));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const std::vector<Device> devices = {FixedCpu(), FixedGpu()};
  const auto out = Evaluate(devices, rows, families);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->predicted, 2);
  EXPECT_EQ(out->repeats, 0);
  EXPECT_EQ(out->other_device, 1);
  EXPECT_THAT(out->devices, ElementsAre("fixed-avx512", "fixed-gpu"));
  EXPECT_THAT(DevicesOf(rows), ElementsAre("fixed-avx512", "fixed-gpu", "other"));
}

TEST(Evaluate, NamesTheLineOfADeviceThatThereIsNoFileFor) {
  const auto rows = Rows(Row(1, "c1", 10, "toy", "h100") + Row(1, "c1", 10, "toy", "h300"));
  const auto devices = FindDevicesOf(rows, "m.csv");
  ASSERT_FALSE(devices.ok());
  EXPECT_THAT(devices.error().Text(), HasSubstr("m.csv:3:1: "));
  EXPECT_THAT(devices.error().Text(), HasSubstr("h300"));
}

TEST(Evaluate, ChoosesBetweenFamilies) {
  const ToyFamily left({10e-6}, "left"), right({20e-6}, "right");
  const Family* families[] = {&left, &right};
  // `left` is always predicted faster; it is on shape 1 only, where it takes half the time.
  const auto rows = Rows(Row(1, "c1", 10, "left") + Row(1, "c1", 20, "right") +
                         Row(2, "c1", 40, "left") + Row(2, "c1", 10, "right"));
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(out->family_choice.has_value());
  EXPECT_EQ(out->family_choice->shapes, 2);
  EXPECT_EQ(out->family_choice->best_single_family, "right");
  EXPECT_NEAR(out->family_choice->best_single, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(out->family_choice->picked_best, 0.5, 1e-12);
  EXPECT_NEAR(out->family_choice->headroom_recovered, -1.0, 1e-12);
  EXPECT_EQ(out->family_choice->picked_fastest, 0.5);
  ASSERT_EQ(out->family_choice->singles.size(), 2u);
  EXPECT_EQ(out->family_choice->singles[0].family, "left");
  EXPECT_NEAR(out->family_choice->singles[0].always, 0.5, 1e-12);
  EXPECT_NEAR(out->family_choice->singles[0].headroom_recovered, 0, 1e-12);
  EXPECT_TRUE(out->family_pairs.empty()) << "two families are the only pair";
}

TEST(Evaluate, RecoversAllHeadroomWhereTheRightFamilyIsAlwaysChosen) {
  // c1 is predicted at 10, c3 at 30 µs: the family whose row is fastest is predicted fastest.
  const ToyFamily a({10e-6, 20e-6, 30e-6}, "a"), b({10e-6, 20e-6, 30e-6}, "b"),
      c({10e-6, 20e-6, 30e-6}, "c");
  const Family* families[] = {&a, &b, &c};
  const auto rows = Rows(Row(1, "c1", 10, "a") + Row(1, "c2", 20, "b") + Row(1, "c3", 40, "c") +
                         Row(2, "c3", 40, "a") + Row(2, "c1", 10, "b") + Row(2, "c2", 15, "c"));
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_TRUE(out.ok() && out->family_choice.has_value());
  EXPECT_NEAR(out->family_choice->picked_best, 1, 1e-12);
  EXPECT_NEAR(out->family_choice->headroom_recovered, 1, 1e-12);
  EXPECT_EQ(out->family_choice->best_single_family, "b");
  EXPECT_NEAR(out->family_choice->best_single, std::sqrt(0.5), 1e-12);
  ASSERT_EQ(out->family_pairs.size(), 3u);
  EXPECT_THAT(out->family_pairs[2].among, ElementsAre("b", "c"));
  EXPECT_NEAR(out->family_pairs[2].best_single, 1, 1e-12);
}

TEST(Evaluate, DoesNotChooseBetweenFamiliesThatOneModelSpeaksFor) {
  const auto rows = Rows(Row(1, "", 10, "wonder") + Row(1, "", 20, "marvel"));
  const auto out = Evaluate(FixedCpu(), rows, {});
  ASSERT_TRUE(out.ok());
  EXPECT_FALSE(out->family_choice.has_value());
}

TEST(Roofline, FindsTheThreeNumbersThatMadeTheTimes) {
  const Device gpu = FixedGpu();
  std::vector<Problem> problems;
  for (const std::int64_t m : {1, 64, 4096, 65536})
    for (const std::int64_t n : {64, 1024, 8192})
      for (const std::int64_t k : {64, 2048, 16384}) {
        Problem p;
        p.m = m;
        p.n = n;
        p.k = k;
        p.dtype = p.dtype_out = DType::kBf16;
        problems.push_back(p);
      }
  std::vector<RooflineTiming> timings;
  for (const Problem& p : problems) {
    const double time =
        5e-6 + std::max(p.flops().value / (0.7 * 1e15), p.bytes().value / (0.5 * 4e12));
    timings.push_back({&gpu, &p, "g", time, timings.size() % 2 == 0});
  }
  const std::vector<double> fitted = FitRooflines(timings);
  for (size_t i = 0; i < timings.size(); ++i)
    EXPECT_NEAR(fitted[i] / timings[i].measured, 1, 0.02) << problems[i].Text();
}

TEST(PredictMeasured, SaysWhichModelSpoke) {
  using By = MeasuredPrediction::By;
  const auto mi355x = FindDevice("mi355x");
  const auto h100 = FindDevice("h100");
  ASSERT_TRUE(mi355x.ok() && h100.ok());
  const auto by = [](const Device& device, const std::string& family, const std::string& tile,
                     const std::string& config) {
    const auto rows = Rows(fmt::format("{},{},bf16,bf16,nt,4096,4096,4096,1,{},,,,1,500,x,{}\n",
                                       device.id, family, tile, config));
    const auto predicted = PredictMeasured(device, rows[0], {});
    EXPECT_TRUE(predicted.has_value()) << family;
    return predicted->by;
  };
  EXPECT_EQ(by(*mi355x, "aiter-asm", "256,256,64", ""), By::kTile);
  EXPECT_EQ(by(*mi355x, "hipblaslt", ",,", ""), By::kLibrary);
  EXPECT_EQ(by(*mi355x, "wonder", "256,256,64", ""), By::kGeneric);
  EXPECT_EQ(by(*h100, "cublas", ",,", ""), By::kLibrary);
  EXPECT_EQ(by(*h100, "cutlass", ",,", ""), By::kLibrary);
  EXPECT_EQ(by(*h100, "wonder", ",,", ""), By::kGeneric);
  EXPECT_EQ(by(*h100, "cublas", ",,", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"), By::kName);
}

TEST(Evaluate, RefusesAFileOfAnotherDevice) {
  const auto rows = Rows(Row(1, "c1", 10, "toy", "h100"));
  const ToyFamily toy = Toy();
  const Family* families[] = {&toy};
  const auto out = Evaluate(FixedCpu(), rows, families);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.error().Text(), HasSubstr("the file has h100"));
}

TEST(Evaluate, PredictsVendorLibrariesWithTheirModel) {
  const auto rows = Rows(Row(512, "", 10, "openblas") + Row(1024, "", 20, "openblas"));
  const auto out = Evaluate(FixedCpu(), rows, {});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->predicted, 2);
  EXPECT_NEAR(*out->spearman, 1.0, 1e-12);
}

TEST(Samples, GiveTheTimeOfOneCall) {
  Samples samples;
  EXPECT_TRUE(samples.empty());
  int calls = 0;
  ASSERT_TRUE(samples.Take([&] { return ++calls, Status(Done{}); }, {0}).ok());
  EXPECT_FALSE(samples.empty());
  EXPECT_GE(calls, 2) << "one to find the number of calls, one to time";
  EXPECT_GE(samples.Time().value, 0);
}

TEST(Samples, PassAFailureOn) {
  Samples samples;
  EXPECT_FALSE(samples.Take([] { return Status(BadInput("no")); }, {0}).ok());
}

}  // namespace
}  // namespace gnomon
