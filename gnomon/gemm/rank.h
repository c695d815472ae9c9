#pragma once

/// Rank: a list of vendor kernels, by name, in the order of predicted time (`gnomon gemm rank`):
/// what hipBLASLt's getAllAlgos or cublasLt's heuristic returned, re-ordered with no benchmark.

#include <string>
#include <string_view>
#include <vector>

#include "gnomon/gemm/named_kernel.h"

namespace gnomon {

/// One line of a names file.
struct ListedKernel {
  std::string name;
  int line = 0;  ///< from 1
};

/// Kernel names, one a line; blank lines and lines that start with '#' are passed over, spaces and
/// quotes around a name are dropped, a name that stands there again is kept once. Error: no name.
Result<std::vector<ListedKernel>> ParseKernelList(std::string_view text, std::string_view path);
Result<std::vector<ListedKernel>> ReadKernelList(const std::string& path);

struct RankedKernel {
  KernelName kernel;
  int line = 0;
  NamedPrediction predicted;
};
struct UnableKernel {
  KernelName kernel;
  int line = 0;
  std::string why;
};
struct Ranking {
  std::vector<RankedKernel> ranked;  ///< fastest first; ties in the order of the list
  std::vector<UnableKernel> unable;  ///< in the order of the list
  /// How many of the first kernels have error bars that overlap the first one's (it included).
  int close = 0;
};

/// Error: a problem that is none, a device without kernels that have names (a CPU), units that it
/// has not.
Result<Ranking> RankKernels(const Device& device, const Problem& problem,
                            const std::vector<ListedKernel>& kernels, int units = 0);

}  // namespace gnomon
