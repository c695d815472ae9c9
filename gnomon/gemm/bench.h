#pragma once

/// Bench: the pick against the best of the vendor's libraries on a workbench, interleaved
/// (`gnomon gemm bench`).

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gnomon/gemm/workbench.h"

namespace gnomon {

struct BenchOptions {
  int units = 0;            ///< the pick may use; 0: all of the device
  double max_gflop = 0;     ///< larger shapes are passed over; 0: none
  int rounds = 15;          ///< interleaved samples of each contestant
  bool keep_going = false;  ///< a contestant that fails costs its shape, not the bench
  std::function<void(int, int, const std::string&)> progress = {};
};

/// A sample of a GPU is several runs.
BenchOptions GpuBenchOptions();

struct BenchRow {
  Shape shape;
  std::string config;       ///< of the pick
  Seconds predicted, pick;  ///< `pick` and `vendor` are measured
  Seconds vendor;           ///< of the fastest library
  std::string vendor_name;
  std::optional<HostCost> host;                   ///< of launching the pick
  double ratio() const { return vendor / pick; }  ///< above 1: ours is faster
};

struct BenchResult {
  std::vector<BenchRow> rows;
  std::vector<std::string> vendors;  ///< on this bench
  double geomean_ratio = 0;
  /// "P: why": shapes that the family, the library or the bench cannot do; where it keeps going.
  std::vector<std::string> passed_over;
  std::vector<std::string> failed;  ///< "config C computes P wrongly: why"; these have no row
  std::string conditions;           ///< of the last shape: machine, date, caches, clocks
};

/// Error: a shape that the bench cannot set up, a device that is lost, and, unless it keeps going,
/// a contestant that fails (names it).
Result<BenchResult> BenchAgainstVendor(const Device& device, Workbench& bench,
                                       const std::vector<Shape>& shapes,
                                       const BenchOptions& options);

}  // namespace gnomon
