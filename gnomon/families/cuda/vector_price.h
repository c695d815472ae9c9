#pragma once

/// The configs of kind vector for a problem, and their price. Internal to family `cuda`.

#include <span>

#include "gnomon/families/cuda/kernel_price.h"
#include "gnomon/families/cuda/vector_table.h"

namespace gnomon::cuda {

inline constexpr std::size_t kMostVectorWays = 96;

struct VectorWayTo {
  VectorTile tile;
  std::int32_t parts = 1;
  KernelConfig config() const;
};

/// Every tile that fits, whole and in parts of K, in a fixed order. Returns how many.
std::size_t VectorWaysOf(const Problem& problem, std::span<VectorWayTo, kMostVectorWays> ways);

/// Why kind vector cannot do the problem so and what near it can; empty: it can.
std::string WhyNotVector(const Problem& problem, const KernelConfig& config);

/// Cycles by cause, at the machine's clock; `kernel`: what a report says of it.
TileTime PriceOf(const KernelCall& call, const VectorWayTo& way, TileKernel& kernel);

}  // namespace gnomon::cuda
