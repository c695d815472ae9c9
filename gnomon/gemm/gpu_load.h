#pragma once

/// What a GPU's surroundings do to a GEMM whatever its kernel: the clock that the power of its
/// matrix units leaves, and operands that earlier calls left in L2. Fitted with the constants of
/// library_gpu.cc, on the same rows.

#include <algorithm>
#include <cmath>

#include "gnomon/device/device.h"

namespace gnomon {

inline constexpr double kMatrixEfficiency = 0.95;  ///< of the matrix rate at the sustained clock
inline constexpr double kPowerExponent = 0.75;     ///< clock against power per busy share
inline constexpr double kSustainedLoss = 0.13;  ///< of the burst's rate; public runs: 0.12 to 0.14
inline constexpr double kBurstSeconds = 3e-3;   ///< half of the loss is there after so long
inline constexpr double kStreamShare = 0.954;   ///< of the device file's streaming rate
inline constexpr double kKeptShare = 0.407;     ///< of L2 whose content outlives a round of calls
inline constexpr double kKeptExponent = 2.59;   ///< how soft that edge is
inline constexpr double kSecondKernel =
    2.84e-6;                            ///< seconds: a kernel behind the first, as a split needs
inline constexpr int kUsualCopies = 6;  ///< calls in a row, each with its own A, B and C, in a step

/// The clock of a kernel whose matrix units are busy for a share of its time.
struct ClockUnderLoad {
  double hertz = 0;       ///< of a light load, the highest
  double slowest = 1;     ///< it, divided by the clock of matrix units that never wait
  double free_share = 1;  ///< busy share up to which the clock stays the highest

  /// `ideal`: seconds of the multiplications at full rate and the highest clock.
  ClockUnderLoad(const Device& device, DType dtype, double ideal, bool sustained = false) {
    const auto stated = device.framework.gemm_efficiency.find(dtype);
    const bool known = stated != device.framework.gemm_efficiency.end();
    hertz = device.max_clock.value > 0 ? device.max_clock.value : device.boost_clock.value;
    const double settled = sustained ? 1 : ideal / (ideal + kBurstSeconds);
    const double busy = device.sustained_clock.value *
                        (known ? stated->second : kMatrixEfficiency) /
                        (1 + kSustainedLoss * settled);
    slowest = hertz / busy;
    free_share = std::pow(slowest, -1 / kPowerExponent);
  }

  /// Seconds of what takes so many at the highest clock: the same work costs the same energy.
  double Slowed(double seconds, double ideal) const {
    const double share = ideal / seconds;
    return share <= free_share ? seconds : seconds * slowest * std::pow(share, kPowerExponent);
  }
};

/// Share of operands that L2 still holds when they come round again.
inline double StillInL2(double l2_bytes, double footprint) {
  return std::min(1.0, std::pow(kKeptShare * l2_bytes / footprint, kKeptExponent));
}

}  // namespace gnomon
