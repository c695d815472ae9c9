#pragma once

/// Skew: what Zipf-distributed lookups mean for a batch (how many different rows it touches) and
/// for a cache (which share of lookups it serves).

#include <vector>

#include "gnomon/base/units.h"
#include "gnomon/workload/model.h"

namespace gnomon {

/// The popularity of every row of all tables, as a histogram: row i of a table of n rows with
/// exponent s is looked up hot · i^−s / Σ j^−s times a sample.
class LookupSkew {
 public:
  explicit LookupSkew(const Model& model);

  /// Rows that `samples` samples touch at least once (expected), over all tables.
  double UniqueRows(double samples) const;

  /// Share of lookups that an LRU cache serves which also sees `stream` bytes a sample of other
  /// traffic; a row occupies `row` bytes.
  double HitShare(Bytes capacity, Bytes row, Bytes stream) const;

  double lookups_per_sample() const { return lookups_; }

 private:
  struct Bin {
    double rows = 0;
    double rate = 0;  ///< lookups a sample of one row
  };
  std::vector<Bin> bins_;
  double lookups_ = 0, rows_ = 0;
};

}  // namespace gnomon
