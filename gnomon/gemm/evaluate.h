#pragma once

/// Evaluate: what predictions are worth against a measured file (`gnomon gemm evaluate`).

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gnomon/gemm/family.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon {

/// |predicted / measured − 1| over some timings.
struct ErrorFigures {
  std::int64_t timings = 0;
  double median = 0, p90 = 0;
  std::optional<double> spearman;  ///< nothing where one side does not vary
};

/// The same of a part of the file, beside a roofline's (gemm/roofline.h).
struct GroupFigures {
  std::string name;  ///< "h200 bf16", "h200 cublas", "1 to 10 GFLOP"
  ErrorFigures model, roofline;
};

/// Best time / time of the pick over the shapes whose losers were timed: 1 is perfect.
struct Regret {
  double geomean = 0, p10 = 0, p5 = 0, min = 0;
  double top4_geomean = 0;  ///< best / fastest of the four first picks
};

/// Where the measured winner stands in our order.
struct TileRank {
  std::int64_t winners =
      0;  ///< shapes whose losers were timed; or rows that name the tile that won
  double median_candidates = 0;
  double median_rank = 0;                ///< from 1
  double first = 0, top4 = 0, top8 = 0;  ///< share of winners there
};

/// Choosing by prediction against always taking one family.
struct SingleFamily {
  std::string family;
  double always = 0;              ///< geomean of best time / its time
  double headroom_recovered = 0;  ///< share of log(1 / always) that the choice gains; 1 is all
};

/// Shapes where several families were timed: is the right one chosen?
struct FamilyChoice {
  std::vector<std::string> among;
  int shapes = 0;
  double picked_fastest = 0;      ///< share of the shapes
  double best_single = 0;         ///< SingleFamily::always of the best one; 0: none is everywhere
  double picked_best = 0;         ///< geomean of best / time of the family predicted fastest
  double headroom_recovered = 0;  ///< over the best single family
  std::string best_single_family;
  std::vector<SingleFamily> singles;  ///< those timed on all of the shapes
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

/// Over all timings of a file, or over those that no constant was fitted on.
struct EvaluationFigures {
  std::int64_t timings = 0;                               ///< distinct, predicted
  std::optional<double> median_abs_error, p90_abs_error;  ///< |predicted / measured − 1|
  std::optional<double> spearman;                         ///< over all timings
  std::optional<double>
      spearman_within_shape;  ///< median over shapes with losers: ranks of configs
  std::optional<ErrorFigures> roofline;
  std::vector<GroupFigures> decades;   ///< of flops
  std::vector<GroupFigures> dtypes;    ///< by device and dtype as the file names them
  std::vector<GroupFigures> families;  ///< by device and family
  std::optional<TileRank> tile_rank;
  std::optional<Regret> regret;
  std::optional<FamilyChoice> family_choice;  ///< among all families that share shapes
  std::vector<FamilyChoice> family_pairs;     ///< where there are more than two
  std::vector<PickOnShape> shapes;
};

/// Every row is in one of: predicted, repeats, other_device, not_modelled.
struct Evaluation : EvaluationFigures {
  std::vector<std::string> devices;  ///< that were evaluated
  std::int64_t rows = 0;             ///< of the file
  std::int64_t predicted = 0;        ///< distinct timings that a model predicts
  std::int64_t repeats = 0;  ///< of a config, shape and source timed again: the least time counts
  std::int64_t other_device = 0;  ///< rows of another device: not predicted
  std::int64_t not_modelled =
      0;  ///< no rate for the dtype, or a config that cannot run by the model
  std::int64_t generic =
      0;  ///< of `predicted`: family names that we do not know, by generic kernels
  std::vector<std::string> generic_families;
  std::int64_t kin_dtype =
      0;  ///< of `predicted`: a format that is none of ours, by its nearest kin
  EvaluationFigures held_out;  ///< timings that no constant was fitted on (base/fit_split.h)
};

/// Rows are predicted by PredictMeasured; noise of a timing is one-sided, so of repeats the least
/// is taken. Rows of devices that are not given are counted, not used. Error: no row is of any of
/// the devices.
Result<Evaluation> Evaluate(std::span<const Device> devices, std::span<const Measurement> rows,
                            std::span<const Family* const> families);
Result<Evaluation> Evaluate(const Device& device, std::span<const Measurement> rows,
                            std::span<const Family* const> families);

/// Ids in the order in which the rows name them.
std::vector<std::string> DevicesOf(std::span<const Measurement> rows);

/// The devices that the rows name. Error: "path:line:column" of the first one that there is no file
/// for.
Result<std::vector<Device>> FindDevicesOf(std::span<const Measurement> rows,
                                          const std::string& path);

}  // namespace gnomon
