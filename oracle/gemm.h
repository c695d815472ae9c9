#pragma once

/// GEMM as a triple loop in fp64, for tests: the value and how far a correct fp32 sum may be from
/// it.

#include <cstdint>
#include <vector>

#include "gnomon/gemm/problem.h"

namespace gnomon::oracle {

/// fp64 results of every batch, dense [batch, m, n], with the scale of their rounding error.
struct GemmReference {
  std::vector<double> value;
  std::vector<double>
      magnitude;  ///< sqrt(sum over k of (a·b)^2), plus |bias|: what rounding errors scale with
};

/// Operands fp32 or bf16 as problem.dtype says. The bias is used where the epilogue asks for it.
GemmReference Gemm(const Problem& problem, const void* a, const void* b, const float* bias);

/// Largest error that a kernel with fp32 sums may have at one element: sums of k rounded products
/// err by a random walk, so by a few eps·sqrt(k) of the products' size, and bf16 output by half a
/// unit more.
double Tolerance(const Problem& problem, double value, double magnitude);

/// One element of stored bf16 or fp32.
double ReadElement(DType dtype, const void* data, std::int64_t index);

}  // namespace gnomon::oracle
