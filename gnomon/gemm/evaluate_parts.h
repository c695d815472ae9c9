#pragma once

/// Parts of Evaluate that stand in files of their own: choices between configs and between
/// families.

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gnomon/gemm/evaluate.h"
#include "gnomon/gemm/predict_measured.h"

namespace gnomon {

/// A distinct timing with its prediction.
struct Timing {
  const Device* device = nullptr;
  const Measurement* row = nullptr;
  double measured = 0, predicted = 0, roofline = 0;  // seconds
  MeasuredPrediction::By by = MeasuredPrediction::By::kLibrary;
};

double GeometricMean(const std::vector<double>& values);

/// Spearman's correlation; ties share their mean rank. Nothing where one side does not vary.
std::optional<double> Spearman(const std::vector<double>& a, const std::vector<double>& b);

/// Timings of one shape on one device, by family.
using Contest = std::map<std::string, std::vector<const Timing*>>;
using Contests = std::map<std::string, Contest>;
Contests ContestsOf(std::span<const Timing> timings);

/// Tiles (m, n) that a file names for one device, family and dtype, with the depths and splits that
/// it names them with.
struct Depth {
  std::int64_t tile_k = 0, split_k = 0;
  friend auto operator<=>(const Depth&, const Depth&) = default;  // NOLINT(modernize-use-nullptr)
};
using Menu = std::map<std::pair<std::int64_t, std::int64_t>, std::set<Depth>>;
using Menus = std::map<std::string, Menu>;
Menus MenusOf(std::span<const Timing> timings);

/// Fills regret, tile_rank, shapes and spearman_within_shape. `menus` are those of the whole file.
void EvaluateConfigs(const Contests& contests, std::span<const Timing> timings, const Menus& menus,
                     std::span<const Family* const> families, EvaluationFigures& out);

/// Fills family_choice and family_pairs.
void EvaluateFamilyChoice(const Contests& contests, EvaluationFigures& out);

}  // namespace gnomon
