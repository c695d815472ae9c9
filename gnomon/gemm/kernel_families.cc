// The table of kernel families.
//
// Fitted with the constants of cdna_model.cc on the rows of the public AMD measurements whose
// FNV-1a hash of "M,N,K" is even; accuracy on the other rows stands in docs/accuracy.md. Ten or so
// numbers a library, over all its tiles and shapes: an entry of a few rows takes all but its
// efficiency from the generic one. Values at the end of their range say that the term does nothing
// for the family (an efficiency of 0.98, a prologue of 300 cycles).
//
// What the numbers tell: CK's block-scaled fp8 kernels multiply the accumulators by the scales on
// vector units after every 128 of K, hence their low matrix efficiency. Tensile spends much
// outside the loop. hipblaslt on gfx950 is fitted with the five of twelve short-K shapes of
// aiter#2559 whose hash is even, too; the tables have none with many waves. The bench behind the
// rocblas, triton and tlx rows (triton#2865) writes a buffer as large as the last-level cache
// before every run; C then waits for those dirty lines to leave, hence their slow stores.
//
// Entry points: the header's.

#include "gnomon/gemm/kernel_families.h"

#include <array>

namespace gnomon {
namespace {

// Rate of stores / rate of reads: fitted; 90112×4608×1, which only stores, reaches 0.46 on MI355X.
constexpr double kStoreShare = 0.414;

constexpr KernelFamilyTraits Entry(std::string_view name, std::string_view arch, bool one_byte,
                                   double efficiency, double exposed, double prologue,
                                   double start_us) {
  KernelFamilyTraits out;
  out.name = name;
  out.arch = arch;
  out.one_byte = one_byte;
  out.matrix_efficiency = efficiency;
  out.exposed = {exposed};
  out.prologue = {prologue};
  out.start = Microseconds(start_us);
  out.hidden_loads = 0.7;
  out.hidden_stores = 0.4;
  out.reduction_start = Microseconds(0.8);
  out.reduction_rate = {3e12};
  out.store_share = kStoreShare;
  return out;
}
constexpr KernelFamilyTraits Hides(KernelFamilyTraits out, double loads, double stores) {
  out.hidden_loads = loads;
  out.hidden_stores = stores;
  return out;
}
constexpr KernelFamilyTraits Reduces(KernelFamilyTraits out, double start_us, double tb_per_s) {
  out.reduction_start = Microseconds(start_us);
  out.reduction_rate = {tb_per_s * 1e12};
  return out;
}
constexpr KernelFamilyTraits OneBuffer(KernelFamilyTraits out) {
  out.lds_buffers = 1;
  return out;
}
constexpr KernelFamilyTraits SplitIsAWish(KernelFamilyTraits out) {
  out.split_is_a_wish = true;
  return out;
}
constexpr KernelFamilyTraits SplitAtLaunch(KernelFamilyTraits out) {
  out.split_at_launch = true;
  return out;
}
constexpr KernelFamilyTraits OnDirtyCache(KernelFamilyTraits out, TileMenu menu) {
  out.store_share = kDirtyStoreShare;
  out.menu = menu;
  return out;
}
constexpr KernelFamilyTraits From(KernelFamilyTraits out, TileMenu menu) {
  out.menu = menu;
  return out;
}

constexpr std::array kFamilies = {
    // ROCm/aiter tuned tables: least times of its tuner.
    Reduces(Hides(Entry("aiter-asm", "gfx950", false, 0.98, 215, 300, 5.67), 0.8, 0.328), 0.2,
            7.82),
    Hides(Entry("aiter-asm", "gfx950", true, 0.391, 186, 300, 3.87), 0.56, 0.342),
    SplitIsAWish(Reduces(Hides(Entry("aiter-ck", "gfx942", true, 0.66, 557, 300, 2.89), 0.05, 0.52),
                         0.356, 8)),
    SplitIsAWish(OneBuffer(Reduces(
        Hides(Entry("aiter-ck", "gfx950", true, 0.339, 560, 400, 3.27), 0.97, 0.255), 1.23, 2.68))),
    OneBuffer(Hides(Entry("aiter-cktile", "gfx950", true, 0.631, 654, 447, 3.1), 0.97, 0.02)),
    Reduces(Hides(Entry("aiter-flydsl", "gfx950", false, 0.438, 51.3, 3940, 1.5), 0.732, 0.619),
            0.439, 1.45),
    Hides(Entry("aiter-flydsl", "gfx950", true, 0.776, 130, 300, 2.75), 0.746, 0.436),
    Hides(Entry("aiter-opus", "gfx950", false, 0.754, 8.48, 6410, 5.77), 0.586, 0.183),
    Entry("aiter-skinny", "gfx950", false, 0.873, 60, 2500, 1.68),
    From(Hides(Entry("aiter-triton", "gfx950", false, 0.552, 574, 1490, 1.5), 0.97, 0.02),
         TileMenu::kTriton),
    From(Entry("aiter-triton", "gfx950", true, 0.97, 514, 2220, 1.51), TileMenu::kTriton),
    Reduces(Hides(Entry("aiter-torch", "gfx950", false, 0.922, 294, 2610, 6.01), 0.753, 0.468), 0.2,
            4.96),
    // Tensile kernels in profiler traces and reports.
    Reduces(Hides(Entry("hipblaslt", "gfx950", false, 0.922, 294, 2610, 6.01), 0.753, 0.468), 0.2,
            4.96),
    SplitAtLaunch(Reduces(
        Hides(Entry("hipblaslt", "gfx942", false, 0.811, 399, 300, 4.7), 0.224, 0.397), 0.218, 8)),
    Entry("hipblaslt", "gfx950", true, 0.797, 60, 2500, 3),
    // facebookexperimental/triton#2865 and its neighbours.
    OnDirtyCache(
        Reduces(Hides(Entry("rocblas", "gfx950", false, 0.593, 7.06, 12000, 6), 0.607, 0.02), 0.2,
                4.72),
        TileMenu::kLibrary),
    OnDirtyCache(Hides(Entry("triton", "gfx950", false, 0.361, 6.97, 5670, 6), 0.669, 0.539),
                 TileMenu::kTriton),
    OnDirtyCache(Hides(Entry("tlx", "gfx950", false, 0.5, 17.6, 4920, 4.14), 0.243, 0.52),
                 TileMenu::kTritonWide),
    From(Entry("tlx", "gfx942", false, 0.566, 60, 2500, 3), TileMenu::kTritonWide),
    // Kernel authors' reports, a few rows each.
    Entry("hipkittens", "gfx950", false, 0.83, 60, 2500, 3),
    Entry("hipkittens", "gfx950", true, 0.98, 60, 2500, 3),
    Entry("hipkittens", "gfx942", false, 0.674, 60, 2500, 3),
    Entry("flydsl", "gfx950", true, 0.791, 60, 2500, 3),
    Entry("aiter", "gfx950", false, 0.553, 60, 2500, 3),
};

// Middle values of the table.
constexpr KernelFamilyTraits kGeneric = Entry("", "", false, 0.8, 200, 2500, 3);
constexpr KernelFamilyTraits kGenericOneByte = Entry("", "", true, 0.7, 200, 2500, 3);

}  // namespace

const KernelFamilyTraits* FindKernelFamily(std::string_view family) {
  for (const KernelFamilyTraits& entry : kFamilies)
    if (entry.name == family) return &entry;
  return nullptr;
}

const KernelFamilyTraits* FindKernelFamily(std::string_view family, std::string_view arch,
                                           DType dtype) {
  const bool one_byte = SizeOf(dtype) <= 1;
  const KernelFamilyTraits* best = nullptr;
  int best_score = -1;
  for (const KernelFamilyTraits& entry : kFamilies) {
    if (entry.name != family) continue;
    // The size of operands says more about the kernels than the chip.
    const int score = 2 * (entry.one_byte == one_byte) + (entry.arch == arch);
    if (score > best_score) {
      best = &entry;
      best_score = score;
    }
  }
  return best;
}

const KernelFamilyTraits& GenericKernelFamily(std::string_view, DType dtype) {
  return SizeOf(dtype) <= 1 ? kGenericOneByte : kGeneric;
}

}  // namespace gnomon
