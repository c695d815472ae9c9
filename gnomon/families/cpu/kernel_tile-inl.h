// The register tile: kRows × kVectors vectors of C stay in registers while k runs. Each step loads
// one row of B (kVectors vectors) and multiplies it with a broadcast of each row of A.
//
//   C[i, j] = Σ_k A[i, k] · B[k, j]   for i < kRows, j < cols
//
// A comes in two forms (kPanel): contiguous in k, where rows are addressed from one pointer per
// four rows so that 14 rows need four registers, or contiguous in rows. k is unrolled by four.
// Edges of M have their own instance, edges of N store under a mask, so no byte outside C is
// touched. Included once per Highway target by the two files that instantiate it.

#if defined(GNOMON_KERNEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GNOMON_KERNEL_TILE_INL_H_
#undef GNOMON_KERNEL_TILE_INL_H_
#else
#define GNOMON_KERNEL_TILE_INL_H_
#endif

#include <cmath>
#include <utility>

#include "gnomon/families/cpu/kernel.h"
#include "gnomon/families/cpu/kernel_edge-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {
template <int kRows, int kVectors, bool kPanel>
class Tile {
 public:
  static void Run(const TileArgs& args) {
    FloatVec acc[kRows * kVectors];
    Zero(acc, kAll);
    PrefetchC(args, kRowIndex);
    const float* a = args.a;
    const float* b = args.b;
    const std::int64_t bs = args.b_stride;
    const std::int64_t as = args.a_stride;
    const float* group[kGroups];
    for (int g = 0; g < kGroups; ++g) group[g] = a + 4 * as * g;
    std::int64_t k = args.k;
    for (; k >= 4; k -= 4) {
      Step<0>(group, as, b, acc);
      Step<1>(group, as, b + bs, acc);
      Step<2>(group, as, b + 2 * bs, acc);
      Step<3>(group, as, b + 3 * bs, acc);
      b += 4 * bs;
      Advance(group, as, 4);
    }
    for (; k > 0; --k) {
      Step<0>(group, as, b, acc);
      b += bs;
      Advance(group, as, 1);
    }
    Finish(args, acc);
  }

 private:
  static constexpr std::int64_t kFloatsPerLine = 16;
  static constexpr int kGroups = kPanel ? 1 : (kRows + 3) / 4;
  static constexpr std::make_index_sequence<std::size_t{kRows} * kVectors> kAll{};
  static constexpr std::make_index_sequence<kRows> kRowIndex{};
  static constexpr std::make_index_sequence<kVectors> kVectorIndex{};

  template <size_t... kI>
  static HWY_INLINE void Zero(FloatVec* acc, std::index_sequence<kI...>) {
    ((acc[kI] = hn::Zero(FloatTag())), ...);
  }

  static HWY_INLINE void Advance(const float** group, std::int64_t stride, int steps) {
    for (int g = 0; g < kGroups; ++g) {
      group[g] += kPanel ? steps * stride : steps;
      // Keeps one pointer per group: the compiler would make one per row and spill them.
      asm("" : "+r"(group[g]));
    }
  }

  template <int kStep>
  static HWY_INLINE void Step(const float* const* group, std::int64_t stride, const float* b,
                              FloatVec* acc) {
    FloatVec row[kVectors];
    LoadB(b, row, kVectorIndex);
    Rows<kStep>(group, stride, row, acc, kRowIndex);
  }

  template <size_t... kJ>
  static HWY_INLINE void LoadB(const float* b, FloatVec* row, std::index_sequence<kJ...>) {
    ((row[kJ] = hn::LoadU(FloatTag(), b + static_cast<std::int64_t>(kJ) * kFloatLanes)), ...);
  }

  template <int kStep, size_t... kI>
  static HWY_INLINE void Rows(const float* const* group, std::int64_t stride, const FloatVec* row,
                              FloatVec* acc, std::index_sequence<kI...>) {
    if constexpr (kPanel) {
      const float* column = group[0] + kStep * stride;
      asm("" : "+r"(column));  // as in Advance: one address, not one per element
      (Row<kI>(column[kI], row, acc, kVectorIndex), ...);
    } else {
      (Row<kI>(group[kI / 4][static_cast<std::int64_t>(kI % 4) * stride + kStep], row, acc,
               kVectorIndex),
       ...);
    }
  }

  template <size_t kI, size_t... kJ>
  static HWY_INLINE void Row(float a, const FloatVec* row, FloatVec* acc,
                             std::index_sequence<kJ...>) {
    const FloatVec av = hn::Set(FloatTag(), a);
    ((acc[kI * kVectors + kJ] = hn::MulAdd(av, row[kJ], acc[kI * kVectors + kJ])), ...);
  }

  template <size_t... kI>
  static HWY_INLINE void PrefetchC(const TileArgs& args, std::index_sequence<kI...>) {
    (PrefetchRow(args.c + static_cast<std::int64_t>(kI) * args.c_stride, args.cols), ...);
  }

  static HWY_INLINE void PrefetchRow(const float* c, std::int64_t cols) {
    for (std::int64_t j = 0; j < cols; j += kFloatsPerLine) __builtin_prefetch(c + j, 1);
    __builtin_prefetch(c + cols - 1, 1);
  }

  static HWY_INLINE void Finish(const TileArgs& args, const FloatVec* acc) {
    const bool whole = args.cols == kVectors * kFloatLanes;
    if (whole && args.bias == nullptr && !args.relu) {
      if (args.accumulate) {
        Each<true>(args, acc, kRowIndex);
      } else {
        Each<false>(args, acc, kRowIndex);
      }
      return;
    }
    // The rest is rare enough to go through memory: one loop instead of an instance of every case.
    HWY_ALIGN float tile[std::size_t{kRows} * kVectors * kFloatLanes];
    Spill(acc, tile, kAll);
    for (std::int64_t j = 0; j < kVectors; ++j) FinishColumn(args, tile, j);
  }

  template <size_t... kI>
  static HWY_INLINE void Spill(const FloatVec* acc, float* tile, std::index_sequence<kI...>) {
    (hn::Store(acc[kI], FloatTag(), tile + static_cast<std::int64_t>(kI) * kFloatLanes), ...);
  }

  static HWY_INLINE void FinishColumn(const TileArgs& args, const float* tile, std::int64_t j) {
    const FloatTag d;
    const std::int64_t first = j * kFloatLanes;
    const std::int64_t count = HWY_MIN(kFloatLanes, args.cols - first);
    if (count <= 0) return;
    const FloatVec floor = hn::Set(d, args.relu ? 0.0f : -HUGE_VALF);
    const FloatVec bias = args.bias == nullptr ? hn::Zero(d) : LoadFirst(count, args.bias + first);
    for (std::int64_t i = 0; i < kRows; ++i) {
      float* to = args.c + i * args.c_stride + first;
      FloatVec v = hn::Load(d, tile + (i * kVectors + j) * kFloatLanes);
      if (args.accumulate)
        v = hn::Add(v, count == kFloatLanes ? hn::LoadU(d, to) : LoadFirst(count, to));
      v = hn::Add(v, bias);
      v = hn::IfThenElse(hn::Lt(v, floor), floor, v);  // not Max: a NaN stays a NaN
      if (count == kFloatLanes) {
        hn::StoreU(v, d, to);
      } else {
        StoreFirst(v, count, to);
      }
    }
  }

  template <bool kAccumulate, size_t... kI>
  static HWY_INLINE void Each(const TileArgs& args, const FloatVec* acc,
                              std::index_sequence<kI...>) {
    (EachRow<kAccumulate, kI>(args.c + static_cast<std::int64_t>(kI) * args.c_stride, acc,
                              kVectorIndex),
     ...);
  }

  template <bool kAccumulate, size_t kI, size_t... kJ>
  static HWY_INLINE void EachRow(float* c, const FloatVec* acc, std::index_sequence<kJ...>) {
    (StoreVector<kAccumulate>(acc[kI * kVectors + kJ],
                              c + static_cast<std::int64_t>(kJ) * kFloatLanes),
     ...);
  }

  template <bool kAccumulate>
  static HWY_INLINE void StoreVector(FloatVec v, float* to) {
    const FloatTag d;
    if constexpr (kAccumulate) v = hn::Add(v, hn::LoadU(d, to));
    hn::StoreU(v, d, to);
  }
};

template <bool kPanel, int kVectors, size_t... kI>
constexpr void FillRows(TileKernels& table, std::index_sequence<kI...>) {
  ((table.kernel[kI + 1][kVectors] = &Tile<static_cast<int>(kI) + 1, kVectors, kPanel>::Run), ...);
}

template <bool kPanel, size_t... kJ>
constexpr TileKernels MakeTable(std::index_sequence<kJ...>) {
  TileKernels table;
  table.lanes = kFloatLanes;
  table.registers = kRegisters;
  (FillRows<kPanel, static_cast<int>(kJ) + 1>(
       table, std::make_index_sequence<static_cast<size_t>(
                  MaxTileRows(static_cast<std::int32_t>(kJ) + 1, kRegisters))>()),
   ...);
  return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#endif  // GNOMON_KERNEL_TILE_INL_H_
