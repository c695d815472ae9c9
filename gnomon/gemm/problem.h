#pragma once

/// Problem: a GEMM to do. C[M,N] = A[M,K]·B[K,N], all row-major (DESIGN.md "Row-major convention").

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/dtype.h"
#include "gnomon/base/result.h"
#include "gnomon/base/units.h"

namespace gnomon {

/// First letter A, second B; T means stored transposed: A as [K,M], B as [N,K].
enum class Layout { kNN, kNT, kTN, kTT };

std::string_view Name(Layout layout);
Result<Layout> ParseLayout(std::string_view text);

/// What is done to A·B before it is stored: bias (N values) is added, then ReLU or GELU (of erf).
/// kBiasGradient: beside C = A·B, the sums over K of A, M values (layout tn: a wgrad).
enum class Epilogue { kNone, kBias, kBiasRelu, kRelu, kGelu, kBiasGelu, kBiasGradient };
constexpr bool HasBias(Epilogue epilogue) {
  return epilogue == Epilogue::kBias || epilogue == Epilogue::kBiasRelu ||
         epilogue == Epilogue::kBiasGelu;
}

struct Problem {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Layout layout = Layout::kNT;
  DType dtype = DType::kFp32;      ///< of A and B
  DType dtype_out = DType::kFp32;  ///< of C; accumulation is fp32
  Epilogue epilogue = Epilogue::kNone;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  ///< elements between stored rows; 0 means dense
  /// M of each product of a grouped GEMM; m is their sum; every group has its own B; empty: none.
  std::vector<std::int64_t> group_m = {};
  /// Scratch memory that the caller grants for partial sums; nothing: what each family's kernels
  /// usually get.
  std::optional<Bytes> workspace = {};

  bool a_transposed() const { return layout == Layout::kTN || layout == Layout::kTT; }
  bool b_transposed() const { return layout == Layout::kNT || layout == Layout::kTT; }
  /// Leading dimensions with 0 resolved.
  std::int64_t LeadingA() const { return lda ? lda : (a_transposed() ? m : k); }
  std::int64_t LeadingB() const { return ldb ? ldb : (b_transposed() ? k : n); }
  std::int64_t LeadingC() const { return ldc ? ldc : n; }

  bool grouped() const { return !group_m.empty(); }
  /// Products with rows: the batch, or the groups that are not empty.
  std::int64_t Products() const;

  Flops flops() const;  ///< 2·m·n·k·batch, in double: never overflows
  Bytes bytes() const;  ///< each operand moved once
  /// Of C, once for each of `parts` parts of K, as wide as they are added up: what a split of K
  /// leaves in scratch memory.
  Bytes PartialSums(double parts) const;
  /// No grant, or one of that much.
  bool Grants(Bytes scratch) const { return !workspace || scratch <= *workspace; }
  std::string Text() const;  ///< "2048x512x13 nt fp32"
};

/// What a product of `dtype` operands is stored as where nothing says: bf16 for operands narrower
/// than 16 bits, as training kernels do, else `dtype`.
constexpr DType UsualOutput(DType dtype) {
  return SizeOf(dtype) < SizeOf(DType::kBf16) ? DType::kBf16 : dtype;
}

/// Sides positive, leading dimensions not below the row, element counts below 2^62; groups add up
/// to m and come without a batch; a workspace is no less than nothing.
Status CheckProblem(const Problem& problem);

}  // namespace gnomon
