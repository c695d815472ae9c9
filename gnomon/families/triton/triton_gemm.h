#pragma once

/// Family `triton`: a plain Triton GEMM (pointer loads, masks, grouped tile order, split-K through
/// fp32 partial sums and a second kernel), on NVIDIA and AMD GPUs.

#include <cstdint>
#include <string>
#include <string_view>

#include "gnomon/gemm/family.h"

namespace gnomon::triton {

/// Meta-parameters of one launch. Text: "128x256x64.w8.s3.k1", then what differs from the defaults:
/// ".g4" group_m, ".p" persistent, and on AMD ".e2" waves_per_eu, ".i32" matrix_instr_nonkdim,
/// ".kp2" kpack.
struct TritonConfig {
  std::int32_t block_m = 128, block_n = 128, block_k = 64;
  std::int32_t warps = 4;  ///< waves of a workgroup on AMD
  std::int32_t stages = 3;
  std::int32_t split_k = 1;
  std::int32_t group_m = 8;
  bool persistent = false;
  std::int32_t waves_per_eu = 0;  ///< AMD: occupancy asked of the compiler; 0: as it comes
  std::int32_t mfma = 0;          ///< AMD: side of the matrix instruction, 16 or 32; 0: NVIDIA
  std::int32_t kpack = 1;         ///< AMD: k steps packed in one LDS read
};

Config ToConfig(const TritonConfig& config);
TritonConfig FromConfig(const Config& config);

/// The canonical string and back. Error: position, what was expected, a well-formed example.
std::string Text(const TritonConfig& config);
Result<TritonConfig> ParseConfig(std::string_view text);

const Family& GemmFamily();

}  // namespace gnomon::triton
