// Sets operator predictions against measurements.
//
//   error    |predicted / measured − 1| a row; median and 90th percentile by device and operator
//   rank     Spearman's correlation of predicted and measured times, equals share their mean rank
//
// A row whose device or operator is not told, or whose source leaves out what decides the time, is
// counted apart with the reason: a prediction of it would only measure a guess. Steps name their
// model in prose; a workload (models/*.toml) cannot be made of that, so they all stand apart.

#include "gnomon/cost/evaluate_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include "gnomon/base/files.h"
#include "gnomon/base/fit_split.h"
#include "gnomon/base/statistics.h"
#include "gnomon/cost/attention_rows.h"
#include "gnomon/cost/map_ops.h"
#include "gnomon/cost/op_text.h"

namespace gnomon {
namespace {

constexpr double kHighShare = 0.9;
constexpr int kLeastRanked = 3;

// Words that a cell must have one of; a cell may also be an amount where the column allows it.
struct WordColumn {
  std::string_view column, words;
  bool or_amount = false;
};

struct Header {
  OpsKind kind;
  std::vector<std::string_view> columns;
  std::vector<std::string_view> numbers;   ///< blank or a number, not negative
  std::vector<std::string_view> integers;  ///< blank or a whole number
  std::vector<std::string_view> flags;     ///< blank, 0 or 1
  /// Blank, or text that begins with a number above 0: "65536 global", "64/8", "128-256".
  std::vector<std::string_view> amounts;
  std::vector<WordColumn> words;  ///< blank, or text with one of the words
};

constexpr std::string_view kPassWords = "fwd|bwd|forward|backward";

const std::array<Header, 5>& Headers() {
  static const std::array<Header, 5> kHeaders = {{
      {OpsKind::kAttention,
       {"device", "op", "pass", "batch", "heads", "head_dim_qk", "head_dim_v", "seq_q", "seq_kv",
        "causal", "jagged", "dtype", "us", "tflops", "source"},
       {"us", "tflops"},
       {"batch", "head_dim_qk", "head_dim_v", "seq_q", "seq_kv"},
       {"causal", "jagged"},
       {"heads"},
       {{"pass", kPassWords}}},
      {OpsKind::kEmbedding,
       {"device", "op", "pass", "tables", "rows", "dim", "batch", "pooling", "dtype", "us", "gbps",
        "source"},
       {"us", "gbps"},
       {},
       {},
       {"tables", "rows", "dim", "batch"},
       {{"pass", kPassWords}, {"pooling", "mean|sum|max|none", true}}},
      {OpsKind::kCollectives,
       {"device", "op", "gpus", "nodes", "bytes", "us", "gbps", "bandwidth_kind", "source"},
       {"us", "gbps"},
       {"gpus", "nodes", "bytes"},
       {},
       {},
       {{"bandwidth_kind", "bus|busbw|alg|algbw|algorithm|link"}}},
      {OpsKind::kSteps,
       {"device", "gpus", "model", "batch_per_gpu", "part", "ms", "samples_per_s", "source"},
       {"ms", "samples_per_s"},
       {"gpus"},
       {},
       {"batch_per_gpu"},
       {}},
      {OpsKind::kMemory,
       {"device", "op", "shape", "dtype", "us", "gbps", "source"},
       {"us", "gbps"},
       {},
       {},
       {},
       {}},
  }};
  return kHeaders;
}

int Missing(const Header& header, const CsvTable& table) {
  return static_cast<int>(std::ranges::count_if(
      header.columns, [&](std::string_view name) { return table.FindColumn(name) < 0; }));
}

Result<const Header*> HeaderOf(const CsvTable& table) {
  const Header* nearest = nullptr;
  for (const Header& header : Headers()) {
    if (Missing(header, table) == 0) return &header;
    if (nearest == nullptr || Missing(header, table) < Missing(*nearest, table)) nearest = &header;
  }
  std::string lacking;
  for (const std::string_view name : nearest->columns) {
    if (table.FindColumn(name) >= 0) continue;
    lacking += fmt::format("{}{}", lacking.empty() ? "" : ", ", name);
  }
  return BadInput(fmt::format("the header is none of attention, embedding, memory, collectives and "
                              "steps; nearest is {}, which also has: {}",
                              Name(nearest->kind), lacking),
                  table.path + ":1:1");
}

bool IsAmount(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && std::isfinite(value) && value > 0;
}

// Words joined as a reader sees a choice: "fwd, bwd, forward or backward".
std::string ChoiceText(std::string_view words) {
  std::string text(words);
  if (const size_t last = text.rfind('|'); last != std::string::npos) text.replace(last, 1, " or ");
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|'))
    text.replace(at, 1, ", ");
  return text;
}

// Every cell of a column that is no free text, asked for or not: a slip in one that no model reads
// is a slip of the row all the same.
Status CheckRow(const CsvTable& table, const CsvTable::Row& row, const Header& header) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;  // sizes: beyond any memory
  const auto cell = [&](int column) -> const std::string& {
    return row.cells[static_cast<size_t>(column)];
  };
  const auto bad = [&](int column, std::string_view rule) {
    return BadInput(
        fmt::format("{} is '{}'; {}", table.header[static_cast<size_t>(column)], cell(column),
                    rule),
        fmt::format("{}:{}:{}", table.path, row.line, row.columns[static_cast<size_t>(column)]));
  };
  for (const std::string_view name : header.numbers) {
    const int column = table.FindColumn(name);
    if (cell(column).empty()) continue;
    GNOMON_ASSIGN(const double value, table.Number(row, column));
    if (value < 0) return bad(column, "it must not be negative");
  }
  for (const auto& [names, most] : {std::pair{&header.integers, kMost}, {&header.flags, 1}}) {
    for (const std::string_view name : *names) {
      const int column = table.FindColumn(name);
      if (!cell(column).empty()) GNOMON_TRY(table.Integer(row, column, 0, most));
    }
  }
  for (const std::string_view name : header.amounts) {
    const int column = table.FindColumn(name);
    if (!cell(column).empty() && !IsAmount(cell(column)))
      return bad(column, "it must begin with a number above 0, or be blank");
  }
  for (const WordColumn& word : header.words) {
    const int column = table.FindColumn(word.column);
    if (cell(column).empty() || HasAnyWord(cell(column), word.words) ||
        (word.or_amount && IsAmount(cell(column))))
      continue;
    return bad(column, fmt::format("it must say {}{}, or be blank", ChoiceText(word.words),
                                   word.or_amount ? ", or begin with a number above 0" : ""));
  }
  return Done{};
}

// Mean rank of equals.
std::vector<double> Ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

std::optional<double> Spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < kLeastRanked) return std::nullopt;
  const std::vector<double> x = Ranks(a), y = Ranks(b);
  const double mean_x = Mean(x), mean_y = Mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  if (xx <= 0 || yy <= 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

OpsError ErrorOf(std::span<const OpsTiming* const> timings) {
  OpsError error;
  error.rows = static_cast<int>(timings.size());
  if (timings.empty()) return error;
  std::vector<double> errors, predicted, measured;
  for (const OpsTiming* timing : timings) {
    errors.push_back(std::abs(timing->predicted / timing->measured - 1));
    predicted.push_back(timing->predicted.value);
    measured.push_back(timing->measured.value);
  }
  error.median = Median(errors);
  error.p90 = Quantile(errors, kHighShare);
  error.spearman = Spearman(predicted, measured);
  return error;
}

std::vector<OpsGroup> Group(const std::vector<OpsTiming>& timings) {
  std::map<std::pair<std::string, std::string>, std::vector<const OpsTiming*>> groups;
  for (const OpsTiming& timing : timings) groups[{timing.device, timing.op}].push_back(&timing);
  std::vector<OpsGroup> result;
  for (auto& [key, members] : groups) {
    OpsGroup group{key.first, key.second, ErrorOf(members), {}};
    std::erase_if(members, [](const OpsTiming* timing) { return timing->fitted; });
    group.held_out = ErrorOf(members);
    result.push_back(std::move(group));
  }
  return result;
}

Mapping Map(OpsKind kind, const Device& device, const OpsRow& row) {
  switch (kind) {
    case OpsKind::kAttention:
      return MapAttentionRow(device, row);
    case OpsKind::kEmbedding:
      return MapEmbedding(device, row);
    case OpsKind::kCollectives:
      return MapCollective(device, row);
    case OpsKind::kMemory:
      return MapMemoryOp(device, row);
    case OpsKind::kSteps:
      break;
  }
  return "the model is told in prose: no workload can be made of it";
}

// Device files are read once; the error stands in for a device that has none.
class Devices {
 public:
  const Result<Device>& Get(const std::string& id) {
    const auto found = devices_.find(id);
    return found != devices_.end() ? found->second
                                   : devices_.emplace(id, FindDevice(id)).first->second;
  }

 private:
  std::map<std::string, Result<Device>> devices_;
};

}  // namespace

std::string_view Name(OpsKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"attention", "embedding", "memory",
                                                      "collectives", "steps"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<double> OpsRow::Number(std::string_view column) const {
  return WholeNumber(Text(column));
}

Result<OpsFile> ParseOps(std::string_view text, std::string_view path) {
  OpsFile file;
  GNOMON_ASSIGN(file.table, ParseCsv(text, path));
  GNOMON_ASSIGN(const Header* header, HeaderOf(file.table));
  for (const CsvTable::Row& row : file.table.rows) GNOMON_TRY(CheckRow(file.table, row, *header));
  file.kind = header->kind;
  return file;
}

Result<OpsFile> ReadOps(const std::string& path) {
  GNOMON_ASSIGN(const std::string text, ReadFile(path));
  return ParseOps(text, path);
}

OpsEvaluation EvaluateOps(const OpsFile& file, std::string_view only_device) {
  OpsEvaluation evaluation;
  evaluation.kind = file.kind;
  Devices devices;
  for (const CsvTable::Row& cells : file.table.rows) {
    ++evaluation.rows;
    const OpsRow row(file.table, cells);
    const std::string name(row.Text("device"));
    const std::string op(file.kind == OpsKind::kSteps ? row.Text("part") : row.Text("op"));
    const auto apart = [&](std::string reason) {
      evaluation.apart.push_back({row.line(), name, op, std::move(reason)});
    };
    const auto id = DeviceIdOf(name);
    if (!only_device.empty() && id != only_device) {
      ++evaluation.other_device;
      continue;
    }
    if (!id) {
      apart(name.empty() ? "device is not stated" : "device is not told beyond doubt");
      continue;
    }
    const Result<Device>& device = devices.Get(*id);
    if (!device.ok()) {
      apart(device.error().Text());
      continue;
    }
    if (device->kind != Device::Kind::kGpu) {
      apart("operators are modelled for GPUs");
      continue;
    }
    Mapping mapping = Map(file.kind, *device, row);
    if (auto* reason = std::get_if<std::string>(&mapping)) {
      apart(std::move(*reason));
      continue;
    }
    const auto& mapped = std::get<MappedOp>(mapping);
    evaluation.timings.push_back({row.line(), *id, mapped.op, mapped.measured,
                                  mapped.prediction.time, IsFitRow(mapped.shape)});
  }
  evaluation.groups = Group(evaluation.timings);
  return evaluation;
}

}  // namespace gnomon
