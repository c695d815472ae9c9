// Cuts batches from samples: the same samples in the index layout that each network asks for.
//
// Every arm of a comparison sees the same samples in the same order; only the layout differs, and
// it is made outside the timed part, because a user's data loader would write it directly.

#include "gnomon/train/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace gnomon::train {

std::int64_t SampleShape::lookups() const {
  return std::accumulate(hot.begin(), hot.end(), std::int64_t{0});
}

std::int64_t SampleShape::TotalRows() const {
  return std::accumulate(table_rows.begin(), table_rows.end(), std::int64_t{0});
}

Result<SampleShape> MakeSampleShape(const Model& model, std::int64_t max_table_rows) {
  SampleShape shape;
  shape.dense_features = model.dense_features;
  for (std::size_t t = 0; t < model.tables.size(); ++t) {
    std::int64_t rows = model.tables[t].rows;
    if (max_table_rows > 0) rows = std::min(rows, max_table_rows);
    if (rows < 1 || rows > std::numeric_limits<std::int32_t>::max())
      return BadInput(
          fmt::format("table {} has {} rows; the trainer takes 1 to 2147483647", t, rows),
          model.id);
    shape.table_rows.push_back(rows);
    shape.hot.push_back(std::max<std::int64_t>(1, std::llround(model.tables[t].hot)));
  }
  if (shape.table_rows.empty()) return BadInput("the model has no embedding tables", model.id);
  return shape;
}

namespace {

// Calls put(table, sample, slot within the bag, row) in table-major order.
template <class Put>
void ForEachLookup(const SampleShape& shape, const Samples& samples, std::int64_t first,
                   std::int64_t size, Put put) {
  const std::int64_t lookups = shape.lookups();
  std::int64_t column = 0;
  for (std::int64_t t = 0; t < shape.tables(); ++t) {
    const std::int64_t hot = shape.hot[static_cast<std::size_t>(t)];
    std::int64_t source = first;
    for (std::int64_t b = 0; b < size; ++b) {
      const std::int32_t* row =
          samples.indices.data() + static_cast<std::ptrdiff_t>(source * lookups + column);
      for (std::int64_t h = 0; h < hot; ++h) put(t, b, column + h, row[h]);
      if (++source == samples.count) source = 0;
    }
    column += hot;
  }
}

void FillTableMajor(const SampleShape& shape, const Samples& samples, std::int64_t first,
                    std::int64_t size, bool local_offsets, Batch& batch) {
  std::int64_t* out = batch.indices.data();
  ForEachLookup(
      shape, samples, first, size,
      [&out](std::int64_t, std::int64_t, std::int64_t, std::int32_t row) { *out++ = row; });
  batch.offsets.clear();
  std::int64_t start = 0;
  for (std::int64_t hot : shape.hot) {
    if (local_offsets) start = 0;
    for (std::int64_t b = 0; b < size; ++b, start += hot) batch.offsets.push_back(start);
  }
  if (!local_offsets) batch.offsets.push_back(start);
}

void FillMerged(const SampleShape& shape, const Samples& samples, std::int64_t first,
                std::int64_t size, Batch& batch) {
  std::vector<std::int64_t> base(shape.table_rows.size(), 0);
  for (std::size_t t = 1; t < base.size(); ++t) base[t] = base[t - 1] + shape.table_rows[t - 1];
  const std::int64_t lookups = shape.lookups();
  ForEachLookup(shape, samples, first, size,
                [&](std::int64_t t, std::int64_t b, std::int64_t column, std::int32_t row) {
                  batch.indices[static_cast<std::size_t>(b * lookups + column)] =
                      base[static_cast<std::size_t>(t)] + row;
                });
  batch.offsets.clear();
  std::int64_t start = 0;
  for (std::int64_t b = 0; b < size; ++b) {
    for (std::int64_t hot : shape.hot) {
      batch.offsets.push_back(start);
      start += hot;
    }
  }
  batch.offsets.push_back(start);
}

}  // namespace

void MakeBatch(const SampleShape& shape, const Samples& samples, std::int64_t first,
               std::int64_t size, const BatchLayout& layout, Batch& batch) {
  GNOMON_CHECK(samples.count > 0 && size > 0, "{} samples, batch {}", samples.count, size);
  first %= samples.count;
  const std::int64_t features = shape.dense_features;
  const std::int64_t stride = std::max(layout.dense_stride, features);
  batch.size = size;
  batch.dense.assign(static_cast<std::size_t>(size * stride), 0.0f);
  batch.labels.resize(static_cast<std::size_t>(size));
  std::int64_t source = first;
  for (std::int64_t b = 0; b < size; ++b) {
    std::copy_n(samples.dense.data() + source * features, features,
                batch.dense.data() + b * stride);
    batch.labels[static_cast<std::size_t>(b)] = samples.labels[static_cast<std::size_t>(source)];
    if (++source == samples.count) source = 0;
  }
  batch.indices.resize(static_cast<std::size_t>(size * shape.lookups()));
  if (layout.index == IndexLayout::kMergedSampleMajor)
    FillMerged(shape, samples, first, size, batch);
  else
    FillTableMajor(shape, samples, first, size, layout.index == IndexLayout::kPerTable, batch);
}

}  // namespace gnomon::train
