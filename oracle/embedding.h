#pragma once

/// Embedding bags and row-wise Adagrad in fp64, straight from their definitions, each value with
/// the largest error that a correct fp32 kernel may have. Only tests use them.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "gnomon/families/cpu/embedding_bag.h"
#include "oracle/bf16.h"

namespace gnomon::oracle {

struct Bounded {
  double value = 0;
  double error = 0;  ///< first-order bound of the fp32 kernel's distance from value
};

/// [batch, tables, dim]
inline std::vector<Bounded> EmbeddingForward(const std::vector<cpu::EmbeddingTable>& tables,
                                             std::int64_t dim, const cpu::EmbeddingLookups& lookups,
                                             DType out_dtype) {
  const double unit = UnitRoundoff(DType::kFp32);
  std::vector<Bounded> out;
  for (std::int64_t b = 0; b < lookups.batch; ++b)
    for (std::size_t t = 0; t < tables.size(); ++t)
      for (std::int64_t d = 0; d < dim; ++d) {
        const std::size_t bag =
            t * static_cast<std::size_t>(lookups.batch) + static_cast<std::size_t>(b);
        double sum = 0, size = 0, count = 0;
        for (std::int64_t p = lookups.offsets[bag]; p < lookups.offsets[bag + 1]; ++p, ++count) {
          const double w = tables[t].weight[lookups.indices[static_cast<std::size_t>(p)] * dim + d];
          sum += w;
          size += std::abs(w);
        }
        const double rounding = out_dtype == DType::kFp32 ? 0 : UnitRoundoff(out_dtype);
        out.push_back({sum, count * unit * size + rounding * std::abs(sum) * 1.01});
      }
  return out;
}

/// One table after the update: weights [rows, dim] and states [rows].
struct AdagradReference {
  std::vector<Bounded> weight, state;
};

/// `grad` is [batch, tables, dim]; the table's arrays hold what they held before the update.
inline AdagradReference RowWiseAdagrad(const cpu::EmbeddingTable& table, std::size_t t,
                                       std::size_t tables, std::int64_t dim,
                                       const cpu::EmbeddingLookups& lookups, const Array& grad,
                                       const cpu::AdagradParams& params) {
  const double unit = UnitRoundoff(DType::kFp32);
  const auto width = static_cast<std::size_t>(dim);
  AdagradReference after;
  for (std::int64_t i = 0; i < table.rows * dim; ++i) after.weight.push_back({table.weight[i], 0});
  for (std::int64_t r = 0; r < table.rows; ++r) after.state.push_back({table.state[r], 0});

  struct RowGradient {
    std::vector<double> sum, size;
    double count = 0;
  };
  std::map<std::int64_t, RowGradient> rows;
  for (std::int64_t b = 0; b < lookups.batch; ++b) {
    const std::size_t bag =
        t * static_cast<std::size_t>(lookups.batch) + static_cast<std::size_t>(b);
    for (std::int64_t p = lookups.offsets[bag]; p < lookups.offsets[bag + 1]; ++p) {
      RowGradient& row = rows[lookups.indices[static_cast<std::size_t>(p)]];
      row.sum.resize(width);
      row.size.resize(width);
      row.count += 1;
      for (std::size_t d = 0; d < width; ++d) {
        const double g = grad[(static_cast<std::size_t>(b) * tables + t) * width + d];
        row.sum[d] += g;
        row.size[d] += std::abs(g);
      }
    }
  }
  for (const auto& [r, row] : rows) {
    double square = 0, square_error = 0;
    for (std::size_t d = 0; d < width; ++d) {
      const double error = row.count * unit * row.size[d];
      square += row.sum[d] * row.sum[d];
      square_error += 2 * std::abs(row.sum[d]) * error + error * error;
    }
    const double n = static_cast<double>(dim);
    Bounded& state = after.state[static_cast<std::size_t>(r)];
    state.value += square / n;
    state.error = square_error / n + (n + 3) * unit * square / n + unit * state.value;
    const double root = std::sqrt(state.value), divisor = root + params.epsilon;
    const double divisor_error = root > 0 ? state.error / (2 * root) : 0;
    for (std::size_t d = 0; d < width; ++d) {
      Bounded& weight = after.weight[static_cast<std::size_t>(r) * width + d];
      const double step = params.learning_rate * row.sum[d] / divisor;
      weight.value -= step;
      weight.error = params.learning_rate * row.count * unit * row.size[d] / divisor +
                     std::abs(step) * (divisor_error / divisor + 6 * unit) +
                     2 * unit * std::abs(weight.value);
    }
  }
  return after;
}

}  // namespace gnomon::oracle
