#pragma once

/// Select: the predicted-fastest configs of a problem, with no measurement and no warm-up.
/// For many problems on one device, gemm/selector.h; for a range of M, gemm/breakpoints.h.

#include <optional>
#include <vector>

#include "gnomon/gemm/family.h"

namespace gnomon {

struct Pick {
  const Family* family = nullptr;
  Config config;
  Seconds predicted;
  /// How probable it is that this config beats the next in order, 0.5 to 1. Nothing where the order
  /// of this family's predictions was never held against measurements on such a device.
  std::optional<double> sure;
};

/// The `top` fastest over the families, fastest first; deterministic (ties: enumeration order).
/// `units` limits cores, CUs or SMs (0: all). Error: no family can do the problem.
Result<std::vector<Pick>> Select(const Device& device, const Problem& problem,
                                 std::span<const Family* const> families, int units = 0,
                                 int top = 1);

/// How probable it is that what is predicted to take `first` beats what is predicted to take
/// `second`, when the log of their ratio is off by `pair_error` (a standard deviation; of two
/// families the larger). Nothing where one of them was never measured.
std::optional<double> Sureness(Seconds first, Seconds second, std::optional<double> first_error,
                               std::optional<double> second_error);

/// The number of units is one that the device has (0: all).
Status CheckUnits(const Device& device, int units);

}  // namespace gnomon
