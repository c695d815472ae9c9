#pragma once

/// The kernels of family `cpu` as sweep and bench run them (gemm/host_workbench.h).

#include "gnomon/gemm/host_workbench.h"

namespace gnomon::cpu {

const KernelRunner& GemmRunner();

}  // namespace gnomon::cpu
