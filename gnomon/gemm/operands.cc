// Operands that are the same in every run, and the check of a result.
//
//   r = C·x  must equal  A·(B·x)   within  kTolerance · u · sqrt(k) · sqrt(Σ|x|²) · magnitude
//
// A full reference GEMM in fp64 would cost more than the whole sweep; Freivalds' check costs one
// pass over C and still sees each element: x has no zeros and no two equal values, so a lost term,
// a stale value, or two exchanged columns change the sum. Rounding errors of a dot product of k
// terms grow with sqrt(k) when they are independent; u is the unit roundoff of the accumulation
// (fp32) or of the stored result. Left out: element-wise bounds, which the kernels' own tests check
// against an fp64 oracle.

#include "gnomon/gemm/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace gnomon {
namespace {

// A value in [-1, 1) from a position: a multiplicative hash (the constant is 2^64 / golden ratio).
double ValueAt(std::uint64_t position) {
  std::uint64_t hash = (position + 1) * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 29;
  return static_cast<double>(hash >> 11) * 0x1p-52 - 1.0;
}

std::uint16_t ToBf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

double Load(const void* from, DType dtype, std::int64_t index) {
  const auto* data = static_cast<const unsigned char*>(from);
  if (dtype == DType::kBf16) {
    std::uint16_t bits;
    std::memcpy(&bits, data + 2 * index, 2);
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  float value;
  std::memcpy(&value, data + 4 * index, 4);
  return value;
}

void Store(void* to, DType dtype, std::int64_t index, float value) {
  auto* data = static_cast<unsigned char*>(to);
  if (dtype == DType::kBf16) {
    const std::uint16_t bits = ToBf16(value);
    std::memcpy(data + 2 * index, &bits, 2);
    return;
  }
  std::memcpy(data + 4 * index, &value, 4);
}

bool Supported(DType dtype) { return dtype == DType::kFp32 || dtype == DType::kBf16; }

// Between 0.5 and 1.5, no two columns alike.
double CheckVector(std::int64_t column) {
  return 1.0 + 0.5 * ValueAt(static_cast<std::uint64_t>(column) + 0x5851F42Du);
}

constexpr size_t kLineBytes = 64;

size_t Lines(std::int64_t elements, DType dtype) {
  return (static_cast<size_t>(elements) * static_cast<size_t>(SizeOf(dtype)) + kLineBytes - 1) /
         kLineBytes;
}

}  // namespace

Result<Operands> Operands::Make(const Problem& problem) {
  GNOMON_TRY(CheckProblem(problem));
  if (!Supported(problem.dtype) || !Supported(problem.dtype_out))
    return BadInput(fmt::format("operands can be fp32 or bf16, not {} to {}", Name(problem.dtype),
                                Name(problem.dtype_out)),
                    "problem.dtype");
  Operands out;
  out.problem_ = problem;
  const std::int64_t rows_a = problem.a_transposed() ? problem.k : problem.m;
  const std::int64_t rows_b = problem.b_transposed() ? problem.n : problem.k;
  const std::int64_t size_a = problem.batch * rows_a * problem.LeadingA();
  const std::int64_t size_b = problem.batch * rows_b * problem.LeadingB();
  out.a_.resize(Lines(size_a, problem.dtype));
  out.b_.resize(Lines(size_b, problem.dtype));
  out.c_.resize(Lines(problem.batch * problem.m * problem.LeadingC(), problem.dtype_out));
  for (std::int64_t i = 0; i < size_a; ++i)
    Store(out.a_.data(), problem.dtype, i,
          static_cast<float>(ValueAt(static_cast<std::uint64_t>(i))));
  for (std::int64_t i = 0; i < size_b; ++i)
    Store(out.b_.data(), problem.dtype, i,
          static_cast<float>(ValueAt(static_cast<std::uint64_t>(i) ^ 0xA5A5A5A5u)));

  // Expected C·x = A·(B·x), batch after batch.
  const std::int64_t m = problem.m, n = problem.n, k = problem.k;
  std::vector<double> bx(static_cast<size_t>(k));
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    const std::int64_t a0 = batch * rows_a * problem.LeadingA();
    const std::int64_t b0 = batch * rows_b * problem.LeadingB();
    std::fill(bx.begin(), bx.end(), 0.0);
    for (std::int64_t r = 0; r < rows_b; ++r) {
      for (std::int64_t s = 0; s < (problem.b_transposed() ? k : n); ++s) {
        const double value = Load(out.b_.data(), problem.dtype, b0 + r * problem.LeadingB() + s);
        const std::int64_t kk = problem.b_transposed() ? s : r,
                           column = problem.b_transposed() ? r : s;
        bx[static_cast<size_t>(kk)] += value * CheckVector(column);
      }
    }
    const size_t first = out.expected_.size();
    out.expected_.resize(first + static_cast<size_t>(m), 0.0);
    for (std::int64_t r = 0; r < rows_a; ++r) {
      for (std::int64_t s = 0; s < (problem.a_transposed() ? m : k); ++s) {
        const double value = Load(out.a_.data(), problem.dtype, a0 + r * problem.LeadingA() + s);
        const std::int64_t row = problem.a_transposed() ? s : r,
                           kk = problem.a_transposed() ? r : s;
        out.expected_[first + static_cast<size_t>(row)] += value * bx[static_cast<size_t>(kk)];
      }
    }
  }
  // |a|, |b| ≤ 1, x < 1.5: an element's rounding error is below about u·sqrt(k)·sqrt(k) = u·k in
  // the worst of usual cases (partial sums reach sqrt(k)); rows add n of them as sqrt(n).
  constexpr double kSafety = 4;
  const double unit = problem.dtype_out == DType::kBf16 ? 0x1p-8 : 0x1p-23;
  const double accumulate = 0x1p-23 * static_cast<double>(k);
  const double round = unit * std::sqrt(static_cast<double>(k));
  const double tolerance = kSafety * 1.5 * (accumulate + round) * std::sqrt(static_cast<double>(n));
  out.tolerance_.assign(out.expected_.size(), tolerance);
  return out;
}

void Operands::Poison() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::int64_t size = problem_.batch * problem_.m * problem_.LeadingC();
  for (std::int64_t i = 0; i < size; ++i) Store(c_.data(), problem_.dtype_out, i, nan);
}

Status Operands::Check() const {
  const std::int64_t rows = problem_.batch * problem_.m;
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < problem_.n; ++j)
      sum += Load(c_.data(), problem_.dtype_out, row * problem_.LeadingC() + j) * CheckVector(j);
    const double expected = expected_[static_cast<size_t>(row)];
    if (!(std::abs(sum - expected) <= tolerance_[static_cast<size_t>(row)]))
      return Fault(
          fmt::format("row {} of C is wrong: C·x is {:.6g}, A·(B·x) is {:.6g}, allowed "
                      "difference {:.2g}",
                      row, sum, expected, tolerance_[static_cast<size_t>(row)]));
  }
  return Done{};
}

}  // namespace gnomon
