#include "gnomon/gemm/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/operands.h"
#include "gnomon/gemm/toy_family.h"

namespace gnomon {
namespace {

using testing::HasSubstr;

// Three obvious loops; config 3 leaves the last element of C out when told to be wrong.
class ToyRunner : public KernelRunner {
 public:
  const Family& family() const override { return family_; }
  Status Run(const Problem& p, const Config& config, const void* a, const void* b,
             void* c) const override {
    ++runs;
    const auto* fa = static_cast<const float*>(a);
    const auto* fb = static_cast<const float*>(b);
    auto* fc = static_cast<float*>(c);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        if (wrong && config.value[0] == 3 && i + 1 == p.m && j + 1 == p.n) continue;
        float sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k)
          sum += fa[p.a_transposed() ? k * p.LeadingA() + i : i * p.LeadingA() + k] *
                 fb[p.b_transposed() ? j * p.LeadingB() + k : k * p.LeadingB() + j];
        fc[i * p.LeadingC() + j] = sum;
      }
    }
    return Done{};
  }
  void Describe(const Config& config, Measurement& row) const override {
    row.tile_m = config.value[0];
  }

  mutable int runs = 0;
  bool wrong = false;

 private:
  ToyFamily family_{{1, 2, 3}};
};

class SweepTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("gnomon_sweep_") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    options_.min_sample_us = 0.001;
    options_.rounds = 1;
    options_.final_rounds = 0;
    options_.source = "test";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path() const { return (folder_ / "out.csv").string(); }
  std::string Content() const {
    std::ostringstream text;
    text << std::ifstream(Path()).rdbuf();
    return text.str();
  }
  void Write(const std::string& text) const { std::ofstream(Path(), std::ios::binary) << text; }

  static std::vector<Shape> Shapes() {
    return ParseShapes(
               "name,layout,m,n,k,batch\na,nt,5,7,3,1\nb,tn,4,4,4,1\nbig,nn,900,900,900,1\n", "s",
               DType::kFp32)
        .value();
  }
  Result<SweepResult> Run() {
    options_.max_gflop = 0.1;
    return Sweep(FixedCpu(), runner_, Shapes(), Path(), options_);
  }

  std::filesystem::path folder_;
  ToyRunner runner_;
  SweepOptions options_;
};

TEST_F(SweepTest, WritesOneRowAConfigAndPassesOverLargeShapes) {
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result->shapes, 2);
  EXPECT_EQ(result->complete, 2);
  EXPECT_EQ(result->rows_written, 6);
  const auto rows = ReadMeasurements(Path());
  ASSERT_TRUE(rows.ok()) << rows.error().Text();
  ASSERT_EQ(rows->size(), 6u);
  EXPECT_EQ((*rows)[0].device, "fixed-avx512");
  EXPECT_EQ((*rows)[2].config, "c3");
  EXPECT_EQ((*rows)[2].tile_m, 3);
  EXPECT_EQ((*rows)[5].problem.Text(), "4x4x4 tn fp32");
}

TEST_F(SweepTest, ARerunTimesNothingAgain) {
  ASSERT_TRUE(Run().ok());
  const std::string before = Content();
  runner_.runs = 0;
  const auto again = Run();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->rows_written, 0);
  EXPECT_EQ(again->complete, 2);
  EXPECT_EQ(runner_.runs, 0);
  EXPECT_EQ(Content(), before);
}

TEST_F(SweepTest, ResumesBehindATornLastLine) {
  ASSERT_TRUE(Run().ok());
  const std::string whole = Content();
  // Cut in the middle of the fifth row: four stay.
  size_t cut = 0;
  for (int line = 0; line < 5; ++line) cut = whole.find('\n', cut) + 1;
  Write(whole.substr(0, cut + 9));
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result->rows_written, 2);
  EXPECT_EQ(Content().substr(0, cut), whole.substr(0, cut));
  EXPECT_EQ(ReadMeasurements(Path())->size(), 6u);
}

TEST_F(SweepTest, ResumesWhereOnlyPartOfTheHeaderWasWritten) {
  Write(std::string(kMeasuredHeader.substr(0, 11)));
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(ReadMeasurements(Path())->size(), 6u);
}

TEST_F(SweepTest, RefusesAFileThatIsNoMeasuredCsv) {
  Write("name,layout\nx,nt\n");
  const auto result = Run();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().Text(), HasSubstr("out.csv:1:1"));
  EXPECT_EQ(Content(), "name,layout\nx,nt\n");
}

TEST_F(SweepTest, RefusesAWrongKernelByName) {
  runner_.wrong = true;
  const auto result = Run();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().Text(), HasSubstr("config c3 computes 5x7x3 nt fp32 wrongly"));
}

TEST_F(SweepTest, NamesAFolderThatDoesNotExist) {
  const auto result =
      Sweep(FixedCpu(), runner_, Shapes(), (folder_ / "none" / "x.csv").string(), options_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Error::Code::kInternal);
  EXPECT_THAT(result.error().Text(), HasSubstr("none/x.csv"));
}

TEST(Operands, CheckSeesExchangedColumns) {
  Problem p;
  p.m = 3;
  p.n = 4;
  p.k = 5;
  auto operands = Operands::Make(p);
  ASSERT_TRUE(operands.ok());
  ToyRunner runner;
  ASSERT_TRUE(runner.Run(p, {}, operands->a(), operands->b(), operands->c()).ok());
  EXPECT_TRUE(operands->Check().ok());
  auto* c = static_cast<float*>(operands->c());
  std::swap(c[4], c[6]);
  EXPECT_FALSE(operands->Check().ok());
  std::swap(c[4], c[6]);
  operands->Poison();
  EXPECT_FALSE(operands->Check().ok());
}

TEST(Operands, RefuseATypeWithoutKernels) {
  Problem p;
  p.m = p.n = p.k = 2;
  p.dtype = DType::kInt8;
  EXPECT_FALSE(Operands::Make(p).ok());
}

}  // namespace
}  // namespace gnomon
