// One allocation for all embedding tables, and their initial values.
//
//   weight[r][c] = u(seed, r, c) / √rows of the table, u uniform in [-1, 1)
//
// A value depends on its place alone: initialisation runs on all cores at memory speed, every arm
// and layout starts equal, and a checkpoint needs to keep only rows that training has touched. The
// memory is mapped directly and asks for huge pages: with 4 KiB pages each of the random row
// accesses would miss the TLB. All arms use this storage, so none gains by it.

#include "gnomon/train/table_storage.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gnomon/train/counter_random.h"

namespace gnomon::train {
namespace {

constexpr std::uint64_t kTableSalt = 0x7ab1e5;

float* Map(std::int64_t floats) {
  const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: without it only the TLB misses grow
  return static_cast<float*>(memory);
}

void InitializeRow(std::int64_t row, std::int64_t dim, float scale, std::uint64_t seed,
                   float* out) {
  const std::uint64_t start = RandomBits(seed, kTableSalt, static_cast<std::uint64_t>(row));
  for (std::int64_t c = 0; c < dim; c += 2) {
    const std::uint64_t bits = Mix(start + static_cast<std::uint64_t>(c));
    out[c] = scale * SignedUnit(static_cast<std::uint32_t>(bits));
    if (c + 1 < dim) out[c + 1] = scale * SignedUnit(static_cast<std::uint32_t>(bits >> 32));
  }
}

float Scale(std::int64_t rows) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(rows)));
}

}  // namespace

Result<std::unique_ptr<TableStorage>> TableStorage::Allocate(const SampleShape& shape,
                                                             std::int64_t dim) {
  std::unique_ptr<TableStorage> storage(new TableStorage);
  storage->rows_ = shape.table_rows;
  storage->dim_ = dim;
  storage->base_.push_back(0);
  for (std::int64_t rows : shape.table_rows) storage->base_.push_back(storage->base_.back() + rows);
  storage->weight_ = Map(storage->total_rows() * dim);
  storage->state_ = Map(storage->total_rows());
  if (!storage->weight_ || !storage->state_) {
    return Fault(
        fmt::format("no memory for the embedding tables: {} rows of {} values need {:.2f} GiB",
                    storage->total_rows(), dim, static_cast<double>(storage->bytes()) / (1 << 30)));
  }
  return storage;
}

TableStorage::~TableStorage() {
  if (weight_) munmap(weight_, static_cast<std::size_t>(total_rows() * dim_) * sizeof(float));
  if (state_) munmap(state_, static_cast<std::size_t>(total_rows()) * sizeof(float));
}

std::int64_t TableStorage::bytes() const {
  return total_rows() * (dim_ + 1) * static_cast<std::int64_t>(sizeof(float));
}

void TableStorage::Reset(std::uint64_t seed, int threads) {
  for (std::int64_t t = 0; t < tables(); ++t) {
    const float scale = Scale(rows(t));
    const std::int64_t begin = base(t), end = base(t + 1);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (std::int64_t row = begin; row < end; ++row) {
      InitializeRow(row, dim_, scale, seed, weight_ + row * dim_);
      state_[row] = 0;
    }
  }
}

void TableStorage::InitialRow(std::int64_t row, std::uint64_t seed, float* out) const {
  const auto after = std::upper_bound(base_.begin(), base_.end(), row);
  const std::int64_t table = after - base_.begin() - 1;
  InitializeRow(row, dim_, Scale(rows(table)), seed, out);
}

}  // namespace gnomon::train
