#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "gnomon/train/data_criteo.h"
#include "gnomon/train/data_synthetic.h"
#include "gnomon/train/samples.h"

namespace gnomon::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SampleShape CriteoShape(std::int64_t rows = 1000) {
  SampleShape shape;
  shape.dense_features = 13;
  shape.table_rows.assign(26, rows);
  shape.hot.assign(26, 1);
  return shape;
}

std::string GoodLine(const std::string& label = "1", const std::string& first_count = "3") {
  std::string line = fmt::format("{}\t{}", label, first_count);
  for (int i = 1; i < 13; ++i) line += fmt::format("\t{}", i);
  for (int i = 0; i < 26; ++i) line += fmt::format("\t05db91{}", 10 + i);
  return line;
}

class CriteoFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fmt::format("{}criteo_{}_{}", testing::TempDir(), getpid(),
                        testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  Result<std::unique_ptr<SampleSource>> Open(std::int64_t bad_line_limit = 100) {
    return OpenCriteo({.path = path_, .shape = CriteoShape(), .bad_line_limit = bad_line_limit});
  }
  std::string path_;
};

TEST(ParseCriteoLine, TransformsCountsAndHashesCategories) {
  Samples samples;
  std::string line = "0\t\t-2\t7";
  for (int i = 3; i < 13; ++i) line += "\t0";
  line += "\t05db9164\t";  // second category missing
  for (int i = 2; i < 26; ++i) line += "\t05db9164";
  ASSERT_TRUE(ParseCriteoLine(line, CriteoShape(), samples).ok());
  EXPECT_EQ(samples.count, 1);
  EXPECT_EQ(samples.labels[0], 0);
  EXPECT_EQ(samples.dense[0], 0);
  EXPECT_EQ(samples.dense[1], 0);
  EXPECT_NEAR(samples.dense[2], std::log(8.0), 1e-6);
  EXPECT_GT(samples.indices[0], 0);
  EXPECT_LT(samples.indices[0], 1000);
  EXPECT_EQ(samples.indices[1], 0);
  EXPECT_NE(samples.indices[0], samples.indices[2]) << "tables hash differently";
}

TEST_F(CriteoFile, ReportsBadLinesByNumberAndSkipsThem) {
  Write(GoodLine() + "\nnonsense\n" + GoodLine("2") + "\n" + GoodLine("1", "nan") + "\n" +
        GoodLine("1", "x") + "\n" + GoodLine("0") + "\n");
  auto source = Open();
  ASSERT_TRUE(source.ok());
  Samples samples;
  ASSERT_TRUE((*source)->Read(0, 4, samples).ok());
  EXPECT_THAT(samples.labels, ElementsAre(1, 0, 1, 0)) << "the file starts again after its end";
  const auto bad = (*source)->bad_lines();
  ASSERT_EQ(bad.size(), 4u) << "a second pass does not report again";
  EXPECT_THAT(bad[0], HasSubstr(":2: 1 fields"));
  EXPECT_THAT(bad[1], HasSubstr(":3: label '2'"));
  EXPECT_THAT(bad[2], HasSubstr(":4: count 'nan' is not finite"));
  EXPECT_THAT(bad[3], HasSubstr(":5: count 'x' is not a number"));
}

TEST_F(CriteoFile, TooManyBadLinesAreAnError) {
  Write("a\nb\nc\n" + GoodLine() + "\n");
  auto source = Open(/*bad_line_limit=*/2);
  ASSERT_TRUE(source.ok());
  Samples samples;
  const Status read = (*source)->Read(0, 1, samples);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().Text(), HasSubstr(":3: more than 2 bad lines"));
}

TEST_F(CriteoFile, EmptyOrMissingOrUselessFileIsAnError) {
  Samples samples;
  EXPECT_THAT(Open().error().Text(), HasSubstr("cannot open the data: No such file"));
  Write("");
  auto empty = Open();
  EXPECT_THAT((*empty)->Read(0, 1, samples).error().Text(), HasSubstr("the file is empty"));
  Write("\n\n");
  auto blank = Open();
  EXPECT_THAT((*blank)->Read(0, 1, samples).error().Text(), HasSubstr("no usable line"));
}

TEST_F(CriteoFile, HoldsOutEveryTenthLineAndNeverTrainsOnIt) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += GoodLine("1", std::to_string(i)) + "\n";
  Write(text);
  auto source = Open();
  Samples held_out, train;
  ASSERT_TRUE((*source)->ReadHeldOut(100, held_out).ok());
  ASSERT_TRUE((*source)->Read(0, 36, train).ok());
  EXPECT_EQ(held_out.count, 4);
  for (std::int64_t h = 0; h < held_out.count; ++h) {
    const float value = held_out.dense[static_cast<std::size_t>(h * 13)];
    EXPECT_FLOAT_EQ(value, std::log1p(static_cast<float>(10 * h + 9)));
    for (std::int64_t i = 0; i < train.count; ++i)
      EXPECT_NE(train.dense[static_cast<std::size_t>(i * 13)], value);
  }
}

TEST_F(CriteoFile, ReadsFromAnyPositionLikeOneStream) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += GoodLine("1", std::to_string(i)) + "\n";
  Write(text);
  Samples whole, part;
  ASSERT_TRUE((*Open())->Read(0, 60, whole).ok());
  ASSERT_TRUE((*Open())->Read(50, 10, part).ok());
  EXPECT_TRUE(std::equal(part.dense.begin(), part.dense.end(), whole.dense.begin() + 50 * 13));
}

TEST_F(CriteoFile, ReadsGzipAndSaysWhenItIsTruncated) {
  gzFile file = gzopen(path_.c_str(), "wb");
  for (int i = 0; i < 2000; ++i) {
    const std::string line = GoodLine("1", std::to_string(i * 7919 % 1000)) + "\n";
    gzwrite(file, line.data(), static_cast<unsigned>(line.size()));
  }
  gzclose(file);
  Samples samples;
  ASSERT_TRUE((*Open())->Read(0, 1500, samples).ok());
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  const Status read = (*Open())->Read(0, 3000, samples);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().Text(), HasSubstr("the file is truncated"));
}

TEST(OpenCriteo, RefusesAModelOfAnotherShape) {
  SampleShape shape = CriteoShape();
  shape.dense_features = 4;
  EXPECT_THAT(OpenCriteo({.path = "x", .shape = shape}).error().Text(),
              HasSubstr("13 counts and 26"));
}

SampleShape SmallShape() {
  SampleShape shape;
  shape.dense_features = 5;
  shape.table_rows = {7, 1000, 1, 100000};
  shape.hot = {1, 3, 1, 2};
  return shape;
}

TEST(Synthetic, SamplesDoNotDependOnBatchSizeOrThreads) {
  Samples whole, part;
  ASSERT_TRUE(MakeSyntheticSource(SmallShape(), 1.05, 7, 2)->Read(0, 300, whole).ok());
  const auto source = MakeSyntheticSource(SmallShape(), 1.05, 7, 1);
  for (std::int64_t first : {0, 64, 299}) {
    const std::int64_t count = std::min<std::int64_t>(64, 300 - first);
    ASSERT_TRUE(source->Read(first, count, part).ok());
    EXPECT_TRUE(
        std::equal(part.indices.begin(), part.indices.end(), whole.indices.begin() + first * 7));
    EXPECT_TRUE(std::equal(part.dense.begin(), part.dense.end(), whole.dense.begin() + first * 5));
    EXPECT_TRUE(std::equal(part.labels.begin(), part.labels.end(), whole.labels.begin() + first));
  }
}

TEST(Synthetic, SeedsAndHeldOutSamplesDiffer) {
  Samples a, b, held_out;
  ASSERT_TRUE(MakeSyntheticSource(SmallShape(), 1.05, 1, 1)->Read(0, 100, a).ok());
  ASSERT_TRUE(MakeSyntheticSource(SmallShape(), 1.05, 2, 1)->Read(0, 100, b).ok());
  ASSERT_TRUE(MakeSyntheticSource(SmallShape(), 1.05, 1, 1)->ReadHeldOut(100, held_out).ok());
  EXPECT_NE(a.indices, b.indices);
  EXPECT_NE(a.dense, held_out.dense);
}

TEST(Synthetic, HasTheBaseRateAndTheSkewAskedFor) {
  constexpr std::int64_t kCount = 40000;
  SampleShape shape;
  shape.dense_features = 13;
  shape.table_rows = {10000, 10000, 10000, 10000};
  shape.hot = {1, 1, 1, 1};
  Samples samples;
  ASSERT_TRUE(MakeSyntheticSource(shape, 1.05, 3, 2)->Read(0, kCount, samples).ok());
  const double clicks = std::accumulate(samples.labels.begin(), samples.labels.end(), 0.0) / kCount;
  EXPECT_NEAR(clicks, 0.25, 0.03);
  std::vector<int> hits(10000, 0);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::int32_t row = samples.indices[static_cast<std::size_t>(4 * i)];
    ASSERT_GE(row, 0);
    ASSERT_LT(row, 10000);
    ++hits[static_cast<std::size_t>(row)];
  }
  std::sort(hits.rbegin(), hits.rend());
  // The most frequent row: the integral of x^-1.05 over [1, 2) by that over [1, 10001).
  const double share = (1 - std::pow(2, -0.05)) / (1 - std::pow(10001, -0.05));
  EXPECT_NEAR(hits[0] / static_cast<double>(kCount), share, 0.01);
}

TEST(MakeBatch, LayoutsNameTheSameRows) {
  const SampleShape shape = SmallShape();
  Samples samples;
  ASSERT_TRUE(MakeSyntheticSource(shape, 1.05, 5, 1)->Read(0, 10, samples).ok());
  Batch major, per_table, merged;
  MakeBatch(shape, samples, 8, 4, {IndexLayout::kTableMajor, 8}, major);
  MakeBatch(shape, samples, 8, 4, {IndexLayout::kPerTable, 8}, per_table);
  MakeBatch(shape, samples, 8, 4, {IndexLayout::kMergedSampleMajor, 8}, merged);
  EXPECT_EQ(major.dense.size(), 4u * 8);
  EXPECT_EQ(major.dense[5], 0);  // padding
  EXPECT_EQ(major.dense[2 * 8], samples.dense[0]) << "sample 10 is sample 0 again";
  EXPECT_EQ(major.indices, per_table.indices);
  EXPECT_THAT(
      std::vector<std::int64_t>(per_table.offsets.begin() + 4, per_table.offsets.begin() + 8),
      ElementsAre(0, 3, 6, 9));
  EXPECT_EQ(major.offsets.back(), 28);
  // Table 1 of sample 2 of the batch: major order against merged rows, which are shifted by table
  // 0's 7.
  for (std::size_t h = 0; h < 3; ++h)
    EXPECT_EQ(major.indices[4 + 2 * 3 + h] + 7, merged.indices[2 * 7 + 1 + h]);
  EXPECT_THAT(std::vector<std::int64_t>(merged.offsets.begin(), merged.offsets.begin() + 5),
              ElementsAre(0, 1, 4, 5, 7));
}

}  // namespace
}  // namespace gnomon::train
