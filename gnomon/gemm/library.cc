// A vendor's GEMM library as a black box: it picks a good tile from a short menu, and its kernel
// runs at a share of the peak that grows with the tile.
//
//   time = start + max(matrix, memory, chain) + reduction        the least over the menu of tiles
//   and splits matrix = waves · 2·tile_m·tile_n·k / (rate · sustained clock · efficiency(tile))
//   memory = bytes moved / reachable bandwidth                    A and B once, C once, fp32
//   partials if split
//
// Beyond a roofline it has the quantisation that recommendation shapes live on: partial tiles, the
// fractional last wave, few tiles on many units (then K is split), short K. A CPU has the same
// formula with its register tile, packing and C's traffic at the level that holds them, and the
// cost of waking threads. Left out: which of its thousand kernels a library takes, alignment of
// leading dimensions, batched-GEMM entry points (a batch here is one launch on GPUs, a loop of
// calls on CPUs).

#include "gnomon/gemm/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gnomon {
namespace {

struct Tile {
  double m, n;
};

// ---- GPUs. Fitted on the odd rows of measured/{h100,h200,b200}_bf16_library.csv and reported on
// the even ones (docs/model.md, "Vendor library").
constexpr std::array<Tile, 11> kGpuTiles = {{{256, 128},
                                             {128, 256},
                                             {128, 128},
                                             {128, 64},
                                             {64, 128},
                                             {64, 64},
                                             {32, 64},
                                             {64, 32},
                                             {16, 64},
                                             {64, 16},
                                             {32, 32}}};
constexpr std::array<double, 5> kGpuSplits = {1, 2, 4, 8, 16};
constexpr double kGpuTileK = 64;         // k step that a kernel rounds up to
constexpr double kGpuMinSplitK = 256;    // below, a share of K is all prologue
constexpr double kGpuEfficiency = 0.83;  // share of the sustained peak for a large tile
constexpr double kGpuTileIntensity =
    1.8;  // tile_m·tile_n/(tile_m+tile_n) at which half of it is reached
constexpr double kGpuMemoryShare = 0.91;    // of the datasheet's bandwidth
constexpr double kGpuStartUs = 2.3;         // kernel start, prologue and drain
constexpr double kGpuReductionUs = 2.4;     // second kernel or atomics of a split
constexpr double kGpuTileCycles = 540;      // prologue and epilogue of one tile
constexpr double kGpuChainCycles = 156;     // one k step of one tile alone: load, wait, multiply
constexpr double kGpuStreamingUnits = 1.0;  // share of the units that saturates the memory

struct Parts {
  double start = 0, matrix = 0, memory = 0, chain = 0, reduction = 0;  // seconds
  Tile tile{};
  double split = 1, waves = 0;
  double body() const { return std::max({matrix, memory, chain}); }
  double total() const { return start + body() + reduction; }
};

double Side(std::int64_t value) { return static_cast<double>(value); }

Parts GpuParts(const Device& device, const Problem& p, double units, const Rate& rate, Tile tile,
               double split) {
  const double clock = device.sustained_clock.value;
  const double m = Side(p.m), n = Side(p.n), k = Side(p.k), batch = Side(p.batch);
  const auto stated = device.framework.gemm_efficiency.find(p.dtype);
  const double efficiency =
      stated == device.framework.gemm_efficiency.end() ? kGpuEfficiency : stated->second;
  const double intensity = tile.m * tile.n / (tile.m + tile.n);
  const double tile_rate =
      rate.flops_per_unit_clock * clock * efficiency * intensity / (intensity + kGpuTileIntensity);
  const double tile_k = std::ceil(k / split / kGpuTileK) * kGpuTileK;
  const double tiles = std::ceil(m / tile.m) * std::ceil(n / tile.n) * batch * split;

  Parts parts;
  parts.tile = tile;
  parts.split = split;
  parts.start = kGpuStartUs * 1e-6;
  // Half exact, half rounded up: blocks of a last wave overlap the one before, but not wholly.
  const double exact = tiles / units;
  parts.waves = exact <= 1 ? 1 : (exact + std::ceil(exact)) / 2;
  parts.matrix = parts.waves * (2 * tile.m * tile.n * tile_k / tile_rate + kGpuTileCycles / clock);
  parts.chain = tile_k / kGpuTileK * kGpuChainCycles / clock;
  const double partials = split > 1 ? 2 * SizeOf(DType::kFp32) * m * n * batch * split : 0;
  const double busy = std::min(1.0, exact / kGpuStreamingUnits);
  parts.memory =
      (p.bytes().value + partials) / (device.MainMemory().bandwidth.value * kGpuMemoryShare * busy);
  parts.reduction = split > 1 ? kGpuReductionUs * 1e-6 : 0;
  return parts;
}

Parts PredictGpu(const Device& device, const Problem& p, double units, const Rate& rate) {
  Parts best;
  bool first = true;
  for (const Tile& tile : kGpuTiles) {
    for (const double split : kGpuSplits) {
      if (split > 1 && Side(p.k) / split < kGpuMinSplitK) break;
      const Parts parts = GpuParts(device, p, units, rate, tile, split);
      if (first || parts.total() < best.total()) best = parts;
      first = false;
    }
  }
  return best;
}

// ---- CPUs: OpenBLAS, what LibTorch runs on Debian. Fitted on the odd rows of its times on
// shapes/recsys_open.csv (docs/model.md, "Vendor library").
constexpr double kCpuTileM = 16,
                 kCpuTileN = 4;          // its sgemm tile on AVX-512 and AVX2 (row-major: n × m)
constexpr double kCpuEfficiency = 0.74;  // share of the sustained peak on large squares
constexpr double kCpuHalfK = 29;         // k whose products take as long as a tile's load and store
constexpr double kCpuPackPasses = 3.5;  // over an operand: read, packed copy written and read again
constexpr double kCpuCPasses = 1.5;     // over C: beta first, then the tiles, partly from cache
constexpr double kCpuThreadedStartUs = 16.5;  // waking its threads and waiting for the last
constexpr double kCpuOneThreadFlops = 4.7e5;  // below, one thread and the kernels without packing
constexpr double kCpuVectorShare = 0.48;      // of bandwidth that its matrix-vector path reaches

// Bytes a second of `threads` cores over a footprint that was used just before.
double WarmRate(const Device& device, double footprint, double threads) {
  const MemoryLevel* level = &device.MainMemory();
  for (const MemoryLevel& candidate : device.memory) {
    const bool own = candidate.scope == MemoryLevel::Scope::kUnit;
    if (footprint > candidate.capacity.value * (own ? threads : 1)) continue;
    level = &candidate;
    break;
  }
  const double one =
      level->unit_bandwidth.value > 0 ? level->unit_bandwidth.value : level->bandwidth.value;
  return std::min(level->bandwidth.value, threads * one);
}

Parts PredictCpu(const Device& device, const Problem& p, double units, const Rate& rate) {
  const double m = Side(p.m), n = Side(p.n), k = Side(p.k), batch = Side(p.batch);
  const auto stated = device.framework.gemm_efficiency.find(p.dtype);
  const double efficiency =
      stated == device.framework.gemm_efficiency.end() ? kCpuEfficiency : stated->second;
  const bool small = 2 * m * n * k < kCpuOneThreadFlops;
  const double threads = small ? 1 : units;
  const double footprint = p.bytes().value / batch;
  const double bandwidth = WarmRate(device, footprint, threads);
  Parts parts;
  parts.tile = {kCpuTileN, kCpuTileM};
  parts.waves = std::ceil(m / kCpuTileN / threads);
  parts.start = batch * (device.launch.value + (threads > 1 ? kCpuThreadedStartUs * 1e-6 : 0));
  if (p.m == 1 || p.n == 1) {
    parts.memory = batch * footprint / (bandwidth * kCpuVectorShare);
    return parts;
  }
  const double padded = std::ceil(n / kCpuTileM) * kCpuTileM * std::ceil(m / kCpuTileN) * kCpuTileN;
  const double peak = rate.flops_per_unit_clock * threads * device.sustained_clock.value;
  parts.matrix = batch * 2 * padded * (k + kCpuHalfK) / (peak * efficiency);
  const double operands = small ? 0 : kCpuPackPasses * (m * k + n * k) * SizeOf(p.dtype);
  parts.reduction = batch * (operands + kCpuCPasses * m * n * SizeOf(p.dtype_out)) / bandwidth;
  return parts;
}

}  // namespace

bool IsVendorLibrary(std::string_view family) {
  constexpr std::array<std::string_view, 8> kNames = {"library",  "cublas", "hipblaslt", "rocblas",
                                                      "openblas", "blis",   "onednn",    "mkl"};
  return std::find(kNames.begin(), kNames.end(), family) != kNames.end();
}

Prediction PredictLibrary(const Device& device, const Problem& problem, int units) {
  const Rate* rate = device.FindRate(problem.dtype);
  if (!rate) rate = device.FindRate(DType::kFp32);
  GNOMON_CHECK(rate, "{} has no rate for {} nor for fp32", device.id, Name(problem.dtype));
  const double used = units > 0 ? units : device.units;
  const bool cpu = device.kind == Device::Kind::kCpu;
  const Parts parts =
      cpu ? PredictCpu(device, problem, used, *rate) : PredictGpu(device, problem, used, *rate);

  Prediction out;
  out.time = {parts.total()};
  // Median errors on rows that nothing was fitted on (docs/model.md).
  constexpr double kCpuError = 0.14, kGpuError = 0.07;
  out.relative_error = cpu ? kCpuError : kGpuError;
  const double body = parts.body();
  out.bound = parts.start > body + parts.reduction ? Bound::kLaunch
              : body == parts.matrix               ? Bound::kCompute
              : body == parts.memory               ? Bound::kMemory
                                                   : Bound::kLatency;
  const std::string tile = fmt::format("tile {}x{}, split {}, {:.3g} waves on {} units",
                                       parts.tile.m, parts.tile.n, parts.split, parts.waves, used);
  out.terms.push_back(
      {"start", {parts.start}, cpu ? "call, fork and join" : "start, prologue and drain"});
  if (body == parts.matrix) {
    out.terms.push_back({"matrix", {body}, tile});
  } else if (body == parts.memory) {
    out.terms.push_back({"memory", {body}, "each operand moved once; " + tile});
  } else {
    out.terms.push_back({"chain", {body}, "k steps of one tile in a row; " + tile});
  }
  if (parts.reduction > 0)
    out.terms.push_back(
        {cpu ? "copies" : "reduction",
         {parts.reduction},
         cpu ? "both operands copied into panels, C passed over by beta and by the tiles"
             : "partial sums of the split added"});
  return out;
}

}  // namespace gnomon
