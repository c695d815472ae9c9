#pragma once

/// Attention kernels: which families there are, what share of the matrix rate each reaches, and
/// how a name is read. Private to cost/attention.cc.

#include <string_view>

#include "gnomon/cost/attention.h"

namespace gnomon {

/// Architectures whose attention kernels are written anew.
enum class AttentionGeneration { kSm80, kSm90, kSm100, kCdna3, kCdna4, kOther };
AttentionGeneration AttentionGenerationOf(const Device& device);

struct AttentionKernel {
  std::string_view family;
  double matrix_share = 0;  ///< of the matrix units' rate while the main loop runs
  bool measured = false;    ///< on this generation; else carried over from others
  bool splits_kv = false;   ///< may share one query tile's keys among units
};

AttentionKernel FindAttentionKernel(const Device& device, const AttentionProblem& problem,
                                    bool backward);

/// What a serving framework runs around the kernel.
struct ServingFramework {
  std::string_view name;
  double fixed_us = 0;         ///< beside the bytes it moves: index and cache kernels
  bool repacks_query = false;  ///< writes the query anew (rotary embedding, fused QKV)
};
/// Nothing but zeros for a plain call.
ServingFramework FindServingFramework(std::string_view name);

}  // namespace gnomon
