// GEMM in fp64, element by element, straight from the definition:
//
//   C[b, i, j] = relu(bias[j] + Σ_k A[b, i, k] · B[b, k, j])
//
// No blocking and no threads, so that it can be read and believed. Products of fp32 or bf16 values
// are exact in fp64 (24 + 24 bits), and the sum errs by about k·2^-53, far below any tolerance
// here.

#include "oracle/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gnomon::oracle {

double ReadElement(DType dtype, const void* data, std::int64_t index) {
  if (dtype == DType::kFp32) return static_cast<const float*>(data)[index];
  GNOMON_CHECK(dtype == DType::kBf16, "{}", Name(dtype));
  const std::uint32_t bits = static_cast<const std::uint16_t*>(data)[index];
  return std::bit_cast<float>(bits << 16);
}

GemmReference Gemm(const Problem& p, const void* a, const void* b, const float* bias) {
  const std::int64_t a_step = p.LeadingA() * (p.a_transposed() ? p.k : p.m);
  const std::int64_t b_step = p.LeadingB() * (p.b_transposed() ? p.n : p.k);
  GemmReference reference;
  for (std::int64_t batch = 0; batch < p.batch; ++batch)
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = 0, squares = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          const std::int64_t at_a = p.a_transposed() ? k * p.LeadingA() + i : i * p.LeadingA() + k;
          const std::int64_t at_b = p.b_transposed() ? j * p.LeadingB() + k : k * p.LeadingB() + j;
          const double product = ReadElement(p.dtype, a, batch * a_step + at_a) *
                                 ReadElement(p.dtype, b, batch * b_step + at_b);
          sum += product;
          squares += product * product;
        }
        double magnitude = std::sqrt(squares);
        if (p.epilogue != Epilogue::kNone) {
          sum += bias[j];
          magnitude += std::abs(static_cast<double>(bias[j]));
        }
        if (p.epilogue == Epilogue::kBiasRelu) sum = std::max(sum, 0.0);
        reference.value.push_back(sum);
        reference.magnitude.push_back(magnitude);
      }
  return reference;
}

double Tolerance(const Problem& p, double value, double magnitude) {
  constexpr double kEps = 0x1p-24;     // half a unit of fp32
  constexpr double kEpsBf16 = 0x1p-8;  // half a unit of bf16, relative to the value
  constexpr double kWalk = 6;          // standard deviations of the walk that are still accepted
  const double sum =
      kWalk * kEps * std::sqrt(static_cast<double>(p.k)) * magnitude + kEps * std::abs(value);
  return p.dtype_out == DType::kBf16 ? sum + kEpsBf16 * (std::abs(value) + sum) : sum;
}

}  // namespace gnomon::oracle
