#pragma once

/// Shapes and measurements as CSV: the headers of shapes/*.csv and measured/*.csv (DESIGN.md).

#include <string>
#include <vector>

#include "gnomon/base/csv.h"
#include "gnomon/base/result.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// One row of a shapes file: a GEMM and the operator that asks for it.
struct Shape {
  std::string name;
  Problem problem;
};

/// Reads name,layout,m,n,k,batch; `dtype` becomes that of operands and result.
/// Errors name path:line:column.
Result<std::vector<Shape>> ReadShapes(const std::string& path, DType dtype);
Result<std::vector<Shape>> ParseShapes(std::string_view text, std::string_view path, DType dtype);

/// The header of measured/*.csv, with the config column.
inline constexpr std::string_view kMeasuredHeader =
    "device,family,dtype,dtype_out,layout,m,n,k,batch,tile_m,tile_n,tile_k,mma_m,mma_n,mma_k,"
    "split_k,us,source,config";

/// One row of a measured file. Tile columns of 0 are blank in the file.
struct Measurement {
  std::string device, family;
  Problem problem;
  bool layout_stated = true;  ///< profiler traces do not say; then `problem.layout` is nt
  /// False for formats of public files that are none of ours (nvfp4, fp4, fp6): `problem.dtype` is
  /// then their nearest kin, the MX format of as many bits.
  bool dtype_modelled = true;
  std::string dtype_text;  ///< as the file has it
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0, split_k = 0;
  double us = 0;
  std::string source, config;
  int line = 0, device_column = 0;  ///< where the row's device stands in the file, from 1
};

/// A measured file. Rows whose time is "nan" (a sweep writes it for a config that failed to build
/// or to run) are counted and left out of `rows`.
struct MeasuredTable {
  std::vector<Measurement> rows;
  std::int64_t failed = 0;
  std::vector<Measurement> failures;  ///< those rows; us is NaN
};

/// The family's name and config string are not checked here: a reader may know no such family.
Result<MeasuredTable> ReadMeasuredTable(const std::string& path);
Result<MeasuredTable> ParseMeasuredTable(std::string_view text, std::string_view path);
/// The same of a file that still grows: it may have nothing but failed configs yet.
Result<MeasuredTable> ParseUnfinishedTable(std::string_view text, std::string_view path);
/// The same without the count.
Result<std::vector<Measurement>> ReadMeasurements(const std::string& path);
Result<std::vector<Measurement>> ParseMeasurements(std::string_view text, std::string_view path);

/// One line of a measured file, newline included.
std::string MeasurementLine(const Measurement& row);

}  // namespace gnomon
