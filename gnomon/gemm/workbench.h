#pragma once

/// Workbench: where operands live, and how a kernel is run on them, checked and timed. The seam
/// between sweep and bench and the machine; one for the host (host_workbench.h), one for a CUDA
/// device (families/cuda/cuda_workbench.h), one in tests.

#include <optional>
#include <string>
#include <vector>

#include "gnomon/gemm/selector.h"
#include "gnomon/gemm/shapes.h"
#include "gnomon/gemm/timing.h"

namespace gnomon {

/// Who multiplies: the family with a config, or one of the vendor's libraries.
struct Contestant {
  Config config = {};
  int vendor = -1;  ///< index into Vendors(); -1: the family
  friend bool operator==(const Contestant&, const Contestant&) = default;
};

/// What came of a run.
struct Outcome {
  enum class Ending {
    kRight,
    kWrong,   ///< it ran, and the result is wrong
    kFailed,  ///< it could not run
    kLost,    ///< it took the device with it: nothing runs any more in this process
  };
  Ending ending = Ending::kRight;
  std::string why = {};
  bool right() const { return ending == Ending::kRight; }
};

/// What a call costs the thread that makes it, the work itself apart.
struct HostCost {
  Seconds call;         ///< selection (of a problem seen before) and launch
  Seconds cold_select;  ///< selection alone, of a problem never seen
  Seconds bare_launch;  ///< of an empty kernel through the runtime: what no launcher can go below
};

class Workbench {
 public:
  virtual ~Workbench() = default;
  virtual const Family& family() const = 0;
  /// Names of the vendor's libraries that take part.
  virtual std::vector<std::string> Vendors() const { return {}; }

  /// Makes the operands of a problem in place of those before. Error: a problem that cannot be set
  /// up here (a dtype, too little memory).
  virtual Status Prepare(const Problem& problem) = 0;
  /// Runs it on a poisoned C and checks the whole result.
  virtual Outcome Verify(const Contestant& contestant) = 0;
  /// Adds a sample or a few, taken one right after the other.
  virtual Outcome Sample(const Contestant& contestant, Samples& samples) = 0;

  /// How the problem was timed up to now: machine, date, caches, clocks; for the source column.
  virtual std::string Conditions() const = 0;
  /// Puts tile and split columns of a measured row; the config string is the sweep's.
  virtual void Describe(const Config& config, Measurement& row) const = 0;
  /// Of launching what the selector picks for the prepared problem; nothing where a call is the
  /// work itself.
  virtual std::optional<HostCost> CostOfCalls(const Selector&) { return std::nullopt; }
};

}  // namespace gnomon
