// The two places there are. A GPU is known by the device file of its name, so that what is measured
// stands beside what that file predicts.

#include "apps/measured_place.h"

#include <algorithm>
#include <span>

#include "apps/families.h"
#include "gnomon/base/nearest.h"
#include "gnomon/families/cpu/runner.h"
#include "gnomon/families/cuda/cuda_workbench.h"
#include "gnomon/families/cuda/present_gpu.h"
#include "gnomon/gemm/host_workbench.h"

namespace gnomon::app {
namespace {

// A bench on the host has samples this long: it compares two, and BLAS threads wake slowly.
constexpr double kBenchSampleUs = 100;

Status CheckFamily(const PlaceArguments& arguments, std::span<const std::string_view> measurable) {
  if (arguments.family.empty()) return Done{};
  if (const auto families = Families(arguments.family, nullptr); !families) return families.error();
  if (std::ranges::find(measurable, arguments.family) == measurable.end())
    return BadInput(UnknownName("family to time on this machine", arguments.family, measurable),
                    "--family");
  return Done{};
}

Result<Place> OpenHost(const PlaceArguments& arguments) {
  const std::string_view measurable[] = {cpu::GemmRunner().family().name()};
  GNOMON_TRY(CheckFamily(arguments, measurable));
  Place place;
  GNOMON_ASSIGN(place.device, FindDevice("host"));
  HostWorkbench::Options options;
  options.conditions = fmt::format("{}, gnomon gemm sweep", place.device.name);
  if (arguments.against_vendor) {
    options.conditions = fmt::format("{}, warm caches", place.device.name);
    options.min_sample_us = kBenchSampleUs;
    options.vendor_threads = arguments.threads > 0 ? arguments.threads : place.device.units;
    GNOMON_ASSIGN(options.vendors, LoadVendorBlas());
  }
  place.bench = std::make_unique<HostWorkbench>(cpu::GemmRunner(), std::move(options));
  return place;
}

Result<Place> OpenCuda(const PlaceArguments& arguments) {
  constexpr std::string_view kMeasurable[] = {"cuda", "cublaslt"};
  const Result<int> ordinal = cuda::ParseCudaPlace(arguments.on);
  if (!ordinal.ok()) return BadInput(ordinal.error().message, "--on");
  if (arguments.threads != 0)
    return BadInput("threads are the host's; a GPU is measured whole", "--threads");
  GNOMON_ASSIGN(const std::string id, cuda::CudaDeviceId(*ordinal));
  GNOMON_TRY(CheckFamily(arguments, kMeasurable));
  Place place;
  place.host = false;
  GNOMON_ASSIGN(place.device, FindDevice(id));
  GNOMON_ASSIGN(const std::vector<const Family*> families,
                Families(arguments.family.empty() ? std::string(kMeasurable[0]) : arguments.family,
                         &place.device));
  GNOMON_ASSIGN(place.bench,
                cuda::OpenCudaWorkbench(*ordinal, *families[0], arguments.against_vendor));
  return place;
}

}  // namespace

Result<Place> OpenPlace(const PlaceArguments& arguments) {
  constexpr std::string_view kPlaces[] = {"host", "cuda:0"};
  if (arguments.on == "host") return OpenHost(arguments);
  if (arguments.on.starts_with("cuda")) return OpenCuda(arguments);
  return BadInput(UnknownName("place", arguments.on, kPlaces), "--on");
}

}  // namespace gnomon::app
