// A vendor's GEMM library as a black box: the dispatch between GPUs (library_gpu.cc) and CPUs, and
// the CPU part.
//
//   time = calls and threads + max(matrix, memory) + copies into panels
//   matrix = 2·(m and n rounded up to the register tile)·(k + load and store of a tile) / rate
//
// It has the library's register tile, its packing and C's traffic at the level that holds them, and
// the cost of waking threads. Left out: alignment of leading dimensions, batched entry points (a
// batch is a loop of calls, and so are groups, each taken to have their mean rows).

#include "gnomon/gemm/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gnomon/gemm/library_gpu.h"

namespace gnomon {
namespace {

struct Parts {
  double start = 0, matrix = 0, memory = 0, copies = 0;  // seconds
  double body() const { return std::max(matrix, memory); }
  double total() const { return start + body() + copies; }
};

double Side(std::int64_t value) { return static_cast<double>(value); }

// OpenBLAS, what LibTorch runs on Debian. Fitted on the odd rows of its times on
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
  const double batch = Side(p.Products()), m = Side(p.m) / (p.grouped() ? batch : 1);
  const double n = Side(p.n), k = Side(p.k);
  const auto stated = device.framework.gemm_efficiency.find(p.dtype);
  const double efficiency =
      stated == device.framework.gemm_efficiency.end() ? kCpuEfficiency : stated->second;
  const bool small = 2 * m * n * k < kCpuOneThreadFlops;
  const double threads = small ? 1 : units;
  const double footprint = p.bytes().value / batch;
  const double bandwidth = WarmRate(device, footprint, threads);
  Parts parts;
  parts.start = batch * (device.launch.value + (threads > 1 ? kCpuThreadedStartUs * 1e-6 : 0));
  if (p.m == 1 || p.n == 1) {
    parts.memory = batch * footprint / (bandwidth * kCpuVectorShare);
    return parts;
  }
  const double padded = std::ceil(n / kCpuTileM) * kCpuTileM * std::ceil(m / kCpuTileN) * kCpuTileN;
  const double peak = rate.flops_per_unit_clock * threads * device.sustained_clock.value;
  parts.matrix = batch * 2 * padded * (k + kCpuHalfK) / (peak * efficiency);
  const double operands = small ? 0 : kCpuPackPasses * (m * k + n * k) * SizeOf(p.dtype);
  parts.copies = batch * (operands + kCpuCPasses * m * n * SizeOf(p.dtype_out)) / bandwidth;
  return parts;
}

}  // namespace

bool IsVendorLibrary(std::string_view family) {
  constexpr std::array<std::string_view, 8> kNames = {"library",  "cublas", "hipblaslt", "rocblas",
                                                      "openblas", "blis",   "onednn",    "mkl"};
  return std::find(kNames.begin(), kNames.end(), family) != kNames.end();
}

Prediction PredictLibrary(const Device& device, const Problem& problem, int units,
                          const LibraryConditions& conditions, std::string_view family) {
  const Rate* rate = device.FindRate(problem.dtype);
  if (!rate) rate = device.FindRate(DType::kFp32);
  GNOMON_CHECK(rate, "{} has no rate for {} nor for fp32", device.id, Name(problem.dtype));
  const double used = units > 0 ? units : device.units;
  if (device.kind == Device::Kind::kGpu)
    return PredictGpuLibrary(device, problem, used, *rate, conditions, family);

  const Parts parts = PredictCpu(device, problem, used, *rate);
  Prediction out;
  out.time = {parts.total()};
  // Median error on rows that nothing was fitted on (docs/model.md).
  constexpr double kCpuError = 0.14;
  out.relative_error = kCpuError;
  const double body = parts.body();
  out.bound = parts.start > body + parts.copies ? Bound::kLaunch
              : body == parts.matrix            ? Bound::kCompute
                                                : Bound::kMemory;
  out.terms.push_back({"start", {parts.start}, "call, fork and join"});
  if (body == parts.matrix)
    out.terms.push_back({"matrix", {body}, fmt::format("tile {}x{}", kCpuTileN, kCpuTileM)});
  else
    out.terms.push_back({"memory", {body}, "each operand moved once"});
  if (parts.copies > 0)
    out.terms.push_back(
        {"copies",
         {parts.copies},
         "both operands copied into panels, C passed over by beta and by the tiles"});
  return out;
}

}  // namespace gnomon
