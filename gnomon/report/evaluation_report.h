#pragma once

/// Predictions against measured GEMM times as text, JSON and docs/accuracy.md:
/// `gnomon gemm evaluate | accuracy`.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gnomon/cost/evaluate_ops.h"
#include "gnomon/gemm/evaluate.h"
#include "gnomon/report/json.h"

namespace gnomon {

/// Verdict, error, rank and regret, then by size, family and dtype, then the shapes where the pick
/// lost most. `held_out_only`: only timings that no constant was fitted on.
std::string EvaluationText(const Evaluation& evaluation, const std::string& path,
                           std::int64_t failed, bool held_out_only);

/// DESIGN.md "gemm evaluate" over all rows, and the same figures under "held_out"; what the file
/// cannot give is null.
Json EvaluationJson(const Evaluation& evaluation, std::int64_t failed);

/// One file of docs/accuracy.md: GEMMs, or operators.
struct AccuracyFile {
  std::string name;
  std::optional<Evaluation> gemm;
  std::optional<OpsEvaluation> ops;
  std::int64_t failed = 0;  ///< configs whose time is "nan"
};

/// docs/accuracy.md: the same input gives the same bytes.
std::string AccuracyMarkdown(std::span<const AccuracyFile> files);
Json AccuracyJson(std::span<const AccuracyFile> files);

}  // namespace gnomon
