#pragma once

/// What a kernel of family `cuda` asks of a problem and a device (how its work is cut:
/// kernel_plan.h). Internal to the family.

#include <span>
#include <string>

#include "gnomon/device/device.h"
#include "gnomon/families/cuda/kernel_plan.h"
#include "gnomon/gemm/problem.h"

namespace gnomon::cuda {

/// The rows of kernel_table.h for a kind, as configs without a split; none for kind vector.
std::span<const KernelConfig> KernelsOf(Kind kind);

/// Kinds tma and copy have kernels for the dtype and the layout.
bool HasTiles(DType dtype, Layout layout);

std::int64_t StepsOf(const Problem& problem);  ///< of K, of kinds tma and copy

/// Bytes of the widest load that every row of an operand allows, at most 16. The operand itself is
/// aligned.
int LoadBytesOfA(const Problem& problem);
int LoadBytesOfB(const Problem& problem);
/// TMA can load A and B: rows of whole 16 bytes, sides and strides within a tensor map. And can
/// store C, which no kernel needs.
bool TmaLoads(const Problem& problem);
bool TmaStores(const Problem& problem);

/// Clusters that `units` multiprocessors can run at once, a CTA each.
int WorkersOf(int units, const KernelConfig& config);

/// Tiles of stream-K that are not cut: all but those of the last one to two waves; all where no
/// wave is left over.
std::int64_t WholeTiles(std::int64_t tiles, int workers);

/// Bytes of workspace of a config that cuts K; nothing for one that does not.
Bytes ScratchOf(const KernelConfig& config, double tiles, int workers);
/// And of one that copies operands to rows of whole 16 bytes first (kind pad).
Bytes ScratchFor(const Problem& problem, const KernelConfig& config, double tiles, int workers);
Bytes PaddedBytesOf(const Problem& problem);                   ///< of those copies
inline constexpr Bytes kUsualScratch = {512.0 * 1024 * 1024};  ///< unless the problem says

/// What keeps a kernel from a grid of so many tiles of whole clusters.
enum class GridObstacle {
  kNone,
  kUnits,
  kGroups,
  kParts,
  kNothingToCut,
  kTiles,
  kCounters,
  kScratch
};
GridObstacle FindGridObstacle(const Problem& problem, const KernelConfig& config, double tiles,
                              int workers);

/// Why the config cannot do the problem and what near it can; empty: it can.
std::string WhyNot(const Device& device, const Problem& problem, const KernelConfig& config,
                   int units = 0);

/// The device, the dtypes and the layout are ones that there are kernels for.
Status CheckKernelProblem(const Device& device, const Problem& problem);

}  // namespace gnomon::cuda
