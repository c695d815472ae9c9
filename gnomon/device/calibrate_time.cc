// Work repeated on several cores at once, each core timed by itself: a core that the system takes
// away for a moment lowers its own rate only, and no core waits for another after the common start.

#include "gnomon/device/calibrate_time.h"

#include <omp.h>

namespace gnomon {

double RateOfAll(int threads, Seconds time, const std::function<double(int)>& work) {
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
    const int thread = omp_get_thread_num();
    work(thread);  // caches and branch predictors warm up
#pragma omp barrier
    const Seconds start = Now();
    Seconds elapsed{0};
    double done = 0;
    while (elapsed < time) {
      done += work(thread);
      elapsed = Now() - start;
    }
    total += done / elapsed.value;
  }
  return total;
}

}  // namespace gnomon
