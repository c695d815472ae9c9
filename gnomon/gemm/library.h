#pragma once

/// The vendor's GEMM library (cuBLAS, hipBLASLt, rocBLAS, OpenBLAS, BLIS, oneDNN) as a model: what
/// the framework runs when nothing picks a kernel. Used for the source device and for the stock
/// baseline. On GPUs the same model speaks for any kernel collection known by its name only
/// (CUTLASS, cuDNN, TLX, …).

#include <string_view>

#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// What surrounds a call, where it decides the time. The default is a call among others, as in a
/// CUDA graph or a training step: no launch cost, operands that other kernels used meanwhile.
struct LibraryConditions {
  /// Calls in a row before one meets its own B again; 1: the same B every time.
  int weight_copies = 6;
  /// No more copies than exceed the L2 (how TensorRT-LLM's timings were taken).
  bool copies_until_l2 = false;
  /// Each copy has its own A and C as well.
  bool own_activations = true;
  /// The caches were emptied before the call.
  bool cold_l2 = false;
  /// … by overwriting them: every line that is read first writes a dirty one back.
  bool dirty_l2 = false;
  /// Timed by a pair of events around an eager launch.
  bool events = false;
  /// Runs for seconds, not for a burst of a few milliseconds: the power limit has settled.
  bool sustained = false;
  /// A lower power limit than the board's, in W; 0: none.
  double power_limit = 0;
  /// A's conversion from bf16 is part of the time.
  bool converts_a = false;
  /// Each 128 of K are multiplied by scales of their own, in registers (blockwise fp8).
  bool scales_in_loop = false;
};

/// Time of one library call on `units` units (0: all). A dtype that is not native runs at the fp32
/// rate. Device.framework.gemm_efficiency sets the share of peak on large squares where it was
/// measured. `family` names whose kernels run on a GPU; a name that is not known gets those of an
/// average author. Conditions and family do not matter on a CPU.
Prediction PredictLibrary(const Device& device, const Problem& problem, int units,
                          const LibraryConditions& conditions = {},
                          std::string_view family = "library");

/// "library", "cublas", "hipblaslt", "openblas", …: families of measured files that are a vendor's
/// library.
bool IsVendorLibrary(std::string_view family);

}  // namespace gnomon
