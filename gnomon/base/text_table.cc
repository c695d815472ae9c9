// Tables and numbers for a terminal.
//
// A number has three significant digits: it is rounded first and its unit chosen afterwards, so
// that 999.9 us is shown as "1.00 ms", never as "1000 us". Times use decimal steps of 1000, sizes
// steps of 1024 (KiB), rates steps of 1000 (GB/s), as vendors' data sheets do. A column's width is
// counted in code points, so that "×" and "µ" take one place; wide East Asian letters are not
// treated.

#include "gnomon/base/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>

namespace gnomon {
namespace {

constexpr double kDecimalStep = 1000;
constexpr double kBinaryStep = 1024;
constexpr double kPlainLimit =
    1e15;  // beyond this a plain number is harder to read than an exponent
constexpr double kPlainFloor = 1e-6;

size_t Width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

double Rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double scale = std::pow(10.0, digits - 1 - exponent);
  return std::isfinite(scale) && scale > 0 ? std::round(value * scale) / scale : value;
}

std::string WithUnit(double value, std::span<const std::string_view> units, double step) {
  size_t unit = 0;
  while (unit + 1 < units.size() && std::abs(Rounded(value, 3)) >= step) {
    value /= step;
    ++unit;
  }
  return Significant(value) + ' ' + std::string(units[unit]);
}

std::string Padded(const std::string& cell, size_t width, bool left) {
  const std::string blanks(width - Width(cell), ' ');
  return left ? cell + blanks : blanks + cell;
}

}  // namespace

std::string TextTable::Text() const {
  const size_t columns = header_.size();
  std::vector<size_t> widths(columns);
  std::vector<bool> left(columns, true);
  const auto cell = [](const std::vector<std::string>& row, size_t i) {
    return i < row.size() ? row[i] : std::string();
  };
  for (size_t i = 0; i < columns; ++i) {
    widths[i] = Width(header_[i]);
    for (const auto& row : rows_) widths[i] = std::max(widths[i], Width(cell(row, i)));
    const std::string first = rows_.empty() ? header_[i] : cell(rows_.front(), i);
    left[i] = !first.empty() && std::isalpha(static_cast<unsigned char>(first.front())) != 0;
  }
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text;
    for (size_t i = 0; i < columns; ++i) text += "  " + Padded(cell(row, i), widths[i], left[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + '\n';
  };
  std::string text = line(header_);
  for (size_t i = 0; i < columns; ++i) text += "  " + std::string(widths[i], '-');
  text += '\n';
  for (const auto& row : rows_) text += line(row);
  return text;
}

std::string Significant(double value, int digits) {
  if (value == 0) return "0";
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const double rounded = Rounded(value, digits);
  const double size = std::abs(rounded);
  if (size >= kPlainLimit || size < kPlainFloor) return fmt::format("{:.{}e}", rounded, digits - 1);
  const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-12));
  return fmt::format("{:.{}f}", rounded, std::max(0, digits - 1 - exponent));
}

std::string Show(Seconds time) {
  constexpr std::string_view kUnits[] = {"ns", "us", "ms", "s"};
  constexpr double kNanosecondsPerSecond = 1e9;
  return WithUnit(time.value * kNanosecondsPerSecond, kUnits, kDecimalStep);
}

std::string Show(Bytes bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (std::abs(bytes.value) < kBinaryStep) return fmt::format("{:.0f} B", bytes.value);
  return WithUnit(bytes.value, kUnits, kBinaryStep);
}

std::string Show(BytesPerSecond rate) {
  constexpr std::string_view kUnits[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return WithUnit(rate.value, kUnits, kDecimalStep);
}

std::string Show(FlopsPerSecond rate) {
  constexpr std::string_view kUnits[] = {"FLOP/s",  "kFLOP/s", "MFLOP/s",
                                         "GFLOP/s", "TFLOP/s", "PFLOP/s"};
  return WithUnit(rate.value, kUnits, kDecimalStep);
}

}  // namespace gnomon
