#pragma once

/// Gradient of bias + ReLU in one pass: mask, cast and column sums.

#include <cstdint>

#include "gnomon/base/dtype.h"

namespace gnomon::train {

struct ReluBackwardArguments {
  std::int64_t rows = 0, columns = 0;
  const void* d_out = nullptr;  ///< [rows, columns]
  const void* out = nullptr;    ///< ReLU's output, or null: no ReLU
  void* d_sum = nullptr;        ///< [rows, columns], or null: only the bias gradient is wanted
  float* d_bias = nullptr;      ///< [columns] or null
  DType d_out_dtype = DType::kFp32,
        dtype = DType::kFp32;  ///< of d_out; of out and d_sum: fp32 or bf16
};

/// d_sum = d_out where out > 0, else 0;  d_bias = column sums of d_sum in fp32. The rows are shared
/// out in equal parts and the parts' sums added in order: the same result on every run with equal
/// threads.
void ReluBackward(const ReluBackwardArguments& arguments, int threads);

}  // namespace gnomon::train
