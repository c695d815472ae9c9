#pragma once

/// The register-tile kernels behind GemmConfig::kTile, as tables of functions by shape. Internal to
/// the family.

#include <algorithm>
#include <array>
#include <cstdint>

namespace gnomon::cpu {

/// What one call of a tile kernel computes: C[rows, cols] (+)= A[rows, k] · B[k, cols], cols ≤
/// vectors · lanes.
struct TileArgs {
  const float* a = nullptr;
  std::int64_t a_stride = 0;  ///< between rows of A, or between its k columns for the panel kernels
  const float* b = nullptr;   ///< readable over the whole vectors of each row
  std::int64_t b_stride = 0;  ///< between k rows of B
  float* c = nullptr;
  std::int64_t c_stride = 0;
  std::int64_t k = 0;
  std::int64_t cols = 0;        ///< columns of C that exist
  bool accumulate = false;      ///< adds to C; otherwise C is never read
  const float* bias = nullptr;  ///< cols values, or null
  bool relu = false;
};
using TileKernel = void (*)(const TileArgs&);

inline constexpr std::int32_t kMaxTileRows = 16;
inline constexpr std::int32_t kMaxTileVectors = 8;

/// Largest mr of kTile at nr vectors: accumulators, one row of B and a broadcast stay in registers.
/// 0: no kernel.
constexpr std::int32_t MaxTileRows(std::int32_t nr, std::int32_t registers) {
  if (nr < 1 || nr > kMaxTileVectors) return 0;
  return std::min(kMaxTileRows, (registers - 1 - nr) / nr);
}

/// kernel[rows][vectors]; null where the tile does not fit the registers.
struct TileKernels {
  std::int32_t lanes = 0;
  std::int32_t registers = 0;
  std::array<std::array<TileKernel, kMaxTileVectors + 1>, kMaxTileRows + 1> kernel{};
};

/// For A with contiguous k (row-major as stored).
const TileKernels& RowTileKernels();
/// For A with contiguous rows (packed panels, or stored transposed).
const TileKernels& PanelTileKernels();

}  // namespace gnomon::cpu
