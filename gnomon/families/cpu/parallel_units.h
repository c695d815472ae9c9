#pragma once

/// Shares independent units of work out over OpenMP threads; one thread never enters OpenMP.

#include <omp.h>

#include <cstdint>

namespace gnomon::cpu {

/// Threads in use for a request: all that OpenMP may use where it is zero or negative.
inline int ThreadCount(int threads) { return threads > 0 ? threads : omp_get_max_threads(); }

/// Calls work(unit) once for every unit in [0, units); units start in ascending order, so the
/// dearest come first where they are sorted that way.
template <class Work>
void ForEachUnit(std::int64_t units, int threads, const Work& work) {
  if (threads == 1 || units <= 1) {
    for (std::int64_t unit = 0; unit < units; ++unit) work(unit);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t unit = 0; unit < units; ++unit) work(unit);
}

}  // namespace gnomon::cpu
