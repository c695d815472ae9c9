#pragma once

/// What one workgroup of a named kernel does, for the tile model (gemm/tile_model.h): the name's
/// numbers, and where it is silent what kernels of its library do. For NVIDIA's kernels, and for
/// those on vector units of any GPU; AMD's matrix kernels are gemm/cdna_model.h's.

#include "gnomon/gemm/kernel_name.h"
#include "gnomon/gemm/tile_model.h"

namespace gnomon {

/// A kernel as the tile model prices it.
struct NamedTile {
  TileKernel kernel;
  TileTraits traits;
  double relative_error = 0;  ///< of the library's kernels, on rows that nothing was fitted on
};

/// `kernel` must state its tile. `split_k` is the split to price (1: none).
NamedTile NamedTileOf(const Device& device, const TileMachine& machine, const Problem& problem,
                      const KernelName& kernel, int split_k);

}  // namespace gnomon
