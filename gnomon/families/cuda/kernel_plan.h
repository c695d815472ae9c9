#pragma once

/// From a problem and a config to what a launch needs: the schedule, the grid, the scratch memory.
/// Host only; the launcher, the config space and the model read the same figures.

#include <cstddef>

#include "gnomon/families/cuda/kernel_config.h"
#include "gnomon/families/cuda/schedule.h"
#include "gnomon/gemm/problem.h"

namespace gnomon::cuda {

/// At the start of every workspace; zero between runs. A config whose tiles need more counters is
/// not legal.
inline constexpr std::size_t kCounterBytes = std::size_t{128} * 1024;

/// Elements of K in a k step.
int StepDepth(DType dtype);

/// Kinds tma and copy, for `units` multiprocessors. Tiles are those of a whole cluster. The caller
/// has checked that there are less than 2^31 of them (TilesOf).
Schedule ScheduleOf(const Problem& problem, const KernelConfig& config, int units);

/// Tiles of all products, of whole clusters, in double: never overflows.
double TilesOf(const Problem& problem, const KernelConfig& config);

/// Counters that the last CTA of a tile needs, and bytes of partial sums.
double CountersOf(const Schedule& schedule, const KernelConfig& config);
double PartialBytesOf(const Schedule& schedule, const KernelConfig& config);

/// Kind pad: elements between rows of the copies, and bytes of the copies, of A and of B. An
/// operand whose base and rows are whole 16 bytes is not copied.
std::int64_t PaddedLeading(std::int64_t columns, DType dtype);
double PaddedBytesOfA(const Problem& problem);
double PaddedBytesOfB(const Problem& problem);

}  // namespace gnomon::cuda
