#pragma once

/// Attention: the time of one attention operator on a GPU, softmax (flash attention) or pointwise
/// (HSTU, GDPA), dense, jagged, causal or windowed, forward, backward or both.

#include <cstdint>
#include <string>
#include <string_view>

#include "gnomon/base/dtype.h"
#include "gnomon/base/result.h"
#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"

namespace gnomon {

struct AttentionProblem {
  enum class Kind {
    kSoftmax,  ///< flash attention
    kHstu,     ///< a pointwise activation (SiLU, GELU) in the softmax's place: HSTU, GDPA
  };
  enum class Pass { kForward, kBackward, kForwardBackward };

  Kind kind = Kind::kSoftmax;
  Pass pass = Pass::kForward;
  std::int64_t batch = 1, heads_q = 1, heads_kv = 1;  ///< fewer kv heads: grouped query attention
  std::int64_t head_dim_qk = 128, head_dim_v = 128;
  std::int64_t seq_q = 1, seq_kv = 1;  ///< jagged: of the longest sequence
  double mean_fill = 1;                ///< jagged: mean length / longest; 1: dense
  double length_spread = 1;            ///< jagged: E[length²] / E[length]²; 1: all alike
  bool causal = false;                 ///< seq_q ≠ seq_kv: the last query sees the last key
  std::int64_t window = 0;             ///< causal: keys that a query looks back at; 0: all
  DType dtype = DType::kBf16;
  /// Whose kernel ("aiter", "ck", "triton", "tlx", "fa2", "fa3", "flydsl", "trtllm", …): any text
  /// that has such a word, as the name of a measured row. Empty: the usual one of the device.
  std::string implementation;
  std::string framework;  ///< "sglang", "vllm", "trtllm": its cache and index kernels are timed too
  /// kKernels: the kernels' own time, as a profiler sums it. kLaunched: one launch is exposed.
  /// kEager: the framework's operators are waited for, too.
  enum class Timing { kKernels, kLaunched, kEager };
  Timing timing = Timing::kLaunched;
  bool main_kernel_only = false;  ///< backward: without preparing and converting kernels
};

/// Fills in what the name of a measured attention row says: kind, implementation, framework,
/// window, which kernels were timed.
void ReadAttentionName(std::string_view op, AttentionProblem& problem);

/// The terms add up to the time. Error: a device that is no GPU, a dtype without matrix rate, a
/// side that is not positive, a fill outside 0 to 1.
Result<Prediction> PredictAttention(const Device& device, const AttentionProblem& problem);

}  // namespace gnomon
