// Time and memory of one training step.
//
//   CPU: step = Σ ops (kernels + framework)            eager execution, nothing overlaps
//   GPU: step = max(Σ device, Σ host, input copy)      launches run ahead, inputs are prefetched
//
// framework = operators × cost of one (device.framework, measured by calibration; else a GPU's
// launch cost, or constants for CPUs).
// GEMM: our family's pick where the recipe says so and the device is a CPU, else the vendor's
// library; the batched products of a stock interaction are a loop of small calls on a CPU
// (primitives.h). A 16-bit type that a CPU lacks runs in the framework's reference loop.
// An op in a running CPU step also pays for caches that hold the op before it (ColdStart).
// Terms group ops by what they do; they add up to the time.
// Left out: overlap of the host's work with kernels on CPUs, GPU synchronisations inside sparse
// operators.

#include "gnomon/cost/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gnomon/base/text_table.h"
#include "gnomon/cost/primitives.h"
#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/gemm/library.h"
#include "gnomon/gemm/select.h"

namespace gnomon {
namespace {

// FLOPs of the 27 × 27 × 16 product that bmm_item_… was measured on.
constexpr double kMeasuredItemFlops = 2.0 * 27 * 27 * 16;

// LibTorch multiplies 16-bit matrices without hardware support in a plain loop on one core; the
// same loop does fp32 where no BLAS is installed, at 1 GFLOP/s (LibTorch 1.13).
constexpr FlopsPerSecond kReferenceLoop{1e9};

// Eager operators on a CPU that was not calibrated, LibTorch 1.13: dispatch, autograd and
// allocation.
constexpr double kCpuOpUs = 1.0, kCpuBackwardOpUs = 3.0;

int UnitsOf(const Device& device, const Recipe& recipe) {
  return device.kind == Device::Kind::kCpu && recipe.threads > 0
             ? std::min(recipe.threads, device.units)
             : device.units;
}

Seconds HostCost(const Device& device, const Op& op) {
  const Device::Framework& framework = device.framework;
  const bool cpu = device.kind == Device::Kind::kCpu;
  const Seconds forward = framework.op.value > 0 ? framework.op
                          : cpu                  ? Microseconds(kCpuOpUs)
                                                 : device.launch;
  const Seconds backward = framework.backward_op.value > 0 ? framework.backward_op
                           : cpu                           ? Microseconds(kCpuBackwardOpUs)
                                                           : forward;
  return op.framework_ops * (op.pass == Op::Pass::kBackward ? backward : forward);
}

bool IsHalf(DType dtype) { return dtype == DType::kBf16 || dtype == DType::kFp16; }

Bytes OutputBytes(const Problem& p) {
  return {static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
          SizeOf(p.dtype_out)};
}
Bytes InputBytes(const Problem& p) { return p.bytes() - OutputBytes(p); }

// A stock batched product on a CPU.
Seconds BatchedTime(const CostContext& context, const Problem& problem) {
  const double items = static_cast<double>(problem.batch);
  const double size = std::max(1.0, problem.flops().value / items / kMeasuredItemFlops);
  const char* primitive = IsHalf(problem.dtype) ? "bmm_item_half" : "bmm_item_fp32";
  // Measured where 2048 matrices and their products fit the caches; in a large step they come and
  // go.
  const Seconds far = PassTime(context, InputBytes(problem), OutputBytes(problem), context.units);
  return items * size * PrimitiveTime(context.device, primitive, context.units) + far;
}

// Different bytes that a step moves through the caches beside the tables, a sample: every
// activation and its gradient once, and the dense parameters with gradient and state.
Bytes StreamPerSample(const Workload& workload, const Recipe& recipe) {
  constexpr double kWithGradient = 2, kWeightGradientState = 3;
  Bytes total{workload.dense_parameters * sizeof(float) * kWeightGradientState};
  for (const Op& op : workload.ops) total += kWithGradient * op.keep;
  return total / static_cast<double>(recipe.batch);
}

// What an op on a CPU pays for running after another one: its operands, code and page table entries
// are in the shared cache at best. A constant, and less for an op that touches little.
Seconds ColdStart(const CostContext& context, const Op& op) {
  const Bytes touched =
      op.kind == Op::Kind::kGemm ? op.problem.bytes() : op.read + op.write + op.bag_bytes;
  const MemoryLevel* shared = context.device.FindMemory("llc");
  const BytesPerSecond rate =
      (shared != nullptr ? *shared : context.device.MainMemory()).unit_bandwidth;
  const Seconds most = PrimitiveTime(context.device, "cold_start", context.units);
  return rate.value > 0 ? std::min(most, touched / rate) : most;
}

std::string_view GroupOf(const Op& op) {
  switch (op.kind) {
    case Op::Kind::kGemm:
      return op.problem.batch > 1 ? "interaction" : "gemm";
    case Op::Kind::kEmbeddingLookup:
      return "embedding lookup";
    case Op::Kind::kEmbeddingUpdate:
      return "embedding update";
    case Op::Kind::kOptimizer:
      return "dense optimiser";
    case Op::Kind::kInputCopy:
      return "input copy";
    case Op::Kind::kElementwise:
      break;
  }
  constexpr std::array<std::string_view, 8> kInteraction = {".triangle", ".scatter",    ".bmm_sum",
                                                            ".slices",   ".dense_sum",  ".concat",
                                                            ".cat",      "interaction."};
  const std::string_view name = op.name;
  const bool joins =
      std::any_of(kInteraction.begin(), kInteraction.end(),
                  [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
  return joins ? "interaction" : "elementwise";
}

}  // namespace

StepModel::StepModel(const Model& model, const Device& device)
    : model_(model), device_(device), skew_(model) {
  GNOMON_CHECK(!device.memory.empty(), "{} has no memory", device.id);
}

Result<StepModel::GemmTime> StepModel::Gemm(const CostContext& context, const Op& op) {
  const Problem& p = op.problem;
  const bool ours = op.fused && context.cpu();
  if (!ours && context.cpu() && p.batch > 1 && device_.FindRate(p.dtype) != nullptr) {
    // Depends on the whole step (PassTime): not remembered.
    const Seconds time = BatchedTime(context, p);
    return GemmTime{
        time,
        "library",
        {{"items", time, fmt::format("{} products of {}x{}x{}", p.batch, p.m, p.n, p.k)}}};
  }
  const GemmKey key{p.m,
                    p.n,
                    p.k,
                    p.batch,
                    static_cast<int>(p.layout),
                    static_cast<int>(p.dtype),
                    static_cast<int>(p.dtype_out),
                    static_cast<int>(p.epilogue),
                    context.units,
                    ours};
  if (const auto known = gemms_.find(key); known != gemms_.end()) return known->second;
  GemmTime gemm;
  if (ours) {
    const std::array<const Family*, 1> families = {&cpu::GemmFamily()};
    GNOMON_ASSIGN(const std::vector<Pick> picks, Select(device_, p, families, context.units));
    gemm.time = picks.front().predicted;
    gemm.kernel = picks.front().family->Print(picks.front().config);
    gemm.terms = picks.front().family->Predict(device_, p, picks.front().config).terms;
  } else if (context.cpu() && IsHalf(p.dtype) && device_.FindRate(p.dtype) == nullptr) {
    gemm.time = p.flops() / kReferenceLoop;
    gemm.kernel = "library";
    gemm.terms = {{"reference loop", gemm.time, fmt::format("{} is not native", Name(p.dtype))}};
  } else {
    Prediction library = PredictLibrary(device_, p, context.units);
    gemm.time = library.time;
    gemm.kernel = "library";
    gemm.terms = std::move(library.terms);
  }
  return gemms_.emplace(key, std::move(gemm)).first->second;
}

Result<StepCost> StepModel::Cost(const Recipe& recipe) {
  GNOMON_ASSIGN(const Workload workload, Lower(model_, recipe));
  CostContext context{model_, device_, recipe, skew_};
  context.units = UnitsOf(device_, recipe);
  context.unique_rows = skew_.UniqueRows(static_cast<double>(recipe.batch));
  context.stream_per_sample = StreamPerSample(workload, recipe);

  StepCost step;
  std::map<std::string_view, Seconds> groups;
  Seconds copy{0};
  for (const Op& op : workload.ops) {
    OpCost cost;
    cost.name = op.name;
    cost.kind = op.kind;
    cost.pass = op.pass;
    cost.host = HostCost(device_, op);
    switch (op.kind) {
      case Op::Kind::kGemm: {
        GNOMON_ASSIGN(const GemmTime gemm, Gemm(context, op));
        cost.device = gemm.time;
        cost.kernel = gemm.kernel;
        cost.terms = gemm.terms;
        break;
      }
      case Op::Kind::kEmbeddingLookup:
      case Op::Kind::kEmbeddingUpdate:
        CostEmbedding(context, op, cost);
        break;
      default:
        // A library GEMM on a GPU adds the bias in its epilogue; addmm on a CPU fills the output
        // first.
        if (context.cpu() || op.framework_ops > 0 || op.fused) CostStreaming(context, op, cost);
    }
    if (context.cpu() && cost.device.value > 0)
      AddTerm(cost, "cold start", ColdStart(context, op), "operands left the near caches");
    if (op.kind == Op::Kind::kInputCopy) {
      copy = cost.device;
      if (context.cpu()) cost.host = {};
    } else {
      step.device_total += cost.device;
      groups[GroupOf(op)] += cost.device;
    }
    step.host_total += cost.host;
    step.ops.push_back(std::move(cost));
  }
  for (const auto& [name, time] : groups)
    step.terms.push_back({std::string(name), time, "device time of its ops"});
  if (context.cpu()) {
    step.time = step.device_total + step.host_total;
    step.terms.push_back({"framework", step.host_total, "dispatch and autograd of every operator"});
  } else {
    step.time = std::max({step.device_total, step.host_total, copy});
    step.terms.push_back(
        {"device idle", step.time - step.device_total,
         fmt::format("launches take {}, the input copy {}", Show(step.host_total), Show(copy))});
  }
  step.memory = CostMemory(model_, recipe, workload, context.unique_rows);
  step.samples_per_second = static_cast<double>(recipe.batch) / step.time.value;
  return step;
}

Result<StepCost> CostStep(const Model& model, const Device& device, const Recipe& recipe) {
  StepModel step(model, device);
  return step.Cost(recipe);
}

}  // namespace gnomon
