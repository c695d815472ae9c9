// Model files: the shipped ones, widths, the fit of the critical batch, and messages for wrong
// files.

#include "gnomon/workload/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <string>

#include "gnomon/base/files.h"

namespace gnomon {
namespace {

using ::testing::HasSubstr;

std::string Shipped(const std::string& id) { return GNOMON_SOURCE_DIR "/models/" + id + ".toml"; }

constexpr std::string_view kTiny = R"(id = "tiny"
name = "a model of three tables"
source = "test"
[dense]
features = 4
[embedding]
dim = 8
pooling = "sum"
rows = [10, 20, 30]
[[block]]
name = "bottom"
type = "mlp"
input = "dense"
widths = [16, 8]
last = "relu"
[[block]]
name = "interaction"
type = "dot"
inputs = ["bottom", "embedding"]
[[block]]
name = "top"
type = "mlp"
input = "interaction"
widths = [5, 1]
last = "none"
[optimizer]
dense = "adagrad"
embedding = "rowwise_adagrad"
epsilon = 1e-8
[training]
learning_rate = 0.01
dataset_samples = 1000
)";

// Reads kTiny with one text replaced by another.
Result<Model> ReadChanged(std::string_view from, std::string_view to) {
  std::string text(kTiny);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::string path = testing::TempDir() + "/changed.toml";
  EXPECT_TRUE(WriteFile(path, text).ok());
  return ReadModel(path);
}

std::string MessageOf(const Result<Model>& model) {
  return model.ok() ? "no error" : model.error().Text();
}

TEST(ReadModel, KnowsTheWidthsOfDlrmKaggle) {
  const auto model = ReadModel(Shipped("dlrm_kaggle"));
  ASSERT_TRUE(model.ok()) << model.error().Text();
  EXPECT_EQ(model->tables.size(), 26u);
  EXPECT_EQ(model->TotalRows(), 33762577);
  EXPECT_EQ(model->LookupsPerSample(), 26);
  EXPECT_EQ(model->FindBlock("interaction")->out_width, 16 + 27 * 26 / 2);
  EXPECT_EQ(model->FindBlock("top")->in_width, 367);
  EXPECT_EQ(model->facts.at("quality.critical_batch").kind, FactKind::kAssumed);
}

TEST(ReadModel, KnowsTheWidthsOfDcnV2) {
  const auto model = ReadModel(Shipped("dlrm_dcnv2"));
  ASSERT_TRUE(model.ok()) << model.error().Text();
  EXPECT_EQ(model->TotalRows(), 204184588);
  EXPECT_EQ(model->LookupsPerSample(), 214);
  EXPECT_EQ(model->FindBlock("cross")->out_width, 3456);
  EXPECT_EQ(model->FindBlock("over")->in_width, 3456);
}

TEST(ReadModel, FindsShippedModelsByIdAndListsThemForAnUnknownOne) {
  EXPECT_TRUE(FindModel("dlrm_kaggle").ok());
  const auto unknown = FindModel("dlrm_kagle");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Error::Code::kBadInput);
  EXPECT_THAT(unknown.error().message, HasSubstr("nearest is 'dlrm_kaggle'"));
  EXPECT_THAT(unknown.error().message, HasSubstr("dlrm_dcnv2"));
}

TEST(ReadModel, NamesLineColumnAndNearestKeyOfAMistypedOne) {
  EXPECT_THAT(MessageOf(ReadChanged("dim = 8", "dims = 8")),
              HasSubstr("changed.toml:7:1: unknown key of [embedding] 'dims'; nearest is 'dim'"));
  EXPECT_THAT(MessageOf(ReadChanged("widths = [16, 8]", "width = [16, 8]")),
              HasSubstr(":14:1: unknown key of [block] 'width'; nearest is 'widths'"));
  EXPECT_THAT(MessageOf(ReadChanged("[training]", "[trainings]")),
              HasSubstr("nearest is 'training'"));
}

TEST(ReadModel, RefusesValuesThatMeanNothing) {
  EXPECT_THAT(MessageOf(ReadChanged("rows = [10, 20, 30]", "rows = [10, 0, 30]")),
              HasSubstr(":9:13: 'embedding.rows' is 0"));
  EXPECT_THAT(MessageOf(ReadChanged("rows = [10, 20, 30]", "rows = []")),
              HasSubstr("'embedding.rows' is empty"));
  EXPECT_THAT(MessageOf(ReadChanged("features = 4", "features = \"4\"")),
              HasSubstr("must be a whole number, not a string"));
  EXPECT_THAT(MessageOf(ReadChanged("epsilon = 1e-8", "epsilon = nan")),
              HasSubstr("'optimizer.epsilon' is nan"));
  EXPECT_THAT(MessageOf(ReadChanged("features = 4", "features = 99999999999999")),
              HasSubstr("must lie in"));
  EXPECT_THAT(MessageOf(ReadChanged("type = \"dot\"", "type = \"dots\"")),
              HasSubstr("nearest is 'dot'"));
  EXPECT_THAT(MessageOf(ReadChanged("learning_rate = 0.01\n", "")),
              HasSubstr("key 'training.learning_rate' is missing"));
  EXPECT_THAT(MessageOf(ReadChanged("dim = 8", "dim = 8\nhot = [1, 2]")),
              HasSubstr("2 values for 3 tables"));
}

TEST(ReadModel, RefusesBlocksThatDoNotFitTogether) {
  EXPECT_THAT(MessageOf(ReadChanged("input = \"interaction\"", "input = \"interactions\"")),
              HasSubstr("unknown input 'interactions'; nearest is 'interaction'"));
  EXPECT_THAT(MessageOf(ReadChanged("widths = [16, 8]", "widths = [16, 7]")),
              HasSubstr("is 7 wide, but embedding.dim is 8"));
  EXPECT_THAT(MessageOf(ReadChanged("widths = [5, 1]", "widths = [5, 2]")),
              HasSubstr("it gives the logit"));
  EXPECT_THAT(MessageOf(ReadChanged("input = \"interaction\"", "input = \"bottom\"")),
              HasSubstr("block 'bottom' feeds 2 blocks"));
  EXPECT_THAT(MessageOf(ReadChanged("name = \"top\"", "name = \"bottom\"")),
              HasSubstr("block name 'bottom' is taken"));
}

TEST(ReadModel, WantsASourceForAnAssumedNumber) {
  EXPECT_THAT(
      MessageOf(ReadChanged("rows = [10, 20, 30]", "rows = [10, 20, 30]\nzipf_exponent = 1.1")),
      HasSubstr("must be a table { value, kind, source, read }"));
  EXPECT_THAT(MessageOf(ReadChanged("rows = [10, 20, 30]",
                                    "rows = [10, 20, 30]\nzipf_exponent = { value = 1.1, kind = "
                                    "\"assumed\", read = 2026-12-01 }")),
              HasSubstr("'embedding.zipf_exponent.source' is missing"));
}

TEST(ReadModel, ReportsSyntaxErrorsEmptyAndAbsentFiles) {
  EXPECT_THAT(MessageOf(ReadChanged("dim = 8", "dim = ")), HasSubstr("changed.toml:7:"));
  const std::string empty = testing::TempDir() + "/empty.toml";
  ASSERT_TRUE(WriteFile(empty, "").ok());
  EXPECT_THAT(MessageOf(ReadModel(empty)), HasSubstr("empty"));
  EXPECT_FALSE(ReadModel(testing::TempDir() + "/absent.toml").ok());
}

// Reference convergence points of DLRM-DCNv2: github.com/mlcommons/logging,
// rcp_checker/training_6.0.0/rcps_dlrm_dcnv2.json, mean epochs to the target.
struct ConvergencePoint {
  double batch, epochs;
  bool fitted;
};
constexpr std::array<ConvergencePoint, 6> kPoints = {{{32768, 0.707, true},
                                                      {55296, 0.763, false},
                                                      {65536, 0.793, true},
                                                      {102400, 0.890, false},
                                                      {135168, 0.928, false},
                                                      {160000, 0.958, true}}};

TEST(Quality, CriticalBatchOfDcnV2IsTheFitAndPredictsTheOtherPoints) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const ConvergencePoint& p : kPoints) {
    if (!p.fitted) continue;
    ++n, sx += p.batch, sy += p.epochs, sxx += p.batch * p.batch, sxy += p.batch * p.epochs;
  }
  const double slope = (n * sxy - sx * sy) / (n * sxx - sx * sx), base = (sy - slope * sx) / n;
  const auto model = ReadModel(Shipped("dlrm_dcnv2"));
  ASSERT_TRUE(model.ok());
  EXPECT_NEAR(model->critical_batch, base / slope, 0.01 * base / slope);
  constexpr double kTolerance = 0.05;
  for (const ConvergencePoint& p : kPoints)
    EXPECT_NEAR(base * model->SamplesFactor(static_cast<std::int64_t>(p.batch)) / p.epochs, 1,
                kTolerance)
        << p.batch;
}

TEST(Quality, CriticalBatchOfKaggleScalesWithTheDataSet) {
  const auto kaggle = ReadModel(Shipped("dlrm_kaggle")), dcnv2 = ReadModel(Shipped("dlrm_dcnv2"));
  ASSERT_TRUE(kaggle.ok() && dcnv2.ok());
  const double scaled = dcnv2->critical_batch * static_cast<double>(kaggle->dataset_samples) /
                        static_cast<double>(dcnv2->dataset_samples);
  EXPECT_NEAR(kaggle->critical_batch, scaled, 0.02 * scaled);
  EXPECT_DOUBLE_EQ(kaggle->SamplesFactor(3700), 2);
}

}  // namespace
}  // namespace gnomon
