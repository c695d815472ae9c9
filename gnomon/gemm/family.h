#pragma once

/// Family: a set of kernels with a config space. The family says which configs are legal for a
/// problem on a device (an infeasible one is never enumerated) and how long each takes;
/// gemm/select.h only compares.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// One way to do a problem: the family's parameters by position. A plain value, so that thousands
/// can be enumerated without an allocation each; families give the positions names.
struct Config {
  std::array<std::int32_t, 16> value{};
  friend bool operator==(const Config&, const Config&) = default;
};

struct TimedConfig {
  Config config;
  Seconds time;
};

/// A family on one device: what does not depend on the problem is settled when it is made. Safe to
/// use from several threads at once.
class ReadyFamily {
 public:
  virtual ~ReadyFamily() = default;

  /// Fills `fastest` with the configs of least time, fastest first (ties: enumeration order), and
  /// returns how many there are. Allocates nothing once a kind of problem has been seen.
  virtual Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const = 0;
  virtual Seconds TimeOf(const Problem& problem, const Config& config) const = 0;
};

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;

  /// Appends every config that can run the problem on `units` units of the device (0: all).
  /// Error: the family has no kernel for the dtype, layout or device.
  virtual Status Enumerate(const Device& device, const Problem& problem, int units,
                           std::vector<Config>& configs) const = 0;

  /// Time alone, fast; and the same time with its terms.
  virtual Seconds PredictTime(const Device& device, const Problem& problem,
                              const Config& config) const = 0;
  virtual Prediction Predict(const Device& device, const Problem& problem,
                             const Config& config) const = 0;

  /// Why the config cannot do the problem on the device, and what near it can; empty: nothing
  /// speaks against it. By default all that is known is that PredictTime has no end.
  virtual std::string Refusal(const Device& device, const Problem& problem,
                              const Config& config) const;

  /// Enumerate and PredictTime in one go: `seconds[i]` is the time of `configs[i]`. A family whose
  /// facts can be hoisted out of the loop over configs overrides this.
  virtual Status Price(const Device& device, const Problem& problem, int units,
                       std::vector<Config>& configs, std::vector<double>& seconds) const;

  /// The least times, as ReadyFamily::Fastest gives them. By default through Price; a family that
  /// need not price every config to know them overrides this.
  virtual Result<size_t> Fastest(const Device& device, const Problem& problem, int units,
                                 std::span<TimedConfig> fastest) const;

  /// The family made ready for many problems on a copy of the device. By default Fastest and
  /// PredictTime of this class.
  virtual std::unique_ptr<ReadyFamily> Ready(const Device& device, int units) const;

  /// Standard deviation of log(predicted / measured), less that of another config of the same
  /// shape: how far a predicted order of two can be trusted. Nothing where it was never measured.
  virtual std::optional<double> PairError(const Device& device) const;

  /// The canonical string that `select` prints, CSV files hold and `explain --config` reads.
  virtual std::string Print(const Config& config) const = 0;
  virtual Result<Config> Parse(std::string_view text) const = 0;
};

}  // namespace gnomon
