// What would be tried next: for each kind of work that a plan still pays for, the change that would
// remove part of it, and the speed-up if it removed all that the change can remove.
//
//   gain = step / (step − removable time)
//
// The figure is a bound, not a promise: a GEMM at its roofline, rows of half the width, no dispatch
// at all.

#include "gnomon/codesign/next_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"
#include "gnomon/workload/workload.h"

namespace gnomon {
namespace {

constexpr double kWorthNaming = 1.01;

Seconds TermOf(const StepCost& cost, std::string_view name) {
  for (const Term& term : cost.terms)
    if (term.name == name) return term.time;
  return {0};
}

// Time of the row traffic of embedding ops: what half the bytes a row would halve.
Seconds RowTraffic(const StepCost& cost) {
  Seconds total{0};
  for (const OpCost& op : cost.ops) {
    if (op.kind != Op::Kind::kEmbeddingLookup && op.kind != Op::Kind::kEmbeddingUpdate) continue;
    for (const Term& term : op.terms)
      if (term.name == "rows" || term.name == "weight rows") total += term.time;
  }
  return total;
}

// Time of all GEMMs at the sustained peak of the plan's dtype.
Seconds GemmRoofline(const Model& model, const Device& device, const Recipe& recipe) {
  const auto workload = Lower(model, recipe);
  const FlopsPerSecond peak = device.SustainedPeak(recipe.dtype);
  if (!workload.ok() || peak.value <= 0) return {0};
  Seconds total{0};
  for (const Op& op : workload->ops)
    if (op.kind == Op::Kind::kGemm) total += op.problem.flops() / peak;
  return total;
}

}  // namespace

std::vector<NextStep> NextSteps(const Model& model, const Device& device,
                                const ArmPrediction& plan) {
  const StepCost& cost = plan.cost;
  std::vector<NextStep> steps;
  const auto consider = [&](std::string what, std::string why, Seconds removable) {
    if (removable.value <= 0 || removable >= cost.time) return;
    const double gain = cost.time / (cost.time - removable);
    if (gain >= kWorthNaming) steps.push_back({std::move(what), std::move(why), gain});
  };
  const Seconds gemm = TermOf(cost, "gemm"), roofline = GemmRoofline(model, device, plan.recipe);
  consider("GEMM kernels closer to the peak",
           fmt::format("GEMMs take {}, at the sustained peak {}", Show(gemm), Show(roofline)),
           gemm - roofline);
  if (device.kind == Device::Kind::kGpu && plan.recipe.dtype != DType::kBf16)
    consider("16-bit products", "the GEMM term would halve", gemm / 2);
  const Seconds rows = RowTraffic(cost);
  consider("16-bit tables with stochastic rounding",
           fmt::format("rows take {}; half the bytes a row", Show(rows)), rows / 2);
  const Seconds framework = TermOf(cost, "framework");
  consider("a captured step without dispatch",
           fmt::format("dispatch and autograd take {}", Show(framework)), framework);
  consider("launches captured in a graph",
           fmt::format("the device waits {} for launches", Show(TermOf(cost, "device idle"))),
           TermOf(cost, "device idle"));
  const Seconds interaction = TermOf(cost, "interaction");
  consider("the interaction inside the first layer's GEMM",
           fmt::format("the interaction takes {}, about half of it moving its output",
                       Show(interaction)),
           interaction / 2);
  const Seconds elementwise = TermOf(cost, "elementwise");
  consider("element passes inside the GEMMs of the backward",
           fmt::format("element passes take {}", Show(elementwise)), elementwise);
  const Seconds optimizer = TermOf(cost, "dense optimiser");
  consider("the dense optimiser inside the weight-gradient GEMMs",
           fmt::format("the dense optimiser takes {}", Show(optimizer)), optimizer / 2);
  std::stable_sort(steps.begin(), steps.end(),
                   [](const NextStep& a, const NextStep& b) { return a.gain > b.gain; });
  return steps;
}

}  // namespace gnomon
