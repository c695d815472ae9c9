#pragma once

/// The config space of family `cuda` on one device for one kind of problem. Internal to the family.

#include <span>
#include <vector>

#include "gnomon/families/cuda/kernel_price.h"

namespace gnomon::cuda {

/// The kernels of a kind of problem. Which ways there are to launch each is the problem's to say.
struct KernelSpace {
  KernelKind kind;
  Machines machines;
  std::vector<KernelTile> tiles;  ///< in the order of the table; only what the units can hold
};

/// What decides the space of a problem that CheckKernelProblem lets pass.
KernelKind KindOf(const Problem& problem);
/// Error: what TileMachineOf says.
Result<KernelSpace> MakeKernelSpace(const Device& device, const KernelKind& kind, int units);

inline constexpr std::size_t kMostTiles = 32;  ///< of a space
inline constexpr std::size_t kMostWays = 24;   ///< of a tile

/// The tiles of one problem, as far as they can do it.
struct PlacedTiles {
  std::array<KernelCandidate, kMostTiles> of;  ///< each as a whole, in table order
  std::size_t count = 0;
  std::size_t orders = 0;  ///< tile orders to try for each
};
/// `tiles`: the space's, their steps set.
void PlaceTiles(std::span<const KernelTile> tiles, const Problem& problem, PlacedTiles& placed);

/// Every way worth a measurement to launch a placed tile, in a fixed order: tile orders, splits,
/// stream-K. Returns how many.
std::size_t WaysOf(const KernelCandidate& placed, std::size_t orders, const Problem& problem,
                   std::span<KernelCandidate, kMostWays> ways);

}  // namespace gnomon::cuda
