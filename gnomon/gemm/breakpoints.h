#pragma once

/// Break points: the picks of one problem for every M of a range, settled in advance, so that a
/// lookup at run time is a search in a short sorted list.

#include <span>
#include <vector>

#include "gnomon/gemm/selector.h"

namespace gnomon {

struct BreakPoint {
  std::int64_t m = 0;  ///< from here on
  Pick pick;           ///< as predicted at `m`
};

class BreakPoints {
 public:
  /// The pick for an M of the range.
  const Pick& Lookup(std::int64_t m) const;

  std::int64_t low() const { return low_; }
  std::int64_t high() const { return high_; }
  /// Sorted by m. One list; 13 where A is stored along M: M odd, then 2, 4, ... 2048 times an odd
  /// number, then multiples of 4096, as there M's alignment decides how A is loaded.
  std::span<const std::vector<BreakPoint>> lists() const { return lists_; }
  size_t size() const;

 private:
  friend Result<BreakPoints> SelectRange(const Selector&, const Problem&, std::int64_t,
                                         std::int64_t, double);
  std::int64_t low_ = 1, high_ = 0;
  std::vector<std::vector<BreakPoint>> lists_;
};

/// Picks for M from `m_low` to `m_high` (`problem.m` is not looked at). A pick is kept until it is
/// predicted more than `tolerance` slower than the fastest, and a break point stands at the first M
/// where it is. At a break point the pick is Select's. Tolerance 0 follows every near-tie: for
/// short ranges. Error: a bad range or problem, a grouped problem, no family that can.
inline constexpr double kNearTie = 0.01;
Result<BreakPoints> SelectRange(const Selector& selector, const Problem& problem,
                                std::int64_t m_low, std::int64_t m_high,
                                double tolerance = kNearTie);
Result<BreakPoints> SelectRange(const Device& device, const Problem& problem,
                                std::span<const Family* const> families, std::int64_t m_low,
                                std::int64_t m_high, double tolerance = kNearTie);

}  // namespace gnomon
