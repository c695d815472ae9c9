#pragma once

/// Samples: what every arm trains on, whatever its batch size; and the batches cut from them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/workload/model.h"

namespace gnomon::train {

struct SampleShape {
  std::int64_t dense_features = 0;
  std::vector<std::int64_t> table_rows;
  std::vector<std::int64_t> hot;  ///< lookups a sample makes in each table
  std::int64_t tables() const { return static_cast<std::int64_t>(table_rows.size()); }
  std::int64_t lookups() const;
  std::int64_t TotalRows() const;
  friend bool operator==(const SampleShape&, const SampleShape&) = default;
};

/// `max_table_rows` caps every table (0: as the model says). Error: a table too large to index.
Result<SampleShape> MakeSampleShape(const Model& model, std::int64_t max_table_rows);

/// Sample-major storage.
struct Samples {
  std::int64_t count = 0;
  std::vector<float> dense;           ///< [count, dense_features]
  std::vector<std::int32_t> indices;  ///< [count, lookups]: row within its table, tables in order
  std::vector<float> labels;          ///< 0 or 1
};

/// Where samples come from. Training samples are numbered from 0; held-out ones are other samples.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  /// Training samples first … first + count; cheapest when `first` follows the previous call.
  virtual Status Read(std::int64_t first, std::int64_t count, Samples& samples) = 0;
  /// Up to `count` held-out samples.
  virtual Status ReadHeldOut(std::int64_t count, Samples& samples) = 0;
  /// One "path:line: what" for each line skipped so far.
  virtual std::vector<std::string> bad_lines() const { return {}; }
};

/// The index layout a network wants.
enum class IndexLayout {
  kTableMajor,  ///< tables one behind another, offsets over all bags: our fused lookup
  kPerTable,    ///< the same indices, but the offsets of each table start at 0: an operator a table
  kMergedSampleMajor,  ///< one big table: row numbers shifted by table, bags sample by sample
};

struct BatchLayout {
  IndexLayout index = IndexLayout::kTableMajor;
  std::int64_t dense_stride = 0;  ///< dense features with zero padding behind
};

struct Batch {
  std::int64_t size = 0;
  std::vector<float> dense;  ///< [size, dense_stride]
  std::vector<float> labels;
  std::vector<std::int64_t> indices;
  std::vector<std::int64_t>
      offsets;  ///< bag starts; kPerTable: size values a table; else also the end
};

/// Cuts samples first … first + size (wrapping around at the end) into `batch`, whose memory is
/// reused.
void MakeBatch(const SampleShape& shape, const Samples& samples, std::int64_t first,
               std::int64_t size, const BatchLayout& layout, Batch& batch);

}  // namespace gnomon::train
