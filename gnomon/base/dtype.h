#pragma once

/// The number formats of DESIGN.md, with their storage size.

#include <array>
#include <string_view>

#include "gnomon/base/result.h"

namespace gnomon {

enum class DType {
  kFp64,
  kFp32,
  kTf32,
  kFp16,
  kBf16,
  kFp8E4m3,
  kFp8E5m2,
  kFp8E4m3Fnuz,
  kFp8E5m2Fnuz,
  kMxFp8,
  kMxFp6,
  kMxFp4,
  kInt8,
};

/// In the order of the enum: the names of files and of the command line.
inline constexpr std::array<std::string_view, 13> kDTypeNames = {
    "fp64",         "fp32",         "tf32",  "fp16",  "bf16",  "fp8_e4m3", "fp8_e5m2",
    "fp8_e4m3fnuz", "fp8_e5m2fnuz", "mxfp8", "mxfp6", "mxfp4", "int8"};

constexpr std::string_view Name(DType dtype) { return kDTypeNames[static_cast<size_t>(dtype)]; }

/// Storage bytes per element (tf32 is stored as fp32; MX formats without their scales).
constexpr double SizeOf(DType dtype) {
  constexpr std::array<double, 13> kSize = {8, 4, 4, 2, 2, 1, 1, 1, 1, 1, 0.75, 0.5, 1};
  return kSize[static_cast<size_t>(dtype)];
}

/// Error: lists the valid names and the nearest one.
Result<DType> ParseDType(std::string_view text);

}  // namespace gnomon
