#pragma once

/// The trainer's face: no LibTorch type crosses it, so that the command line loads LibTorch only
/// when a plan is really run (libgnomon_train.so, opened by train/load_engine.h).

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/base/units.h"
#include "gnomon/codesign/plan.h"
#include "gnomon/device/device.h"

namespace gnomon::train {

/// Called now and then with what is done, the total and a note; may be empty.
using ProgressCallback =
    std::function<void(std::int64_t done, std::int64_t total, const std::string& note)>;

struct TrainOptions {
  std::int64_t steps = 100;
  std::string data;               ///< Kaggle Criteo TSV (plain or gzip); empty: synthetic
  std::uint64_t seed = 1;         ///< synthetic data, hidden teacher and initial weights
  std::string checkpoint_folder;  ///< empty: none written
  std::int64_t checkpoint_every = 50;
  bool resume = false;
  std::int64_t bad_line_limit = 100;
  std::int64_t eval_samples = 20000;  ///< held out: never trained on
  std::int64_t max_table_rows = 0;    ///< 0: as the model says; tests use small tables
  ProgressCallback progress;          ///< steps done, steps in all, what is being done
};

struct TrainResult {
  std::int64_t steps = 0;
  Seconds step_time;    ///< measured, median over steps after warm-up
  Seconds step_spread;  ///< median absolute deviation
  double samples_per_second = 0;
  double normalized_entropy = 0, auc = 0;  ///< on held-out samples
  Bytes peak_memory;
  std::vector<double> losses;
  std::vector<std::string> bad_lines;  ///< "path:line: what", of the data lines that were skipped
};

/// Several plans in turn on the same data, interleaved in blocks after warm-up.
struct CompareOptions {
  Seconds time_budget{60};  ///< measuring; warm-up and set-up stand outside it
  int seeds = 3;            ///< of the quality runs
  std::int64_t quality_samples =
      0;  ///< trained per arm and seed; 0: as the time budget allows, equal for all arms
  std::uint64_t seed = 1;
  std::string data;
  std::int64_t max_table_rows = 0;
  std::int64_t eval_samples = 50000;  ///< held out, the same for all arms of a seed
  ProgressCallback progress;          ///< parts done, parts in all, what is being done
};

struct ArmResult {
  std::string name;
  Seconds step_time, step_spread;
  double samples_per_second = 0;
  std::vector<double> block_seconds_per_sample;  ///< one a block, in the order they ran
  std::vector<double> normalized_entropy;        ///< one a seed
  Bytes peak_memory;
};

struct CompareResult {
  std::vector<ArmResult> arms;  ///< in the order of the plans
  std::int64_t quality_samples = 0;
};

struct Arm {
  std::string name;  ///< "direct port", "plan"
  Plan plan;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual Result<TrainResult> Train(const Plan& plan, const TrainOptions& options) const = 0;
  virtual Result<CompareResult> Compare(const std::vector<Arm>& arms,
                                        const CompareOptions& options) const = 0;
  /// Measures what the cost model needs of eager LibTorch on this machine and puts it into `device`
  /// (device.framework and its facts). Takes a few seconds.
  virtual Status CalibrateFramework(Device& device) const = 0;
};

}  // namespace gnomon::train
