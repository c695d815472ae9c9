#pragma once

/// CSV with a header row (RFC 4180 quoting), read whole. Errors name file, line and column.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/result.h"

namespace gnomon {

struct CsvTable {
  std::string path;
  std::vector<std::string> header;
  struct Row {
    int line = 0;  ///< 1-based line in the file
    std::vector<std::string> cells;
    std::vector<int> columns;  ///< 1-based byte of the line at which each cell begins
  };
  std::vector<Row> rows;

  /// Index of a column; error names the nearest column there is.
  Result<int> Column(std::string_view name) const;
  /// Index of a column or -1.
  int FindColumn(std::string_view name) const;
  /// Cell as a whole number in [low, high]; error "path:line:column: ...".
  Result<std::int64_t> Integer(const Row& row, int column, std::int64_t low,
                               std::int64_t high) const;
  /// Cell as a finite number.
  Result<double> Number(const Row& row, int column) const;
};

Result<CsvTable> ParseCsv(std::string_view text, std::string_view path);
Result<CsvTable> ReadCsv(const std::string& path);
/// One line with quoting where needed, newline included.
std::string CsvLine(std::span<const std::string> cells);

}  // namespace gnomon
