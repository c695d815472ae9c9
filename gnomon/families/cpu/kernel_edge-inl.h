// The vectors of one Highway target, and loads and stores of the first few lanes that touch nothing
// behind them. Targets without masked memory access go lane by lane: a blend would read and rewrite
// bytes that another thread may own. Included once per target.

#if defined(GNOMON_KERNEL_EDGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GNOMON_KERNEL_EDGE_INL_H_
#undef GNOMON_KERNEL_EDGE_INL_H_
#else
#define GNOMON_KERNEL_EDGE_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr std::int64_t kFloatLanes = HWY_MAX_BYTES / sizeof(float);
inline constexpr std::int32_t kRegisters = HWY_TARGET <= HWY_AVX3 ? 32 : 16;

HWY_INLINE void StoreFirst(FloatVec v, std::int64_t count, float* to) {
  const FloatTag d;
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, to);
#else
  HWY_ALIGN float lane[kFloatLanes];
  hn::Store(v, d, lane);
  for (std::int64_t i = 0; i < count; ++i) to[i] = lane[i];
#endif
}

/// Lanes from `count` on are zero.
HWY_INLINE FloatVec LoadFirst(std::int64_t count, const float* from) {
  const FloatTag d;
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#else
  HWY_ALIGN float lane[kFloatLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) lane[i] = from[i];
  return hn::Load(d, lane);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#endif  // GNOMON_KERNEL_EDGE_INL_H_
