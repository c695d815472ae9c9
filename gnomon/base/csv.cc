// CSV with a header row into a table of text cells, and cells into numbers.
//
// The grammar is RFC 4180: cells apart by commas, rows by LF or CRLF, a quoted cell may hold
// commas, line breaks and doubled quotes. A UTF-8 byte-order mark is skipped, a blank line too.
// Refused, each with path:line:column: an empty file, a column named twice or not at all, a row
// with more or fewer cells than the header, a quote that never ends or stands in the middle of a
// cell, a zero byte. Numbers must fill their cell: no blanks, no trailing text, no NaN or infinity,
// nothing out of range. Other separators and other encodings are left out.

#include "gnomon/base/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "gnomon/base/files.h"
#include "gnomon/base/nearest.h"

namespace gnomon {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string Where(std::string_view path, int line, int column) {
  return fmt::format("{}:{}:{}", path, line, column);
}

// Reads rows one at a time and keeps its place in lines and columns (bytes, from 1).
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view path) : text_(text), path_(path) {
    if (text_.starts_with(kByteOrderMark)) position_ = line_start_ = kByteOrderMark.size();
  }

  bool SkipBlankLines() {
    while (position_ < text_.size() && AtLineBreak()) EndLine();
    return position_ < text_.size();
  }

  Result<CsvTable::Row> Row() {
    CsvTable::Row row;
    row.line = line_;
    while (true) {
      row.columns.push_back(Column());
      GNOMON_ASSIGN(std::string cell, Cell());
      row.cells.push_back(std::move(cell));
      if (position_ == text_.size()) return row;
      if (AtLineBreak()) {
        EndLine();
        return row;
      }
      ++position_;  // the comma
    }
  }

 private:
  int Column() const { return static_cast<int>(position_ - line_start_) + 1; }
  bool AtLineBreak() const {
    return text_[position_] == '\n' || text_.substr(position_, 2) == "\r\n";
  }
  void EndLine() {
    position_ += text_[position_] == '\r' ? 2 : 1;
    line_start_ = position_;
    ++line_;
  }
  Error At(std::string message) const {
    return BadInput(std::move(message), Where(path_, line_, Column()));
  }

  Result<std::string> Cell() {
    if (position_ < text_.size() && text_[position_] == '"') return QuotedCell();
    const size_t start = position_;
    while (position_ < text_.size() && text_[position_] != ',' && !AtLineBreak()) {
      if (text_[position_] == '"') return At("a quote inside a cell that does not begin with one");
      if (text_[position_] == '\0') return At("a zero byte; this is not a CSV text file");
      ++position_;
    }
    return std::string(text_.substr(start, position_ - start));
  }

  Result<std::string> QuotedCell() {
    const Error unclosed = At("a quoted cell that never ends");
    std::string cell;
    for (++position_; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '"') {
        ++position_;
        if (position_ == text_.size() || text_[position_] == ',' || AtLineBreak()) return cell;
        if (text_[position_] != '"') return At("text after the closing quote of a cell");
      } else if (c == '\n') {
        line_start_ = position_ + 1;
        ++line_;
      }
      cell += c;
    }
    return unclosed;
  }

  std::string_view text_, path_;
  size_t position_ = 0, line_start_ = 0;
  int line_ = 1;
};

Status CheckHeader(const CsvTable::Row& row, std::string_view path) {
  for (size_t i = 0; i < row.cells.size(); ++i) {
    if (row.cells[i].empty()) {
      return BadInput("a column without a name", Where(path, row.line, row.columns[i]));
    }
    for (size_t j = 0; j < i; ++j) {
      if (row.cells[i] != row.cells[j]) continue;
      return BadInput(fmt::format("column '{}' is named twice", row.cells[i]),
                      Where(path, row.line, row.columns[i]));
    }
  }
  return Done{};
}

std::string CellWhere(const CsvTable& table, const CsvTable::Row& row, int column) {
  const auto index = static_cast<size_t>(column);
  return Where(table.path, row.line, index < row.columns.size() ? row.columns[index] : column + 1);
}

}  // namespace

int CsvTable::FindColumn(std::string_view name) const {
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) return static_cast<int>(i);
  }
  return -1;
}

Result<int> CsvTable::Column(std::string_view name) const {
  const int column = FindColumn(name);
  if (column >= 0) return column;
  const std::vector<std::string_view> names(header.begin(), header.end());
  return BadInput(fmt::format("no column '{}'; nearest is '{}'", name, Nearest(name, names)),
                  Where(path, 1, 1));
}

Result<std::int64_t> CsvTable::Integer(const Row& row, int column, std::int64_t low,
                                       std::int64_t high) const {
  GNOMON_CHECK(column >= 0 && static_cast<size_t>(column) < row.cells.size(), "column {}", column);
  const std::string& cell = row.cells[static_cast<size_t>(column)];
  const std::string& name = header[static_cast<size_t>(column)];
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc::invalid_argument || end != cell.data() + cell.size()) {
    return BadInput(fmt::format("{} must be a whole number, not '{}'", name, cell),
                    CellWhere(*this, row, column));
  }
  if (error == std::errc::result_out_of_range || value < low || value > high) {
    return BadInput(fmt::format("{} is {}; it must be from {} to {}", name, cell, low, high),
                    CellWhere(*this, row, column));
  }
  return value;
}

Result<double> CsvTable::Number(const Row& row, int column) const {
  GNOMON_CHECK(column >= 0 && static_cast<size_t>(column) < row.cells.size(), "column {}", column);
  const std::string& cell = row.cells[static_cast<size_t>(column)];
  const std::string& name = header[static_cast<size_t>(column)];
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc::invalid_argument || end != cell.data() + cell.size()) {
    return BadInput(fmt::format("{} must be a number, not '{}'", name, cell),
                    CellWhere(*this, row, column));
  }
  if (error == std::errc::result_out_of_range || !std::isfinite(value)) {
    return BadInput(fmt::format("{} is {}; it must be a finite number", name, cell),
                    CellWhere(*this, row, column));
  }
  return value;
}

Result<CsvTable> ParseCsv(std::string_view text, std::string_view path) {
  CsvTable table;
  table.path = path;
  Scanner scanner(text, path);
  if (!scanner.SkipBlankLines())
    return BadInput("the file is empty; a header row is needed", Where(path, 1, 1));
  GNOMON_ASSIGN(CsvTable::Row header, scanner.Row());
  GNOMON_TRY(CheckHeader(header, path));
  table.header = std::move(header.cells);
  while (scanner.SkipBlankLines()) {
    GNOMON_ASSIGN(CsvTable::Row row, scanner.Row());
    if (row.cells.size() != table.header.size()) {
      return BadInput(
          fmt::format("{} cells where the header has {}", row.cells.size(), table.header.size()),
          Where(path, row.line, row.columns.back()));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Result<CsvTable> ReadCsv(const std::string& path) {
  GNOMON_ASSIGN(const std::string text, ReadFile(path));
  return ParseCsv(text, path);
}

std::string CsvLine(std::span<const std::string> cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    if (cells[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += cells[i];
      continue;
    }
    line += '"';
    for (const char c : cells[i]) line.append(c == '"' ? 2 : 1, c);
    line += '"';
  }
  return line + '\n';
}

}  // namespace gnomon
