#pragma once

/// What a config of families sm90 and sm100 takes of a unit and of the device, and what keeps it
/// from running. Internal to the families.

#include <string>

#include "gnomon/device/device.h"
#include "gnomon/families/cuda/config.h"
#include "gnomon/gemm/problem.h"

namespace gnomon::cuda {

/// Bytes of an operand element: as memory holds it (with its share of MX scales), and in shared
/// memory.
struct ElementBytes {
  double stored = 2, staged = 2;
  double out = 2;
};
ElementBytes ElementBytesOf(DType dtype, DType dtype_out);
inline ElementBytes ElementBytesOf(const Problem& problem) {
  return ElementBytesOf(problem.dtype, problem.dtype_out);
}

/// What one CTA takes of its unit.
struct UnitNeeds {
  double consumer_registers = 0;  ///< of a thread that holds accumulators
  double launch_registers = 0;    ///< of a thread on average: what the CTA is allotted
  double warps = 0;
  Bytes shared;               ///< ring of stages, staging of C, barriers
  double tensor_columns = 0;  ///< of 512; 0: accumulators are registers
};
UnitNeeds UnitNeedsOf(Generation generation, const TileConfig& config, const ElementBytes& bytes);

inline constexpr double kTensorColumns = 512;    ///< of tensor memory
inline constexpr double kInstructionBytes = 32;  ///< of K in one matrix instruction

/// The matrix instruction's rows run along M, or along N where the tile is too narrow in M (the
/// instruction then computes C transposed).
bool RowsAlongM(Generation generation, const TileConfig& config);

/// Most memory for partial sums of a split, unless the problem says.
inline constexpr Bytes kUsualWorkspace = {512.0 * 1024 * 1024};
Bytes WorkspaceOf(const Problem& problem, const TileConfig& config, std::int32_t split_k,
                  double units);

enum class Obstacle {
  kNone,
  kTile,
  kDepth,
  kConsumers,
  kPair,
  kCluster,
  kRegisters,
  kShared,
  kTensorMemory,
  kParts,
  kGrid,
  kWorkspace,
};
/// What a config lacks on any problem of these elements; and on this one.
Obstacle FindUnitObstacle(const Device& device, Generation generation, const TileConfig& config,
                          const ElementBytes& bytes);
/// `split_k` stands for the config's; `clusters`: tiles of whole clusters.
Obstacle FindGridObstacle(const Problem& problem, const TileConfig& config, std::int32_t split_k,
                          double clusters, double units);

/// The same in words; empty: it can run on so many units (0: all).
std::string WhyNot(const Device& device, Generation generation, const Problem& problem,
                   const TileConfig& config, int units = 0);

/// The device, dtype, layout and leading dimensions are ones that the family has kernels for. Error
/// says which other family to ask where TMA cannot load an operand.
Status CheckProblemFor(const Device& device, Generation generation, const Problem& problem);

/// Units that whole clusters of so many CTAs can occupy: a cluster lives in one GPC, and what is
/// left of a GPC stays idle.
double UnitsInClusters(double units, double cluster);

}  // namespace gnomon::cuda
