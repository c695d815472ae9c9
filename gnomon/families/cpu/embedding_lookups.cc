// Checks a batch of lookups: offsets ascend and stay inside `indices`, every index is a row of its
// table.
//
// The simple version: for every bag (t, b), for every p in it, 0 <= indices[p] < rows[t].
// What is done beyond it: the common case (all is well) is a branch-free pass at memory speed. A
// value x is in [0, rows) exactly if the sign bit of x | (rows - 1 - x) is clear, so the signs of a
// whole range are or-ed together; only where one is set does a second, scalar pass look for the
// first culprit. The same pass over the offsets tells whether every bag holds one index, which has
// a faster kernel.
//
// Entry point: CheckLookups.

#include "gnomon/families/cpu/embedding_lookups.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "gnomon/families/cpu/parallel_units.h"

// foreach_target.h includes this file again and has to come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/embedding_lookups.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Longs = hn::ScalableTag<std::int64_t>;

/// Are all values in [0, rows)?
bool AllRows(const std::int64_t* values, std::int64_t count, std::int64_t rows) {
  const Longs d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto last = hn::Set(d, std::max<std::int64_t>(rows, 0) - 1);
  auto signs = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, values + i);
    signs = hn::Or(signs, hn::Or(value, hn::Sub(last, value)));
  }
  bool inside = hn::AllFalse(d, hn::Lt(signs, hn::Zero(d)));
  for (; i < count; ++i) inside = inside && values[i] >= 0 && values[i] < rows;
  return inside;
}

BagSteps StepsOf(const std::int64_t* offsets, std::int64_t bags) {
  const Longs d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, std::int64_t{1});
  auto differ = hn::Zero(d);
  auto signs = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= bags; i += lanes) {
    const auto offset = hn::LoadU(d, offsets + i);
    const auto step = hn::Sub(hn::LoadU(d, offsets + i + 1), offset);
    differ = hn::Or(differ, hn::Xor(step, one));
    signs = hn::Or(signs, hn::Or(step, offset));  // without negative offsets no step can wrap
  }
  BagSteps steps{hn::AllTrue(d, hn::Eq(differ, hn::Zero(d))),
                 hn::AllFalse(d, hn::Lt(signs, hn::Zero(d)))};
  for (; i < bags; ++i) {
    steps.ascending = steps.ascending && offsets[i] >= 0 && offsets[i + 1] >= offsets[i];
    steps.all_one = steps.all_one && steps.ascending && offsets[i + 1] - offsets[i] == 1;
  }
  return steps;
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gnomon::cpu {
namespace {

HWY_EXPORT(AllRows);
HWY_EXPORT(StepsOf);

/// Below this many lookups, waking the other threads costs more than the check.
constexpr std::int64_t kLookupsWorthThreads = 4096;

/// The error for the first index outside its table, in storage order.
Error FirstBadIndex(std::span<const EmbeddingTable> tables, const EmbeddingLookups& lookups) {
  const std::int64_t batch = lookups.batch;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const auto first = static_cast<std::int64_t>(t) * batch;
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto begin =
          static_cast<std::size_t>(lookups.offsets[static_cast<std::size_t>(first + b)]);
      const auto end =
          static_cast<std::size_t>(lookups.offsets[static_cast<std::size_t>(first + b + 1)]);
      for (std::size_t p = begin; p < end; ++p) {
        const std::int64_t index = lookups.indices[p], rows = tables[t].rows;
        if (index >= 0 && index < rows) continue;
        if (rows <= 0)
          return BadInput(
              fmt::format("table {} has no rows, but sample {} looks up index {}", t, b, index),
              fmt::format("indices[{}]", p));
        return BadInput(
            fmt::format("index {} of sample {} is outside table {} of {} rows; the nearest "
                        "valid index is {}",
                        index, b, t, rows, std::clamp<std::int64_t>(index, 0, rows - 1)),
            fmt::format("indices[{}]", p));
      }
    }
  }
  return Fault("the indices changed while they were being checked");
}

Status CheckShapes(std::span<const EmbeddingTable> tables, std::int64_t dim,
                   const EmbeddingLookups& lookups) {
  if (dim <= 0)
    return BadInput(fmt::format("embedding dim is {}; it must be at least 1", dim), "dim");
  if (lookups.batch < 0)
    return BadInput(fmt::format("batch is {}; it must not be negative", lookups.batch), "batch");
  const std::size_t bags = tables.size() * static_cast<std::size_t>(lookups.batch);
  if (lookups.offsets.size() != bags + 1)
    return BadInput(fmt::format("{} offsets for {} tables and a batch of {}; there must be {}",
                                lookups.offsets.size(), tables.size(), lookups.batch, bags + 1),
                    "offsets");
  return Done{};
}

}  // namespace

Result<LookupFacts> CheckLookups(std::span<const EmbeddingTable> tables, std::int64_t dim,
                                 const EmbeddingLookups& lookups, int threads) {
  GNOMON_TRY(CheckShapes(tables, dim, lookups));
  const std::int64_t* offsets = lookups.offsets.data();
  const std::int64_t batch = lookups.batch;
  const auto table_count = static_cast<std::int64_t>(tables.size());
  const auto stored = static_cast<std::int64_t>(lookups.indices.size());
  std::atomic<bool> all_one = true, ascending = true, inside = true;
  const auto check_table = [&](std::int64_t t) {
    const BagSteps steps = HWY_DYNAMIC_DISPATCH(StepsOf)(offsets + t * batch, batch);
    const std::int64_t begin = offsets[t * batch], end = offsets[(t + 1) * batch];
    if (!steps.all_one) all_one.store(false, std::memory_order_relaxed);
    if (!steps.ascending || begin < 0 || end > stored) {
      ascending.store(false, std::memory_order_relaxed);
    } else if (!HWY_DYNAMIC_DISPATCH(AllRows)(lookups.indices.data() + begin, end - begin,
                                              tables[static_cast<std::size_t>(t)].rows)) {
      inside.store(false, std::memory_order_relaxed);
    }
  };
  ForEachUnit(table_count, stored < kLookupsWorthThreads ? 1 : threads, check_table);

  const std::int64_t first = offsets[0], last = offsets[table_count * batch];
  if (!ascending || first < 0 || last > stored)
    return BadInput(fmt::format("offsets do not ascend from 0 or more to at most {}, the number of "
                                "indices: they run from {} to {}",
                                stored, first, last),
                    "offsets");
  if (!inside) return FirstBadIndex(tables, lookups);
  return LookupFacts{last - first, all_one};
}

}  // namespace gnomon::cpu

#endif  // HWY_ONCE
