// What a GEMM asks for, and whether it can be asked: sizes, leading dimensions and names.
//
//   flops = 2·m·n·k·batch        bytes = batch·(m·k·s_in + k·n·s_in + m·n·s_out)
//   grouped: rows of A and C one group after the other, a B for each; B counts once a group with
//   rows
//
// Counts are doubles: a shape with more than 2^31 elements (or more than 2^63 flops) must not wrap.
// CheckProblem is the only gate; everything behind it may assume positive sides, leading dimensions
// that hold a row, and element counts below 2^62 that fit an int64 address computation.

#include "gnomon/gemm/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gnomon/base/nearest.h"

namespace gnomon {
namespace {

constexpr std::array<std::string_view, 4> kLayoutNames = {"nn", "nt", "tn", "tt"};

// Elements that `rows` stored rows of `leading` elements span over all batches, in double.
double Span(std::int64_t rows, std::int64_t leading, std::int64_t batch) {
  return static_cast<double>(rows) * static_cast<double>(leading) * static_cast<double>(batch);
}

Status CheckOperand(std::string_view name, std::int64_t rows, std::int64_t row,
                    std::int64_t leading, std::int64_t batch) {
  constexpr double kMaxElements = 4611686018427387904.0;  // 2^62: offsets stay inside int64
  if (leading < row)
    return BadInput(fmt::format("ld{} is {}, below the {} elements of a stored row; it must be at "
                                "least {} (or 0 for dense)",
                                name, leading, row, row),
                    fmt::format("problem.ld{}", name));
  if (Span(rows, leading, batch) >= kMaxElements)
    return BadInput(fmt::format("operand {} spans {:.3g} elements, 2^62 or more", name,
                                Span(rows, leading, batch)),
                    "problem");
  return Done{};
}

}  // namespace

std::string_view Name(Layout layout) { return kLayoutNames[static_cast<size_t>(layout)]; }

Result<Layout> ParseLayout(std::string_view text) {
  for (size_t i = 0; i < kLayoutNames.size(); ++i)
    if (kLayoutNames[i] == text) return static_cast<Layout>(i);
  return BadInput(UnknownName("layout", text, kLayoutNames));
}

std::int64_t Problem::Products() const {
  if (!grouped()) return batch;
  return std::count_if(group_m.begin(), group_m.end(), [](std::int64_t rows) { return rows > 0; });
}

Flops Problem::flops() const {
  return {2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
          static_cast<double>(batch)};
}

Bytes Problem::bytes() const {
  const double dm = static_cast<double>(m), dn = static_cast<double>(n),
               dk = static_cast<double>(k);
  if (grouped())
    return {(dm * dk + static_cast<double>(Products()) * dk * dn) * SizeOf(dtype) +
            dm * dn * SizeOf(dtype_out)};
  return {static_cast<double>(batch) *
          ((dm * dk + dk * dn) * SizeOf(dtype) + dm * dn * SizeOf(dtype_out))};
}

Bytes Problem::PartialSums(double parts) const {
  const double accumulator =
      std::max(SizeOf(DType::kFp32), dtype == DType::kFp64 ? SizeOf(dtype) : 0);
  return {parts * accumulator * static_cast<double>(m) * static_cast<double>(n) *
          static_cast<double>(batch)};
}

std::string Problem::Text() const {
  std::string text = fmt::format("{}x{}x{} {} {}", m, n, k, Name(layout), Name(dtype));
  if (batch != 1) text += fmt::format(" batch {}", batch);
  if (grouped()) text += fmt::format(" in {} groups", group_m.size());
  if (dtype_out != dtype) text += fmt::format(" to {}", Name(dtype_out));
  return text;
}

namespace {

Status CheckGroups(const Problem& p) {
  if (!p.grouped()) return Done{};
  if (p.batch != 1)
    return BadInput(fmt::format("batch is {} and there are {} groups; it is one or the other",
                                p.batch, p.group_m.size()),
                    "problem.batch");
  std::int64_t left = p.m;  // counted down: a sum could overflow
  for (size_t i = 0; i < p.group_m.size(); ++i) {
    const std::int64_t rows = p.group_m[i];
    if (rows < 0)
      return BadInput(fmt::format("group {} has {} rows; it must have 0 or more", i, rows),
                      fmt::format("problem.group_m[{}]", i));
    if (rows > left)
      return BadInput(
          fmt::format("the groups up to {} have more rows than m, which is {}; m is their sum", i,
                      p.m),
          "problem.group_m");
    left -= rows;
  }
  if (left != 0)
    return BadInput(
        fmt::format("the groups have {} rows and m is {}; m is their sum", p.m - left, p.m),
        "problem.group_m");
  return Done{};
}

}  // namespace

Status CheckProblem(const Problem& p) {
  const std::array<std::pair<std::string_view, std::int64_t>, 4> sides = {
      {{"m", p.m}, {"n", p.n}, {"k", p.k}, {"batch", p.batch}}};
  for (const auto& [name, side] : sides)
    if (side <= 0)
      return BadInput(fmt::format("{} is {}; it must be 1 or more", name, side),
                      fmt::format("problem.{}", name));
  const std::array<std::pair<std::string_view, std::int64_t>, 3> leading = {
      {{"lda", p.lda}, {"ldb", p.ldb}, {"ldc", p.ldc}}};
  for (const auto& [name, value] : leading)
    if (value < 0)
      return BadInput(fmt::format("{} is {}; it must be 0 (dense) or a row's length", name, value),
                      fmt::format("problem.{}", name));
  if (p.workspace && !(p.workspace->value >= 0))
    return BadInput(
        fmt::format("the workspace is {} bytes; it must be 0 or more", p.workspace->value),
        "problem.workspace");
  GNOMON_TRY(CheckGroups(p));
  const auto copies_of_b = static_cast<std::int64_t>(p.grouped() ? p.group_m.size() : 1) * p.batch;
  GNOMON_TRY(CheckOperand("a", p.a_transposed() ? p.k : p.m, p.a_transposed() ? p.m : p.k,
                          p.LeadingA(), p.batch));
  GNOMON_TRY(CheckOperand("b", p.b_transposed() ? p.n : p.k, p.b_transposed() ? p.k : p.n,
                          p.LeadingB(), copies_of_b));
  return CheckOperand("c", p.m, p.n, p.LeadingC(), p.batch);
}

}  // namespace gnomon
