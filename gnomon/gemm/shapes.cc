// Reads and writes the two CSV formats of GEMMs: shapes to do, and measurements made.
//
// Columns are found by name, so their order is free and further columns may stand beside them.
// Every refusal names path:line:column, the value, and what would be valid. A measured row without
// a layout (profiler traces do not record it) is read as nt and marked. A time of "nan" is a config
// that failed: counted, not a row; any other time must be a finite number above 0.

#include "gnomon/gemm/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gnomon {
namespace {

constexpr std::string_view kFailedTime = "nan";
constexpr std::int64_t kMaxSide = std::int64_t{1} << 40;  // beyond any memory; products stay finite

std::string At(const CsvTable& table, const CsvTable::Row& row, int column) {
  return fmt::format("{}:{}:{}", table.path, row.line, row.columns[static_cast<size_t>(column)]);
}

const std::string& Cell(const CsvTable::Row& row, int column) {
  return row.cells[static_cast<size_t>(column)];
}

// An error of a value parser, with the place of its cell.
Error Placed(const Error& error, std::string where) {
  return {error.code, error.message, std::move(where)};
}

struct SideColumns {
  int layout = 0, m = 0, n = 0, k = 0, batch = 0;
};

Result<SideColumns> FindSides(const CsvTable& table) {
  SideColumns columns;
  const std::array<std::pair<std::string_view, int*>, 5> wanted = {{{"layout", &columns.layout},
                                                                    {"m", &columns.m},
                                                                    {"n", &columns.n},
                                                                    {"k", &columns.k},
                                                                    {"batch", &columns.batch}}};
  for (const auto& [name, column] : wanted) {
    GNOMON_ASSIGN(*column, table.Column(name));
  }
  return columns;
}

Status ReadSides(const CsvTable& table, const CsvTable::Row& row, const SideColumns& columns,
                 Problem& problem) {
  GNOMON_ASSIGN(problem.m, table.Integer(row, columns.m, 1, kMaxSide));
  GNOMON_ASSIGN(problem.n, table.Integer(row, columns.n, 1, kMaxSide));
  GNOMON_ASSIGN(problem.k, table.Integer(row, columns.k, 1, kMaxSide));
  GNOMON_ASSIGN(problem.batch, table.Integer(row, columns.batch, 1, kMaxSide));
  const Status status = CheckProblem(problem);
  if (!status.ok()) return Placed(status.error(), At(table, row, columns.m));
  return Done{};
}

Status ReadLayout(const CsvTable& table, const CsvTable::Row& row, int column, Layout& layout) {
  const Result<Layout> parsed = ParseLayout(Cell(row, column));
  if (!parsed.ok()) return Placed(parsed.error(), At(table, row, column));
  layout = *parsed;
  return Done{};
}

Status ReadDType(const CsvTable& table, const CsvTable::Row& row, int column, DType& dtype) {
  const Result<DType> parsed = ParseDType(Cell(row, column));
  if (!parsed.ok()) return Placed(parsed.error(), At(table, row, column));
  dtype = *parsed;
  return Done{};
}

// Formats that public measurements name and we have no type for, and the type with as many bits an
// element and a scale a block that stands in for them.
struct ForeignFormat {
  std::string_view name;
  DType kin;
};
constexpr std::array<ForeignFormat, 3> kForeignFormats = {
    {{"fp4", DType::kMxFp4}, {"fp6", DType::kMxFp6}, {"nvfp4", DType::kMxFp4}}};

const ForeignFormat* FindForeignFormat(std::string_view text) {
  for (const ForeignFormat& format : kForeignFormats)
    if (format.name == text) return &format;
  return nullptr;
}

Result<std::vector<Shape>> ShapesOf(const CsvTable& table, DType dtype) {
  GNOMON_ASSIGN(const SideColumns columns, FindSides(table));
  const int name = table.FindColumn("name");
  if (table.rows.empty()) return BadInput("no shapes below the header", table.path);
  std::vector<Shape> shapes;
  shapes.reserve(table.rows.size());
  for (const CsvTable::Row& row : table.rows) {
    Shape shape;
    if (name >= 0) shape.name = Cell(row, name);
    shape.problem.dtype = shape.problem.dtype_out = dtype;
    GNOMON_TRY(ReadLayout(table, row, columns.layout, shape.problem.layout));
    GNOMON_TRY(ReadSides(table, row, columns, shape.problem));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

// Optional whole-number column: blank or absent is 0.
Status ReadOptional(const CsvTable& table, const CsvTable::Row& row, std::string_view name,
                    std::int64_t& value) {
  const int column = table.FindColumn(name);
  if (column < 0 || Cell(row, column).empty()) return Done{};
  GNOMON_ASSIGN(value, table.Integer(row, column, 0, kMaxSide));
  return Done{};
}

Result<MeasuredTable> MeasurementsOf(const CsvTable& table) {
  GNOMON_ASSIGN(const SideColumns sides, FindSides(table));
  GNOMON_ASSIGN(const int device, table.Column("device"));
  GNOMON_ASSIGN(const int family, table.Column("family"));
  GNOMON_ASSIGN(const int dtype, table.Column("dtype"));
  GNOMON_ASSIGN(const int dtype_out, table.Column("dtype_out"));
  GNOMON_ASSIGN(const int us, table.Column("us"));
  const int source = table.FindColumn("source"), config = table.FindColumn("config");
  if (table.rows.empty()) return BadInput("no measurements below the header", table.path);
  MeasuredTable measured;
  measured.rows.reserve(table.rows.size());
  for (const CsvTable::Row& row : table.rows) {
    Measurement out;
    out.line = row.line;
    out.device_column = row.columns[static_cast<size_t>(device)];
    out.device = Cell(row, device);
    out.family = Cell(row, family);
    out.dtype_text = Cell(row, dtype);
    if (const ForeignFormat* foreign = FindForeignFormat(out.dtype_text)) {
      out.dtype_modelled = false;
      out.problem.dtype = foreign->kin;
    } else {
      GNOMON_TRY(ReadDType(table, row, dtype, out.problem.dtype));
    }
    out.problem.dtype_out = out.problem.dtype;
    if (!Cell(row, dtype_out).empty())
      GNOMON_TRY(ReadDType(table, row, dtype_out, out.problem.dtype_out));
    out.layout_stated = !Cell(row, sides.layout).empty();
    if (out.layout_stated) GNOMON_TRY(ReadLayout(table, row, sides.layout, out.problem.layout));
    GNOMON_TRY(ReadSides(table, row, sides, out.problem));
    GNOMON_TRY(ReadOptional(table, row, "tile_m", out.tile_m));
    GNOMON_TRY(ReadOptional(table, row, "tile_n", out.tile_n));
    GNOMON_TRY(ReadOptional(table, row, "tile_k", out.tile_k));
    GNOMON_TRY(ReadOptional(table, row, "split_k", out.split_k));
    std::int64_t unused = 0;  // no model asks for the instruction, but a slip is told all the same
    for (const std::string_view side : {"mma_m", "mma_n", "mma_k"})
      GNOMON_TRY(ReadOptional(table, row, side, unused));
    if (Cell(row, us) == kFailedTime) {
      ++measured.failed;
      out.us = std::numeric_limits<double>::quiet_NaN();
    } else {
      GNOMON_ASSIGN(out.us, table.Number(row, us));
      if (out.us <= 0)
        return BadInput(fmt::format("us is {}; a time must be above 0", Cell(row, us)),
                        At(table, row, us));
    }
    if (source >= 0) out.source = Cell(row, source);
    if (config >= 0) out.config = Cell(row, config);
    if (std::isnan(out.us)) {
      measured.failures.push_back(std::move(out));
      continue;
    }
    measured.rows.push_back(std::move(out));
  }
  return measured;
}

// A finished file has a time at least.
Result<MeasuredTable> WithTimes(const CsvTable& table) {
  GNOMON_ASSIGN(MeasuredTable measured, MeasurementsOf(table));
  if (!measured.rows.empty()) return measured;
  GNOMON_ASSIGN(const int us, table.Column("us"));
  return BadInput("every config of the file failed: no time but 'nan'",
                  At(table, table.rows.front(), us));
}

Result<std::vector<Measurement>> RowsOf(Result<MeasuredTable> table) {
  if (!table.ok()) return table.error();
  return std::move(table->rows);
}

}  // namespace

Result<std::vector<Shape>> ReadShapes(const std::string& path, DType dtype) {
  GNOMON_ASSIGN(const CsvTable table, ReadCsv(path));
  return ShapesOf(table, dtype);
}

Result<std::vector<Shape>> ParseShapes(std::string_view text, std::string_view path, DType dtype) {
  GNOMON_ASSIGN(const CsvTable table, ParseCsv(text, path));
  return ShapesOf(table, dtype);
}

Result<MeasuredTable> ReadMeasuredTable(const std::string& path) {
  GNOMON_ASSIGN(const CsvTable table, ReadCsv(path));
  return WithTimes(table);
}

Result<MeasuredTable> ParseMeasuredTable(std::string_view text, std::string_view path) {
  GNOMON_ASSIGN(const CsvTable table, ParseCsv(text, path));
  return WithTimes(table);
}

Result<MeasuredTable> ParseUnfinishedTable(std::string_view text, std::string_view path) {
  GNOMON_ASSIGN(const CsvTable table, ParseCsv(text, path));
  return MeasurementsOf(table);
}

Result<std::vector<Measurement>> ReadMeasurements(const std::string& path) {
  return RowsOf(ReadMeasuredTable(path));
}

Result<std::vector<Measurement>> ParseMeasurements(std::string_view text, std::string_view path) {
  return RowsOf(ParseMeasuredTable(text, path));
}

std::string MeasurementLine(const Measurement& row) {
  const Problem& p = row.problem;
  const auto number = [](std::int64_t value) {
    return value ? fmt::to_string(value) : std::string();
  };
  const std::array<std::string, 19> cells = {
      row.device,
      row.family,
      row.dtype_text.empty() ? std::string(Name(p.dtype)) : row.dtype_text,
      std::string(Name(p.dtype_out)),
      row.layout_stated ? std::string(Name(p.layout)) : std::string(),
      fmt::to_string(p.m),
      fmt::to_string(p.n),
      fmt::to_string(p.k),
      fmt::to_string(p.batch),
      number(row.tile_m),
      number(row.tile_n),
      number(row.tile_k),
      "",
      "",
      "",
      number(row.split_k),
      fmt::format("{:.6g}", row.us),
      row.source,
      row.config};
  return CsvLine(cells);
}

}  // namespace gnomon
