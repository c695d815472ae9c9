// Embedding lookups and updates: rows at random places, through caches that skew makes useful.
//
//   level shares   h_k = hits of a cache of level k's capacity − hits of the one before (skew.h)
//   rows(n)        n · Σ h_k · time of a random row of level k
//   lookup         lookups · instructions + rows(lookups) + bags written; ours hides half of the
//                  shorter of the first two
//   lookup grads   the longer of lookups · instructions and the traffic, + part of the shorter
//   coalesce       lookups · log2(lookups) · time per key and level + gradient rows gathered;
//                  a GPU's radix sort and segment sum by bandwidth
//   update rows    unique · (weight and state line, read and written back) + instructions;
//                  a stock update on a CPU goes row by row and waits for main memory
//   dense update   whole tables streamed
//
// The forward of the same batch has just fetched the weights: the update finds them in the nearest
// level that holds the batch's rows and the step's other traffic. The state was not touched; it
// comes from where its own skew puts it.
// Left out: conflicts of hot rows between threads, index dtype, NUMA.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gnomon/base/text_table.h"
#include "gnomon/cost/bandwidth.h"
#include "gnomon/cost/op_cost.h"
#include "gnomon/cost/primitives.h"

namespace gnomon {
namespace {

constexpr double kStateBytes = sizeof(float);
constexpr double kKeyBytes = 16;    // an index and the place of its gradient
constexpr double kRadixPasses = 8;  // of a GPU's radix sort over 64-bit keys, read and written each
constexpr double kGpuKernelUs = 2.5;  // as in streaming.cc
// Share of main memory's latency that the serial index_add_ of LibTorch 1.13 waits for a row: 206
// ns a row in train_bench, of which 65 are instructions, at 235 ns of latency. Page walks are part
// of it, so that a row still in the last cache costs no less.
constexpr double kSerialMissShare = 0.6;
// Share of the shorter of instructions and misses that our prefetching lookup hides (train_bench,
// batch 512 to 8192).
constexpr double kHiddenShare = 0.5;
constexpr double kReadAndWriteBack = 2;  // a dirty line leaves the cache as it came

// Row in bytes, whole lines.
Bytes LinesOf(const MemoryLevel& level, Bytes row) {
  const double line = level.line_bytes;
  return {std::ceil(row.value / line) * line};
}

// Time of `rows` random rows over the levels that serve them in the steady state.
Seconds SteadyRows(const CostContext& context, double rows, Bytes row, std::string* why) {
  Seconds time{0};
  double below = 0;
  for (const MemoryLevel& level : context.device.memory) {
    const bool last = &level == &context.device.MainMemory();
    // Both cores use the same hot rows: one instance's capacity counts, not their sum.
    const double hits =
        last ? 1
             : std::max(below, context.skew.HitShare(level.capacity, LinesOf(level, row),
                                                     context.stream_per_sample));
    const double share = hits - below;
    below = hits;
    if (share <= 0) continue;
    time += rows * share * RandomRowTime(context.device, level, LinesOf(level, row), context.units);
    if (why != nullptr)
      *why += fmt::format("{}{:.0f}% {}", why->empty() ? "" : ", ", 100 * share, level.name);
  }
  return time;
}

// What passes through the caches between a row's lookup and its update.
Bytes RevisitFootprint(const CostContext& context, Bytes row) {
  return context.unique_rows * LinesOf(context.device.MainMemory(), row) +
         static_cast<double>(context.recipe.batch) * context.stream_per_sample;
}

// Time of rows that this step has used before.
Seconds RevisitedRows(const CostContext& context, double rows, Bytes row, std::string* why) {
  const MemoryLevel& level = LevelOf(context.device, RevisitFootprint(context, row), 1);
  if (why != nullptr) *why = "still in " + level.name;
  return rows * RandomRowTime(context.device, level, LinesOf(level, row), context.units);
}

Seconds Stream(const CostContext& context, Bytes read, Bytes write) {
  return PassTime(context, read, write, context.units);
}

// Instructions (CPU) and memory where the loop prefetches: part of the shorter hides behind the
// longer.
void AddOverlapped(OpCost& cost, Seconds instructions, Seconds memory, const std::string& items,
                   const std::string& where) {
  const bool memory_longer = memory > instructions;
  AddTerm(cost, "instructions", instructions * (memory_longer ? 1 - kHiddenShare : 1), items);
  AddTerm(cost, "rows", memory * (memory_longer ? 1 : 1 - kHiddenShare), where);
}

void AddUpdate(const CostContext& context, OpCost& cost, Bytes row) {
  std::string weights, states;
  const Seconds weight =
      kReadAndWriteBack * RevisitedRows(context, context.unique_rows, row, &weights);
  const Seconds state =
      kReadAndWriteBack * SteadyRows(context, context.unique_rows, Bytes{kStateBytes}, &states);
  AddTerm(cost, "weight rows", weight,
          fmt::format("{:.4g} rows, {}", context.unique_rows, weights));
  AddTerm(cost, "state lines", state, fmt::format("{:.4g} rows, {}", context.unique_rows, states));
}

// Stock index_add_ on a CPU: one row after another on one core, each waiting for most of its
// latency.
void AddSerialUpdate(const CostContext& context, OpCost& cost) {
  AddTerm(cost, "weight rows",
          context.unique_rows * kSerialMissShare * context.device.MainMemory().latency,
          fmt::format("{:.4g} rows one by one", context.unique_rows));
  std::string states;
  const Seconds state =
      kReadAndWriteBack * SteadyRows(context, context.unique_rows, Bytes{kStateBytes}, &states);
  AddTerm(cost, "state lines", state, fmt::format("{:.4g} rows, {}", context.unique_rows, states));
}

void AddGpuKernels(const CostContext& context, const Op& op, OpCost& cost) {
  if (context.cpu()) return;
  AddTerm(cost, "kernel starts", Microseconds(kGpuKernelUs) * op.framework_ops,
          fmt::format("{} kernels", op.framework_ops));
}

}  // namespace

void CostEmbedding(const CostContext& context, const Op& op, OpCost& cost) {
  const Device& device = context.device;
  const Bytes row{op.dim * sizeof(float)};
  // Per-row instruction times were measured at dim 16 and grow with the row beyond it.
  constexpr double kMeasuredDim = 16;
  const double width = std::max(1.0, op.dim / kMeasuredDim);
  const auto items = [&](std::string_view primitive, double count) {
    return context.cpu() ? count * PrimitiveTime(device, primitive, context.units) : Seconds{0};
  };
  const Bytes all_rows = op.lookups * row;
  std::string where;
  switch (op.stage) {
    case Op::Stage::kGather: {
      const Seconds memory = SteadyRows(context, op.lookups, row, &where);
      const std::string rows = fmt::format("{:.4g} rows of {}", op.lookups, Show(row));
      if (op.fused) {
        AddOverlapped(cost, items("fused_lookup_row", op.lookups * width), memory, rows, where);
      } else {
        AddTerm(cost, "instructions", items("embedding_row", op.lookups * width), rows);
        AddTerm(cost, "rows", memory, where);
      }
      AddTerm(cost, "pooled output", Stream(context, Bytes{0}, op.bag_bytes), Show(op.bag_bytes));
      break;
    }
    case Op::Stage::kLookupGrads: {
      const Seconds memory = Stream(context, op.bag_bytes, all_rows);
      AddOverlapped(cost, items("lookup_grad_row", op.lookups * width), memory,
                    fmt::format("{:.4g} gradient rows of {}", op.lookups, Show(row)), "streamed");
      break;
    }
    case Op::Stage::kCoalesce: {
      if (context.cpu()) {
        AddTerm(cost, "sort and segment sum", items(op.primitive, op.items),
                fmt::format("{:.4g} keys in {} sorts", op.lookups, op.lookup_groups));
        const MemoryLevel& level = LevelOf(device, all_rows, 1);
        AddTerm(cost, "gradient rows", op.lookups * RandomRowTime(device, level, row, 1),
                "gathered in sorted order by one core, from " + level.name);
      } else {
        const Bytes keys{kKeyBytes * kRadixPasses * op.lookups};
        AddTerm(cost, "sort", Stream(context, keys, keys), fmt::format("{:.4g} keys", op.lookups));
        AddTerm(cost, "segment sum", Stream(context, all_rows, context.unique_rows * row),
                fmt::format("to {:.4g} rows", context.unique_rows));
      }
      break;
    }
    case Op::Stage::kUpdateRows: {
      const Seconds instructions = items("update_row", context.unique_rows * std::sqrt(width));
      AddTerm(cost, "instructions", instructions, fmt::format("{:.4g} rows", context.unique_rows));
      if (context.cpu()) {
        AddSerialUpdate(context, cost);
      } else {
        AddUpdate(context, cost, row);
      }
      break;
    }
    case Op::Stage::kFusedUpdate: {
      const Seconds instructions = items("fused_update_key", op.lookups) +
                                   items("fused_update_row", context.unique_rows * width);
      AddTerm(cost, "instructions", instructions,
              fmt::format("{:.4g} lookups grouped, {:.4g} rows", op.lookups, context.unique_rows));
      AddTerm(cost, "pooled gradient", Stream(context, op.bag_bytes, Bytes{0}), Show(op.bag_bytes));
      AddUpdate(context, cost, row);
      break;
    }
    case Op::Stage::kTableGrads: {
      AddTerm(cost, "zeros", Stream(context, Bytes{0}, op.write), Show(op.write));
      AddTerm(cost, "rows",
              op.lookups * RandomRowTime(device, device.MainMemory(), row, context.units) *
                  kReadAndWriteBack,
              fmt::format("{:.4g} rows added", op.lookups));
      break;
    }
    case Op::Stage::kUpdateTables:
      AddTerm(cost, "whole tables",
              op.read / ReadBandwidth(device, device.MainMemory(), context.units) +
                  op.write / WriteBandwidth(device, device.MainMemory(), context.units),
              fmt::format("{} read, {} written", Show(op.read), Show(op.write)));
      break;
    case Op::Stage::kNone:
      GNOMON_CHECK(false, "{} has no embedding stage", op.name);
  }
  AddGpuKernels(context, op, cost);
}

}  // namespace gnomon
