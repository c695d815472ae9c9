#pragma once

/// A config of family `cuda`: one kernel of kernel_table.h and how it is launched.

#include <string>
#include <string_view>

#include "gnomon/families/cuda/kernel_table.h"
#include "gnomon/gemm/family.h"

namespace gnomon::cuda {

/// How operands reach the multipliers.
///   tma     "tma.128x256.c2x1.both.k1.g8"       stages of shared memory filled by TMA, for wgmma
///   copy    "copy.64x32.c1x1.turns.k4.fix"      the same filled by a warpgroup: any alignment
///   pad     "pad.128x64.c1x1.turns.k1"          what TMA cannot load is first copied to rows of
///                                               whole 16 bytes in the workspace; then as tma
///   vector  "vector.8x4.k16"                    vector units; for a side of at most 16
/// then, where they differ from the defaults: ".fix" the last CTA of a tile adds its parts (else a
/// second kernel does), ".sk" stream-K (parts are always added by the last CTA), ".g8" group_m.
enum class Kind { kTma, kCopy, kPad, kVector };

struct KernelConfig {
  Kind kind = Kind::kTma;
  std::int32_t tile_m = 128, tile_n = 128;  ///< of one CTA; vector: of one warp
  Consumers consumers = Consumers::kBoth;
  std::int32_t cluster_m = 1, cluster_n = 1;
  std::int32_t split_k = 1;
  bool fix_up = false;
  bool stream_k = false;
  std::int32_t group_m = 1;
  friend bool operator==(const KernelConfig&, const KernelConfig&) = default;
};

Config ToConfig(const KernelConfig& config);
KernelConfig KernelConfigFrom(const Config& config);

/// The canonical string and back. Error: position, what was expected, a well-formed example.
std::string Text(const KernelConfig& config);
Result<KernelConfig> ParseKernelConfig(std::string_view text);

}  // namespace gnomon::cuda
