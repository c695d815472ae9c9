#pragma once

/// Kernel collections that public reports name, as PredictLibrary sees them: how far their kernels
/// are from the vendor library's, each by one factor and one start.

#include <string_view>

namespace gnomon {

struct LibraryFamily {
  std::string_view name;
  double effort = 1;  ///< cycles of multiplications and loads, times those of the vendor's library
  double start_us = 0;        ///< beyond the start of the vendor's library
  bool splits = true;         ///< may cut K among workgroups
  double cold_fp4_chain = 0;  ///< least cycles of an fp4 k step (256 of K) straight from memory
  double host_us = 0;  ///< least between events around an eager call: what the host needs for it
  bool known = true;   ///< false: stands for every name that is not listed
};

/// The family of that name, or the average of those known.
const LibraryFamily& FindLibraryFamily(std::string_view name);

}  // namespace gnomon
