#pragma once

/// A CUDA device as a workbench of sweep and bench: operands in its memory, L2 cold, time by its
/// own clock. A build without -DGNOMON_CUDA=ON has the functions too; they say what is missing.
/// Include from any C++, no CUDA header is needed.

#include <memory>
#include <string>

#include "gnomon/gemm/workbench.h"

namespace gnomon::cuda {

/// Id of the device file of CUDA device `ordinal`. Error: no CUDA in this build or on this machine,
/// no such device, a GPU that there is no device file for.
Result<std::string> CudaDeviceId(int ordinal);

/// Makes the device current for this thread. The family is `cuda` or `cublaslt`; `against_vendor`:
/// cuBLASLt's own first choice takes part as the vendor's library. Error: as above; no cuBLASLt
/// where it is needed.
Result<std::unique_ptr<Workbench>> OpenCudaWorkbench(int ordinal, const Family& family,
                                                     bool against_vendor);

}  // namespace gnomon::cuda
