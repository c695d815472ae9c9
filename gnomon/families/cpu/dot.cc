// Dot-product kernels: both operands run along k, so nothing needs packing.
//
//   sum(i, j) = Σ_k a(i, k) · b(j, k)   for i < kRows, j < kColumns
//
// Each sum is one vector of partial sums; a step loads a vector of every row and column. At the end
// vectors are folded to four lanes and four of them are added up together by a transpose. The end
// of k is a masked step. bf16 is widened as it is loaded. One row and one column make this a GEMV
// that reads its matrix once.

#include "gnomon/families/cpu/dot.h"

#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/dot.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// Highway's targets must be set before what uses them.
#include "gnomon/families/cpu/kernel_edge-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE FloatVec LoadValues(const float* from) { return hn::LoadU(FloatTag(), from); }
HWY_INLINE FloatVec LoadValues(const std::uint16_t* from) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, from))));
}
HWY_INLINE FloatVec LoadSome(std::int64_t count, const float* from) {
  return LoadFirst(count, from);
}
HWY_INLINE FloatVec LoadSome(std::int64_t count, const std::uint16_t* from) {
  std::uint16_t value[kFloatLanes] = {};
  std::memcpy(value, from, static_cast<size_t>(count) * sizeof(value[0]));
  return LoadValues(value);
}

// Adds lanes up until four are left.
using QuarterTag = hn::FixedTag<float, 4>;
template <class D>
HWY_INLINE hn::Vec<QuarterTag> FoldToFour([[maybe_unused]] D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldToFour(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

template <class T, int kRows, int kColumns>
class Dot {
 public:
  static void Run(const DotArgs& args) {
    const T* a = static_cast<const T*>(args.a);
    const T* b = static_cast<const T*>(args.b);
    // Whole groups of four; those behind the last sum stay zero.
    FloatVec acc[kGroups * 4];
    Zero(acc, std::make_index_sequence<kGroups * 4>());
    std::int64_t k = 0;
    for (; k + kFloatLanes <= args.k; k += kFloatLanes) Step<false>(args, a + k, b + k, 0, acc);
    if (k < args.k) Step<true>(args, a + k, b + k, args.k - k, acc);
    AddUp(acc, args.sum, std::make_index_sequence<kGroups>());
  }

 private:
  static constexpr size_t kGroups = (kRows * kColumns + 3) / 4;
  static constexpr std::make_index_sequence<kRows> kRowIndex{};
  static constexpr std::make_index_sequence<kColumns> kColumnIndex{};

  template <size_t... kI>
  static HWY_INLINE void Zero(FloatVec* acc, std::index_sequence<kI...>) {
    ((acc[kI] = hn::Zero(FloatTag())), ...);
  }

  template <bool kPart>
  static HWY_INLINE FloatVec Values(const T* from, std::int64_t count) {
    if constexpr (kPart) return LoadSome(count, from);
    return LoadValues(from);
  }

  template <bool kPart>
  static HWY_INLINE void Step(const DotArgs& args, const T* a, const T* b, std::int64_t count,
                              FloatVec* acc) {
    FloatVec column[kColumns];
    Columns<kPart>(b, args.b_stride, count, column, kColumnIndex);
    Rows<kPart>(a, args.a_stride, count, column, acc, kRowIndex);
  }

  template <bool kPart, size_t... kJ>
  static HWY_INLINE void Columns(const T* b, std::int64_t stride, std::int64_t count,
                                 FloatVec* column, std::index_sequence<kJ...>) {
    ((column[kJ] = Values<kPart>(b + static_cast<std::int64_t>(kJ) * stride, count)), ...);
  }

  template <bool kPart, size_t... kI>
  static HWY_INLINE void Rows(const T* a, std::int64_t stride, std::int64_t count,
                              const FloatVec* column, FloatVec* acc, std::index_sequence<kI...>) {
    (Row<kI>(Values<kPart>(a + static_cast<std::int64_t>(kI) * stride, count), column, acc,
             kColumnIndex),
     ...);
  }

  template <size_t kI, size_t... kJ>
  static HWY_INLINE void Row(FloatVec row, const FloatVec* column, FloatVec* acc,
                             std::index_sequence<kJ...>) {
    ((acc[kI * kColumns + kJ] = hn::MulAdd(row, column[kJ], acc[kI * kColumns + kJ])), ...);
  }

  template <size_t... kG>
  static HWY_INLINE void AddUp(const FloatVec* acc, float* sum, std::index_sequence<kG...>) {
    (AddUpFour(acc + kG * 4, sum + kG * 4), ...);
  }

  static HWY_INLINE void AddUpFour(const FloatVec* acc, float* sum) {
    const FloatTag d;
    const QuarterTag d4;
    const hn::Repartition<double, QuarterTag> d2;
    const auto v0 = FoldToFour(d, acc[0]), v1 = FoldToFour(d, acc[1]);
    const auto v2 = FoldToFour(d, acc[2]), v3 = FoldToFour(d, acc[3]);
    const auto v01 =
        hn::BitCast(d2, hn::Add(hn::InterleaveLower(d4, v0, v1), hn::InterleaveUpper(d4, v0, v1)));
    const auto v23 =
        hn::BitCast(d2, hn::Add(hn::InterleaveLower(d4, v2, v3), hn::InterleaveUpper(d4, v2, v3)));
    hn::StoreU(hn::Add(hn::BitCast(d4, hn::InterleaveLower(d2, v01, v23)),
                       hn::BitCast(d4, hn::InterleaveUpper(d2, v01, v23))),
               d4, sum);
  }
};

template <class T, int kColumns, size_t... kI>
constexpr void FillRows(DotKernels& table, std::index_sequence<kI...>) {
  ((table.kernel[kI + 1][kColumns] = &Dot<T, static_cast<int>(kI) + 1, kColumns>::Run), ...);
}

template <class T, size_t... kJ>
constexpr DotKernels MakeTable(std::index_sequence<kJ...>) {
  DotKernels table;
  table.registers = kRegisters;
  (FillRows<T, static_cast<int>(kJ) + 1>(
       table, std::make_index_sequence<static_cast<size_t>(
                  MaxDotRows(static_cast<std::int32_t>(kJ) + 1, kRegisters))>()),
   ...);
  return table;
}

const DotKernels& TableFp32() {
  static constexpr DotKernels kTable = MakeTable<float>(std::make_index_sequence<kMaxDotColumns>());
  return kTable;
}
const DotKernels& TableBf16() {
  static constexpr DotKernels kTable =
      MakeTable<std::uint16_t>(std::make_index_sequence<kMaxDotColumns>());
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gnomon::cpu {

HWY_EXPORT(TableFp32);
HWY_EXPORT(TableBf16);

const DotKernels& DotKernelsFp32() { return HWY_DYNAMIC_DISPATCH(TableFp32)(); }
const DotKernels& DotKernelsBf16() { return HWY_DYNAMIC_DISPATCH(TableBf16)(); }

}  // namespace gnomon::cpu
#endif
