#pragma once

/// The kernels of family `cpu` as sweep and bench run them (gemm/sweep.h).

#include "gnomon/gemm/sweep.h"

namespace gnomon::cpu {

const KernelRunner& GemmRunner();

}  // namespace gnomon::cpu
