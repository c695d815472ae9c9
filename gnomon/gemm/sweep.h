#pragma once

/// Sweep: times every config of a family for each shape on a workbench and appends the rows to a
/// measured file, so that a run that was killed goes on where it stopped.

#include <functional>
#include <string>
#include <vector>

#include "gnomon/gemm/workbench.h"

namespace gnomon {

struct SweepOptions {
  int units = 0;            ///< cores; 0: all of the device
  double max_gflop = 0;     ///< larger shapes are passed over; 0: none
  int first_rounds = 3;     ///< interleaved samples of every config
  int rounds = 5;           ///< of every config near the best
  int final_rounds = 11;    ///< of the few fastest, beside those
  bool keep_going = false;  ///< a config that fails becomes a row without a time, not an error
  Seconds time_limit{0};    ///< stops between shapes after this; 0: none
  /// Done and total shapes, and what is timed next.
  std::function<void(int, int, const std::string&)> progress = {};
};

/// A sample of a GPU is several runs of a clock that nothing else disturbs: fewer rounds of more.
SweepOptions GpuSweepOptions();

struct SweepResult {
  std::string device;
  int shapes = 0;    ///< of the file, within max_gflop
  int complete = 0;  ///< shapes whose every config stands in the file now
  std::int64_t rows_written = 0;
  std::int64_t failed = 0;  ///< configs of these shapes without a time, of every run
  /// "P: why": shapes that the family or the bench cannot do; where the sweep keeps going.
  std::vector<std::string> passed_over;
  std::vector<std::string> wrong;  ///< "config C computes P wrongly: why", of every run
};

/// Error: no write permission, a file that is no measured file, a device that is lost (what stood
/// in the way is in the file then), and, unless it keeps going, a config that fails (names it).
Result<SweepResult> Sweep(const Device& device, Workbench& bench, const std::vector<Shape>& shapes,
                          const std::string& output_path, const SweepOptions& options);

}  // namespace gnomon
