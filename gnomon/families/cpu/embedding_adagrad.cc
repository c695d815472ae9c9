// Backward of table-batched embedding bags, fused with row-wise Adagrad.
//
// For every row r of every table that the batch looks up:
//   g = Σ grad[b, t, :] over its lookups
//   state_r += Σ_d g_d² / dim;  w_r -= lr · g / (√state_r + ε)
//
// What is done beyond it: a row is updated once, with its whole gradient, as the definition asks,
// and no gradient of a table stands in memory. There are two ways to that:
//   - a table with at most as many rows as lookups, whose gradient fits into the second-level
//     cache: the lookups' gradients are added up there, then its rows are updated in their order;
//   - otherwise lookups are grouped by row (embedding_groups.h). A group of one, the common case
//     in a large table, reads its gradient where it lies. The pass over the groups is a queue of
//     misses like the forward's, three a group (weight, state, gradient), requested some groups
//     ahead.
//
// Threads take whole units: a table, or a set of rows of a table with more lookups than a fair
// share. A row belongs to one unit and its sum runs in one order, so that the result is the same
// bit for bit with any number of threads. The dearest units start first. A row that takes a large
// part of the batch is summed by one thread, at the rate of the cache that holds `grad`.
//
// Entry point: EmbeddingBackwardAdagrad.

#include <algorithm>
#include <cmath>
#include <vector>

#include "gnomon/base/check.h"
#include "gnomon/families/cpu/embedding_bag.h"
#include "gnomon/families/cpu/embedding_groups.h"
#include "gnomon/families/cpu/embedding_lookups.h"
#include "gnomon/families/cpu/embedding_row.h"
#include "gnomon/families/cpu/parallel_units.h"

// foreach_target.h includes this file again and has to come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/embedding_adagrad.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "gnomon/families/cpu/float_rows-inl.h"
// clang-format on

#ifndef GNOMON_FAMILIES_CPU_EMBEDDING_ADAGRAD_JOB_
#define GNOMON_FAMILIES_CPU_EMBEDDING_ADAGRAD_JOB_
namespace gnomon::cpu {

/// What the update of one unit reads (kernels take a copy, so that what they store cannot alias
/// it): its lookups, and where gradients lie: sample b's at grad + b · sample_stride.
struct UpdateJob {
  GroupedLookups lookups;
  EmbeddingTable table;
  std::int64_t dim = 0;
  float inverse_dim = 1;
  const void* grad = nullptr;  ///< of sample 0 and this table
  DType grad_dtype = DType::kFp32;
  std::int64_t sample_stride = 0;
  AdagradParams params;
  std::vector<float>* sums = nullptr;  ///< scratch of the thread, where few rows are summed
  bool few_rows = false;
};

}  // namespace gnomon::cpu
#endif  // GNOMON_FAMILIES_CPU_EMBEDDING_ADAGRAD_JOB_

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE std::size_t Padded(std::int64_t dim) {
  return (static_cast<std::size_t>(dim) + kLanes - 1) / kLanes * kLanes;
}

/// A row's elements as whole vectors and a part of one; V > 0 fixes them at compile time.
template <std::size_t V>
struct RowSpan {
  std::size_t whole, part;
  explicit RowSpan(std::int64_t values)
      : whole(V > 0 ? V * kLanes : static_cast<std::size_t>(values) / kLanes * kLanes),
        part(V > 0 ? 0 : static_cast<std::size_t>(values) % kLanes) {}
  std::int64_t dim() const { return static_cast<std::int64_t>(whole + part); }
};

/// sum += from; the sum is padded to whole vectors.
template <std::size_t V, class Grad>
HWY_INLINE void AddRow(RowSpan<V> span, const Grad* from, float* sum) {
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < span.whole; i += kLanes)
    StoreRow(hn::Add(LoadRow(sum + i), LoadRow(from + i)), sum + i);
  if (span.part > 0)
    StoreRow(hn::Add(LoadRow(sum + span.whole), LoadPart(from + span.whole, span.part)),
             sum + span.whole);
}

/// The definition's last line, for one row whose whole gradient g is padded with zeros.
template <std::size_t V>
HWY_INLINE void ApplyRow(const UpdateJob& job, RowSpan<V> span, std::int64_t row, const float* g) {
  FloatVector square = hn::Zero(Floats());
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < span.whole; i += kLanes)
    square = hn::MulAdd(LoadRow(g + i), LoadRow(g + i), square);
  if (span.part > 0) square = hn::MulAdd(LoadRow(g + span.whole), LoadRow(g + span.whole), square);
  float* state = job.table.state + row;
  *state += hn::GetLane(hn::SumOfLanes(Floats(), square)) * job.inverse_dim;
  const FloatVector step =
      hn::Set(Floats(), job.params.learning_rate / (std::sqrt(*state) + job.params.epsilon));

  float* weight = job.table.weight + row * job.dim;
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < span.whole; i += kLanes)
    StoreRow(hn::NegMulAdd(step, LoadRow(g + i), LoadRow(weight + i)), weight + i);
  if (span.part > 0)
    StorePart(
        hn::NegMulAdd(step, LoadRow(g + span.whole), LoadPart(weight + span.whole, span.part)),
        weight + span.whole, span.part);
}

template <class Grad>
HWY_INLINE const Grad* GradientOf(const UpdateJob& job, const Grad* grad, std::size_t lookup) {
  return grad + static_cast<std::int64_t>(job.lookups.SampleOf(lookup)) * job.sample_stride;
}

/// Few rows: sums first, in cache, then every row that was looked up.
template <std::size_t V, class Grad>
void UpdateFewRows(const UpdateJob job, const Grad* grad) {
  const GroupedLookups& lookups = job.lookups;
  const RowSpan<V> span(job.dim);
  const auto rows = static_cast<std::size_t>(job.table.rows);
  const std::size_t padded = V > 0 ? V * kLanes : Padded(job.dim), ahead = AheadRows(job.dim);
  job.sums->assign(rows * padded + rows, 0.0f);
  float* sums = job.sums->data();
  float* touched = sums + rows * padded;
  for (std::size_t k = 0; k < lookups.lookups; ++k) {
    PrefetchValues(GradientOf(job, grad, std::min(k + ahead, lookups.lookups - 1)), span.dim());
    const auto row = static_cast<std::size_t>(lookups.index[k]);
    touched[row] = 1;
    AddRow(span, GradientOf(job, grad, k), sums + row * padded);
  }
  for (std::size_t row = 0; row < rows; ++row)
    if (touched[row] != 0) ApplyRow(job, span, static_cast<std::int64_t>(row), sums + row * padded);
}

template <std::size_t V, class Grad>
HWY_INLINE void PrefetchGroup(const UpdateJob& job, RowSpan<V> span, const Grad* grad,
                              std::size_t group) {
  const GroupedLookups& lookups = job.lookups;
  const std::int64_t row = lookups.row[group];
  PrefetchValues(job.table.weight + row * job.dim, span.dim());
  __builtin_prefetch(job.table.state + row, 0, 2);
  PrefetchValues(GradientOf(job, grad, lookups.last[group]), span.dim());
}

/// The sum of a group's gradients, in registers.
template <std::size_t V, class Grad>
HWY_INLINE void SumGroup(const UpdateJob& job, const Grad* grad, std::size_t group, float* sum) {
  FloatVector g[V];
  std::uint32_t lookup = job.lookups.last[group];
  const Grad* from = GradientOf(job, grad, lookup);
  HWY_UNROLL(8)
  for (std::size_t v = 0; v < V; ++v) g[v] = LoadRow(from + v * kLanes);
  while ((lookup = job.lookups.before[lookup]) != GroupedLookups::kEnd) {
    from = GradientOf(job, grad, lookup);
    HWY_UNROLL(8)
    for (std::size_t v = 0; v < V; ++v) g[v] = hn::Add(g[v], LoadRow(from + v * kLanes));
  }
  HWY_UNROLL(8)
  for (std::size_t v = 0; v < V; ++v) StoreRow(g[v], sum + v * kLanes);
}

/// Many rows: group by group.
template <std::size_t V, class Grad>
void UpdateGroups(const UpdateJob job, const Grad* grad) {
  const GroupedLookups& lookups = job.lookups;
  const RowSpan<V> span(job.dim);
  const std::size_t ahead = AheadRows(job.dim);
  HWY_ALIGN float fixed[std::max<std::size_t>(V, 1) * kLanes];
  std::vector<float> any(V > 0 ? 0 : Padded(job.dim));
  for (std::size_t group = 0; group < std::min(ahead, lookups.groups); ++group)
    PrefetchGroup(job, span, grad, group);
  for (std::size_t group = 0; group < lookups.groups; ++group) {
    PrefetchGroup(job, span, grad, std::min(group + ahead, lookups.groups - 1));
    if constexpr (V > 0) {
      SumGroup<V>(job, grad, group, fixed);
      ApplyRow(job, span, lookups.row[group], fixed);
    } else {
      std::fill(any.begin(), any.end(), 0.0f);
      for (std::uint32_t k = lookups.last[group]; k != GroupedLookups::kEnd; k = lookups.before[k])
        AddRow(span, GradientOf(job, grad, k), any.data());
      ApplyRow(job, span, lookups.row[group], any.data());
    }
  }
}

template <std::size_t V, class Grad>
void UpdateRows(const UpdateJob& job, const Grad* grad) {
  if (job.few_rows) {
    UpdateFewRows<V>(job, grad);
  } else {
    UpdateGroups<V>(job, grad);
  }
}

template <class Grad>
void UpdateFrom(const UpdateJob& job, const Grad* grad) {
  const auto dim = static_cast<std::size_t>(job.dim);
  if (dim == kLanes) return UpdateRows<1>(job, grad);
  if (dim == 2 * kLanes) return UpdateRows<2>(job, grad);
  if (dim == 4 * kLanes) return UpdateRows<4>(job, grad);
  if (dim == 8 * kLanes) return UpdateRows<8>(job, grad);
  UpdateRows<0>(job, grad);
}

void UpdateUnitRows(const UpdateJob& job) {
  if (job.grad_dtype == DType::kBf16) {
    UpdateFrom(job, static_cast<const std::uint16_t*>(job.grad));
  } else {
    UpdateFrom(job, static_cast<const float*>(job.grad));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gnomon::cpu {
namespace {

HWY_EXPORT(UpdateUnitRows);

/// Units per thread that the sharding aims at: enough to even out, few enough that scanning a
/// table's lookups once a shard stays cheap.
constexpr std::int64_t kUnitsPerThread = 4;
constexpr std::int64_t kFewestLookupsPerUnit = 2048;
constexpr std::int64_t kMostShards = 64;
/// Updating a row against adding one more gradient to it, in time; only orders the units.
constexpr std::int64_t kRowOverLookup = 4;

/// Sums of a table's rows up to this size stay in a core's second-level cache beside what passes
/// through.
constexpr std::int64_t kMostSumBytes = std::int64_t{512} * 1024;

std::int64_t LookupsOf(const EmbeddingLookups& lookups, std::int64_t table) {
  const std::int64_t* offsets = lookups.offsets.data() + table * lookups.batch;
  return offsets[lookups.batch] - offsets[0];
}

/// Is summing all rows in cache cheaper than grouping? Depends on the batch, not on threads.
bool HasFewRows(const EmbeddingTable& table, std::int64_t dim, std::int64_t count) {
  return table.rows <= count && table.rows * dim * 4 <= kMostSumBytes;
}

/// Tables, split where one has more than a fair share of the lookups; the dearest first.
std::vector<UpdateUnit> Units(std::span<const EmbeddingTable> tables,
                              const EmbeddingLookups& lookups, std::int64_t total, int threads) {
  const std::int64_t fair = std::max(total / (threads * kUnitsPerThread), kFewestLookupsPerUnit);
  struct Priced {
    std::int64_t cost = 0;
    UpdateUnit unit;
  };
  std::vector<Priced> priced;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const std::int64_t count = LookupsOf(lookups, static_cast<std::int64_t>(t));
    if (count == 0) continue;
    const std::int64_t shards =
        threads == 1 ? 1 : std::clamp((count + fair - 1) / fair, std::int64_t{1}, kMostShards);
    const std::int64_t cost = (count + kRowOverLookup * std::min(count, tables[t].rows)) / shards;
    for (std::int64_t shard = 0; shard < shards; ++shard)
      priced.push_back({cost, {static_cast<std::int64_t>(t), shard, shards}});
  }
  std::stable_sort(priced.begin(), priced.end(),
                   [](const Priced& a, const Priced& b) { return a.cost > b.cost; });
  std::vector<UpdateUnit> units;
  for (const Priced& one : priced) units.push_back(one.unit);
  return units;
}

}  // namespace

void EmbeddingBackwardAdagrad(std::span<const EmbeddingTable> tables, std::int64_t dim,
                              const EmbeddingLookups& lookups, const void* grad, DType grad_dtype,
                              const AdagradParams& params, int threads) {
  GNOMON_CHECK(grad_dtype == DType::kFp32 || grad_dtype == DType::kBf16, "gradient in {}",
               Name(grad_dtype));
  threads = ThreadCount(threads);
  // The forward has refused bad lookups; a write outside a table must stay impossible all the same.
  const Result<LookupFacts> facts = CheckLookups(tables, dim, lookups, threads);
  GNOMON_CHECK(facts.ok(), "{}", facts.error().Text());
  if (facts->lookups == 0) return;

  const std::int64_t sample_stride = static_cast<std::int64_t>(tables.size()) * dim;
  const auto grad_bytes = static_cast<std::int64_t>(SizeOf(grad_dtype));
  const std::vector<UpdateUnit> units = Units(tables, lookups, facts->lookups, threads);
  ForEachUnit(static_cast<std::int64_t>(units.size()), threads, [&](std::int64_t u) {
    thread_local RowGroups groups;
    thread_local std::vector<float> sums;
    const UpdateUnit& unit = units[static_cast<std::size_t>(u)];
    UpdateJob job;
    job.table = tables[static_cast<std::size_t>(unit.table)];
    job.dim = dim;
    job.inverse_dim = 1.0f / static_cast<float>(dim);
    job.grad = static_cast<const char*>(grad) + unit.table * dim * grad_bytes;
    job.grad_dtype = grad_dtype;
    job.sample_stride = sample_stride;
    job.params = params;
    job.sums = &sums;
    job.few_rows = HasFewRows(job.table, dim, LookupsOf(lookups, unit.table));
    groups.Collect(lookups, facts->one_hot, unit);
    if (!job.few_rows) groups.Group(job.table.rows);
    job.lookups = groups.view();
    HWY_DYNAMIC_DISPATCH(UpdateUnitRows)(job);
  });
}

}  // namespace gnomon::cpu

#endif  // HWY_ONCE
