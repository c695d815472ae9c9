#include "gnomon/gemm/library_families.h"

#include <algorithm>
#include <array>

namespace gnomon {
namespace {

// Set on the fit rows (base/fit_split.h) of measured/kernel_work_reports.csv, rounded. Chains: the
// pipelines of these block-scaled fp4 kernels hold too few bytes to hide the memory's latency.
constexpr std::array<LibraryFamily, 16> kFamilies = {{
    {"library"},
    {"cublas"},
    {"cudnn", 1.15, -0.25, false, 515},
    {"cutlass", 1.65, 0.5, false, 470},
    {"cutedsl", 1.2, 0, false},
    {"fbgemm", 1.8, 0.5, false},
    {"flashinfer-auto", 1.5, 0.5, false},
    {"flashinfer-cutedsl", 1, 0, false, 420},
    {"helion-cutedsl", 1.2, 0, false},
    {"quack", 1.6, 0, false},
    {"tlx", 1.3, 0.5, true, 0, 23.3},
    {"torch-scaled-mm", 1.3, 3.5, false},
    {"transformer-engine", 1.4, 3, true},
    {"trtllm", 2.2, 1, false, 570},
    {"trtllm-gen", 1.5, 0, false, 570},
    {"hipblaslt"},
}};
constexpr LibraryFamily kAverage = {"average", 1.4, 0.5, false, 0, 0, false};

}  // namespace

const LibraryFamily& FindLibraryFamily(std::string_view name) {
  const auto* found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                   [&](const LibraryFamily& f) { return f.name == name; });
  return found == kFamilies.end() ? kAverage : *found;
}

}  // namespace gnomon
