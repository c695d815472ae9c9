#pragma once

/// GEMM answers as text and JSON: `gnomon gemm select | explain | sweep | evaluate | bench`.

#include <span>
#include <string>

#include "gnomon/gemm/bench.h"
#include "gnomon/gemm/evaluate.h"
#include "gnomon/gemm/select.h"
#include "gnomon/report/json.h"

namespace gnomon {

/// A pick with its terms, ready to print.
struct ExplainedPick {
  std::string family, config;
  Prediction prediction;
};

std::string PicksText(const Device& device, const Problem& problem,
                      std::span<const ExplainedPick> picks);
/// DESIGN.md "gemm select": {device, problem{…}, picks[{family, config, predicted_us, …}]}.
Json PicksJson(const Device& device, const Problem& problem, std::span<const ExplainedPick> picks);

/// Every term of one prediction.
std::string ExplainText(const Device& device, const Problem& problem, const ExplainedPick& pick);

std::string SweepText(const SweepResult& result, const std::string& path);
Json SweepJson(const SweepResult& result, const std::string& path);

/// Verdict, regret, time error, then the shapes where the pick lost most.
std::string EvaluationText(const Evaluation& evaluation, const Device& device,
                           const std::string& path);
/// DESIGN.md "gemm evaluate"; what the file cannot give is null.
Json EvaluationJson(const Evaluation& evaluation);

std::string BenchText(const BenchResult& result);
/// DESIGN.md "gemm bench": {rows[{m, n, k, layout, pick_us, vendor_us, ratio}], geomean_ratio}.
Json BenchJson(const BenchResult& result);

}  // namespace gnomon
