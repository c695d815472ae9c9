// Which model predicts a row of a measured file. The first that can:
//
//   1. a family of ours, where the row's family has its name and its config string reads
//   2. on an AMD GPU the kernel family's model: with the tile and split of the row's columns, or
//   over
//      the family's menu where it states none
//   3. on any other GPU the model of the kernel that the config column names, where the name says
//      enough
//   4. the vendor library's model, under the conditions that the row's source tells
//
// A family name that neither 2 nor 4 knows is predicted by their generic entries and marked so.
// Names are not read on AMD GPUs: the tile columns of such files come from them, and on held-out
// rows of traces the two ways are 10.7% and 9.7% off (MI300X, 31 rows), 22% and 37% (MI355X, 5
// rows). On an H100 the named kernel is 5.4% off where the library as a black box is 22% (12 rows).
//
// Entry point: PredictMeasured.

#include "gnomon/gemm/predict_measured.h"

#include <algorithm>

#include "gnomon/gemm/cdna_library.h"
#include "gnomon/gemm/kernel_name.h"
#include "gnomon/gemm/library.h"
#include "gnomon/gemm/library_families.h"
#include "gnomon/gemm/measurement_conditions.h"
#include "gnomon/gemm/named_kernel.h"

namespace gnomon {
namespace {

using By = MeasuredPrediction::By;

// A family's price of a config that cannot be launched: beyond any kernel (30 years).
constexpr double kNeverSeconds = 1e9;

bool Usable(Seconds time) { return time.value > 0 && time.value < kNeverSeconds; }

const Family* FindFamily(std::span<const Family* const> families, std::string_view name) {
  for (const Family* family : families)
    if (family->name() == name) return family;
  return nullptr;
}

// Does the device have what a library needs for the dtype? PredictLibrary falls back to fp32 units.
bool HasRate(const Device& device, DType dtype) {
  return device.FindRate(dtype) || device.FindRate(DType::kFp32);
}

bool KnownLibrary(const Device& device, std::string_view family) {
  if (IsVendorLibrary(family)) return true;
  return device.kind == Device::Kind::kGpu && FindLibraryFamily(family).known;
}

}  // namespace

std::optional<MeasuredPrediction> PredictMeasured(const Device& device, const Measurement& row,
                                                  std::span<const Family* const> families) {
  if (const Family* family = FindFamily(families, row.family)) {
    const Result<Config> config = family->Parse(row.config);
    if (config.ok()) {
      const Seconds time = family->PredictTime(device, row.problem, *config);
      if (!Usable(time)) return std::nullopt;
      return MeasuredPrediction{time, By::kConfig};
    }
  }
  const LibraryConditions conditions = ConditionsOf(row);
  if (device.arch.starts_with("gfx")) {
    const StatedTile tile{row.tile_m, row.tile_n, row.tile_k, row.split_k, conditions.dirty_l2};
    const auto predicted = PredictCdnaFamily(device, row.problem, row.family, tile);
    if (predicted.ok()) {
      const bool stated = row.tile_m > 0 && row.tile_n > 0;
      return MeasuredPrediction{predicted->prediction.time, predicted->generic ? By::kGeneric
                                                            : stated           ? By::kTile
                                                                               : By::kLibrary};
    }
  }
  if (device.arch.starts_with("sm_")) {
    const KernelName name = ParseKernelName(row.config);
    if (name.understood && !name.not_a_product && device.FindRate(row.problem.dtype)) {
      const NamedPrediction named = PredictNamed(device, row.problem, name);
      if (!named.generic && Usable(named.prediction.time))
        return MeasuredPrediction{named.prediction.time, By::kName};
    }
  }
  if (!HasRate(device, row.problem.dtype)) return std::nullopt;
  const Seconds time = PredictLibrary(device, row.problem, 0, conditions, row.family).time;
  if (!Usable(time)) return std::nullopt;
  return MeasuredPrediction{time, KnownLibrary(device, row.family) ? By::kLibrary : By::kGeneric};
}

}  // namespace gnomon
