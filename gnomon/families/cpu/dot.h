#pragma once

/// The dot-product kernels behind GemmConfig::kDot, as a table of functions by shape. Internal to
/// the family.

#include <algorithm>
#include <array>
#include <cstdint>

namespace gnomon::cpu {

/// What one call computes: sum[i · nr + j] = Σ_k a(i, k) · b(j, k) for a block of mr rows and nr
/// columns.
struct DotArgs {
  const void* a = nullptr;  ///< fp32 or bf16, contiguous in k
  std::int64_t a_stride = 0;
  const void* b = nullptr;
  std::int64_t b_stride = 0;
  std::int64_t k = 0;
  float* sum = nullptr;  ///< kMaxDotSums values: those behind mr · nr are scratch
};
using DotKernel = void (*)(const DotArgs&);

inline constexpr std::int32_t kMaxDotRows = 8;
inline constexpr std::int32_t kMaxDotColumns = 8;
inline constexpr std::int32_t kMaxDotSums = 32;

/// Largest mr of kDot at nr columns: sums, a vector of each column and one of a row stay in
/// registers. 0: none.
constexpr std::int32_t MaxDotRows(std::int32_t nr, std::int32_t registers) {
  if (nr < 1 || nr > kMaxDotColumns) return 0;
  return std::min(kMaxDotRows, (registers - 1 - nr) / nr);
}

/// kernel[rows][columns]; null where the block does not fit the registers.
struct DotKernels {
  std::int32_t registers = 0;
  std::array<std::array<DotKernel, kMaxDotColumns + 1>, kMaxDotRows + 1> kernel{};
};
const DotKernels& DotKernelsFp32();
const DotKernels& DotKernelsBf16();

}  // namespace gnomon::cpu
