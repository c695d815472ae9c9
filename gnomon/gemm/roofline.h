#pragma once

/// Roofline: the baseline that a model of GEMM times must beat. Three numbers a family: compute
/// efficiency, bandwidth efficiency, fixed cost.

#include <span>
#include <string>
#include <vector>

#include "gnomon/device/device.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

struct RooflineTiming {
  const Device* device = nullptr;
  const Problem* problem = nullptr;
  std::string group;    ///< rows that share the three numbers: device, family and dtype
  double measured = 0;  ///< s
  bool fit = false;     ///< may be fitted on
};

/// The roofline's time of every timing, s. A group without fit rows is at full efficiency and no
/// fixed cost.
std::vector<double> FitRooflines(std::span<const RooflineTiming> timings);

}  // namespace gnomon
