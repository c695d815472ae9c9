// Names of what can bound a kernel, as the command line and JSON print them.

#include "gnomon/gemm/prediction.h"

#include <array>

namespace gnomon {

std::string_view Name(Bound bound) {
  constexpr std::array<std::string_view, 5> kNames = {"compute", "memory", "cache", "latency",
                                                      "launch"};
  return kNames[static_cast<size_t>(bound)];
}

}  // namespace gnomon
