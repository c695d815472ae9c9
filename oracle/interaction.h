#pragma once

/// DLRM's dot interaction in fp64 over the full square, each value with the largest error that a
/// correct kernel with fp32 sums may have. Only tests use it.

#include <cmath>
#include <cstddef>
#include <vector>

#include "gnomon/families/cpu/interaction.h"
#include "oracle/bf16.h"
#include "oracle/embedding.h"

namespace gnomon::oracle {

/// One sample's features as a function of (feature, element): feature 0 is the dense one.
inline double Feature(const cpu::InteractionShape& s, const Array& dense, const Array& embedding,
                      std::size_t b, std::size_t i, std::size_t d) {
  const auto dim = static_cast<std::size_t>(s.dim), tables = static_cast<std::size_t>(s.tables);
  return i == 0 ? dense[b * dim + d] : embedding[(b * tables + i - 1) * dim + d];
}

/// [batch, out_stride]
inline std::vector<Bounded> Interaction(const cpu::InteractionShape& s, const Array& dense,
                                        const Array& embedding) {
  const auto dim = static_cast<std::size_t>(s.dim), count = static_cast<std::size_t>(s.tables) + 1;
  const double unit = UnitRoundoff(DType::kFp32);
  const double rounding = s.dtype == DType::kBf16 ? 1.01 * UnitRoundoff(s.dtype) : 0;
  std::vector<Bounded> out;
  for (std::size_t b = 0; b < static_cast<std::size_t>(s.batch); ++b) {
    const std::size_t end = out.size() + static_cast<std::size_t>(s.out_stride);
    for (std::size_t d = 0; d < dim; ++d) out.push_back({dense[b * dim + d], 0});
    for (std::size_t i = 1; i < count; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        double sum = 0, size = 0;
        for (std::size_t d = 0; d < dim; ++d) {
          const double product =
              Feature(s, dense, embedding, b, i, d) * Feature(s, dense, embedding, b, j, d);
          sum += product;
          size += std::abs(product);
        }
        out.push_back({sum, static_cast<double>(dim + 1) * unit * size + rounding * std::abs(sum)});
      }
    out.resize(end);
  }
  return out;
}

/// d_features [batch, tables + 1, dim], the dense one first.
inline std::vector<Bounded> InteractionGradient(const cpu::InteractionShape& s, const Array& dense,
                                                const Array& embedding, const Array& d_out) {
  const auto dim = static_cast<std::size_t>(s.dim), count = static_cast<std::size_t>(s.tables) + 1;
  const auto stride = static_cast<std::size_t>(s.out_stride);
  const double unit = UnitRoundoff(DType::kFp32);
  const double rounding = s.dtype == DType::kBf16 ? 1.01 * UnitRoundoff(s.dtype) : 0;
  std::vector<Bounded> gradient;
  for (std::size_t b = 0; b < static_cast<std::size_t>(s.batch); ++b)
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t d = 0; d < dim; ++d) {
        double sum = i == 0 ? d_out[b * stride + d] : 0, size = std::abs(sum);
        for (std::size_t j = 0; j < count; ++j) {
          if (j == i) continue;
          const std::size_t row = i > j ? i : j, column = i > j ? j : i;
          const double product = d_out[b * stride + dim + row * (row - 1) / 2 + column] *
                                 Feature(s, dense, embedding, b, j, d);
          sum += product;
          size += std::abs(product);
        }
        gradient.push_back(
            {sum, static_cast<double>(count + 2) * unit * size + rounding * std::abs(sum)});
      }
  return gradient;
}

}  // namespace gnomon::oracle
