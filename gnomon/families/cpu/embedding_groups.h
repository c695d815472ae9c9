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

/// The lookups of one unit in their order in the batch and, once grouped, their groups in the order
/// of their first lookup. Pointers into a RowGroups, to be copied into a kernel.
struct GroupedLookups {
  static constexpr std::uint32_t kEnd = 0xffffffffu;

  std::size_t lookups = 0, groups = 0;
  const std::int64_t* index = nullptr;  ///< of each lookup
  /// Of each lookup: the sample whose gradient it brings. Null: the lookup's own number.
  const std::uint32_t* sample = nullptr;
  const std::int64_t* row = nullptr;  ///< of each group
  /// A group is a chain of lookups from its last to its first: last[group], its before, …, kEnd.
  const std::uint32_t* last = nullptr;
  const std::uint32_t* before = nullptr;

  std::uint32_t SampleOf(std::size_t lookup) const {
    return sample == nullptr ? static_cast<std::uint32_t>(lookup) : sample[lookup];
  }
};

/// Collects and groups; its memory is kept from call to call.
class RowGroups {
 public:
  /// Takes up the lookups of a unit and forgets those before.
  void Collect(const EmbeddingLookups& lookups, bool one_hot, const UpdateUnit& unit);
  /// Groups what was collected by row.
  void Group(std::int64_t rows);
  const GroupedLookups& view() const { return view_; }

 private:
  void SizeSlots(std::int64_t rows);
  template <bool kTagsDiffer>
  void Chain();

  GroupedLookups view_;
  std::vector<std::int64_t> own_index_;
  std::vector<std::uint32_t> own_sample_;
  std::vector<std::int64_t> row_;
  std::vector<std::uint32_t> last_, before_;
  /// Hash slots and a spare: the low half of the row above, its group below.
  std::vector<std::uint64_t> slot_;
  std::uint64_t multiplier_ = 1;  ///< slot of a row: (row · multiplier) >> shift
  int shift_ = 0;
};

}  // namespace gnomon::cpu
