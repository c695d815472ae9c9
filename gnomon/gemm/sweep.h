#pragma once

/// Sweep: times every config of a family for each shape on the present machine and appends the rows
/// to a measured file, so that a run that was killed goes on where it stopped.

#include <functional>
#include <string>
#include <vector>

#include "gnomon/gemm/family.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon {

/// A family whose kernels can run here. The seam between gemm/ and the kernels (tests use a fake).
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  virtual const Family& family() const = 0;
  /// C = A·B with the config; operands as problem.dtype, C as problem.dtype_out.
  virtual Status Run(const Problem& problem, const Config& config, const void* a, const void* b,
                     void* c) const = 0;
  /// Puts tile and split columns of a measured row; the config string is the sweep's.
  virtual void Describe(const Config& config, Measurement& row) const = 0;
};

struct SweepOptions {
  int units = 0;              ///< cores; 0: all of the device
  std::string source;         ///< the source column: CPU class, date, policy
  double max_gflop = 0;       ///< larger shapes are passed over; 0: none
  double min_sample_us = 60;  ///< calls are repeated until a sample is this long
  int rounds = 5;             ///< interleaved samples of every config near the best
  int final_rounds = 11;      ///< interleaved samples of the few fastest
  Seconds time_limit{0};      ///< stops between shapes after this; 0: none
  /// Done and total shapes, and what is timed next.
  std::function<void(int, int, const std::string&)> progress;
};

struct SweepResult {
  int shapes = 0;    ///< of the file, within max_gflop
  int complete = 0;  ///< shapes whose every config stands in the file now
  std::int64_t rows_written = 0;
};

/// Error: no write permission, a file that is no measured file, a config whose result is wrong
/// (names it).
Result<SweepResult> Sweep(const Device& device, const KernelRunner& runner,
                          const std::vector<Shape>& shapes, const std::string& output_path,
                          const SweepOptions& options);

}  // namespace gnomon
