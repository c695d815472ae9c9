#pragma once

/// Operator predictions against measurements as text and JSON: `gnomon cost evaluate`.

#include <string>

#include "gnomon/cost/evaluate_ops.h"
#include "gnomon/report/json.h"

namespace gnomon {

/// Verdict, a line a device and operator, then the rows that stand apart by reason.
std::string OpsText(const OpsEvaluation& evaluation, const std::string& path);

/// DESIGN.md "cost evaluate": {groups[{device, op, rows, median_abs_error, p90_abs_error, spearman,
/// held_out{…}}]}, beside them rows, predicted, other_device, apart[{reason, rows, lines[]}] and,
/// with `every_row`, timings[{line, device, op, measured_us, predicted_us, fitted}].
Json OpsJson(const OpsEvaluation& evaluation, bool every_row);

}  // namespace gnomon
