// Names of number formats as files and the command line spell them, read back to the enum.
// The match is exact: `FP32` or `float32` is refused with the nearest valid name, so that a file
// means the same wherever it is read.

#include "gnomon/base/dtype.h"

#include "gnomon/base/nearest.h"

namespace gnomon {

Result<DType> ParseDType(std::string_view text) {
  for (size_t i = 0; i < kDTypeNames.size(); ++i) {
    if (kDTypeNames[i] == text) return static_cast<DType>(i);
  }
  return BadInput(UnknownName("dtype", text, kDTypeNames));
}

}  // namespace gnomon
