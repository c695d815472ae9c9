// Reads the Kaggle Criteo TSV as a stream, plain or gzip, without holding the file.
//
//   count x     -> log(1 + max(x, 0)); a missing one counts as 0, so does a negative one (-1 and -2
//   occur) category c  -> row 1 + hash(table, c) mod (rows - 1); a missing one is row 0
//
// A line with a wrong number of fields, a label other than 0 or 1, a count that is no finite number
// or a category that is not hexadecimal is skipped and reported with its number, up to a limit.
// Every tenth good line is held out until enough are; after the last line the stream starts again,
// so a small file can be trained on for many steps. A truncated gzip is an error when the stream
// reaches its end.

#include "gnomon/train/data_criteo.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "gnomon/train/counter_random.h"

namespace gnomon::train {
namespace {

constexpr std::int64_t kHoldOutEvery = 10;
constexpr unsigned kReadBuffer = 1u << 20;
constexpr std::size_t kMostLineBytes = 1u << 16;

Result<float> ParseCount(std::string_view text) {
  if (text.empty()) return 0.0f;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return BadInput(fmt::format("count '{}' is not a number", text));
  if (!std::isfinite(value)) return BadInput(fmt::format("count '{}' is not finite", text));
  return static_cast<float>(std::log1p(std::max(value, 0.0)));
}

Result<std::int32_t> ParseCategory(std::string_view text, std::uint64_t table, std::int64_t rows) {
  if (text.empty() || rows == 1) return 0;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size())
    return BadInput(fmt::format("category '{}' is not hexadecimal", text));
  const auto buckets = static_cast<std::uint64_t>(rows - 1);
  return static_cast<std::int32_t>(1 + RandomBits(table, value) % buckets);
}

}  // namespace

Status ParseCriteoLine(std::string_view line, const SampleShape& shape, Samples& samples) {
  constexpr std::size_t kFields = 1 + kCriteoCounts + kCriteoCategories;
  std::array<std::string_view, kFields> field;
  std::size_t fields = 0;
  for (std::size_t begin = 0;;) {
    const std::size_t tab = line.find('\t', begin);
    if (fields < kFields) field[fields] = line.substr(begin, tab - begin);
    ++fields;
    if (tab == std::string_view::npos) break;
    begin = tab + 1;
  }
  if (fields != kFields)
    return BadInput(
        fmt::format("{} fields; a line has {} (label, 13 counts, 26 categories)", fields, kFields));
  if (field[0] != "0" && field[0] != "1")
    return BadInput(fmt::format("label '{}' is neither 0 nor 1", field[0]));

  std::array<float, kCriteoCounts> counts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    GNOMON_ASSIGN(counts[i], ParseCount(field[1 + i]));
  }
  std::array<std::int32_t, kCriteoCategories> rows;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    GNOMON_ASSIGN(rows[t], ParseCategory(field[1 + kCriteoCounts + t], t, shape.table_rows[t]));
  }
  samples.labels.push_back(field[0] == "1" ? 1.0f : 0.0f);
  samples.dense.insert(samples.dense.end(), counts.begin(), counts.end());
  samples.indices.insert(samples.indices.end(), rows.begin(), rows.end());
  ++samples.count;
  return Done{};
}

namespace {

class CriteoStream final : public SampleSource {
 public:
  explicit CriteoStream(CriteoOptions options) : options_(std::move(options)) {}
  ~CriteoStream() override { Close(); }

  Status Open() {
    Close();
    errno = 0;
    file_ = gzopen(options_.path.c_str(), "rb");
    if (!file_) {
      return BadInput(
          fmt::format("cannot open the data: {}", std::strerror(errno ? errno : ENOMEM)),
          options_.path);
    }
    gzbuffer(file_, kReadBuffer);
    line_number_ = good_ = train_position_ = 0;
    return Done{};
  }

  Status Read(std::int64_t first, std::int64_t count, Samples& samples) override {
    samples = {};
    if (!file_ || first < train_position_) GNOMON_TRY(Open());
    Samples skipped;
    // After a wrap train_position_ goes on counting, so that positions name one endless stream.
    while (train_position_ < first) {
      skipped = {};
      GNOMON_TRY(Next(/*held_out=*/false, skipped));
    }
    while (samples.count < count) GNOMON_TRY(Next(/*held_out=*/false, samples));
    return Done{};
  }

  Status ReadHeldOut(std::int64_t count, Samples& samples) override {
    samples = {};
    GNOMON_TRY(Open());
    count = std::min(count, options_.held_out);
    while (samples.count < count) {
      bool wrapped = false;
      GNOMON_TRY(NextLine(samples, /*want_held_out=*/true, wrapped));
      if (wrapped) break;
    }
    Close();
    if (samples.count == 0)
      return BadInput(fmt::format("{} usable lines are too few to hold any out (every {}th is)",
                                  good_, kHoldOutEvery),
                      options_.path);
    return Done{};
  }

  std::vector<std::string> bad_lines() const override { return bad_lines_; }

 private:
  void Close() {
    if (file_) gzclose(file_);
    file_ = nullptr;
  }

  // The next sample of the endless training stream, appended.
  Status Next(bool held_out, Samples& samples) {
    const std::int64_t before = samples.count;
    int wraps = 0;
    while (samples.count == before) {
      bool wrapped = false;
      GNOMON_TRY(NextLine(samples, held_out, wrapped));
      if (wrapped && ++wraps > 1) return BadInput("no usable line to train on", options_.path);
      if (wrapped) {
        const std::int64_t position = train_position_;
        GNOMON_TRY(Open());
        train_position_ = position;
      }
    }
    ++train_position_;
    return Done{};
  }

  // Reads one line; appends it if it is on the wanted side of the hold-out.
  Status NextLine(Samples& samples, bool want_held_out, bool& end) {
    std::string_view line;
    GNOMON_TRY(ReadLine(line, end));
    if (end) {
      if (line_number_ == 0) return BadInput("the file is empty", options_.path);
      return Done{};
    }
    if (line.empty()) return Done{};
    const std::int64_t before = samples.count;
    if (const Status parsed = ParseCriteoLine(line, options_.shape, samples); !parsed.ok())
      return Report(parsed.error());
    const bool held_out =
        good_ % kHoldOutEvery == kHoldOutEvery - 1 && good_ / kHoldOutEvery < options_.held_out;
    ++good_;
    if (held_out != want_held_out) DropLast(samples, before);
    return Done{};
  }

  void DropLast(Samples& samples, std::int64_t count) const {
    samples.count = count;
    samples.labels.resize(static_cast<std::size_t>(count));
    samples.dense.resize(static_cast<std::size_t>(count * kCriteoCounts));
    samples.indices.resize(static_cast<std::size_t>(count * kCriteoCategories));
  }

  Status Report(const Error& error) {
    if (line_number_ <= last_reported_) return Done{};  // seen in an earlier pass over the file
    last_reported_ = line_number_;
    bad_lines_.push_back(fmt::format("{}:{}: {}", options_.path, line_number_, error.message));
    if (static_cast<std::int64_t>(bad_lines_.size()) > options_.bad_line_limit) {
      return BadInput(fmt::format("more than {} bad lines; the last: {}", options_.bad_line_limit,
                                  error.message),
                      fmt::format("{}:{}", options_.path, line_number_));
    }
    return Done{};
  }

  Status ReadLine(std::string_view& line, bool& end) {
    buffer_.resize(kMostLineBytes);
    if (!gzgets(file_, buffer_.data(), static_cast<int>(buffer_.size()))) {
      int code = Z_OK;
      const char* what = gzerror(file_, &code);
      if (code == Z_BUF_ERROR)
        return BadInput("the gzip stream ends early: the file is truncated", options_.path);
      if (code != Z_OK && code != Z_STREAM_END)
        return BadInput(
            fmt::format("cannot read: {}", code == Z_ERRNO ? std::strerror(errno) : what),
            options_.path);
      end = true;
      return Done{};
    }
    ++line_number_;
    line = std::string_view(buffer_.data());
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    return Done{};
  }

  CriteoOptions options_;
  gzFile file_ = nullptr;
  std::string buffer_;
  std::int64_t line_number_ = 0, last_reported_ = 0;
  std::int64_t good_ = 0;            // good lines since the start of the file
  std::int64_t train_position_ = 0;  // training samples handed out, over all passes
  std::vector<std::string> bad_lines_;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> OpenCriteo(const CriteoOptions& options) {
  if (options.shape.dense_features != kCriteoCounts ||
      options.shape.tables() != kCriteoCategories || options.shape.lookups() != kCriteoCategories) {
    return BadInput(
        fmt::format("a Criteo line has 13 counts and 26 categories; the model wants {} and {} ({} "
                    "lookups)",
                    options.shape.dense_features, options.shape.tables(), options.shape.lookups()),
        options.path);
  }
  auto stream = std::make_unique<CriteoStream>(options);
  GNOMON_TRY(stream->Open());
  return std::unique_ptr<SampleSource>(std::move(stream));
}

}  // namespace gnomon::train
