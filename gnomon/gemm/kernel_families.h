#pragma once

/// Kernel families: what sets one library's GEMM kernels apart from another's on the same unit.
/// Everything that a device file or a tile says stands elsewhere; here is only how well the code of
/// a family uses the hardware.

#include <cstdint>
#include <string_view>

#include "gnomon/base/dtype.h"
#include "gnomon/base/units.h"

namespace gnomon {

/// Which tiles are searched where a measurement does not say which kernel ran.
enum class TileMenu { kLibrary, kTriton, kTritonWide };

/// Few numbers a family, none a tile. kernel_families.cc says what they were fitted on.
struct KernelFamilyTraits {
  std::string_view name;         ///< as measured files spell it; empty: the generic entry
  std::string_view arch;         ///< "gfx942", "gfx950"; empty: any
  bool one_byte = false;         ///< kernels for operands of one byte and less
  double matrix_efficiency = 0;  ///< matrix operations / those of a unit never waiting in a k step
  Cycles exposed;   ///< of a k step: a workgroup waits, only another resident one can use the unit
  Cycles prologue;  ///< of a workgroup: addresses, first operands, writing the accumulators out
  Seconds start;    ///< until the first workgroup runs, and the end seen by the host's event
  double hidden_loads = 0;   ///< share of the time of memory reads behind the main loop, 0 to 1
  double hidden_stores = 0;  ///< the same of storing C
  Seconds reduction_start;   ///< of a split: waiting for the other parts, or a second kernel
  BytesPerSecond reduction_rate;  ///< partial sums written and read again
  double lds_buffers = 2;  ///< pipeline buffers in LDS; 1: the next operands wait in registers
  double store_share = 0;  ///< rate of storing C / rate of reading, cold
  bool split_is_a_wish = false;  ///< kernels that leave K whole though a split is asked for
  bool split_at_launch = false;  ///< a name or row without a split leaves it to the launch
  TileMenu menu = TileMenu::kLibrary;
};

/// KernelFamilyTraits::store_share where the last-level cache is full of dirty lines when a kernel
/// starts (a bench that clears a large buffer before each run): they must leave before C can enter.
inline constexpr double kDirtyStoreShare = 0.24;

/// The family's entry (one of another architecture or operand size where there is none of these);
/// nullptr: no such family.
const KernelFamilyTraits* FindKernelFamily(std::string_view family);
const KernelFamilyTraits* FindKernelFamily(std::string_view family, std::string_view arch,
                                           DType dtype);

/// What stands in for a family that FindKernelFamily does not know.
const KernelFamilyTraits& GenericKernelFamily(std::string_view arch, DType dtype);

}  // namespace gnomon
