// Time of an attention operator on a GPU.
//
// The simple version: max(FLOPs / matrix rate, exponentials / their rate, bytes / bandwidth).
// Kernels go block by block: one query tile against all its key tiles (backward: one key tile
// against all its query tiles), and a unit does one block after another.
//
//   block  = start + tiles · (max(matrix, vector) + (1 − overlap) · min(matrix, vector))
//   matrix = 2 · tile_q · tile_kv · dims / (rate · share of the kernel)
//            dims: qk + v forward, 3·qk + 2·v backward
//   vector = tile_q · tile_kv · (exponentials / their rate + operations / lanes)
//            what bounds D = 64
//   main   = max(blocks, memory, keys and values from L2)
//   blocks = block · ⌈blocks / units⌉ where all are alike (the last wave is part empty);
//            causal or jagged: mean · ⌈waves⌉ + longest · (1 − 1/waves), at least the longest
//            (Graham's bound)
//   time   = launch + framework + prepare + main
//
// Visible tiles are counted exactly at tile granularity (diagonal tiles whole, the last key tile
// padded, windows at both ends); grouped heads read their keys once from memory and each from L2.
// Jagged batches: tiles by mean length, pairs by its second moment, tail by the longest sequence.
// Few query tiles: FA2 and FA3 share one tile's keys among units, partial sums charged.
// The clock under a power cap: power goes with matrix activity · f³ (voltage follows f), so
// f = sustained / activity^(1/3), at most boost; where softmax holds the matrix units back, they
// clock higher.
// Left out: dropout, bias, paging, XCD-local placement of heads (up to 1.5x on MI300X in L2-bound
// shapes), deterministic backward, per-version differences of one library.
// Entry point: PredictAttention.

#include "gnomon/cost/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gnomon/cost/attention_kernels.h"

namespace gnomon {
namespace {

using Generation = AttentionGeneration;
using Kind = AttentionProblem::Kind;
using Pass = AttentionProblem::Pass;

// Tiles of a block. Rows of queries: 128 in FA2, FA3 and CK; twice that where two tiles of
// accumulators fit the tensor memory of sm_100 (512 columns: two of 128 scores, two of D values).
// Keys at a time: 128, 64 where 64 KiB of LDS hold both buffers (AMD). Backward kernels hold 128
// keys and pass 64 queries by.
constexpr double kQueryTile = 128, kQueryTileSm100 = 256, kLargestHeadDimSm100 = 128;
constexpr double kKeyTile = 128, kKeyTileAmd = 64;
constexpr double kBackwardQueryTile = 64, kBackwardKeyTile = 128;
constexpr double kQueryGranularity = 64;    // smallest query tile that kernels are built for
constexpr double kHeadDimGranularity = 16;  // k of a bf16 matrix instruction

// Exponentials per unit and clock. NVIDIA: 16 per SM (CUDA programming guide, throughput table),
// twice that on sm_103 (Blackwell Ultra). AMD: a quarter of 64 lanes (CDNA3 ISA, transcendental
// rate); CDNA4 doubles it (AMD CDNA4 white paper).
constexpr double kExponentials = 16, kExponentialsDoubled = 32;
// HSTU's SiLU takes an exponential and a reciprocal.
constexpr double kSoftmaxExponentials = 1, kSiluExponentials = 2;

// Fitted on the even-hash rows of six devices together, one value for all kernels and shapes
// (docs/model.md, Attention). Vector lane-operations a score beyond the exponential: running
// maximum, scaling, sum, conversion; backward: recomputed scores, their gradient, two conversions,
// adding dQ.
constexpr double kForwardOps = 1.5, kBackwardOps = 16;
constexpr double kWindowOps = 21;  // two comparisons and selects with index arithmetic, every tile
// Share of the shorter of matrix and vector work that hides behind the longer one: matrix units
// that run on their own (wgmma, tcgen05; FA2 has two blocks a unit), and those that waves issue to
// in order (MFMA).
constexpr double kOverlap = 0.61, kOverlapInOrder = 0.47;
// A block's start and end: scheduling, queries and first keys from memory, last rows written; the
// same on every device, three to four trips to memory.
constexpr Seconds kBlockStart{5.0e-6};

// Backward kernels: delta = row sums of O · dO and zeroing dQ before, dQ to the output type after.
constexpr double kBackwardKernels = 3, kAccumulatorBytes = 4;
// Products of a backward tile pair: scores again, dQ and dK over head_dim_qk; dV and dP over
// head_dim_v.
constexpr double kBackwardQkGemms = 3, kBackwardVGemms = 2;
constexpr double kMega = 1e6;  // in texts
// Units are called idle below this share of a wave, and keys are split among them (FA3).
constexpr double kSplitBelowWaves = 0.8;
// Share of a cache that the operands of one operator may count on.
constexpr double kResidentShare = 0.5;
// Power ∝ activity · f · V², V ∝ f.
constexpr double kPowerExponent = 3;

// Held-out medians against public timings: forward 6 to 12%, backward 10 to 14%; shares carried
// over from another generation or class: 16 to 40% (docs/model.md, Attention).
constexpr double kForwardError = 0.10, kBackwardError = 0.14, kCarriedError = 0.30;

struct Rates {
  double matrix = 0;        ///< FLOPs a unit and clock
  double exponentials = 0;  ///< a unit and clock
  double lanes = 0;         ///< vector operations a unit and clock
  bool in_order = false;
  Generation generation = Generation::kOther;
};

double Up(double value, double step) { return std::ceil(value / step) * step; }

double ExponentialRate(const Device& device, double lanes) {
  if (device.arch == "gfx950" || device.arch.starts_with("sm_103")) return kExponentialsDoubled;
  return std::min(kExponentials, lanes);
}

// ---- Geometry.

struct Sides {
  double outer = 0, inner = 0;  ///< lengths: what blocks hold, and what passes by
  double outer_tile = 0, inner_tile = 0;
  double offset = 0;  ///< rows that the first outer row sees beyond its own index
};

struct Visible {
  double blocks = 0;   ///< outer tiles of one head of one sequence
  double tiles = 0;    ///< inner tiles, mean of a block
  double longest = 0;  ///< inner tiles of the longest block
};

// Σ over i = 0 … n−1 of min(cap, max(0, first + i · step)).
double SumOfRamp(double first, double n, double step, double cap) {
  const double zeros = std::clamp(std::ceil(-first / step), 0.0, n);
  const double rising = std::clamp(std::ceil((cap - first) / step), zeros, n) - zeros;
  return rising * (first + step * (2 * zeros + rising - 1) / 2) + (n - zeros - rising) * cap;
}

Visible CountVisible(const Sides& s, bool causal, double window) {
  const double n = std::max(1.0, std::ceil(s.outer / s.outer_tile));
  const double padded = Up(s.inner, s.inner_tile);
  if (!causal) return {n, padded / s.inner_tile, padded / s.inner_tile};
  double width = SumOfRamp(s.offset + s.outer_tile, n, s.outer_tile, s.inner);
  double longest = padded;
  if (window > 0) {
    // Both ends of a window lie anywhere in a tile: half a tile more on average.
    const double edge = s.inner_tile / 2;
    width += n * edge - SumOfRamp(s.offset - window, n, s.outer_tile, s.inner);
    longest = std::min(padded, window + s.outer_tile + edge);
  }
  if (s.inner_tile > s.outer_tile) width += n * (s.inner_tile - s.outer_tile) / 2;
  const double tiles = std::clamp(width / n, 0.0, padded) / s.inner_tile;
  return {n, tiles, std::max(tiles, longest / s.inner_tile)};
}

Sides SidesOf(const AttentionProblem& p, Generation generation, bool amd, bool backward,
              double fill) {
  const double q = static_cast<double>(p.seq_q) * fill, kv = static_cast<double>(p.seq_kv) * fill;
  // A key sees what queries see of it from the other end: no offset, whatever the lengths.
  if (backward) return {kv, q, kBackwardKeyTile, kBackwardQueryTile, 0};
  const bool two_tiles =
      generation == Generation::kSm100 && static_cast<double>(p.head_dim_v) <= kLargestHeadDimSm100;
  const double tile =
      std::min(two_tiles ? kQueryTileSm100 : kQueryTile, Up(std::max(q, 1.0), kQueryGranularity));
  return {q, kv, tile, amd ? kKeyTileAmd : kKeyTile, kv - q};
}

// ---- One pass.

struct Work {
  AttentionKernel kernel;
  Hertz clock;
  double blocks = 0, waves = 0, splits = 1;
  double tiles = 0;
  Seconds matrix, vector_exposed, start;  ///< of all blocks, spread evenly over the units
  Seconds compute;                        ///< with idle units
  Seconds memory, cache;                  ///< bytes / bandwidth
};

// Bytes of the operands and results, each once.
Bytes OperandBytes(const AttentionProblem& p, bool backward) {
  const double tokens_q = static_cast<double>(p.batch) * static_cast<double>(p.seq_q) * p.mean_fill;
  const double tokens_kv =
      static_cast<double>(p.batch) * static_cast<double>(p.seq_kv) * p.mean_fill;
  const double dq = static_cast<double>(p.head_dim_qk), dv = static_cast<double>(p.head_dim_v);
  const double q_side = tokens_q * static_cast<double>(p.heads_q);
  const double kv_side = tokens_kv * static_cast<double>(p.heads_kv);
  const double size = SizeOf(p.dtype);
  const double forward = size * (q_side + kv_side) * (dq + dv);
  // Read again with the gradients beside them; dQ added up in fp32: read and written.
  return {backward ? 2 * forward + q_side * dq * 2 * kAccumulatorBytes : forward};
}

// Where the operands lie while the kernel runs.
BytesPerSecond OperandBandwidth(const Device& device, Bytes bytes) {
  for (const MemoryLevel& level : device.memory) {
    if (level.scope == MemoryLevel::Scope::kUnit || level.bandwidth.value <= 0) continue;
    const double instances = level.scope == MemoryLevel::Scope::kDie ? device.dies : 1;
    // A cache of one die holds what its own units read: operands are spread over all of them only
    // where one cache serves the device.
    if (instances > 1) continue;
    if (bytes <= level.capacity * kResidentShare) return level.bandwidth;
  }
  return device.MainMemory().bandwidth;
}

Hertz ClockUnderCap(const Device& device, double activity) {
  const Hertz lifted = device.sustained_clock * std::pow(activity, -1 / kPowerExponent);
  return std::max(device.sustained_clock, std::min(device.boost_clock, lifted));
}

// All blocks on all units, idle ones included.
Seconds Makespan(Seconds mean, Seconds longest, double waves, bool alike) {
  const Seconds full = mean * std::ceil(waves);
  if (alike) return full;
  return std::max(longest, full + longest * (1 - 1 / std::max(waves, 1.0)));
}

Work PlanPass(const Device& device, const Rates& rates, const AttentionProblem& p, bool backward) {
  Work work;
  work.kernel = FindAttentionKernel(device, p, backward);
  const double dq = Up(static_cast<double>(p.head_dim_qk), kHeadDimGranularity);
  const double dv = Up(static_cast<double>(p.head_dim_v), kHeadDimGranularity);
  const double heads = static_cast<double>(p.batch) * static_cast<double>(p.heads_q);
  const double window = static_cast<double>(p.window);
  const bool jagged = p.mean_fill < 1 || p.length_spread > 1;

  const Sides sides = SidesOf(p, rates.generation, rates.in_order, backward, p.mean_fill);
  Visible seen = CountVisible(sides, p.causal, window);
  const Visible longest =
      CountVisible(SidesOf(p, rates.generation, rates.in_order, backward, 1), p.causal, window);
  seen.tiles *= p.length_spread;
  const double longest_tiles = std::max(seen.tiles, longest.longest);

  // One tile pair, in clocks.
  const double pairs = sides.outer_tile * sides.inner_tile;
  const double dims = backward ? kBackwardQkGemms * dq + kBackwardVGemms * dv : dq + dv;
  const double ideal = 2 * pairs * dims / rates.matrix;
  const double matrix = ideal / work.kernel.matrix_share;
  const double exponentials = p.kind == Kind::kHstu ? kSiluExponentials : kSoftmaxExponentials;
  const double operations =
      (backward ? kBackwardOps : kForwardOps) + (p.window > 0 ? kWindowOps : 0);
  const double vector = pairs * (exponentials / rates.exponentials + operations / rates.lanes);
  const double overlap = rates.in_order ? kOverlapInOrder : kOverlap;
  const double tile = std::max(matrix, vector) + (1 - overlap) * std::min(matrix, vector);
  work.clock = ClockUnderCap(device, ideal / tile);

  const auto time = [&](double clocks) { return Cycles{clocks} / work.clock; };
  work.blocks = heads * seen.blocks;
  work.waves = work.blocks / device.units;
  work.tiles = seen.tiles;
  work.compute =
      Makespan(kBlockStart + time(seen.tiles * tile), kBlockStart + time(longest_tiles * tile),
               work.waves, !p.causal && !jagged);

  const Bytes operands = OperandBytes(p, backward);
  const BytesPerSecond bandwidth = OperandBandwidth(device, operands);
  if (work.kernel.splits_kv && !backward && work.waves < kSplitBelowWaves) {
    const double most = std::floor(std::min(device.units / work.blocks, longest_tiles));
    const Bytes partials{heads * sides.outer * dv * 2 * kAccumulatorBytes};
    for (double splits = 2; splits <= most; ++splits) {
      const Seconds shared = kBlockStart + time(longest_tiles / splits * tile) +
                             partials * splits / bandwidth + device.kernel;
      if (shared < work.compute) {
        work.compute = shared;
        work.splits = splits;
      }
    }
  }
  const double spread = work.blocks / device.units;
  work.matrix = time(seen.tiles * matrix) * spread;
  work.vector_exposed = time(seen.tiles * (tile - matrix)) * spread;
  work.start = kBlockStart * spread;

  work.memory = operands / bandwidth;
  // Every block reads its keys and values (backward: queries and dO, and adds dQ) through L2.
  const MemoryLevel* l2 = device.FindMemory("l2");
  if (l2 != nullptr && l2->bandwidth.value > 0) {
    const double row = (dq + dv) * SizeOf(p.dtype) + (backward ? dq * 2 * kAccumulatorBytes : 0);
    work.cache = Bytes{work.blocks * seen.tiles * sides.inner_tile * row} / l2->bandwidth;
  }
  return work;
}

// ---- Terms.

void Add(Prediction& prediction, std::string name, Seconds time, std::string why) {
  prediction.time += time;
  prediction.terms.push_back({std::move(name), time, std::move(why)});
}

void AddLaunches(const Device& device, const AttentionProblem& p, bool backward,
                 Prediction& prediction) {
  const ServingFramework framework = FindServingFramework(p.framework);
  const double kernels = backward && !p.main_kernel_only ? kBackwardKernels : 1;
  if (!p.framework.empty() && !framework.name.empty()) {
    Add(prediction, "framework", Microseconds(framework.fixed_us),
        fmt::format("{}: index and cache kernels around the call, graph replay", framework.name));
    const double size = SizeOf(p.dtype), fill = p.mean_fill * static_cast<double>(p.batch);
    const double dq = static_cast<double>(p.head_dim_qk), dv = static_cast<double>(p.head_dim_v);
    double values =
        fill * static_cast<double>(p.seq_kv) * static_cast<double>(p.heads_kv) * (dq + dv);
    if (framework.repacks_query)
      values += fill * static_cast<double>(p.seq_q) * static_cast<double>(p.heads_q) * dq;
    const Bytes moved{2 * size * values};
    Add(prediction, "kv cache", moved / OperandBandwidth(device, OperandBytes(p, backward)),
        fmt::format("{:.3g} MB read and written anew", moved.value / kMega));
    return;
  }
  using Timing = AttentionProblem::Timing;
  if (p.timing == Timing::kEager) {
    // One operator a kernel; backward they hang on one autograd node.
    const Seconds node = backward ? device.framework.backward_op : Seconds{0};
    Add(prediction, "eager operators", node + device.framework.op * kernels,
        "the framework's host side, waited for at each call");
  }
  const bool exposed = p.timing != Timing::kKernels && device.launch > device.kernel;
  const Seconds host = exposed ? device.launch - device.kernel : Seconds{0};
  Add(prediction, "launch", host + device.kernel * kernels,
      fmt::format("{:.0f} kernel(s){}", kernels, exposed ? ", one launch exposed" : ""));
}

Prediction PredictPass(const Device& device, const Rates& rates, const AttentionProblem& p,
                       bool backward) {
  const Work work = PlanPass(device, rates, p, backward);
  Prediction prediction;
  AddLaunches(device, p, backward, prediction);
  const Seconds outside = prediction.time;
  if (backward && !p.main_kernel_only) {
    const double rows = static_cast<double>(p.batch) * static_cast<double>(p.seq_q) * p.mean_fill *
                        static_cast<double>(p.heads_q);
    const double dq = static_cast<double>(p.head_dim_qk), dv = static_cast<double>(p.head_dim_v);
    const double size = SizeOf(p.dtype);
    const Bytes moved{rows * (2 * dv * size + dq * (2 * kAccumulatorBytes + size))};
    Add(prediction, "prepare and convert",
        moved / OperandBandwidth(device, OperandBytes(p, backward)),
        "O and dO read for their row sums, dQ zeroed, then converted from fp32");
  }
  Add(prediction, "matrix", work.matrix,
      fmt::format("{:.4g} blocks x {:.4g} tiles at {:.2f} of the matrix rate ({}{}), {:.0f} MHz",
                  work.blocks, work.tiles, work.kernel.matrix_share, work.kernel.family,
                  work.kernel.measured ? "" : ", carried over", work.clock.value / kMega));
  Add(prediction, "vector", work.vector_exposed,
      fmt::format("{} and vector operations that the matrix units do not hide",
                  p.kind == Kind::kHstu ? "SiLU" : "softmax exponentials"));
  Add(prediction, "block start", work.start, "first operands in, last rows out, a block");
  const Seconds busy = work.matrix + work.vector_exposed + work.start;
  const Seconds idle = std::max(Seconds{0}, work.compute - busy);
  Add(prediction, "idle units", idle,
      work.splits > 1
          ? fmt::format("{:.2f} waves; keys split {:.0f} ways, partial sums added", work.waves,
                        work.splits)
          : fmt::format("{:.2f} waves: last one part empty, longest block", work.waves));
  const Seconds transfer = std::max(work.memory, work.cache);
  Add(prediction, work.memory >= work.cache ? "memory" : "L2",
      std::max(Seconds{0}, transfer - std::max(busy, work.compute)),
      fmt::format("{:.3g} us of traffic, what is longer than the blocks",
                  InMicroseconds(transfer)));

  const Seconds main = prediction.time - outside;
  if (outside > main)
    prediction.bound = Bound::kLaunch;
  else if (transfer > std::max(busy, work.compute))
    prediction.bound = work.memory >= work.cache ? Bound::kMemory : Bound::kCache;
  else
    prediction.bound =
        work.start + idle > work.matrix + work.vector_exposed ? Bound::kLatency : Bound::kCompute;
  prediction.relative_error = !work.kernel.measured ? kCarriedError
                              : backward            ? kBackwardError
                                                    : kForwardError;
  return prediction;
}

Status Check(const Device& device, const AttentionProblem& p) {
  if (device.kind != Device::Kind::kGpu || device.units <= 0 || device.memory.empty())
    return BadInput("attention is modelled on GPUs; " + device.id + " is none");
  for (const std::int64_t side :
       {p.batch, p.heads_q, p.heads_kv, p.head_dim_qk, p.head_dim_v, p.seq_q, p.seq_kv})
    if (side <= 0) return BadInput("attention: batch, heads, dimensions and lengths are positive");
  if (p.window < 0) return BadInput("attention: a window is 0 (none) or positive");
  if (!(p.mean_fill > 0 && p.mean_fill <= 1) || !(p.length_spread >= 1))
    return BadInput("attention: mean fill lies in (0, 1], spread of lengths is 1 or more");
  return Done{};
}

}  // namespace

Result<Prediction> PredictAttention(const Device& device, const AttentionProblem& problem) {
  if (const Status status = Check(device, problem); !status) return status.error();
  const Rate* matrix = device.FindRate(problem.dtype);
  if (matrix == nullptr || matrix->flops_per_unit_clock <= 0)
    return BadInput(fmt::format("{} has no rate for {}", device.id, Name(problem.dtype)));
  const Rate* vector = nullptr;
  for (const Rate& rate : device.vector)
    if (rate.dtype == DType::kFp32) vector = &rate;
  if (vector == nullptr) return BadInput(device.id + " states no fp32 vector rate");

  Rates rates;
  rates.matrix = matrix->flops_per_unit_clock;
  rates.lanes = vector->flops_per_unit_clock / 2;  // an FMA counts 2
  rates.exponentials = ExponentialRate(device, rates.lanes);
  rates.in_order = device.arch.starts_with("gfx");
  rates.generation = AttentionGenerationOf(device);

  if (problem.pass != Pass::kForwardBackward)
    return PredictPass(device, rates, problem, problem.pass == Pass::kBackward);
  Prediction both = PredictPass(device, rates, problem, false);
  Prediction back = PredictPass(device, rates, problem, true);
  for (Term& term : both.terms) term.name = "forward " + term.name;
  for (Term& term : back.terms) Add(both, "backward " + term.name, term.time, std::move(term.why));
  if (back.time > both.time - back.time) both.bound = back.bound;
  both.relative_error = std::max(both.relative_error, back.relative_error);
  return both;
}

}  // namespace gnomon
