#pragma once

/// For tests: problems in one line, and at random.

#include <cmath>
#include <random>

#include "gnomon/gemm/problem.h"

namespace gnomon {

inline Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::kBf16,
                    Layout layout = Layout::kNT) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.dtype = dtype;
  p.dtype_out = UsualOutput(dtype);
  p.layout = layout;
  return p;
}

/// Sides of every size, as often odd as aligned, all layouts, some batches and groups. M is below
/// two to the power of `most_log2_m`.
inline Problem RandomProblem(std::mt19937& random, int i, double most_log2_m = 17) {
  const auto side = [&](double most_log2) {
    // Not std::uniform_real_distribution: its values differ between libraries.
    return static_cast<std::int64_t>(
        std::exp2(static_cast<double>(random()) / 4294967296.0 * most_log2));
  };
  Problem p;
  p.m = side(most_log2_m);
  p.n = side(14);
  p.k = side(14);
  if (i % 2 == 0)
    for (std::int64_t* s : {&p.m, &p.n, &p.k}) *s = (*s + 15) / 16 * 16;
  p.layout = static_cast<Layout>(i / 2 % 4);
  p.dtype = p.dtype_out = i % 3 ? DType::kBf16 : DType::kFp16;
  if (i % 9 == 0) p.dtype_out = DType::kFp32;
  if (i % 5 == 0) p.batch = side(6);
  if (i % 11 == 0) p.ldc = p.n + static_cast<std::int64_t>(random() % 40);
  if (i % 13 == 0 && p.batch == 1) {
    p.group_m.assign(1 + random() % 40, 0);
    for (std::int64_t& m : p.group_m) m = static_cast<std::int64_t>(random() % 3000);
    p.group_m.front() += 1;
    p.m = 0;
    for (const std::int64_t m : p.group_m) p.m += m;
  }
  return p;
}

}  // namespace gnomon
