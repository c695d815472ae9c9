#pragma once

/// Selector: picks for one device again and again, in microseconds, and in nanoseconds where a
/// problem was asked for before.

#include <memory>
#include <span>
#include <vector>

#include "gnomon/gemm/select.h"

namespace gnomon {

class Selector {
 public:
  /// Copies the device; the families must outlive the selector. `units` limits cores, CUs or SMs
  /// (0: all).
  Selector(const Device& device, std::span<const Family* const> families, int units = 0);
  Selector(Selector&&) = default;
  Selector& operator=(Selector&&) = default;

  /// The pick of Select(device, problem, families, units) with top 1. Safe to call from several
  /// threads; allocates nothing once a thread has seen a problem of the kind (dtypes, layout,
  /// alignment). Problems without groups are remembered, the last few hundred of each thread.
  Result<Pick> Select(const Problem& problem) const;

  /// The same without looking into or adding to what is remembered.
  Result<Pick> SelectCold(const Problem& problem) const;

  /// The time that the pick's family predicts for its config on another problem.
  Seconds TimeOf(const Problem& problem, const Pick& pick) const;

  const Device& device() const { return device_; }

 private:
  struct Member {
    const Family* family;
    std::unique_ptr<ReadyFamily> ready;
    std::optional<double> pair_error;
  };

  Device device_;
  int units_;
  std::uint64_t id_;  ///< of all selectors of the process: what is remembered is by selector
  std::vector<Member> members_;
};

}  // namespace gnomon
