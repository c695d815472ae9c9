#pragma once

/// The embedding tables and their row-wise Adagrad states: one allocation for all tables, whose
/// rows follow each other, so that the same memory serves separate tables and one merged table.

#include <cstdint>
#include <memory>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/train/samples.h"

namespace gnomon::train {

class TableStorage {
 public:
  /// Error: the memory is not to be had (names the size).
  static Result<std::unique_ptr<TableStorage>> Allocate(const SampleShape& shape, std::int64_t dim);
  ~TableStorage();
  TableStorage(const TableStorage&) = delete;
  TableStorage& operator=(const TableStorage&) = delete;

  /// Weights uniform in ±1/√rows (Naumov et al. 2019), a pure function of (seed, row, column);
  /// states 0.
  void Reset(std::uint64_t seed, int threads);
  /// What Reset gives row `row` (counted over all tables).
  void InitialRow(std::int64_t row, std::uint64_t seed, float* out) const;

  std::int64_t tables() const { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t rows(std::int64_t table) const { return rows_[static_cast<std::size_t>(table)]; }
  std::int64_t base(std::int64_t table) const { return base_[static_cast<std::size_t>(table)]; }
  std::int64_t total_rows() const { return base_.back(); }
  std::int64_t dim() const { return dim_; }
  float* weight() { return weight_; }
  float* state() { return state_; }
  const float* weight() const { return weight_; }
  const float* state() const { return state_; }
  std::int64_t bytes() const;

 private:
  TableStorage() = default;
  std::vector<std::int64_t> rows_, base_;  // base_ has one more: the total
  std::int64_t dim_ = 0;
  float* weight_ = nullptr;
  float* state_ = nullptr;
};

}  // namespace gnomon::train
