#pragma once

/// The fastest configs of a space without pricing every one. Internal to family `cuda`.

#include <span>

#include "gnomon/families/cuda/kernel_space.h"
#include "gnomon/families/cuda/vector_price.h"

namespace gnomon::cuda {

/// Appends every config with its time, in enumeration order: tiles, then kind vector.
void PriceAll(const Device& device, const KernelSpace& space, const Problem& problem,
              std::vector<Config>& configs, std::vector<double>& seconds);

/// Fills `fastest` with the configs of least time, exactly those that pricing all of them gives
/// (ties: enumeration order), and returns how many there are. `priced`: how many were priced in
/// full.
std::size_t FastestOf(const Device& device, const KernelSpace& space, const Problem& problem,
                      std::span<TimedConfig> fastest, std::size_t* priced = nullptr);

}  // namespace gnomon::cuda
