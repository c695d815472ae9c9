// Ops that pass over data once: elementwise passes, optimisers over dense parameters, copies.
//
//   bytes:   read / read rate + written / write rate of the level that holds both
//   compute: flops / (vector peak · share)                 our interaction kernel
//   items:   count · time of one                           stock index operators on a CPU (primitives.h)
//   time   = the longest of them + fork and join (CPU, above ATen's grain) or kernel starts (GPU)
//
// A pass that writes the output of a GEMM reads it from the level that holds it: LevelOf the working set.

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
// A GPU kernel of any size: start, one wave, drain (measured copies below 1 MiB on A100 and H100 take 2-3 us).
constexpr double kGpuKernelUs = 2.5;
// Our interaction kernels multiply short vectors: share of the fp32 vector peak they reach, forward and backward,
// and what widening 16-bit operands leaves of it (recsys_bench, 27 vectors of 16 to 128, AVX-512).
constexpr double kInteractionForward = 0.24, kInteractionBackward = 0.36, kInteractionHalf = 0.75;

Seconds InteractionCompute(const CostContext& context, const Op& op) {
  const bool half = SizeOf(context.recipe.dtype) < sizeof(float);
  const double share = (op.pass == Op::Pass::kForward ? kInteractionForward : kInteractionBackward) *
                       (half ? kInteractionHalf : 1);
  const Rate* rate = context.device.FindRate(DType::kFp32);
  GNOMON_CHECK(rate != nullptr, "{} has no fp32 rate", context.device.id);
  const FlopsPerSecond peak{rate->flops_per_unit_clock * context.units *
                            context.device.sustained_clock.value * share};
  return op.flops / peak;
}

// The backward of advanced indexing adds element by element on one core, sample after sample for each pair.
// Its target stays in that core's caches, or every line of a triangle's rows comes from beyond them once;
// both were measured in fp32, and narrower elements lie in fewer lines.
Seconds IndexPutTime(const CostContext& context, const Op& op) {
  const Seconds near = PrimitiveTime(context.device, "index_put_near", context.units);
  if (LevelOf(context.device, op.read + op.write, 1).scope == MemoryLevel::Scope::kUnit) return op.items * near;
  const Seconds far = PrimitiveTime(context.device, "index_put_far", context.units);
  const auto rows = static_cast<double>(context.model.tables.size());
  const double pairs = rows * (rows + 1) / 2, line = context.device.MainMemory().line_bytes;
  const auto lines = [&](double element) { return pairs * element / line + rows * (1 - element / line); };
  const double share = lines(op.read.value / op.items) / lines(sizeof(float));
  return op.items * (near + share * (far - near));
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

void CostStreaming(const CostContext& context, const Op& op, OpCost& cost) {
  if (op.kind == Op::Kind::kInputCopy) return CostHostCopy(context, op, cost);
  const Device& device = context.device;
  if (context.cpu() && !op.primitive.empty() && !op.fused) {
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
  const Seconds traffic = op.read / ReadBandwidth(device, level, units) +
                          op.write / WriteBandwidth(device, level, units);
  const Seconds compute = op.flops.value > 0 && context.cpu() ? InteractionCompute(context, op) : Seconds{0};
  if (compute > traffic) {
    AddTerm(cost, "vector units", compute, fmt::format("{:.4g} FLOP", op.flops.value));
  } else {
    AddTerm(cost, "traffic", traffic,
            fmt::format("{} read and {} written in {}", Show(op.read), Show(op.write), level.name));
  }
  if (!context.cpu())
    AddTerm(cost, "kernel starts", Microseconds(kGpuKernelUs) * std::max(1, op.framework_ops),
            fmt::format("{} kernels", std::max(1, op.framework_ops)));
  else if (parallel && context.units > 1)
    AddTerm(cost, "fork and join", device.fork_join, "one parallel region");
}

}  // namespace gnomon
