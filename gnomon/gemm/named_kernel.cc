// A kernel known by its name as the model sees it.
//
// First what the name rules out. Each library is one vendor's; AMD's kernels are built for one chip
// (ISA942); NVIDIA's up to sm_89 also run on later chips, those for sm_90 on sm_90 alone (wgmma is
// nowhere else), those for sm_100 on sm_103 too, none the other way round. A dtype is the same if
// its bits are: hipBLASLt writes F8 for the fnuz kind on gfx942.
//
// Then the time. AMD's matrix kernels are priced by gemm/cdna_model.h with the constants of their
// family, NVIDIA's and those on vector units by gemm/tile_model.h with what gemm/named_tile.h reads
// from the name; a kernel of one vector, and a name that states no tile, as the library's average
// kernel. A split that is chosen at launch is the fastest of those that libraries choose from.
//
// Entry points: the header's.

#include "gnomon/gemm/named_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include "gnomon/base/text_table.h"
#include "gnomon/gemm/cdna_library.h"
#include "gnomon/gemm/library.h"
#include "gnomon/gemm/named_tile.h"

namespace gnomon {
namespace {

using Library = KernelName::Library;

/// The last architecture whose kernels NVIDIA ships for every later chip too.
constexpr int kLastPortableSm = 89;
/// Columns (or rows) that skinny-GEMM kernels keep in registers at most (vLLM's wvSplitK, cuBLAS's
/// gemmSN).
constexpr std::int64_t kSkinnySide = 16;

/// Median of |predicted / measured − 1| on rows that were not fitted: AMD's kernels by name, and
/// those of a family that nothing was fitted on (cdna_library.cc).
constexpr double kNamedOnCdnaError = 0.09, kUnknownOnCdnaError = 0.3;

/// A kernel that the name says too little of, against the library's average. Assumed.
constexpr double kGenericError = 0.3;

enum class Vendor { kAny, kAmd, kNvidia };

Vendor VendorOf(Library library) {
  switch (library) {
    case Library::kTensile:
    case Library::kCk:
    case Library::kCkTile:
    case Library::kAiterAsm:
    case Library::kFlydsl:
    case Library::kOpus:
      return Vendor::kAmd;
    case Library::kXmma:
    case Library::kNvjet:
    case Library::kCutlass2:
    case Library::kCutlass3:
      return Vendor::kNvidia;
    default:
      return Vendor::kAny;
  }
}

// "sm_90a" → 90; 0 for anything else.
int SmNumber(std::string_view arch) {
  constexpr std::string_view kPrefix = "sm_";
  if (!arch.starts_with(kPrefix)) return 0;
  int number = 0;
  std::from_chars(arch.data() + kPrefix.size(), arch.data() + arch.size(), number);
  return number;
}

bool RunsOn(std::string_view device_arch, std::string_view kernel_arch) {
  const int device = SmNumber(device_arch), kernel = SmNumber(kernel_arch);
  if (kernel == 0 || device == 0) return device_arch == kernel_arch;
  if (kernel <= kLastPortableSm) return device >= kernel;
  constexpr int kSmsPerGeneration = 10;  // sm_100 and sm_103 are one generation
  return device >= kernel && device / kSmsPerGeneration == kernel / kSmsPerGeneration;
}

// Two formats of the same bits that libraries spell alike.
bool SameFormat(DType a, DType b) {
  const auto ocp = [](DType dtype) {
    if (dtype == DType::kFp8E4m3Fnuz) return DType::kFp8E4m3;
    if (dtype == DType::kFp8E5m2Fnuz) return DType::kFp8E5m2;
    return dtype;
  };
  return ocp(a) == ocp(b);
}

std::string NoMultiple(std::string_view side, std::int64_t value, int of) {
  return value % of == 0 ? std::string()
                         : fmt::format("{} is {}; it takes multiples of {}", side, value, of);
}

// The least scratch memory that the kernel adds up parts of K in, where the caller grants less.
std::string WhyNoRoom(const Device& device, const Problem& problem, const KernelName& kernel) {
  const bool splits = kernel.split_k == 0 && kernel.library == Library::kNvjet;
  const int parts = splits ? 2 : kernel.split_k;
  Bytes scratch = problem.PartialSums(parts > 1 ? parts : 0);
  if (kernel.stream_k)  // a tile a unit
    scratch = {SizeOf(DType::kFp32) * kernel.tile_m * kernel.tile_n * device.units};
  if (problem.Grants(scratch)) return {};
  return fmt::format("its partial sums take {}; the workspace has {}", Show(scratch),
                     Show(*problem.workspace));
}

}  // namespace

std::string WhyItCannot(const Device& device, const Problem& problem, const KernelName& kernel) {
  if (kernel.not_a_product) return "no matrix product";
  const Vendor vendor = VendorOf(kernel.library);
  const bool amd = device.arch.starts_with("gfx"), nvidia = device.arch.starts_with("sm_");
  if ((vendor == Vendor::kAmd && !amd) || (vendor == Vendor::kNvidia && !nvidia))
    return fmt::format("a kernel of {} GPUs", vendor == Vendor::kAmd ? "AMD" : "NVIDIA");
  if (!kernel.arch.empty() && (amd || nvidia) && !RunsOn(device.arch, kernel.arch))
    return fmt::format("built for {}, not {}", kernel.arch, device.arch);
  if (kernel.dtype && !SameFormat(*kernel.dtype, problem.dtype))
    return fmt::format("multiplies {}, not {}", Name(*kernel.dtype), Name(problem.dtype));
  if (kernel.layout && *kernel.layout != problem.layout)
    return fmt::format("takes layout {}, not {}", Name(*kernel.layout), Name(problem.layout));
  if (kernel.gemv) {
    const std::int64_t vectors = std::min(problem.m, problem.n);
    const bool skinny = kernel.name.find("gemv") == std::string::npos;
    if (vectors > (skinny ? kSkinnySide : 1))
      return fmt::format("multiplies {}, not {}", skinny ? "a few vectors" : "one vector", vectors);
  }
  for (std::string why : {NoMultiple("m", problem.m, kernel.multiple_m),
                          NoMultiple("n", problem.n, kernel.multiple_n),
                          NoMultiple("k", problem.k, kernel.multiple_k),
                          NoMultiple("the row of A", problem.LeadingA(), kernel.alignment),
                          NoMultiple("the row of B", problem.LeadingB(), kernel.alignment)})
    if (!why.empty()) return why;
  return WhyNoRoom(device, problem, kernel);
}

namespace {

struct Priced {
  TileMachine machine;
  NamedTile tile;
  TileTime time;
  int split = 1;
  double seconds() const { return time.total() / machine.hertz; }
};

Result<Priced> Price(const Device& device, const Problem& problem, const KernelName& kernel,
                     int units, int split) {
  // A kernel on vector units needs no matrix rate of its dtype; any will do to read the rest.
  const bool vector = kernel.vector_units && !device.matrix.empty();
  const DType dtype = vector ? device.matrix.front().dtype : problem.dtype;
  Priced priced;
  priced.split = split;
  GNOMON_ASSIGN(priced.machine, TileMachineOf(device, dtype, units));
  priced.tile = NamedTileOf(device, priced.machine, problem, kernel, split);
  priced.time = PriceTiles(priced.machine, priced.tile.traits, problem, priced.tile.kernel);
  return priced;
}

// The splits that a name allows: the one it states; where that is chosen at launch, those that
// libraries choose from (nvjet's splitK kernels always split).
std::vector<int> SplitsOf(const Problem& problem, const KernelName& kernel) {
  if (kernel.split_k > 0 || kernel.stream_k) return {std::max(1, kernel.split_k)};
  std::vector<int> splits;
  for (const int split : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16}) {
    const bool fits = split == 1 || problem.k / split >= std::max(1, kernel.tile_k);
    const bool meant = split > 1 || kernel.library != Library::kNvjet;
    const bool granted = split == 1 || problem.Grants(problem.PartialSums(split));
    if (fits && meant && granted) splits.push_back(split);
  }
  if (splits.empty()) splits.push_back(1);
  return splits;
}

// AMD's kernels: the model of the family's kernels with the name's numbers.
Result<NamedPrediction> PredictOnCdna(const Device& device, const Problem& problem,
                                      const KernelName& kernel, int units) {
  GNOMON_ASSIGN(const CdnaMachine machine, CdnaMachineOf(device, problem.dtype, units));
  const std::string_view family = FamilyOf(kernel.library);
  const KernelFamilyTraits* known = FindKernelFamily(family, device.arch, problem.dtype);
  const KernelFamilyTraits& traits =
      known ? *known : GenericKernelFamily(device.arch, problem.dtype);
  constexpr double kDepthBytes = 128;  // of a row in one k step where the name states no depth
  constexpr int kUsualWaves = 4;
  CdnaKernel tile;
  tile.tile_m = kernel.tile_m;
  tile.tile_n = kernel.tile_n;
  tile.tile_k =
      kernel.tile_k > 0 ? kernel.tile_k : static_cast<int>(kDepthBytes / SizeOf(problem.dtype));
  tile.waves = kernel.waves > 0 ? kernel.waves : kUsualWaves;
  tile.buffers = static_cast<int>(traits.lds_buffers);
  tile.stream_k = kernel.stream_k;
  tile.non_temporal = kernel.non_temporal_a || kernel.non_temporal_b;
  tile.mapping = std::abs(kernel.wgm);
  NamedPrediction out;
  CdnaTime least;
  for (const int split : SplitsOf(problem, kernel)) {
    tile.split_k = split;
    const CdnaTime time = PriceCdna(machine, traits, problem, tile);
    if (least.total > 0 && least.total <= time.total) continue;
    least = time;
    out.split_k = split;
  }
  tile.split_k = out.split_k;
  out.prediction = ExplainCdna(machine, least, tile);
  out.prediction.relative_error = known ? kNamedOnCdnaError : kUnknownOnCdnaError;
  return out;
}

Result<NamedPrediction> PredictTiled(const Device& device, const Problem& problem,
                                     const KernelName& kernel, int units) {
  std::optional<Priced> best;
  for (const int split : SplitsOf(problem, kernel)) {
    GNOMON_ASSIGN(Priced priced, Price(device, problem, kernel, units, split));
    if (!best || priced.seconds() < best->seconds()) best = priced;
  }
  NamedPrediction out;
  out.prediction = ExplainTiles(best->machine, best->time, best->tile.kernel);
  out.prediction.relative_error = best->tile.relative_error;
  out.split_k = best->split;
  return out;
}

// The average kernel of the library that the name belongs to.
NamedPrediction PredictGeneric(const Device& device, const Problem& problem,
                               const KernelName& kernel, int units) {
  NamedPrediction out;
  out.generic = true;
  out.split_k = 0;
  const auto cdna = PredictCdnaFamily(device, problem, FamilyOf(kernel.library), {}, units);
  out.prediction = cdna.ok() ? cdna->prediction : PredictLibrary(device, problem, units);
  // One kernel of a library is further from its average than the library's best from a measurement.
  out.prediction.relative_error = std::max(out.prediction.relative_error, kGenericError);
  return out;
}

}  // namespace

NamedPrediction PredictNamed(const Device& device, const Problem& problem, const KernelName& kernel,
                             int units) {
  if (kernel.understood && !kernel.gemv) {
    const bool cdna = device.arch.starts_with("gfx") && !kernel.vector_units;
    auto predicted = cdna ? PredictOnCdna(device, problem, kernel, units)
                          : PredictTiled(device, problem, kernel, units);
    if (predicted.ok()) {
      if (!kernel.what_is_missing.empty()) predicted->note = "assumed: " + kernel.what_is_missing;
      return *predicted;
    }
  }
  NamedPrediction out = PredictGeneric(device, problem, kernel, units);
  out.note = "ranked as its library's average kernel";
  if (!kernel.what_is_missing.empty()) out.note += "; missing: " + kernel.what_is_missing;
  return out;
}

}  // namespace gnomon
