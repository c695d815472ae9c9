#pragma once

/// GEMM answers as text and JSON: `gnomon gemm select | explain | sweep | bench`.
/// `evaluate` has a file of its own (evaluation_report.h).

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/gemm/bench.h"
#include "gnomon/gemm/select.h"
#include "gnomon/gemm/sweep.h"
#include "gnomon/report/json.h"

namespace gnomon {

/// What was asked: {m, n, k, batch, layout, dtype, dtype_out} and what is not the default.
Json ProblemJson(const Problem& problem);

/// A pick with its terms, ready to print.
struct ExplainedPick {
  std::string family, config;
  Prediction prediction;
  std::optional<double> sure = {};  ///< that it beats the next (Pick::sure)
  bool calibrated = false;  ///< the family's order was held against measurements on this device
};

/// `device_flags`: how the next step names the device ("--device mi300x --partition cpx --units
/// 32"); empty: by its id.
std::string PicksText(const Device& device, const Problem& problem,
                      std::span<const ExplainedPick> picks, std::string_view device_flags = {});
/// DESIGN.md "gemm select": {device, problem{…}, picks[{family, config, predicted_us, …}]}.
Json PicksJson(const Device& device, const Problem& problem, std::span<const ExplainedPick> picks);

/// One prediction beside the nearest ones.
struct Explanation {
  ExplainedPick pick;
  std::vector<ExplainedPick> rivals;  ///< next in the order of predicted time, the pick left out
  int twins = 0;         ///< configs among them, left out, that a listed one equals in every term
  bool in_space = true;  ///< false: select would not offer this config here
};

/// The term in which two predictions differ most, and by how much `other` takes longer in it.
struct Separation {
  std::string term;
  Seconds longer;
};
Separation SeparationOf(const Prediction& pick, const Prediction& other);

/// Every term, the figures behind them, and what separates the rivals.
std::string ExplainText(const Device& device, const Problem& problem,
                        const Explanation& explanation, std::string_view device_flags = {});
/// PicksJson with one pick, which also has figures[{name, value, unit, why}] and in_space; and
/// rivals[{family, config, predicted_us, slower, term, term_longer_us}].
Json ExplainJson(const Device& device, const Problem& problem, const Explanation& explanation);

std::string SweepText(const SweepResult& result, const std::string& path);
Json SweepJson(const SweepResult& result, const std::string& path);

std::string BenchText(const BenchResult& result);
/// DESIGN.md "gemm bench": {rows[{m, n, k, layout, pick_us, vendor_us, ratio}], geomean_ratio}.
Json BenchJson(const BenchResult& result);

}  // namespace gnomon
