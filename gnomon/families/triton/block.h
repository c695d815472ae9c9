#pragma once

/// One workgroup of a compiled Triton GEMM, in cycles: what the tile model multiplies out.

#include "gnomon/families/triton/compiled.h"

namespace gnomon::triton {

/// `config.split_k` counts as split or not split; its value is the grid's business. A kernel that
/// cannot be launched has occupancy 0.
TileKernel BlockOf(const TileMachine& machine, std::string_view arch, const Specialisation& spec,
                   const TritonConfig& config, double element_bytes, double out_bytes);

/// How this family's launches meet the device.
TileTraits LaunchTraits();

}  // namespace gnomon::triton
