#pragma once

/// The fastest configs of a space without pricing every one. Internal to the families.

#include <span>

#include "gnomon/families/cuda/space.h"

namespace gnomon::cuda {

/// Seconds of a candidate, its tile order set.
double SecondsOf(const Space& space, const Call& call, Candidate& candidate);

/// Fills `fastest` with the configs of least time, exactly those that pricing all of them gives
/// (ties: enumeration order), and returns how many there are. `priced`: how many were priced in
/// full.
size_t FastestOf(const Device& device, Generation generation, const Space& space,
                 const Problem& problem, std::span<TimedConfig> fastest, size_t* priced = nullptr);

}  // namespace gnomon::cuda
