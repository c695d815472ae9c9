#pragma once

/// Family `cuda`: our own GEMM kernels for Hopper, from one table (kernel_table.h). Prices and
/// picks need no GPU and no CUDA; what runs them is gemm.h.

#include "gnomon/gemm/family.h"

namespace gnomon::cuda {

const Family& CudaFamily();

}  // namespace gnomon::cuda
