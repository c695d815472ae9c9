// Ops that pass over data once: elementwise passes, optimisers over dense parameters, copies.
//
//   bytes     read / rate of the level that holds the pass + written / rate of OutputLevel
//   compute   flops / (vector peak · share)                    our interaction kernel
//   items     count · time of one (CPU)                        index operators, our ReLU backward
//   time      the longer of bytes and compute, or items; + fork and join (CPU, above ATen's grain)
//             or kernel starts (GPU)
//
// A fresh output lands where the step's allocations go round (OutputLevel), an optimiser writes
// what it has just read. Left out: overlap of one pass with the next.

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"
#include "gnomon/cost/bandwidth.h"
#include "gnomon/cost/op_cost.h"
#include "gnomon/cost/primitives.h"

namespace gnomon {
namespace {

// at::internal::GRAIN_SIZE: an elementwise operator over fewer values stays on one thread.
constexpr double kAtenGrain = 32768;
// A GPU kernel of any size: start, one wave, drain (measured copies below 1 MiB on A100 and H100
// take 2-3 us).
constexpr double kGpuKernelUs = 2.5;
// Our interaction kernels multiply short vectors: share of the fp32 vector peak they reach, forward
// and backward, and what widening 16-bit operands leaves of it (recsys_bench, 27 vectors of 16 to
// 128, AVX-512).
constexpr double kInteractionForward = 0.24, kInteractionBackward = 0.36, kInteractionHalf = 0.75;

Seconds InteractionCompute(const CostContext& context, const Op& op) {
  const bool half = SizeOf(context.recipe.dtype) < sizeof(float);
  const double share =
      (op.pass == Op::Pass::kForward ? kInteractionForward : kInteractionBackward) *
      (half ? kInteractionHalf : 1);
  const Rate* rate = context.device.FindRate(DType::kFp32);
  GNOMON_CHECK(rate != nullptr, "{} has no fp32 rate", context.device.id);
  const FlopsPerSecond peak{rate->flops_per_unit_clock * context.units *
                            context.device.sustained_clock.value * share};
  return op.flops / peak;
}

// The backward of advanced indexing adds element by element on one core; its target stays in that
// core's caches or comes from beyond them.
Seconds IndexPutTime(const CostContext& context, const Op& op) {
  const bool near =
      LevelOf(context.device, op.read + op.write, 1).scope == MemoryLevel::Scope::kUnit;
  return op.items *
         PrimitiveTime(context.device, near ? "index_put_near" : "index_put_far", context.units);
}

void CostHostCopy(const CostContext& context, const Op& op, OpCost& cost) {
  if (context.cpu()) return;  // the batch is where it is used
  const auto& link = context.device.host_link;
  if (!link || link->bandwidth.value <= 0) return;
  AddTerm(cost, "host link", link->latency + op.read / link->bandwidth,
          fmt::format("{} over {}", Show(op.read), Show(link->bandwidth)));
}

}  // namespace

void AddTerm(OpCost& cost, std::string name, Seconds time, std::string why) {
  cost.device += time;
  cost.terms.push_back({std::move(name), time, std::move(why)});
}

const MemoryLevel& CostContext::OutputLevel() const {
  if (!cpu()) return device.memory.front();
  return LevelOf(device, static_cast<double>(recipe.batch) * stream_per_sample, units);
}

Seconds PassTime(const CostContext& context, Bytes read, Bytes write, int units) {
  const Device& device = context.device;
  const MemoryLevel& level = LevelOf(device, read + write, units);
  const MemoryLevel& output = context.OutputLevel();
  return read / ReadBandwidth(device, level, units) +
         write / WriteBandwidth(device, output.capacity > level.capacity ? output : level, units);
}

void CostStreaming(const CostContext& context, const Op& op, OpCost& cost) {
  if (op.kind == Op::Kind::kInputCopy) return CostHostCopy(context, op, cost);
  const Device& device = context.device;
  if (context.cpu() && !op.primitive.empty()) {
    const Seconds time = op.primitive == "index_put_element"
                             ? IndexPutTime(context, op)
                             : op.items * PrimitiveTime(device, op.primitive, context.units);
    AddTerm(cost, "items", time, fmt::format("{:.4g} of {}", op.items, op.primitive));
    return;
  }
  const double values = std::max(op.read, op.write).value / sizeof(float);
  const bool parallel = !context.cpu() || op.fused || values >= kAtenGrain;
  const int units = parallel ? context.units : 1;
  const MemoryLevel& level = LevelOf(device, op.read + op.write, units);
  const bool fresh = op.kind == Op::Kind::kElementwise;  // an optimiser writes what it has read
  const Seconds traffic = fresh ? PassTime(context, op.read, op.write, units)
                                : op.read / ReadBandwidth(device, level, units) +
                                      op.write / WriteBandwidth(device, level, units);
  const Seconds compute =
      op.flops.value > 0 && context.cpu() ? InteractionCompute(context, op) : Seconds{0};
  if (compute > traffic) {
    AddTerm(cost, "vector units", compute, fmt::format("{:.4g} FLOP", op.flops.value));
  } else {
    const MemoryLevel& output =
        fresh && context.OutputLevel().capacity > level.capacity ? context.OutputLevel() : level;
    AddTerm(cost, "traffic", traffic,
            fmt::format("{} read in {}, {} written in {}", Show(op.read), level.name,
                        Show(op.write), output.name));
  }
  if (!context.cpu())
    AddTerm(cost, "kernel starts", Microseconds(kGpuKernelUs) * std::max(1, op.framework_ops),
            fmt::format("{} kernels", std::max(1, op.framework_ops)));
  else if (parallel && context.units > 1)
    AddTerm(cost, "fork and join", device.fork_join, "one parallel region");
}

}  // namespace gnomon
