// Groups lookups by row with a hash table, in one pass and without sorting.
//
// The simple version: std::map<row, std::vector<lookup>>. What is done beyond it:
//   - a group is a chain of lookups through one array (before), built by remembering each group's
//     last lookup, so that no list is ever allocated;
//   - a table with few rows takes the row itself as its slot, so that nothing collides; a large one
//     has open addressing at a load of at most 1/4, and slots are prefetched, for they outgrow the
//     caches with many lookups;
//   - a lookup takes no branch on whether its row is new: that is as good as random.
// Sorting (radix) would cost two to three passes and, for small batches, histograms longer than
// the data.
//
// A unit with several shards keeps the rows whose hash falls into its shard. Sixteen neighbouring
// rows go to the same shard, for their optimiser states share a cache line. Neither the order of
// groups nor that of a group's lookups depends on shards.

#include "gnomon/families/cpu/embedding_groups.h"

#include <algorithm>
#include <bit>

#include "gnomon/base/check.h"

namespace gnomon::cpu {
namespace {

constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
constexpr std::uint64_t kGolden =
    0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: Knuth's multiplicative hash
constexpr int kRowsPerStateLineLog2 = 4;
constexpr std::size_t kSlotsPerLookup = 4;
constexpr std::size_t kSlotsAhead = 16;
/// Rows that differ have different tags (their low halves) in tables of at most so many.
constexpr std::int64_t kRowsWithOwnTag = std::int64_t{1} << 32;

std::uint64_t ShardOf(std::int64_t row, std::uint64_t shards) {
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(row) >> kRowsPerStateLineLog2) * kGolden >> 32;
  return hash * shards >> 32;
}

/// All bits set where the condition holds.
std::uint64_t Mask(bool condition) { return ~(static_cast<std::uint64_t>(condition) - 1); }

/// Grows by doubling and never shrinks: a steady batch size allocates in its first step only.
template <class T>
void Reserve(std::vector<T>& values, std::size_t count) {
  if (values.size() < count) values.resize(std::max(count, 2 * values.size()));
}

}  // namespace

void RowGroups::Collect(const EmbeddingLookups& lookups, bool one_hot, const UpdateUnit& unit) {
  const std::int64_t batch = lookups.batch;
  const std::int64_t* offsets = lookups.offsets.data() + unit.table * batch;
  const std::int64_t* indices = lookups.indices.data();
  const auto most = static_cast<std::size_t>(offsets[batch] - offsets[0]);
  GNOMON_CHECK(most < GroupedLookups::kEnd && batch <= GroupedLookups::kEnd,
               "{} lookups of one table, batch {}", most, batch);
  const bool whole = unit.shards == 1;
  view_ = {};
  view_.lookups = most;
  view_.index = indices + offsets[0];
  if (whole && one_hot) return;

  Reserve(own_sample_, most + 1);
  view_.sample = own_sample_.data();
  std::size_t count = 0;
  if (whole) {
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t p = offsets[b]; p < offsets[b + 1]; ++p)
        own_sample_[count++] = static_cast<std::uint32_t>(b);
    return;
  }
  Reserve(own_index_, most + 1);
  view_.index = own_index_.data();
  const auto shard = static_cast<std::uint64_t>(unit.shard);
  const auto shards = static_cast<std::uint64_t>(unit.shards);
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t p = offsets[b]; p < offsets[b + 1]; ++p) {
      own_index_[count] = indices[p];
      own_sample_[count] = static_cast<std::uint32_t>(b);
      count += ShardOf(indices[p], shards) == shard;
    }
  view_.lookups = count;
}

void RowGroups::SizeSlots(std::int64_t rows) {
  const auto wanted = std::bit_ceil(std::max<std::size_t>(view_.lookups * kSlotsPerLookup, 2));
  if (static_cast<std::uint64_t>(rows) <= wanted) {
    multiplier_ = 1;
    shift_ = 0;
    slot_.assign(static_cast<std::size_t>(rows) + 1, kEmpty);
  } else {
    multiplier_ = kGolden;
    shift_ = 64 - std::countr_zero(wanted);
    slot_.assign(wanted + 1, kEmpty);
  }
}

void RowGroups::Group(std::int64_t rows) {
  SizeSlots(rows);
  Reserve(before_, view_.lookups);
  Reserve(row_, view_.lookups + 1);
  Reserve(last_, view_.lookups + 1);
  view_.row = row_.data();
  view_.last = last_.data();
  view_.before = before_.data();
  if (rows <= kRowsWithOwnTag) {
    Chain<true>();
  } else {
    Chain<false>();
  }
}

template <bool kTagsDiffer>
void RowGroups::Chain() {
  const std::size_t slots = slot_.size() - 1;  // a power of two where rows can collide
  const auto slot_of = [&](std::int64_t row) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(row) * multiplier_ >> shift_);
  };
  constexpr std::uint64_t kEnd = GroupedLookups::kEnd;
  const std::int64_t* index = view_.index;
  const std::size_t count = view_.lookups;
  std::uint32_t groups = 0;
  for (std::size_t k = 0; k < count; ++k) {
    __builtin_prefetch(&slot_[slot_of(index[std::min(k + kSlotsAhead, count - 1)])], 1, 3);

    const std::int64_t row = index[k];
    const std::uint64_t tag = static_cast<std::uint64_t>(row) << 32;
    std::size_t at = slot_of(row);
    std::uint64_t slot = slot_[at];
    // Masks, not conditions, wherever a branch would depend on whether the row is new.
    std::uint64_t used = Mask(slot != kEmpty);
    while ((((slot ^ tag) >> 32) & used) != 0 ||
           (!kTagsDiffer && used != 0 && row_[slot & kEnd] != row)) {
      at = (at + 1) & (slots - 1);
      slot = slot_[at];
      used = Mask(slot != kEmpty);
    }
    const std::uint64_t group = groups ^ ((groups ^ (slot & kEnd)) & used);
    before_[k] = last_[group] | static_cast<std::uint32_t>(~used);
    last_[group] = static_cast<std::uint32_t>(k);
    row_[groups] = row;  // overwritten by the next lookup where the row is not new
    // A used slot is not written again: the next lookup of a hot row would wait for that store.
    slot_[at ^ ((at ^ slots) & used)] = tag | group;
    groups += 1 + static_cast<std::uint32_t>(used);
  }
  view_.groups = groups;
}

}  // namespace gnomon::cpu
