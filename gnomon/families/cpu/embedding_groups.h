#pragma once

/// Collects the lookups of one table and groups them by row, so that each row is updated once with
/// its whole gradient.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnomon/families/cpu/embedding_bag.h"

namespace gnomon::cpu {

/// The part of a batch that one thread handles alone: the rows of one table, or one of `shards`
/// disjoint sets of its rows.
struct UpdateUnit {
  std::int64_t table = 0;
  std::int64_t shard = 0, shards = 1;
};

/// The lookups of one unit, in their order in the batch; its memory is kept from call to call.
class RowGroups {
 public:
  static constexpr std::uint32_t kEnd = 0xffffffffu;

  /// Takes up the lookups of a unit and forgets those before.
  void Collect(const EmbeddingLookups& lookups, bool one_hot, const UpdateUnit& unit);
  std::size_t lookups() const { return count_; }
  std::int64_t index(std::size_t lookup) const { return index_[lookup]; }
  /// Whose gradient a lookup brings.
  std::uint32_t sample(std::size_t lookup) const {
    return sample_ == nullptr ? static_cast<std::uint32_t>(lookup) : sample_[lookup];
  }

  /// Groups what was collected by row. Groups stand in the order of their first lookup.
  void Group(std::int64_t rows);
  std::size_t size() const { return groups_; }
  std::int64_t row(std::size_t group) const { return row_[group]; }
  /// A group is a chain of lookups, from its last to its first: last, Before(last), …, kEnd.
  std::uint32_t last(std::size_t group) const { return last_[group]; }
  std::uint32_t Before(std::uint32_t lookup) const { return before_[lookup]; }

 private:
  void SizeSlots(std::int64_t rows);
  template <bool kTagsDiffer>
  void Chain();

  std::size_t count_ = 0, groups_ = 0;
  const std::int64_t* index_ = nullptr;  // of each lookup: where the caller keeps it, or own_index_
  const std::uint32_t* sample_ = nullptr;  // of each lookup; null: the lookup's own number
  std::vector<std::int64_t> own_index_;
  std::vector<std::uint32_t> own_sample_;
  std::vector<std::uint32_t> before_;  // of each lookup
  std::vector<std::uint64_t>
      slot_;                      // hash slots (low half of the row above, group below) and a spare
  std::uint64_t multiplier_ = 1;  // slot of a row: (row · multiplier) >> shift
  int shift_ = 0;
  std::vector<std::int64_t> row_;    // of each group
  std::vector<std::uint32_t> last_;  // of each group
};

}  // namespace gnomon::cpu
