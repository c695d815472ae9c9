// Rows of fp32 or bf16 as fp32 vectors, for every vector target of Highway: whole vectors, parts of
// one, and a square transpose. bf16 is stored as std::uint16_t and rounds to nearest even. Included
// once a target (no #pragma once): the guard is Highway's toggle.

#if defined(GNOMON_FAMILIES_CPU_FLOAT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GNOMON_FAMILIES_CPU_FLOAT_ROWS_INL_H_
#undef GNOMON_FAMILIES_CPU_FLOAT_ROWS_INL_H_
#else
#define GNOMON_FAMILIES_CPU_FLOAT_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
inline constexpr std::size_t kLanes = HWY_LANES(float);

HWY_INLINE FloatVector LoadRow(const float* from) { return hn::LoadU(Floats(), from); }

HWY_INLINE FloatVector LoadRow(const std::uint16_t* from) {
  const Floats df;
  const hn::RebindToUnsigned<Floats> du;
  const hn::Rebind<std::uint16_t, Floats> du16;
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, from))));
}

HWY_INLINE void StoreRow(FloatVector value, float* to) { hn::StoreU(value, Floats(), to); }

HWY_INLINE void StoreRow(FloatVector value, std::uint16_t* to) {
  const hn::RebindToUnsigned<Floats> du;
  const hn::RebindToSigned<Floats> di;
  const hn::Rebind<std::uint16_t, Floats> du16;
  // Half of the dropped part, minus one where the kept part is even: ties go to even.
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  // Rounding could carry a NaN's payload into infinity: keep it a quiet NaN instead.
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000u));
  const auto nan = hn::RebindMask(du, hn::Ne(value, value));
  const auto kept = hn::ShiftRight<16>(hn::IfThenElse(nan, quiet, rounded));
  hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di, kept)), du16, to);
}

/// The first `count` < kLanes values; the others are zero. Reads nothing beyond them.
template <class T>
HWY_INLINE FloatVector LoadPart(const T* from, std::size_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  // Only here do masked loads of 32-bit lanes leave masked-off addresses alone.
  if constexpr (sizeof(T) == sizeof(float))
    return hn::MaskedLoad(hn::FirstN(Floats(), count), Floats(), from);
#endif
  HWY_ALIGN T lanes[kLanes] = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i] = from[i];
  return LoadRow(lanes);
}

/// Stores the first `count` < kLanes values and touches nothing beyond them.
template <class T>
HWY_INLINE void StorePart(FloatVector value, T* to, std::size_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(T) == sizeof(float)) {
    hn::BlendedStore(value, hn::FirstN(Floats(), count), Floats(), to);
    return;
  }
#endif
  HWY_ALIGN T lanes[kLanes];
  StoreRow(value, lanes);
  for (std::size_t i = 0; i < count; ++i) to[i] = lanes[i];
}

/// Transposes N = kLanes rows of N values in place (a template, so that only one width is
/// compiled).
template <std::size_t N>
HWY_INLINE void TransposeSquare(FloatVector (&rows)[N]) {
  static_assert(N == kLanes);
  const Floats df;
#if HWY_ARCH_X86
  const hn::RepartitionToWide<Floats> dw;
  FloatVector by_block[N];
  // 4×4 inside each 128-bit block: by_block[4g + m] holds, in its block q, column 4q + m of rows
  // 4g….
  HWY_UNROLL(16)
  for (std::size_t g = 0; g < N; g += 4) {
    const auto low01 = hn::BitCast(dw, hn::InterleaveLower(df, rows[g], rows[g + 1]));
    const auto high01 = hn::BitCast(dw, hn::InterleaveUpper(df, rows[g], rows[g + 1]));
    const auto low23 = hn::BitCast(dw, hn::InterleaveLower(df, rows[g + 2], rows[g + 3]));
    const auto high23 = hn::BitCast(dw, hn::InterleaveUpper(df, rows[g + 2], rows[g + 3]));
    by_block[g] = hn::BitCast(df, hn::InterleaveLower(dw, low01, low23));
    by_block[g + 1] = hn::BitCast(df, hn::InterleaveUpper(dw, low01, low23));
    by_block[g + 2] = hn::BitCast(df, hn::InterleaveLower(dw, high01, high23));
    by_block[g + 3] = hn::BitCast(df, hn::InterleaveUpper(dw, high01, high23));
  }
  // Then the blocks themselves.
  HWY_UNROLL(16)
  for (std::size_t m = 0; m < 4; ++m) {
    if constexpr (N == 4) {
      rows[m] = by_block[m];
    } else if constexpr (N == 8) {
      rows[m] = hn::ConcatLowerLower(df, by_block[4 + m], by_block[m]);
      rows[4 + m] = hn::ConcatUpperUpper(df, by_block[4 + m], by_block[m]);
    } else {
      static_assert(N == 16);
      const auto even_low = hn::ConcatLowerLower(df, by_block[8 + m], by_block[m]);
      const auto odd_low = hn::ConcatLowerLower(df, by_block[12 + m], by_block[4 + m]);
      const auto even_high = hn::ConcatUpperUpper(df, by_block[8 + m], by_block[m]);
      const auto odd_high = hn::ConcatUpperUpper(df, by_block[12 + m], by_block[4 + m]);
      rows[m] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_low), even_low);
      rows[4 + m] = hn::OddEvenBlocks(odd_low, hn::SwapAdjacentBlocks(even_low));
      rows[8 + m] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_high), even_high);
      rows[12 + m] = hn::OddEvenBlocks(odd_high, hn::SwapAdjacentBlocks(even_high));
    }
  }
#else
  HWY_ALIGN float square[kLanes][kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) hn::Store(rows[i], df, square[i]);
  for (std::size_t i = 0; i < kLanes; ++i) {
    HWY_ALIGN float column[kLanes];
    for (std::size_t j = 0; j < kLanes; ++j) column[j] = square[j][i];
    rows[i] = hn::Load(df, column);
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#endif  // GNOMON_FAMILIES_CPU_FLOAT_ROWS_INL_H_
