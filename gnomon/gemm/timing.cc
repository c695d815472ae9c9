// One sample of a call's time, and the statistics that sweep, bench and evaluate share.
//
//   sample = (end − start) / calls,   calls = ⌈at_least / time of one call⌉
//
// A call of two microseconds is shorter than the clock and the interrupt that may hit it;
// back-to-back calls make a sample long enough, behind one call that is not timed. A sample in
// which the system took a core away (involuntary context switches of this process) is set aside:
// two threads at a barrier lose milliseconds then. Medians over interleaved samples set aside what
// other tenants do besides. Caches are warm by this policy: a call finds its operands where the
// call before left them, as a training step finds what the operator before it wrote.

#include "gnomon/gemm/timing.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "gnomon/base/statistics.h"

namespace gnomon {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Times that a thread of this process had to give its core up; 0 where the system does not count
// them.
std::int64_t TakenAway() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

Status Samples::Take(const TimedCall& call, Seconds at_least) {
  constexpr double kMaxCalls = 10000;
  if (calls_ == 0) {
    GNOMON_TRY(call());
    const double start = Now();
    GNOMON_TRY(call());
    const double once = std::max(Now() - start, 1e-9);
    calls_ = static_cast<int>(std::clamp(std::ceil(at_least.value / once), 1.0, kMaxCalls));
  }
  constexpr int kMostTakes = 5;
  for (int take = 0; take < kMostTakes; ++take) {
    // What ran before may have let the threads fall asleep or taken the caches.
    if (calls_ > 1) GNOMON_TRY(call());
    const std::int64_t taken_away = TakenAway();
    const double start = Now();
    for (int i = 0; i < calls_; ++i) GNOMON_TRY(call());
    const double time = (Now() - start) / calls_;
    if (TakenAway() == taken_away) {
      clean_.push_back(time);
      return Done{};
    }
    disturbed_.push_back(time);
  }
  return Done{};
}

Seconds Samples::Time() const {
  if (clean()) return {Median(clean_)};
  GNOMON_CHECK(!disturbed_.empty());
  return {*std::min_element(disturbed_.begin(), disturbed_.end())};
}

std::string Samples::Text() const {
  if (!clean()) return fmt::format("; least of {} disturbed", disturbed_.size());
  constexpr double kPercent = 100;
  return fmt::format("; median of {}; spread {:.1f}%", clean_.size(),
                     kPercent * MedianAbsoluteDeviation(clean_) / Median(clean_));
}

}  // namespace gnomon
