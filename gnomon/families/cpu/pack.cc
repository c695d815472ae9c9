// Packing of operand blocks into panels, and the last pass over C where sums lie outside of it.
//
//   panel[k·width + i] = source(k, i)          C = relu(first + Σ parts + bias)
//
// A transposing pack works on blocks of 4 k steps × 8 (or 4) stored rows: two 128-bit loads side by
// side, the 4×4 transposes inside the halves, one store of 8 neighbours. The last group of rows
// overlaps the one before instead of being short. bf16 is widened here, because the register
// kernels only know fp32. What is not here: the order of AMX tiles (amx_pack.cc).

#include "gnomon/families/cpu/pack.h"

#include <algorithm>
#include <bit>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/pack.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// Highway's targets must be set before what uses them.
#include "gnomon/families/cpu/kernel_edge-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {

inline constexpr std::int64_t kTransposeStep =
    16;  // k steps per pass: one cache line of each stored row

void CopyPanel(const PanelArgs& args) {
  const FloatTag d;
  const std::int64_t whole = args.count - args.count % kFloatLanes;
  const std::int64_t rest = args.count - whole;
  for (std::int64_t k = 0; k < args.k; ++k) {
    const float* from = args.source + k * args.stride;
    float* to = args.panel + k * args.width;
    for (std::int64_t i = 0; i < whole; i += kFloatLanes)
      hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    if (rest != 0) StoreFirst(LoadFirst(rest, from + whole), rest, to + whole);
    for (std::int64_t i = args.count; i < args.width; ++i) to[i] = 0.0f;
  }
}

// 4 k steps of kGroup stored rows, kGroup a multiple of 4 that fills one vector.
template <class D>
HWY_INLINE void TransposeGroup(D d, const float* from, std::int64_t stride, float* to,
                               std::int64_t width) {
  const hn::Repartition<double, D> d64;
  const hn::FixedTag<float, 4> d4;
  using V = hn::Vec<D>;
  V row[4];
  for (int r = 0; r < 4; ++r) {
    if constexpr (hn::MaxLanes(D()) == 8) {
      row[r] =
          hn::Combine(d, hn::LoadU(d4, from + (r + 4) * stride), hn::LoadU(d4, from + r * stride));
    } else {
      row[r] = hn::LoadU(d, from + r * stride);
    }
  }
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, row[0], row[1]));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, row[2], row[3]));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, row[0], row[1]));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, row[2], row[3]));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23)), d, to + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, high01, high23)), d, to + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23)), d, to + 3 * width);
}

// Whole groups of k steps [begin, end); the last group of rows overlaps the one before.
template <class D>
HWY_INLINE void TransposeRows(D d, const PanelArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t group = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < args.count; i += group) {
    const std::int64_t first = std::min(i, args.count - group);
    for (std::int64_t k = begin; k < end; k += 4)
      TransposeGroup(d, args.source + first * args.stride + k, args.stride,
                     args.panel + k * args.width + first, args.width);
  }
}

void TransposePanel(const PanelArgs& args) {
  const std::int64_t whole = args.count < 4 ? 0 : args.k - args.k % 4;
  for (std::int64_t k = 0; k < whole; k += kTransposeStep) {
    const std::int64_t end = std::min(whole, k + kTransposeStep);
    // The same tag twice on a level with vectors of four.  NOLINTNEXTLINE(bugprone-branch-clone)
    if (HWY_MAX_BYTES >= 32 && args.count >= 8) {
      TransposeRows(hn::CappedTag<float, 8>(), args, k, end);
    } else {
      TransposeRows(hn::FixedTag<float, 4>(), args, k, end);
    }
  }
  for (std::int64_t k = whole; k < args.k; ++k)
    for (std::int64_t i = 0; i < args.count; ++i)
      args.panel[k * args.width + i] = args.source[i * args.stride + k];
  if (args.count == args.width) return;
  for (std::int64_t k = 0; k < args.k; ++k)
    std::fill(args.panel + k * args.width + args.count, args.panel + (k + 1) * args.width, 0.0f);
}

void PromoteRows(const std::uint16_t* source, std::int64_t stride, std::int64_t rows,
                 std::int64_t cols, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::uint16_t* from = source + i * stride;
    for (std::int64_t j = 0; j < cols; ++j)
      to[i * cols + j] = std::bit_cast<float>(static_cast<std::uint32_t>(from[j]) << 16);
  }
}

// Nearest even; NaNs become the quiet NaN of their sign.
HWY_INLINE std::uint16_t RoundToBf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

// Up to kFinishChunk columns of one row; `sum` holds them.
inline constexpr std::int64_t kFinishChunk = 256;

void FinishChunk(const FinishArgs& args, std::int64_t i, std::int64_t j, std::int64_t count) {
  alignas(64) float sum[kFinishChunk];
  std::memcpy(sum, args.first + i * args.first_stride + j,
              static_cast<size_t>(count) * sizeof(float));
  for (std::int64_t p = 0; p < args.part_count; ++p) {
    const float* part = args.parts + p * args.part_size + i * args.part_stride + j;
    for (std::int64_t x = 0; x < count; ++x) sum[x] += part[x];
  }
  if (args.bias != nullptr)
    for (std::int64_t x = 0; x < count; ++x) sum[x] += args.bias[j + x];
  if (args.relu)
    for (std::int64_t x = 0; x < count; ++x) sum[x] = sum[x] < 0.0f ? 0.0f : sum[x];
  if (args.bf16) {
    std::uint16_t* to = static_cast<std::uint16_t*>(args.c) + i * args.c_stride + j;
    for (std::int64_t x = 0; x < count; ++x) to[x] = RoundToBf16(sum[x]);
  } else {
    std::memcpy(static_cast<float*>(args.c) + i * args.c_stride + j, sum,
                static_cast<size_t>(count) * sizeof(float));
  }
}

void FinishBlock(const FinishArgs& args) {
  for (std::int64_t i = 0; i < args.rows; ++i)
    for (std::int64_t j = 0; j < args.cols; j += kFinishChunk)
      FinishChunk(args, i, j, std::min(kFinishChunk, args.cols - j));
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gnomon::cpu {

HWY_EXPORT(CopyPanel);
HWY_EXPORT(TransposePanel);
HWY_EXPORT(PromoteRows);
HWY_EXPORT(FinishBlock);

void PackCopy(const PanelArgs& args) { HWY_DYNAMIC_DISPATCH(CopyPanel)(args); }
void PackTranspose(const PanelArgs& args) { HWY_DYNAMIC_DISPATCH(TransposePanel)(args); }
void Promote(const std::uint16_t* source, std::int64_t stride, std::int64_t rows, std::int64_t cols,
             float* to) {
  HWY_DYNAMIC_DISPATCH(PromoteRows)(source, stride, rows, cols, to);
}
void Finish(const FinishArgs& args) { HWY_DYNAMIC_DISPATCH(FinishBlock)(args); }

}  // namespace gnomon::cpu
#endif
