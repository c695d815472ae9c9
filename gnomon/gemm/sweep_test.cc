#include "gnomon/gemm/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "gnomon/gemm/bench.h"
#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/host_workbench.h"
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
    options_.rounds = 1;
    options_.final_rounds = 0;
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
    return Sweep(FixedCpu(), bench_, Shapes(), Path(), options_);
  }

  std::filesystem::path folder_;
  ToyRunner runner_;
  HostWorkbench bench_{runner_, {.conditions = "test", .min_sample_us = 0.001}};
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
      Sweep(FixedCpu(), bench_, Shapes(), (folder_ / "none" / "x.csv").string(), options_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Error::Code::kInternal);
  EXPECT_THAT(result.error().Text(), HasSubstr("none/x.csv"));
}

// A bench of which each config ends as told, after so many microseconds.
class ScriptedBench : public Workbench {
 public:
  const Family& family() const override { return family_; }
  std::vector<std::string> Vendors() const override { return {"slow", "fast"}; }
  Status Prepare(const Problem& problem) override {
    if (problem.layout == Layout::kTN && !tn) return BadInput("layout tn has no kernel");
    return Done{};
  }
  Outcome Verify(const Contestant& contestant) override {
    ++verified;
    return EndingOf(contestant);
  }
  Outcome Sample(const Contestant& contestant, Samples& samples) override {
    if (contestant.vendor >= 0) {
      samples.Add(Microseconds(contestant.vendor == 0 ? 9 : 4));
      return {};
    }
    const int config = contestant.config.value[0];
    ++sampled[config];
    samples.Add(Microseconds(10 * config));
    if (config == lost_when_timed) return {Outcome::Ending::kLost, "no end after 10 s"};
    return {};
  }
  std::string Conditions() const override { return "scripted"; }
  void Describe(const Config& config, Measurement& row) const override {
    row.tile_m = config.value[0];
  }

  int wrong = 0, failed = 0, lost = 0, lost_when_timed = 0;  // a config; 0: none
  bool tn = true;
  int verified = 0;
  std::map<int, int> sampled;

 private:
  Outcome EndingOf(const Contestant& contestant) const {
    const int config = contestant.vendor < 0 ? contestant.config.value[0] : 0;
    if (config == 0) return {};
    if (config == wrong) return {Outcome::Ending::kWrong, "row 3 of C is 1, not 2"};
    if (config == failed) return {Outcome::Ending::kFailed, "too little shared memory"};
    if (config == lost) return {Outcome::Ending::kLost, "an illegal address"};
    return {};
  }

  ToyFamily family_{{1, 2, 3}};
};

class ScriptedSweepTest : public SweepTest {
 protected:
  Result<SweepResult> Run() {
    SweepOptions options = GpuSweepOptions();
    options.max_gflop = 0.1;
    return Sweep(FixedCpu(), scripted_, Shapes(), Path(), options);
  }
  ScriptedBench scripted_;
};

TEST_F(ScriptedSweepTest, RecordsAConfigThatFailsAndGoesOn) {
  scripted_.wrong = 3;
  scripted_.failed = 2;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result->complete, 2);
  EXPECT_EQ(result->rows_written, 6);
  EXPECT_EQ(result->failed, 4);
  ASSERT_EQ(result->wrong.size(), 2u);
  EXPECT_EQ(result->wrong[0], "config c3 computes 5x7x3 nt fp32 wrongly: row 3 of C is 1, not 2");
  const auto table = ReadMeasuredTable(Path());
  ASSERT_TRUE(table.ok()) << table.error().Text();
  EXPECT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].source, "scripted; median of 5; spread 0.0%");
  EXPECT_DOUBLE_EQ(table->rows[0].us, 10);
  EXPECT_EQ(table->failed, 4);
  EXPECT_EQ(table->failures[0].source, "scripted; failed: too little shared memory");
  EXPECT_EQ(table->failures[0].tile_m, 2);
}

TEST_F(ScriptedSweepTest, ARerunStillTellsWhatIsWrong) {
  scripted_.wrong = 3;
  ASSERT_TRUE(Run().ok());
  scripted_.verified = 0;
  const auto again = Run();
  ASSERT_TRUE(again.ok()) << again.error().Text();
  EXPECT_EQ(again->rows_written, 0);
  EXPECT_EQ(scripted_.verified, 0);
  EXPECT_EQ(again->failed, 2);
  EXPECT_THAT(again->wrong,
              testing::Contains(HasSubstr("config c3 computes 4x4x4 tn fp32 wrongly")));
}

TEST_F(ScriptedSweepTest, PassesOverAShapeThatCannotBeDone) {
  scripted_.tn = false;
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result->complete, 1);
  EXPECT_EQ(result->passed_over,
            std::vector<std::string>{"4x4x4 tn fp32: layout tn has no kernel"});
  EXPECT_EQ(ReadMeasurements(Path())->size(), 3u);
}

TEST_F(ScriptedSweepTest, TimesTheNearOnesMoreOften) {
  ASSERT_TRUE(Run().ok());
  // 10, 20 and 30 us: the second and the third are far behind.
  EXPECT_EQ(scripted_.sampled, (std::map<int, int>{{1, 2 * 5}, {2, 2 * 1}, {3, 2 * 1}}));
}

TEST_F(ScriptedSweepTest, WritesDownTheConfigThatTookTheDeviceAndPassesItOverNextTime) {
  for (int* script : {&scripted_.lost, &scripted_.lost_when_timed}) {
    std::filesystem::remove(Path());
    *script = 2;
    const auto result = Run();
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().Text(), HasSubstr("config c2 fails on 5x7x3 nt fp32: "));
    EXPECT_THAT(Content(), HasSubstr("nan,scripted; failed: "));
    *script = 0;
    const auto next = Run();
    ASSERT_TRUE(next.ok()) << next.error().Text();
    EXPECT_EQ(next->rows_written, 5);
    EXPECT_EQ(next->failed, 1);
    EXPECT_EQ(ReadMeasuredTable(Path())->failures[0].config, "c2");
  }
}

TEST(Bench, SetsThePickAgainstTheFastestLibrary) {
  ScriptedBench bench;
  const auto shapes = ParseShapes("name,layout,m,n,k,batch\na,nt,5,7,3,1\n", "s", DType::kFp32);
  const auto result = BenchAgainstVendor(FixedCpu(), bench, *shapes, {.rounds = 3});
  ASSERT_TRUE(result.ok()) << result.error().Text();
  ASSERT_EQ(result->rows.size(), 1u);
  const BenchRow& row = result->rows[0];
  EXPECT_EQ(row.vendor_name, "fast");
  EXPECT_DOUBLE_EQ(row.vendor.value, 4e-6);
  EXPECT_DOUBLE_EQ(row.ratio() * row.pick.value, 4e-6);
  EXPECT_DOUBLE_EQ(result->geomean_ratio, row.ratio());
  EXPECT_FALSE(row.host.has_value());
  EXPECT_EQ(result->conditions, "scripted");
}

TEST(Bench, APickThatFailsCostsItsShapeWhereTheBenchKeepsGoing) {
  ScriptedBench bench;
  const auto shapes =
      ParseShapes("name,layout,m,n,k,batch\na,nt,5,7,3,1\n", "s", DType::kFp32).value();
  const std::string pick = BenchAgainstVendor(FixedCpu(), bench, shapes, {})->rows[0].config;
  bench.wrong = bench.family().Parse(pick)->value[0];
  const auto stopped = BenchAgainstVendor(FixedCpu(), bench, shapes, {});
  ASSERT_FALSE(stopped.ok());
  const auto result = BenchAgainstVendor(FixedCpu(), bench, shapes, GpuBenchOptions());
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_TRUE(result->rows.empty());
  ASSERT_EQ(result->failed.size(), 1u);
  EXPECT_THAT(result->failed[0], HasSubstr(pick + " computes 5x7x3 nt fp32 wrongly"));
}

TEST(Samples, TellTheirMedianAndSpread) {
  Samples samples;
  for (const double us : {10.0, 11.0, 12.0, 30.0, 9.0}) samples.Add(Microseconds(us));
  samples.Add(Microseconds(1), /*disturbed=*/true);
  EXPECT_DOUBLE_EQ(samples.Time().value, 11e-6);
  EXPECT_EQ(samples.Text(), "; median of 5; spread 9.1%");
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
