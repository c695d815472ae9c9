#pragma once

/// Aligned text tables and numbers as the terminal shows them: 3 significant digits and a unit.

#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/units.h"

namespace gnomon {

/// Columns are left-aligned if their first body cell starts with a letter, right-aligned otherwise.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : header_(std::move(header)) {}
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Two spaces before each line, a rule under the header, newline at the end.
  std::string Text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

std::string Significant(double value, int digits = 3);  ///< "12.3", "0.00123", "1230"
std::string Show(Seconds time);                         ///< "12.3 us", "4.56 ms", "1.20 s"
std::string Show(Bytes bytes);                          ///< "1.50 GiB"
std::string Show(BytesPerSecond rate);                  ///< "12.3 GB/s"
std::string Show(FlopsPerSecond rate);                  ///< "330 GFLOP/s"

}  // namespace gnomon
