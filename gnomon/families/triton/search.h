#pragma once

/// The fastest configs of a space without pricing every one.

#include <span>

#include "gnomon/families/triton/space.h"

namespace gnomon::triton {

/// Fills `fastest` with the configs of least time, exactly those that pricing all of them gives
/// (ties: enumeration order), and returns how many there are. `priced`: how many were priced in
/// full.
size_t FastestOf(const Space& space, const Problem& problem, std::span<TimedConfig> fastest,
                 size_t* priced = nullptr);

}  // namespace gnomon::triton
