#pragma once

/// The clock of sweep and bench: interleaved samples and their median.

#include <functional>
#include <string>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/base/units.h"

namespace gnomon {

using TimedCall = std::function<Status()>;

/// Samples of one call's time. Those in which the system took a core away count only where there is
/// no other.
class Samples {
 public:
  /// Adds one sample: calls back to back for about `at_least`, divided by their number; taken
  /// again, a few times, while it is disturbed.
  Status Take(const TimedCall& call, Seconds at_least);
  /// Adds a sample that was taken elsewhere.
  void Add(Seconds time, bool disturbed = false) {
    (disturbed ? disturbed_ : clean_).push_back(time.value);
  }
  bool clean() const { return !clean_.empty(); }
  bool empty() const { return clean_.empty() && disturbed_.empty(); }
  /// Median of the clean samples; without one the least of the disturbed.
  Seconds Time() const;
  /// "; median of 9; spread 0.4%": what stands behind Time; the spread is the median distance from
  /// the median.
  std::string Text() const;

 private:
  int calls_ = 0;  // of one sample, found by the first
  std::vector<double> clean_, disturbed_;
};

}  // namespace gnomon
