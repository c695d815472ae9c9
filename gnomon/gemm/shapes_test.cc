#include "gnomon/gemm/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gnomon {
namespace {

using testing::HasSubstr;

TEST(Shapes, ReadNamesAndSides) {
  const auto shapes = ParseShapes("name,layout,m,n,k,batch\na,nt,2048,512,13,1\nb,tn,3,4,5,2\n",
                                  "s.csv", DType::kBf16);
  ASSERT_TRUE(shapes.ok()) << shapes.error().Text();
  ASSERT_EQ(shapes->size(), 2u);
  EXPECT_EQ((*shapes)[1].name, "b");
  EXPECT_EQ((*shapes)[1].problem.Text(), "3x4x5 tn bf16 batch 2");
}

TEST(Shapes, ErrorsNameLineAndColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"name,layout,m,n,k,batch\na,nt,0,512,13,1\n", "s.csv:2:6"},
      {"name,layout,m,n,k,batch\na,nt,1,512,13,1\nb,xx,1,1,1,1\n", "s.csv:3:3"},
      {"name,layout,m,n,k,batch\na,nt,1,five,13,1\n", "s.csv:2:8"},
      {"name,layout,m,n,q,batch\na,nt,1,5,13,1\n", "k"},
      {"name,layout,m,n,k,batch\n", "no shapes"},
      {"name,layout,m,n,k,batch\na,nt,1099511627776,1099511627776,1,1\n", "2^62"}};
  for (const auto& [text, wanted] : cases) {
    const auto shapes = ParseShapes(text, "s.csv", DType::kFp32);
    ASSERT_FALSE(shapes.ok()) << text;
    EXPECT_THAT(shapes.error().Text(), HasSubstr(wanted));
  }
}

TEST(Measurements, ALineReadsBackAsItself) {
  Measurement row;
  row.device = "host";
  row.family = "cpu";
  row.problem.m = 3;
  row.problem.n = 4;
  row.problem.k = 5;
  row.problem.layout = Layout::kTN;
  row.tile_m = 14;
  row.us = 1.25;
  row.source = "a, with a comma";
  row.config = "c1";
  const auto rows =
      ParseMeasurements(std::string(kMeasuredHeader) + "\n" + MeasurementLine(row), "m.csv");
  ASSERT_TRUE(rows.ok()) << rows.error().Text();
  ASSERT_EQ(rows->size(), 1u);
  const Measurement& back = (*rows)[0];
  EXPECT_EQ(back.device, "host");
  EXPECT_EQ(back.problem.Text(), "3x4x5 tn fp32");
  EXPECT_EQ(back.tile_m, 14);
  EXPECT_EQ(back.tile_n, 0);
  EXPECT_EQ(back.us, 1.25);
  EXPECT_EQ(back.source, row.source);
  EXPECT_EQ(back.config, "c1");
}

TEST(Measurements, RefuseATimeOfZero) {
  const auto rows = ParseMeasurements(
      std::string(kMeasuredHeader) + "\nhost,cpu,fp32,fp32,nt,1,1,1,1,,,,,,,,0,s,c\n", "m.csv");
  ASSERT_FALSE(rows.ok());
  EXPECT_THAT(rows.error().Text(), HasSubstr("m.csv:2:38"));
}

TEST(Measurements, RefuseTornRowsAndTimesThatAreNone) {
  const std::string head = std::string(kMeasuredHeader) + "\n";
  const std::pair<std::string, const char*> cases[] = {
      {head + "host,cpu,fp32,fp32,nt,1,1,1,1,,,,,,,,-4,s,c\n", "m.csv:2:38"},
      {head + "host,cpu,fp32,fp32,nt,1,1,1,1,,,,,,,,inf,s,c\n", "m.csv:2:38"},
      {head + "host,cpu,fp32,fp32,nt,1,1,1,1,,,,,,,,,s,c\n", "m.csv:2:38"},
      {head + "host,cpu,fp32,fp32,nt,1,1,1,1,,,,,,,,4\n", "m.csv:2"},
      {head + "host,cpu,fp32,fp32,nt,1,1,1,1,,,,big,,,,4,s,c\n", "m.csv:2:34: mma_m"},
      {head + "host,cpu,fp32,fp32,nt,1,1,1,1,,,,16,-1,,,4,s,c\n", "m.csv:2:37: mma_n"},
      {head + "host,cpu,fp32,fp32,nt,1,1,1,1,,,,16,16,1.5,,4,s,c\n", "m.csv:2:40: mma_k"},
      {"device,family,dtype,dtype_out,layout,m,n,k,batch,usec\n", "us"},
      {head, "no measurements"},
      {"", "m.csv"}};
  for (const auto& [text, wanted] : cases) {
    const auto rows = ParseMeasurements(text, "m.csv");
    ASSERT_FALSE(rows.ok()) << text;
    EXPECT_THAT(rows.error().Text(), HasSubstr(wanted));
  }
}

TEST(Measurements, CountFailedConfigsApart) {
  const auto table = ParseMeasuredTable(std::string(kMeasuredHeader) +
                                            "\nhost,cpu,fp32,fp32,nt,1,1,1,1,,,,,,,,nan,s,c1\n" +
                                            "host,cpu,fp32,fp32,nt,1,1,1,1,,,,,,,,2,s,c2\n",
                                        "m.csv");
  ASSERT_TRUE(table.ok()) << table.error().Text();
  EXPECT_EQ(table->failed, 1);
  ASSERT_EQ(table->rows.size(), 1u);
  EXPECT_EQ(table->rows[0].config, "c2");
  EXPECT_EQ(table->rows[0].line, 3);
}

TEST(Measurements, AForeignFormatIsReadAsItsNearestKin) {
  const auto rows = ParseMeasurements(
      std::string(kMeasuredHeader) + "\nb200,cudnn,nvfp4,bf16,nt,1,1,1,1,,,,,,,,2,s,c\n", "m.csv");
  ASSERT_TRUE(rows.ok()) << rows.error().Text();
  EXPECT_FALSE((*rows)[0].dtype_modelled);
  EXPECT_EQ((*rows)[0].problem.dtype, DType::kMxFp4);
  EXPECT_EQ((*rows)[0].dtype_text, "nvfp4");
  EXPECT_THAT(MeasurementLine((*rows)[0]), HasSubstr("nvfp4"));
}

TEST(Measurements, EveryPublicFileReads) {
  const std::filesystem::path folder = GNOMON_SOURCE_DIR "/../shared/measured";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no ../shared/measured beside the project";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    const auto rows = ReadMeasurements(entry.path().string());
    EXPECT_TRUE(rows.ok()) << rows.error().Text();
  }
}

}  // namespace
}  // namespace gnomon
