#pragma once

/// Family `cdna`: GEMM kernels on AMD's matrix units as hipBLASLt has them, macro tile by macro
/// tile (gfx90a, gfx942, gfx950).

#include "gnomon/gemm/family.h"

namespace gnomon::hip {

const Family& CdnaFamily();

}  // namespace gnomon::hip
