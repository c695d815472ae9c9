#pragma once

/// Instruments for what a kernel costs before it does anything. Private to device/.

#include "gnomon/base/units.h"

namespace gnomon {

/// One kernel call: through a pointer, with a problem to read and one line of output to write.
Seconds CallCost(Seconds time);

/// Entering and leaving a parallel region of `threads` cores, one region right after another.
Seconds ForkJoinCost(int threads, Seconds time);

}  // namespace gnomon
