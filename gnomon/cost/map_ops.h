#pragma once

/// MapOps: what a row of a measured operator file asks of the model. Private to cost/ but for the
/// structs; evaluate_ops.h is the way in.

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "gnomon/base/csv.h"
#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"

namespace gnomon {

/// One row, its cells by column name; numbers were checked when the file was read.
class OpsRow {
 public:
  OpsRow(const CsvTable& table, const CsvTable::Row& row) : table_(table), row_(row) {}
  std::string_view Text(std::string_view column) const {
    const int index = table_.FindColumn(column);
    return index < 0 ? std::string_view() : row_.cells[static_cast<size_t>(index)];
  }
  /// Nothing where the cell is blank or no plain number.
  std::optional<double> Number(std::string_view column) const;
  int line() const { return row_.line; }

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
};

/// A row that the model predicts.
struct MappedOp {
  std::string op;     ///< the operator's name, the same for every spelling of it
  std::string shape;  ///< the text whose hash says whether the row may be fitted
  Seconds measured;
  Prediction prediction;
};

/// Or the reason why the row stands apart.
using Mapping = std::variant<MappedOp, std::string>;

Mapping MapMemoryOp(const Device& device, const OpsRow& row);
Mapping MapCollective(const Device& device, const OpsRow& row);
Mapping MapEmbedding(const Device& device, const OpsRow& row);

/// The id of a device that a row names in its own way ("A100 80GB PCIe", "H100 80GB HBM3");
/// nothing where the name does not say which device it was ("Blackwell", "gfx950", "8xH100").
std::optional<std::string> DeviceIdOf(std::string_view name);

}  // namespace gnomon
