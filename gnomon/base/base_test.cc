// Tests of base: names, CSV and its errors, files that are never half-written, tables and numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gnomon/base/csv.h"
#include "gnomon/base/dtype.h"
#include "gnomon/base/files.h"
#include "gnomon/base/nearest.h"
#include "gnomon/base/progress.h"
#include "gnomon/base/statistics.h"
#include "gnomon/base/text_table.h"
#include "gnomon/base/units.h"

namespace gnomon {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Units, DivideAndMultiplyIntoTheirRelatives) {
  EXPECT_DOUBLE_EQ((Bytes{6} / BytesPerSecond{2}).value, 3);
  EXPECT_DOUBLE_EQ((Flops{6} / FlopsPerSecond{3}).value, 2);
  EXPECT_DOUBLE_EQ((Cycles{6} / Hertz{3}).value, 2);
  EXPECT_DOUBLE_EQ((BytesPerSecond{6} * Seconds{3}).value, 18);
  EXPECT_DOUBLE_EQ(Seconds{6} / Seconds{3}, 2);
  EXPECT_DOUBLE_EQ(InMicroseconds(Microseconds(7)), 7);
  EXPECT_LT(Seconds{1}, Seconds{2});
}

TEST(DType, EveryNameParsesBackToItself) {
  for (size_t i = 0; i < kDTypeNames.size(); ++i) {
    EXPECT_EQ(Name(ParseDType(kDTypeNames[i]).value()), kDTypeNames[i]);
  }
}

TEST(DType, UnknownNameIsRefusedWithTheNearest) {
  const Error error = ParseDType("fp33").error();
  EXPECT_EQ(error.code, Error::Code::kBadInput);
  EXPECT_THAT(error.message,
              HasSubstr("unknown dtype 'fp33'; nearest is 'fp32' (valid: fp64, fp32,"));
}

TEST(Nearest, TakesTheLeastEditDistanceAndTheFirstOfEquals) {
  constexpr std::string_view kWords[] = {"kitten", "sitting", "bitten"};
  EXPECT_EQ(Nearest("mitten", kWords), "kitten");
  EXPECT_EQ(Nearest("sittin", kWords), "sitting");
  EXPECT_EQ(Nearest("BITTEN", kWords), "bitten");
  EXPECT_EQ(Nearest("", kWords), "kitten");
  EXPECT_EQ(Nearest("x", {}), "");
}

TEST(Csv, ReadsQuotesCommasLineBreaksAndCrlf) {
  const auto table =
      ParseCsv("\xEF\xBB\xBFname,note\r\n\"a,b\",\"say \"\"hi\"\"\r\nthere\"\r\n\nx,\n", "t.csv");
  ASSERT_TRUE(table.ok()) << table.error().Text();
  EXPECT_THAT(table->header, ElementsAre("name", "note"));
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_THAT(table->rows[0].cells, ElementsAre("a,b", "say \"hi\"\r\nthere"));
  EXPECT_EQ(table->rows[1].line, 5);
  EXPECT_THAT(table->rows[1].cells, ElementsAre("x", ""));
}

TEST(Csv, LineReadsBackToTheSameCells) {
  const std::vector<std::string> cells = {"plain", "a,b", "q\"q", "two\nlines", ""};
  const auto table = ParseCsv("a,b,c,d,e\n" + CsvLine(cells), "t.csv");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->rows.at(0).cells, cells);
}

struct BadCsv {
  std::string_view text, error;
};

TEST(Csv, ErrorsNamePathLineAndColumn) {
  const BadCsv cases[] = {
      {"", "t.csv:1:1: the file is empty"},
      {"\n\n", "t.csv:1:1: the file is empty"},
      {"m,n\n1,2\n3\n", "t.csv:3:1: 1 cells where the header has 2"},
      {"m,n\n1,2,3\n", "t.csv:2:5: 3 cells where the header has 2"},
      {"m,m\n", "t.csv:1:3: column 'm' is named twice"},
      {"m,\n", "t.csv:1:3: a column without a name"},
      {"m,n\n1,\"2\n", "t.csv:2:3: a quoted cell that never ends"},
      {"m,n\n1,\"2\"x\n", "t.csv:2:6: text after the closing quote"},
      {"m,n\n1,2\"\n", "t.csv:2:4: a quote inside a cell"},
  };
  for (const BadCsv& bad : cases) {
    const auto table = ParseCsv(bad.text, "t.csv");
    ASSERT_FALSE(table.ok()) << bad.text;
    EXPECT_THAT(table.error().Text(), HasSubstr(std::string(bad.error)));
    EXPECT_EQ(table.error().code, Error::Code::kBadInput);
  }
}

TEST(Csv, ZeroByteIsRefused) {
  EXPECT_THAT(ParseCsv(std::string_view("a\0b\n", 4), "t.csv").error().Text(),
              HasSubstr("t.csv:1:2: a zero byte"));
}

TEST(Csv, MissingColumnNamesTheNearest) {
  const auto table = ParseCsv("shape,time_us\n", "t.csv");
  EXPECT_EQ(table->Column("time_us").value(), 1);
  EXPECT_EQ(table->FindColumn("nothing"), -1);
  EXPECT_EQ(table->Column("time_ms").error().Text(),
            "t.csv:1:1: no column 'time_ms'; nearest is 'time_us'");
}

TEST(Csv, NumbersMustFillTheirCellAndBeFinite) {
  const auto table =
      ParseCsv("a,b\n12,-1.5e3\n1x,nan\n99999999999999999999,inf\n,1e999\n 7,0x10\n", "t.csv");
  ASSERT_TRUE(table.ok());
  const auto& rows = table->rows;
  EXPECT_EQ(table->Integer(rows[0], 0, 1, 100).value(), 12);
  EXPECT_DOUBLE_EQ(table->Number(rows[0], 1).value(), -1500);
  EXPECT_EQ(table->Integer(rows[0], 0, 1, 11).error().Text(),
            "t.csv:2:1: a is 12; it must be from 1 to 11");
  EXPECT_EQ(table->Integer(rows[1], 0, 1, 9).error().Text(),
            "t.csv:3:1: a must be a whole number, not '1x'");
  EXPECT_EQ(table->Number(rows[1], 1).error().Text(),
            "t.csv:3:4: b is nan; it must be a finite number");
  EXPECT_FALSE(table->Integer(rows[2], 0, 1, std::numeric_limits<std::int64_t>::max()).ok());
  for (size_t i = 2; i < rows.size(); ++i) {
    EXPECT_FALSE(table->Number(rows[i], 1).ok()) << i;
    EXPECT_FALSE(table->Integer(rows[i], 0, 0, 100).ok()) << i;
  }
}

// A folder of its own for each test, removed at the end.
class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "gnomon_files_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  size_t FileCount() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

void WriteGzip(const std::string& path, const std::string& text, const char* mode) {
  gzFile file = gzopen(path.c_str(), mode);
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

// Text that gzip cannot shrink to nothing, larger than the reader's chunk.
std::string LongText() {
  std::string text;
  unsigned state = 1;
  while (text.size() < 1'000'000) {
    state = state * 1664525u + 1013904223u;
    text += std::to_string(state) + "\n";
  }
  return text;
}

TEST_F(Files, WrittenTextReadsBack) {
  const std::string text = LongText();
  ASSERT_TRUE(WriteFile(Path("a"), text).ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), text);
  ASSERT_TRUE(WriteFile(Path("a"), "").ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), "");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(Files, GzipReadsAsItsTextWithAllItsMembers) {
  const std::string text = LongText();
  WriteGzip(Path("a.gz"), text, "wb");
  EXPECT_EQ(ReadFile(Path("a.gz")).value(), text);
  WriteGzip(Path("a.gz"), "tail", "ab");
  EXPECT_EQ(ReadFile(Path("a.gz")).value(), text + "tail");
}

TEST_F(Files, TruncatedGzipIsAnErrorWhereverItIsCut) {
  WriteGzip(Path("a.gz"), LongText(), "wb");
  const auto size = static_cast<std::int64_t>(fs::file_size(Path("a.gz")));
  for (const std::int64_t keep : {std::int64_t{2}, std::int64_t{12}, size / 2, size - 1}) {
    fs::copy_file(Path("a.gz"), Path("cut.gz"), fs::copy_options::overwrite_existing);
    fs::resize_file(Path("cut.gz"), static_cast<std::uintmax_t>(keep));
    const auto text = ReadFile(Path("cut.gz"));
    ASSERT_FALSE(text.ok()) << keep;
    EXPECT_EQ(text.error().Text(), Path("cut.gz") + ": the gzip file is truncated");
    EXPECT_EQ(text.error().code, Error::Code::kBadInput);
  }
}

TEST_F(Files, CorruptGzipIsAnError) {
  WriteGzip(Path("a.gz"), "some text that is long enough", "wb");
  std::string bytes;
  {
    std::ifstream file(Path("a.gz"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 0x55);  // in the checksum
  ASSERT_TRUE(WriteFile(Path("a.gz"), bytes).ok());
  EXPECT_THAT(ReadFile(Path("a.gz")).error().Text(), HasSubstr("the gzip file is corrupt"));
}

TEST_F(Files, MissingPathsAreBadInput) {
  for (const Error& error :
       {ReadFile(Path("none")).error(), ReadFile(folder_.string()).error(),
        WriteFile(Path("no/such/file"), "x").error(), WriteFile(folder_.string(), "x").error()}) {
    EXPECT_EQ(error.code, Error::Code::kBadInput) << error.Text();
    EXPECT_THAT(error.Text(), HasSubstr(folder_.string()));
  }
}

TEST_F(Files, FullDeviceIsAFaultWithItsReason) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Status status = WriteFile("/dev/full", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Error::Code::kInternal);
  EXPECT_EQ(status.error().Text(), "/dev/full: cannot write: No space left on device");
}

TEST_F(Files, FailedWriteKeepsTheOldFileAndLeavesNothingBeside) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = WriteFile(Path("a"), LongText());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Error::Code::kInternal);
  EXPECT_EQ(ReadFile(Path("a")).value(), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(Files, NoPermissionIsAFault) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const Status status = WriteFile(Path("a"), "x");
  fs::permissions(folder_, fs::perms::owner_all);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Error::Code::kInternal);
  EXPECT_THAT(status.error().Text(), HasSubstr("Permission denied"));
}

TEST_F(Files, LinkIsWrittenThroughAndModeIsKept) {
  ASSERT_TRUE(WriteFile(Path("a"), "old").ok());
  fs::permissions(Path("a"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(Path("a"), Path("link"));
  ASSERT_TRUE(WriteFile(Path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("a")).value(), "new");
  EXPECT_EQ(fs::status(Path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Show, NumbersHaveThreeSignificantDigits) {
  EXPECT_EQ(Significant(12.34), "12.3");
  EXPECT_EQ(Significant(0.0012345), "0.00123");
  EXPECT_EQ(Significant(1234), "1230");
  EXPECT_EQ(Significant(1000), "1000");
  EXPECT_EQ(Significant(999.6), "1000");
  EXPECT_EQ(Significant(9.996), "10.0");
  EXPECT_EQ(Significant(-1.5), "-1.50");
  EXPECT_EQ(Significant(0), "0");
  EXPECT_EQ(Significant(1.5, 2), "1.5");
  EXPECT_EQ(Significant(3e20), "3.00e+20");
  EXPECT_EQ(Significant(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(Significant(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Show, QuantitiesCarryTheUnitThatFits) {
  EXPECT_EQ(Show(Microseconds(12.34)), "12.3 us");
  EXPECT_EQ(Show(Microseconds(999.9)), "1.00 ms");
  EXPECT_EQ(Show(Seconds{4.56e-3}), "4.56 ms");
  EXPECT_EQ(Show(Seconds{1.2}), "1.20 s");
  EXPECT_EQ(Show(Seconds{4000}), "4000 s");
  EXPECT_EQ(Show(Seconds{0}), "0 ns");
  EXPECT_EQ(Show(Bytes{100}), "100 B");
  EXPECT_EQ(Show(Bytes{1.5 * (1 << 30)}), "1.50 GiB");
  EXPECT_EQ(Show(BytesPerSecond{12.3e9}), "12.3 GB/s");
  EXPECT_EQ(Show(FlopsPerSecond{330e9}), "330 GFLOP/s");
}

TEST(TextTable, AlignsWordsLeftAndNumbersRight) {
  TextTable table({"name", "time"});
  table.Row({"gemm", "1.50 us"});
  table.Row({"a×b", "12.0 us"});
  EXPECT_EQ(table.Text(),
            "  name     time\n"
            "  ----  -------\n"
            "  gemm  1.50 us\n"
            "  a×b   12.0 us\n");
}

TEST(Progress, IsSilentWhereStandardErrorIsNotATerminal) {
  if (isatty(STDERR_FILENO)) GTEST_SKIP() << "standard error is a terminal";
  ::testing::internal::CaptureStderr();
  {
    Progress progress("working", 10);
    progress.Update(5, "half");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Quantile, IsLinearBetweenNeighbours) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Quantile({0, 10}, 0.05), 0.5);
  EXPECT_EQ(Quantile({7}, 0.9), 7);
}

TEST(Statistics, SpreadIsZeroForOneValueAndRightForMore) {
  EXPECT_EQ(MedianAbsoluteDeviation({}), 0);
  EXPECT_EQ(MedianAbsoluteDeviation({5}), 0);
  EXPECT_EQ(MedianAbsoluteDeviation({1, 2, 3, 4, 100}), 1);
  EXPECT_EQ(Mean({1, 2, 6}), 3);
  EXPECT_EQ(StandardDeviation({4}), 0);
  EXPECT_DOUBLE_EQ(StandardDeviation({2, 4, 4, 4, 5, 5, 7, 9}), 2.138089935299395);
}

}  // namespace
}  // namespace gnomon
