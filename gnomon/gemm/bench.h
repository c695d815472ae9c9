#pragma once

/// Bench: the pick against the better of the vendor's BLAS libraries on the present machine,
/// interleaved
/// (`gnomon gemm bench`).

#include <functional>
#include <string>
#include <vector>

#include "gnomon/gemm/sweep.h"

namespace gnomon {

struct BenchOptions {
  int units = 0;               ///< threads of every contestant; 0: all cores of the device
  double max_gflop = 0;        ///< larger shapes are passed over; 0: none
  double min_sample_us = 100;  ///< calls are repeated until a sample is this long
  int rounds = 15;             ///< interleaved samples of each contestant
  std::function<void(int, int, const std::string&)> progress;
};

struct BenchRow {
  Shape shape;
  std::string config;       ///< of the pick
  Seconds predicted, pick;  ///< `pick` and `vendor` are measured
  Seconds vendor;           ///< of the faster library
  std::string vendor_name;
  double ratio() const { return vendor / pick; }  ///< above 1: ours is faster
};

struct BenchResult {
  std::vector<BenchRow> rows;
  std::vector<std::string> vendors;  ///< found on this machine
  double geomean_ratio = 0;
};

/// fp32 only: BLAS has no bf16 of its own. Error: no vendor library here (names the packages).
Result<BenchResult> BenchAgainstVendor(const Device& device, const KernelRunner& runner,
                                       const std::vector<Shape>& shapes,
                                       const BenchOptions& options);

}  // namespace gnomon
