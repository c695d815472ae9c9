#pragma once

/// Operands of a GEMM for timing and checking: values that every run repeats, a poisoned result,
/// and a check of the whole result that costs no second GEMM.

#include <cstdint>
#include <string>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

class Operands {
 public:
  /// Fills A and B with values in [-1, 1) that depend on the position only. fp32 and bf16.
  static Result<Operands> Make(const Problem& problem);

  /// Aligned to a cache line, as the tensors of every framework are.
  const void* a() const { return a_.data(); }
  const void* b() const { return b_.data(); }
  void* c() { return c_.data(); }

  /// Fills C with NaN: an element that a kernel leaves out is then seen by Check.
  void Poison();
  /// Compares C·x with A·(B·x) in fp64 for a fixed vector x without zeros (Freivalds' check): every
  /// element of C takes part. Error names the first row that is wrong.
  Status Check() const;

 private:
  Problem problem_;
  struct alignas(64) Line {
    unsigned char byte[64];
  };
  std::vector<Line> a_, b_, c_;
  std::vector<double> expected_, tolerance_;  ///< of C·x, one a row of C, batch after batch
};

}  // namespace gnomon
