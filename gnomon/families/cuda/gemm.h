#pragma once

/// GEMM on a Hopper GPU with kernels of our own (family `cuda`). Needs a build with
/// -DGNOMON_CUDA=ON; include from any C++, no CUDA header is needed.

#include <cstddef>

#include "gnomon/base/result.h"
#include "gnomon/families/cuda/kernel_config.h"
#include "gnomon/gemm/problem.h"

struct CUstream_st;

namespace gnomon::cuda {

/// Device addresses. A, B and C as the problem says (dtype, layout, leading dimensions, batch or
/// groups densely one after the other).
struct Operands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;      ///< N values of dtype_out; for an epilogue with a bias
  float* bias_gradient = nullptr;  ///< M values: sums over K of A; for kBiasGradient (layout tn)
  /// Scratch for partial sums: WorkspaceOf bytes or more, zeroed once before its first use; a run
  /// leaves its counters zero. One run at a time may use it.
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

/// Bytes of scratch that the config needs on the problem with `units` multiprocessors.
std::size_t WorkspaceBytes(const Problem& problem, const KernelConfig& config, int units);

/// C = epilogue(A·B), enqueued on the stream of the current device. Does not wait. The same bytes
/// every time: parts of K are added in a fixed order. fp8 operands accumulate as the matrix unit
/// does (wgmma keeps fewer than 32 bits); tf32 operands are fp32 in memory, their low 13 bits are
/// not used. Error: no such kernel in this build, an operand that the kernel cannot load, too
/// little workspace, a CUDA error (its text and the call).
Status Run(const Problem& problem, const KernelConfig& config, const Operands& operands,
           CUstream_st* stream);

}  // namespace gnomon::cuda
