#pragma once

/// EvaluateOps: what operator, collective and step predictions are worth against a measured file
/// (`gnomon cost evaluate`).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/csv.h"
#include "gnomon/base/units.h"

namespace gnomon {

/// What a file measures; its header says so.
enum class OpsKind { kAttention, kEmbedding, kMemory, kCollectives, kSteps };
std::string_view Name(OpsKind kind);

struct OpsFile {
  OpsKind kind = OpsKind::kMemory;
  CsvTable table;
};

/// Further columns may stand beside a header's own. Error: a header that is none of ours (names the
/// nearest one's missing column), a row whose numbers are none: file:line:column.
Result<OpsFile> ParseOps(std::string_view text, std::string_view path);
Result<OpsFile> ReadOps(const std::string& path);

/// |predicted / measured − 1| over some rows.
struct OpsError {
  int rows = 0;
  double median = 0, p90 = 0;
  std::optional<double> spearman;  ///< nothing below three rows or where all times are one
};

struct OpsGroup {
  std::string device, op;
  OpsError all;
  OpsError held_out;  ///< rows that no constant was fitted on (base/fit_split.h)
};

struct OpsTiming {
  int line = 0;
  std::string device, op;
  Seconds measured, predicted;
  bool fitted = false;
};

struct OpsApart {
  int line = 0;
  std::string device, op, reason;  ///< device and op as the row has them
};

struct OpsEvaluation {
  OpsKind kind = OpsKind::kMemory;
  int rows = 0;                  ///< of the file
  int other_device = 0;          ///< left out by the device asked for
  std::vector<OpsGroup> groups;  ///< by device, then op
  std::vector<OpsTiming> timings;
  std::vector<OpsApart> apart;
};

/// Every row is in a group, apart with a reason, or of another device than `only_device` (an id;
/// empty: all).
OpsEvaluation EvaluateOps(const OpsFile& file, std::string_view only_device = {});

}  // namespace gnomon
