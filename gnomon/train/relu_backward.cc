// Gradient of relu(x + bias) with respect to x and bias in one pass over memory.
//
//   d_sum[r][c] = out[r][c] > 0 ? d_out[r][c] : 0        d_bias[c] = Σ_r d_sum[r][c]
//
// Stock LibTorch takes three operators for it (threshold_backward, sum, and a cast under bf16). The
// sums are fp32; bf16 values are rounded to nearest even on the way out. Compiled for every vector
// level that Highway knows and chosen at run time.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/train/relu_backward.cc"
#include "gnomon/train/relu_backward.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace gnomon::train::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using Float = hn::Vec<FloatTag>;
using Bits = hn::RebindToUnsigned<FloatTag>;
using Half = hn::Rebind<std::uint16_t, FloatTag>;

HWY_INLINE Float Load(const float* at) { return hn::LoadU(FloatTag(), at); }
HWY_INLINE Float Load(const std::uint16_t* at) {
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), hn::LoadU(Half(), at))));
}
HWY_INLINE void Store(Float value, float* at) { hn::StoreU(value, FloatTag(), at); }
HWY_INLINE void Store(Float value, std::uint16_t* at) {
  const Bits bits;
  const auto raw = hn::BitCast(bits, value);
  const auto odd = hn::And(hn::ShiftRight<16>(raw), hn::Set(bits, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(raw, hn::Add(odd, hn::Set(bits, 0x7fff))));
  const hn::RebindToSigned<Bits> as_int;
  hn::StoreU(hn::DemoteTo(Half(), hn::BitCast(as_int, rounded)), Half(), at);
}

inline float ToFloat(float value) { return value; }
inline float ToFloat(std::uint16_t value) {
  const std::uint32_t bits = std::uint32_t{value} << 16;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}
inline void FromFloat(float value, float* at) { *at = value; }
inline void FromFloat(float value, std::uint16_t* at) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  *at = static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Rows begin … end; sums are added to `sums` (columns values).
template <class DOut, class T>
void Rows(const ReluBackwardArguments& a, std::int64_t begin, std::int64_t end, float* sums) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FloatTag()));
  const Float zero = hn::Zero(FloatTag());
  for (std::int64_t r = begin; r < end; ++r) {
    const DOut* d_out = static_cast<const DOut*>(a.d_out) + r * a.columns;
    const T* out = a.out ? static_cast<const T*>(a.out) + r * a.columns : nullptr;
    T* d_sum = a.d_sum ? static_cast<T*>(a.d_sum) + r * a.columns : nullptr;
    std::int64_t c = 0;
    for (; c + lanes <= a.columns; c += lanes) {
      Float value = Load(d_out + c);
      if (out) value = hn::IfThenElse(hn::Gt(Load(out + c), zero), value, zero);
      if (d_sum) Store(value, d_sum + c);
      Store(hn::Add(Load(sums + c), value), sums + c);
    }
    for (; c < a.columns; ++c) {
      const float value = !out || ToFloat(out[c]) > 0 ? ToFloat(d_out[c]) : 0.0f;
      if (d_sum) FromFloat(value, d_sum + c);
      sums[c] += value;
    }
  }
}

void RowsF32F32(const ReluBackwardArguments& a, std::int64_t b, std::int64_t e, float* sums) {
  Rows<float, float>(a, b, e, sums);
}
void RowsF32Bf16(const ReluBackwardArguments& a, std::int64_t b, std::int64_t e, float* sums) {
  Rows<float, std::uint16_t>(a, b, e, sums);
}
void RowsBf16Bf16(const ReluBackwardArguments& a, std::int64_t b, std::int64_t e, float* sums) {
  Rows<std::uint16_t, std::uint16_t>(a, b, e, sums);
}
void RowsBf16F32(const ReluBackwardArguments& a, std::int64_t b, std::int64_t e, float* sums) {
  Rows<std::uint16_t, float>(a, b, e, sums);
}

}  // namespace gnomon::train::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gnomon::train {
HWY_EXPORT(RowsF32F32);
HWY_EXPORT(RowsF32Bf16);
HWY_EXPORT(RowsBf16Bf16);
HWY_EXPORT(RowsBf16F32);

void ReluBackward(const ReluBackwardArguments& arguments, int threads) {
  const bool in16 = arguments.d_out_dtype == DType::kBf16, out16 = arguments.dtype == DType::kBf16;
  const auto rows =
      in16 ? (out16 ? HWY_DYNAMIC_DISPATCH(RowsBf16Bf16) : HWY_DYNAMIC_DISPATCH(RowsBf16F32))
           : (out16 ? HWY_DYNAMIC_DISPATCH(RowsF32Bf16) : HWY_DYNAMIC_DISPATCH(RowsF32F32));
  // A few thousand values are done before a second thread would have woken.
  constexpr std::int64_t kParallelValues = 1 << 14;
  const int parts = arguments.rows * arguments.columns < kParallelValues ? 1 : std::max(1, threads);
  const auto columns = static_cast<std::size_t>(arguments.columns);
  std::vector<float> sums(columns * static_cast<std::size_t>(parts), 0.0f);
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int part = 0; part < parts; ++part) {
    rows(arguments, arguments.rows * part / parts, arguments.rows * (part + 1) / parts,
         sums.data() + columns * static_cast<std::size_t>(part));
  }
  if (!arguments.d_bias) return;
  std::copy_n(sums.data(), columns, arguments.d_bias);
  for (int part = 1; part < parts; ++part) {
    const float* add = sums.data() + columns * static_cast<std::size_t>(part);
    for (std::size_t c = 0; c < columns; ++c) arguments.d_bias[c] += add[c];
  }
}

}  // namespace gnomon::train
#endif  // HWY_ONCE
