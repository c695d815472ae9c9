#pragma once

/// Select: the predicted-fastest configs of a problem, with no measurement and no warm-up.

#include <vector>

#include "gnomon/gemm/family.h"

namespace gnomon {

struct Pick {
  const Family* family = nullptr;
  Config config;
  Seconds predicted;
};

/// The `top` fastest over the families, fastest first; deterministic (ties: enumeration order).
/// `units` limits cores, CUs or SMs (0: all). Error: no family can do the problem.
Result<std::vector<Pick>> Select(const Device& device, const Problem& problem,
                                 std::span<const Family* const> families, int units = 0,
                                 int top = 1);

}  // namespace gnomon
