#pragma once

/// Evaluate: what predictions are worth against a measured file (`gnomon gemm evaluate`).

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gnomon/gemm/family.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon {

/// Best time / time of the pick over the shapes whose losers were timed: 1 is perfect.
struct Regret {
  double geomean = 0, p10 = 0, p5 = 0, min = 0;
  double top4_geomean = 0;  ///< best / fastest of the four first picks
};

/// Shapes where several families that we model were timed: is the right family chosen?
struct FamilyChoice {
  int shapes = 0;
  double best_single = 0;         ///< geomean of best / time of the one family that is best overall
  double picked_best = 0;         ///< geomean of best / time of the family predicted fastest
  double headroom_recovered = 0;  ///< share of log(1 / best_single) that the choice gains; 1 is all
  std::string best_single_family;
};

/// One shape of the file whose losers were timed.
struct PickOnShape {
  Problem problem;
  std::string family;
  int configs = 0;
  std::string best, pick;        ///< config strings
  Seconds best_time, pick_time;  ///< measured
  Seconds pick_predicted;
  double ratio() const { return best_time / pick_time; }
};

struct Evaluation {
  std::int64_t rows = 0;          ///< of the file
  std::int64_t predicted = 0;     ///< rows that a family of ours or the library model predicts
  std::int64_t other_device = 0;  ///< rows of another device: not predicted
  std::int64_t not_modelled = 0;  ///< rows of a family or config that we do not model
  std::optional<double> median_abs_error, p90_abs_error;  ///< |predicted / measured − 1|
  std::optional<double> spearman;                         ///< over all predicted rows
  std::optional<double>
      spearman_within_shape;  ///< median over shapes with losers: ranks of configs
  std::optional<Regret> regret;
  std::optional<FamilyChoice> family_choice;
  std::vector<PickOnShape> shapes;
};

/// Families are matched by name; rows of vendor libraries (library, cublas, openblas, …) are
/// predicted by gemm/library.h. Rows of other devices are counted, not used. Error: no row is of
/// this device.
Result<Evaluation> Evaluate(const Device& device, std::span<const Measurement> rows,
                            std::span<const Family* const> families);

}  // namespace gnomon
