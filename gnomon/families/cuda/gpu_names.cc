// Which device file describes a GPU, by the name that its driver gives.
//
// Names are compared whole: an H200 NVL or a slice of a GPU (MIG) is another device than an H200.
// Entry points: GpuIdOf, ParseCudaPlace.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "gnomon/base/nearest.h"
#include "gnomon/families/cuda/present_gpu.h"

namespace gnomon::cuda {
namespace {

struct Known {
  std::string_view name, id;
};
constexpr Known kKnown[] = {
    {"NVIDIA A100-SXM4-80GB", "a100"},
    {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
    {"NVIDIA A100 80GB PCIe", "a100-pcie"},
    {"NVIDIA H100 80GB HBM3", "h100"},
    {"NVIDIA H200", "h200"},
    {"NVIDIA B200", "b200"},
    {"NVIDIA GB200", "gb200"},
    {"NVIDIA B300 SXM6 AC", "b300"},
};

}  // namespace

Result<std::string> GpuIdOf(std::string_view name) {
  const auto* found = std::ranges::find(kKnown, name, &Known::name);
  if (found != std::end(kKnown)) return std::string(found->id);
  std::vector<std::string_view> names;
  for (const Known& known : kKnown) names.push_back(known.name);
  return BadInput("no device file for this GPU: " + UnknownName("GPU", name, names));
}

Result<int> ParseCudaPlace(std::string_view text) {
  constexpr std::string_view kPlace = "cuda";
  int ordinal = 0;
  bool good = text.starts_with(kPlace);
  if (good && text.size() > kPlace.size()) {
    const char* first = text.data() + kPlace.size() + 1;
    const char* last = text.data() + text.size();
    const auto [end, failed] = std::from_chars(first, last, ordinal);
    good = text[kPlace.size()] == ':' && failed == std::errc() && end == last && ordinal >= 0;
  }
  if (!good)
    return BadInput(fmt::format("'{}' is no CUDA device; they are called cuda:0, cuda:1, …", text));
  return ordinal;
}

}  // namespace gnomon::cuda
