#pragma once

/// Launches kernels of kind vector. For nvcc, and for host code that includes CUDA's headers.

#include <cuda_runtime_api.h>

#include "gnomon/families/cuda/gemm.h"
#include "gnomon/families/cuda/vector_table.h"

namespace gnomon::cuda {

/// The tile fits the problem, and so does the split (VectorFits, VectorSplitFits); where K is split
/// the workspace holds VectorWorkspaceBytes. cudaErrorInvalidDeviceFunction: no such kernel.
cudaError_t LaunchVector(const Problem& problem, VectorTile tile, std::int32_t parts,
                         const Operands& operands, cudaStream_t stream);

}  // namespace gnomon::cuda
