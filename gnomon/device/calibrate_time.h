#pragma once

/// The clock of all instruments, and work repeated on several cores at once. Private to device/.

#include <chrono>
#include <functional>

#include "gnomon/base/units.h"

namespace gnomon {

inline Seconds Now() {
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

/// The compiler must compute `value`.
template <class T>
inline void KeepAlive(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

/// Every thread repeats work(thread), which says how much it did, for `time` after a common start;
/// the threads' own rates (amount a second) are added up.
double RateOfAll(int threads, Seconds time, const std::function<double(int)>& work);

}  // namespace gnomon
