#pragma once

/// A config of family `cdna`: what it says, what it needs of a unit, and whether it can run.
/// Internal to the family.

#include <span>
#include <string>
#include <string_view>

#include "gnomon/gemm/cdna_model.h"
#include "gnomon/gemm/family.h"

namespace gnomon::hip {

/// 256x224x64.mi16x16x32.w4.pgr2.dtl1.sk4.str0.wgm8.nt0
struct CdnaConfig {
  std::int32_t tile_m = 128, tile_n = 128, tile_k = 64;
  std::int32_t mma_m = 16, mma_n = 16, mma_k = 32;
  std::int32_t waves = 4;
  std::int32_t prefetch = 2;       ///< k steps under way: LDS holds as many
  std::int32_t direct_to_lds = 0;  ///< 1: loads land in LDS, past the registers
  std::int32_t split_k = 1;        ///< workgroups that share a tile's K
  std::int32_t stream_k = 0;       ///< 1: a workgroup a unit, the k steps of all tiles in a row
  std::int32_t mapping = 1;        ///< rows of tiles that are walked together
  std::int32_t non_temporal = 0;   ///< 1: the operand that is read once passes the caches by
  friend bool operator==(const CdnaConfig&, const CdnaConfig&) = default;
};

Config ToConfig(const CdnaConfig& config);
CdnaConfig FromConfig(const Config& config);
std::string Print(const CdnaConfig& config);
/// Error: the position of what is not understood, or the nearest field or matrix instruction.
Result<CdnaConfig> Parse(std::string_view text);

/// One matrix instruction, as the ISA shapes it.
struct MatrixInstruction {
  std::string_view arch;
  DType dtype;
  std::int32_t m, n, k;
};
/// Those of an architecture for a dtype, the 16x16 one first; empty: none.
std::span<const MatrixInstruction> InstructionsOf(std::string_view arch, DType dtype);

/// What a workgroup takes of its unit.
struct CdnaNeeds {
  double registers = 0;   ///< of a lane, accumulators among them
  Bytes lds;              ///< pipeline buffers, or the staging of C where that is more
  Bytes workspace;        ///< partial sums, the whole device's
  double work_items = 0;  ///< of the grid
};

/// Most memory that a split may use for partial sums unless the caller says otherwise; rocBLAS and
/// hipBLASLt are given 32 to 128 MiB by frameworks.
inline constexpr Bytes kUsualWorkspace = {128.0 * 1024 * 1024};

/// HIP's limit of a launch.
inline constexpr double kMostWorkItems = 4294967296.0;

/// K of MX formats comes in whole blocks that share a scale.
inline constexpr std::int64_t kMxBlock = 32;

/// Whether the rows of A and B start where direct-to-LDS loads can.
bool RowsAligned(std::string_view arch, const Problem& problem);

/// What a problem allows on a device, worked out once for many configs.
struct CdnaLimits {
  CdnaLimits(const Device& device, const Problem& problem, int units = 0);

  std::string_view arch;
  std::span<const MatrixInstruction> instructions;
  double units = 0, lds = 0, workspace = 0;
  double size = 0, size_out = 0, accumulator = 0;  ///< bytes of an element
  double m = 0, n = 0, k = 0, batch = 0;
  std::span<const std::int64_t> groups;  ///< the problem's own, which must outlive this
  bool rows_aligned = false;             ///< for direct-to-LDS loads
  bool scales_whole = true;              ///< MX formats: K is whole blocks
};
CdnaNeeds NeedsOf(const CdnaLimits& limits, const CdnaConfig& config);

enum class Obstacle {
  kNone,
  kInstruction,
  kTile,
  kWaves,
  kPrefetch,
  kDirectBuffers,
  kRegisters,
  kLds,
  kDirectWidth,
  kScales,
  kTwoSplits,
  kParts,
  kGrid,
  kWorkspace,
};
/// The first thing that keeps the kernel from running.
Obstacle FindObstacle(const CdnaLimits& limits, const CdnaConfig& config);

/// The same in words; empty: it can run.
std::string WhyNot(const Device& device, const Problem& problem, const CdnaConfig& config);

CdnaKernel KernelOf(const CdnaConfig& config);

}  // namespace gnomon::hip
