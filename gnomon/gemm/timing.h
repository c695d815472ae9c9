#pragma once

/// The clock of sweep and bench: interleaved samples and their median.

#include <functional>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/base/units.h"

namespace gnomon {

using TimedCall = std::function<Status()>;

/// Time of one call: calls back to back until `at_least` has passed, divided by their number.
/// `calls` in: how many to make, 0: found here; out: how many were made.
Result<Seconds> TimeCalls(const TimedCall& call, Seconds at_least, int& calls);

/// The middle value; of an even number the mean of the two. Empty is a broken invariant.
double Median(std::vector<double> values);

/// Value below which `share` of the sorted values lie (linear between neighbours).
double Quantile(std::vector<double> values, double share);

}  // namespace gnomon
