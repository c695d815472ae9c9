#pragma once

/// Instruments for arithmetic: clock, FMA peak and latency, bf16 peak of AVX-512 and AMX. Private
/// to device/.

#include "gnomon/base/units.h"

namespace gnomon {

/// Core clock while one core works alone, from a chain of one-cycle instructions; 0 off x86-64.
Hertz CoreClock(Seconds time);

/// All `threads` cores multiply and add without waiting; counts 2 per lane.
FlopsPerSecond FmaPeakFp32(int threads, Seconds time);
FlopsPerSecond FmaPeakFp64(int threads, Seconds time);

/// Time of one FMA that waits for the one before it.
Seconds FmaLatency(Seconds time);

/// Lanes of one fp32 vector of the instruction set that Highway picks here.
int VectorLanesFp32();

/// bf16 products summed into fp32; 0 where the CPU or the system does not offer the instructions.
FlopsPerSecond DotPeakBf16(int threads, Seconds time);   ///< AVX-512 VDPBF16PS
FlopsPerSecond TilePeakBf16(int threads, Seconds time);  ///< AMX TDPBF16PS

}  // namespace gnomon
