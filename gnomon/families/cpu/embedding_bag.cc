// Forward of table-batched embedding bags.
//
//   out[b, t, :] = Σ_{p in bag (t, b)} weight_t[indices[p], :]
//
// One lookup is one or a few cache lines from a random place, so the kernel is a queue of misses:
// it runs over the bags in the order of `out` (which is then written as one stream), and a cursor
// some lookups ahead resolves each row's address once, prefetches all its lines and keeps the
// address in a small ring until the row is due. Sums are fp32 in registers for dims of 1, 2, 4 or 8
// vectors, in a scratch row otherwise; bags of exactly one row are copied. Threads share out bags,
// never the rows of one bag, so that results do not depend on their number.
//
// Entry point: EmbeddingForward.

#include "gnomon/families/cpu/embedding_bag.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "gnomon/families/cpu/embedding_lookups.h"
#include "gnomon/families/cpu/embedding_row.h"
#include "gnomon/families/cpu/parallel_units.h"

// foreach_target.h includes this file again and has to come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/embedding_bag.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "gnomon/families/cpu/float_rows-inl.h"
// clang-format on

#ifndef GNOMON_FAMILIES_CPU_EMBEDDING_BAG_JOB_
#define GNOMON_FAMILIES_CPU_EMBEDDING_BAG_JOB_
namespace gnomon::cpu {

/// What every thread reads; a bag's number is its place in `out`: b · tables + t.
struct ForwardJob {
  const EmbeddingTable* tables = nullptr;
  std::int64_t table_count = 0, batch = 0, dim = 0;
  const std::int64_t* indices = nullptr;
  const std::int64_t* offsets = nullptr;
  void* out = nullptr;
  DType out_dtype = DType::kFp32;
  bool one_hot = false;
};

/// Walks the rows of bags [begin, end) in the order of `out`; kDim is their dim, or 0 for any.
template <std::int64_t kDim>
class RowCursor {
 public:
  RowCursor(const ForwardJob& job, std::int64_t begin, std::int64_t end)
      : job_(job), left_(end - begin), b_(begin / job.table_count), t_(begin % job.table_count) {
    if (left_ > 0) OpenBag();
  }

  /// Address of the next row, its lines requested; null after the last.
  const float* Next() {
    while (position_ == bag_end_) {
      if (left_ <= 1) return nullptr;
      --left_;
      if (++t_ == job_.table_count) {
        t_ = 0;
        ++b_;
      }
      OpenBag();
    }
    const float* row = job_.tables[t_].weight + job_.indices[position_++] * job_.dim;
    PrefetchValues(row, kDim > 0 ? kDim : job_.dim);
    return row;
  }

 private:
  void OpenBag() {
    const std::int64_t* offset = job_.offsets + t_ * job_.batch + b_;
    position_ = offset[0];
    bag_end_ = offset[1];
  }

  const ForwardJob job_;  // a copy: what the kernel stores cannot alias it
  std::int64_t left_ = 0, b_ = 0, t_ = 0;
  std::int64_t position_ = 0, bag_end_ = 0;
};

/// The same where every bag holds one index: no offsets to read, no bags to open.
template <std::int64_t kDim>
class OneHotCursor {
 public:
  OneHotCursor(const ForwardJob& job, std::int64_t begin, std::int64_t end)
      : job_(job), left_(end - begin), t_(begin % job.table_count) {
    index_ = job.indices + job.offsets[0] + t_ * job.batch + begin / job.table_count;
  }

  const float* Next() {
    if (left_-- <= 0) return nullptr;
    const float* row = job_.tables[t_].weight + *index_ * job_.dim;
    index_ += job_.batch;
    if (++t_ == job_.table_count) {
      t_ = 0;
      index_ -= job_.table_count * job_.batch - 1;
    }
    PrefetchValues(row, kDim > 0 ? kDim : job_.dim);
    return row;
  }

 private:
  const ForwardJob job_;
  std::int64_t left_ = 0, t_ = 0;
  const std::int64_t* index_ = nullptr;
};

/// Rows whose lines have been requested and that are not used yet.
template <class Cursor>
class RowsAhead {
 public:
  RowsAhead(Cursor cursor, std::int64_t dim) : cursor_(cursor), ahead_(AheadRows(dim)) {
    for (std::size_t i = 0; i < ahead_; ++i) ring_[i] = cursor_.Next();
  }
  const float* Pop() {
    const float* row = ring_[at_ % kRing];
    ring_[(at_ + ahead_) % kRing] = cursor_.Next();
    ++at_;
    return row;
  }

 private:
  static constexpr std::size_t kRing = 2 * kMostRowsAhead;
  Cursor cursor_;
  std::size_t ahead_ = 1, at_ = 0;
  std::array<const float*, kRing> ring_ = {};
};

}  // namespace gnomon::cpu
#endif  // GNOMON_FAMILIES_CPU_EMBEDDING_BAG_JOB_

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {

/// Bags [begin, end) of rows of exactly V vectors.
template <std::size_t V, class Out>
HWY_INLINE void SumBags(const ForwardJob job, Out* out, std::int64_t begin, std::int64_t end) {
  using Cursor = RowCursor<V * kLanes>;
  RowsAhead<Cursor> rows(Cursor(job, begin, end), job.dim);
  std::int64_t b = begin / job.table_count, t = begin % job.table_count;
  for (std::int64_t bag = begin; bag < end; ++bag) {
    const std::int64_t* offset = job.offsets + t * job.batch + b;
    FloatVector sum[V];
    HWY_UNROLL(8)
    for (std::size_t v = 0; v < V; ++v) sum[v] = hn::Zero(Floats());
    for (std::int64_t p = offset[0]; p < offset[1]; ++p) {
      const float* row = rows.Pop();
      HWY_UNROLL(8)
      for (std::size_t v = 0; v < V; ++v) sum[v] = hn::Add(sum[v], LoadRow(row + v * kLanes));
    }
    Out* to = out + bag * job.dim;
    HWY_UNROLL(8)
    for (std::size_t v = 0; v < V; ++v) StoreRow(sum[v], to + v * kLanes);
    if (++t == job.table_count) {
      t = 0;
      ++b;
    }
  }
}

/// Bags of one row each: copies.
template <std::size_t V, class Out>
HWY_INLINE void CopyRows(const ForwardJob job, Out* out, std::int64_t begin, std::int64_t end) {
  using Cursor = OneHotCursor<V * kLanes>;
  RowsAhead<Cursor> rows(Cursor(job, begin, end), job.dim);
  for (std::int64_t bag = begin; bag < end; ++bag) {
    const float* row = rows.Pop();
    Out* to = out + bag * job.dim;
    HWY_UNROLL(8)
    for (std::size_t v = 0; v < V; ++v) StoreRow(LoadRow(row + v * kLanes), to + v * kLanes);
  }
}

/// Any dim: the sum stands in a scratch row, padded to whole vectors.
template <class Out>
void SumBagsOfAnyDim(const ForwardJob job, Out* out, std::int64_t begin, std::int64_t end) {
  const auto dim = static_cast<std::size_t>(job.dim);
  const std::size_t whole = dim / kLanes * kLanes, part = dim - whole;
  std::vector<float> sum(whole + kLanes);
  RowsAhead<RowCursor<0>> rows(RowCursor<0>(job, begin, end), job.dim);
  std::int64_t b = begin / job.table_count, t = begin % job.table_count;
  for (std::int64_t bag = begin; bag < end; ++bag) {
    const std::int64_t* offset = job.offsets + t * job.batch + b;
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (std::int64_t p = offset[0]; p < offset[1]; ++p) {
      const float* row = rows.Pop();
      for (std::size_t i = 0; i < whole; i += kLanes)
        StoreRow(hn::Add(LoadRow(sum.data() + i), LoadRow(row + i)), sum.data() + i);
      if (part > 0)
        StoreRow(hn::Add(LoadRow(sum.data() + whole), LoadPart(row + whole, part)),
                 sum.data() + whole);
    }
    Out* to = out + bag * job.dim;
    for (std::size_t i = 0; i < whole; i += kLanes) StoreRow(LoadRow(sum.data() + i), to + i);
    if (part > 0) StorePart(LoadRow(sum.data() + whole), to + whole, part);
    if (++t == job.table_count) {
      t = 0;
      ++b;
    }
  }
}

template <std::size_t V, class Out>
void BagsOfVectors(const ForwardJob& job, Out* out, std::int64_t begin, std::int64_t end) {
  if (job.one_hot) {
    CopyRows<V>(job, out, begin, end);
  } else {
    SumBags<V>(job, out, begin, end);
  }
}

template <class Out>
void BagsInto(const ForwardJob& job, Out* out, std::int64_t begin, std::int64_t end) {
  const auto dim = static_cast<std::size_t>(job.dim);
  if (dim == kLanes) return BagsOfVectors<1>(job, out, begin, end);
  if (dim == 2 * kLanes) return BagsOfVectors<2>(job, out, begin, end);
  if (dim == 4 * kLanes) return BagsOfVectors<4>(job, out, begin, end);
  if (dim == 8 * kLanes) return BagsOfVectors<8>(job, out, begin, end);
  SumBagsOfAnyDim(job, out, begin, end);
}

void ForwardBags(const ForwardJob& job, std::int64_t begin, std::int64_t end) {
  if (job.out_dtype == DType::kBf16) {
    BagsInto(job, static_cast<std::uint16_t*>(job.out), begin, end);
  } else {
    BagsInto(job, static_cast<float*>(job.out), begin, end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gnomon::cpu {

HWY_EXPORT(ForwardBags);

Status EmbeddingForward(std::span<const EmbeddingTable> tables, std::int64_t dim,
                        const EmbeddingLookups& lookups, void* out, DType out_dtype, int threads) {
  if (out_dtype != DType::kFp32 && out_dtype != DType::kBf16)
    return BadInput(
        fmt::format("embedding output in {} is not supported; valid: fp32, bf16", Name(out_dtype)),
        "out_dtype");
  threads = ThreadCount(threads);
  GNOMON_ASSIGN(const LookupFacts facts, CheckLookups(tables, dim, lookups, threads));
  const auto table_count = static_cast<std::int64_t>(tables.size());
  const std::int64_t bags = table_count * lookups.batch;
  if (bags == 0) return Done{};

  const ForwardJob job{
      tables.data(),          table_count, lookups.batch, dim,          lookups.indices.data(),
      lookups.offsets.data(), out,         out_dtype,     facts.one_hot};
  // Bags of one row cost the same each; bags of different sizes are evened out by smaller parts.
  constexpr std::int64_t kPartsPerThread = 8;
  const std::int64_t parts =
      std::min(bags, threads == 1 ? 1 : threads * (facts.one_hot ? 1 : kPartsPerThread));
  ForEachUnit(parts, threads, [&](std::int64_t part) {
    HWY_DYNAMIC_DISPATCH(ForwardBags)(job, bags * part / parts, bags * (part + 1) / parts);
  });
  return Done{};
}

}  // namespace gnomon::cpu

#endif  // HWY_ONCE
