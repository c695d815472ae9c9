// The register-tile kernels (kernel_tile-inl.h) for A contiguous in k, as layouts nn and nt store
// it, compiled for each vector level and chosen at run time. The two forms of A are two files so
// that they compile in parallel. The only external function is RowTileKernels.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/kernel_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// Highway's targets must be set before what uses them.
#include "gnomon/families/cpu/kernel_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {

const TileKernels& RowTable() {
  static constexpr TileKernels kTable =
      MakeTable<false>(std::make_index_sequence<static_cast<size_t>(kMaxTileVectors)>());
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gnomon::cpu {

HWY_EXPORT(RowTable);

const TileKernels& RowTileKernels() { return HWY_DYNAMIC_DISPATCH(RowTable)(); }

}  // namespace gnomon::cpu
#endif
