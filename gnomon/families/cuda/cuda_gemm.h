#pragma once

/// Families `sm90` (wgmma, Hopper) and `sm100` (tcgen05, Blackwell): GEMM kernels whose operands
/// arrive by TMA in a ring of shared memory stages. Described and priced here; the kernels come
/// later.

#include "gnomon/gemm/family.h"

namespace gnomon::cuda {

const Family& Sm90Family();
const Family& Sm100Family();

}  // namespace gnomon::cuda
