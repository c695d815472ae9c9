// What a kernel of family cuda needs.
//
//   tma      rows of A and B of whole 16 bytes, sides below 2^31 (a box starts at 32-bit
//            coordinates), strides below 2^40 bytes; C may have any leading dimension: what TMA
//            cannot store leaves by plain stores
//   copy     any alignment
//   pad      the same: room for the copies in the workspace
//   both     tiles · parts, and a worker's last stride beyond them, count in 32 bits (schedule.h)
//   scratch  a slot for each part of a tile that is cut: fp32 sums, and a value a row for the bias
//            gradient; before them the counters of parts that are there
//   groups   are not cut along K
//
// Facts: CUDA driver API, cuTensorMapEncodeTiled; kernel_arguments.h for the slots.

#include "gnomon/families/cuda/kernel_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gnomon/families/cuda/needs.h"
#include "gnomon/families/cuda/vector_price.h"

namespace gnomon::cuda {
namespace {

constexpr std::int64_t kTmaBytes = 16;
constexpr std::int64_t kMostStride = std::int64_t{1} << 40;  // bytes, of a tensor map
constexpr std::int64_t kMostSide = std::numeric_limits<std::int32_t>::max();
constexpr double kMostTiles = std::numeric_limits<std::int32_t>::max();

#define GNOMON_TMA_ROW(m, n, consumers, cluster_m, cluster_n) \
  KernelConfig{Kind::kTma, m, n, Consumers::consumers, cluster_m, cluster_n},
#define GNOMON_COPY_ROW(m, n, consumers, cluster_m, cluster_n) \
  KernelConfig{Kind::kCopy, m, n, Consumers::consumers, cluster_m, cluster_n},
constexpr std::array kTmaKernels = {GNOMON_CUDA_TMA_TILES(GNOMON_TMA_ROW)};
#define GNOMON_PAD_ROW(m, n, consumers, cluster_m, cluster_n) \
  KernelConfig{Kind::kPad, m, n, Consumers::consumers, cluster_m, cluster_n},
constexpr std::array kPadKernels = {GNOMON_CUDA_TMA_TILES(GNOMON_PAD_ROW)};
#undef GNOMON_PAD_ROW
constexpr std::array kCopyKernels = {GNOMON_CUDA_COPY_TILES(GNOMON_COPY_ROW)};
#undef GNOMON_TMA_ROW
#undef GNOMON_COPY_ROW

int LoadBytes(std::int64_t leading, DType dtype) {
  const std::int64_t size = static_cast<std::int64_t>(SizeOf(dtype));
  const std::int64_t bytes = leading % kTmaBytes * size | kTmaBytes;
  return static_cast<int>(bytes & -bytes);  // the largest power of two that divides it
}

// The strides of a tensor map: from row to row, and from product to product.
bool Maps(const Problem& p, std::int64_t rows, std::int64_t leading, DType dtype) {
  const std::int64_t most = kMostStride / static_cast<std::int64_t>(SizeOf(dtype));
  return leading < most && (p.Products() == 1 || rows < most / leading);
}

std::int64_t RowsOfA(const Problem& p) { return p.a_transposed() ? p.k : p.m; }
std::int64_t RowsOfB(const Problem& p) { return p.b_transposed() ? p.n : p.k; }

constexpr double kFourBytes = 4;

bool Stores(DType in, DType out) {
  switch (out) {
    case DType::kFp32:
      return true;
    case DType::kTf32:
      return in == DType::kTf32 || in == DType::kFp32;
    case DType::kFp16:
      return in == DType::kFp16;
    case DType::kBf16:
      return in != DType::kFp16 && SizeOf(in) < kFourBytes;
    default:
      return false;
  }
}

bool SameKernel(const KernelConfig& a, const KernelConfig& b) {
  return a.tile_m == b.tile_m && a.tile_n == b.tile_n && a.consumers == b.consumers &&
         a.cluster_m == b.cluster_m && a.cluster_n == b.cluster_n;
}

// Of the kind's kernels, the one that looks most like it.
KernelConfig NearestKernel(const KernelConfig& c) {
  const auto apart = [](std::int32_t a, std::int32_t b) {
    return std::abs(std::log2(static_cast<double>(a) / b));
  };
  KernelConfig nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const KernelConfig& kernel : KernelsOf(c.kind)) {
    constexpr double kOther = 0.4;  // other warpgroups: less than another side
    const double distance = apart(kernel.tile_m, c.tile_m) + apart(kernel.tile_n, c.tile_n) +
                            apart(kernel.cluster_m, c.cluster_m) +
                            apart(kernel.cluster_n, c.cluster_n) +
                            (kernel.consumers == c.consumers ? 0 : kOther);
    if (distance < least) {
      least = distance;
      nearest = kernel;
    }
  }
  return nearest;
}

}  // namespace

std::span<const KernelConfig> KernelsOf(Kind kind) {
  switch (kind) {
    case Kind::kTma:
      return kTmaKernels;
    case Kind::kCopy:
      return kCopyKernels;
    case Kind::kPad:
      return kPadKernels;
    case Kind::kVector:
      break;
  }
  return {};
}

bool HasTiles(DType dtype, Layout layout) {
  switch (dtype) {
    case DType::kFp16:
    case DType::kBf16:
      return layout != Layout::kTT;
    case DType::kTf32:
    case DType::kFp8E4m3:
    case DType::kFp8E5m2:
      return layout == Layout::kNT;
    default:
      return false;
  }
}

std::int64_t StepsOf(const Problem& p) {
  const std::int64_t depth = StepDepth(p.dtype);
  return (p.k + depth - 1) / depth;
}

int LoadBytesOfA(const Problem& p) { return LoadBytes(p.LeadingA(), p.dtype); }
int LoadBytesOfB(const Problem& p) { return LoadBytes(p.LeadingB(), p.dtype); }

bool TmaLoads(const Problem& p) {
  return LoadBytesOfA(p) == kTmaBytes && LoadBytesOfB(p) == kTmaBytes &&
         Maps(p, RowsOfA(p), p.LeadingA(), p.dtype) && Maps(p, RowsOfB(p), p.LeadingB(), p.dtype);
}
bool TmaStores(const Problem& p) {
  // Not groups: a box at the end of one would reach into the next.
  return !p.grouped() && LoadBytes(p.LeadingC(), p.dtype_out) == kTmaBytes &&
         Maps(p, p.m, p.LeadingC(), p.dtype_out);
}

int WorkersOf(int units, const KernelConfig& c) {
  const int cluster = c.cluster_m * c.cluster_n;
  return static_cast<int>(UnitsInClusters(units, cluster)) / cluster;
}

std::int64_t WholeTiles(std::int64_t tiles, int workers) {
  if (tiles % workers == 0) return tiles;
  return tiles < workers ? 0 : (tiles / workers - 1) * workers;
}

Bytes ScratchOf(const KernelConfig& c, double tiles, int workers) {
  const double slots = c.stream_k ? 2.0 * workers : c.split_k > 1 ? c.split_k * tiles : 0;
  if (slots == 0) return {};
  const double slot = (static_cast<double>(c.tile_m) * c.tile_n + c.tile_m) * sizeof(float);
  return {static_cast<double>(kCounterBytes) + c.cluster_m * c.cluster_n * slots * slot};
}

Bytes PaddedBytesOf(const Problem& p) {
  return {(LoadBytesOfA(p) < kTmaBytes ? PaddedBytesOfA(p) : 0) +
          (LoadBytesOfB(p) < kTmaBytes ? PaddedBytesOfB(p) : 0)};
}

Bytes ScratchFor(const Problem& p, const KernelConfig& c, double tiles, int workers) {
  constexpr double kAlignments = 2 * 256;  // each copy begins at a multiple of 256 bytes
  const Bytes cut = ScratchOf(c, tiles, workers);
  if (c.kind != Kind::kPad) return cut;
  const double counters = cut.value > 0 ? 0 : double{kCounterBytes};
  return {cut.value + counters + PaddedBytesOf(p).value + kAlignments};
}

GridObstacle FindGridObstacle(const Problem& p, const KernelConfig& c, double tiles, int workers) {
  using enum GridObstacle;
  if (workers < 1) return kUnits;
  if (tiles * c.split_k + workers > kMostTiles) return kTiles;
  const Bytes granted = p.workspace.value_or(kUsualScratch);
  if (c.split_k == 1 && !c.stream_k)
    return c.kind != Kind::kPad || ScratchFor(p, c, tiles, workers) <= granted ? kNone : kScratch;
  if (p.grouped()) return kGroups;
  const std::int64_t steps = StepsOf(p);
  if (c.split_k > steps) return kParts;
  if (c.stream_k) {
    // Every worker has a step at least: the parts of a tile are counted by their workers.
    const double cut =
        tiles - static_cast<double>(WholeTiles(static_cast<std::int64_t>(tiles), workers));
    if (cut * static_cast<double>(steps) < workers) return kNothingToCut;
  }
  if (c.fix_up || c.stream_k) {
    constexpr double kWarpgroups = 2;
    const double counted = c.stream_k ? std::min(tiles, 2.0 * workers) : tiles;
    if (counted * c.cluster_m * c.cluster_n * kWarpgroups * sizeof(unsigned) > kCounterBytes)
      return kCounters;
  }
  return ScratchFor(p, c, tiles, workers) <= granted ? kNone : kScratch;
}

std::string WhyNot(const Device& device, const Problem& p, const KernelConfig& c, int units) {
  const Status status = CheckKernelProblem(device, p);
  if (!status.ok()) return status.error().message;
  if (c.kind == Kind::kVector) return WhyNotVector(p, c);
  if (!HasTiles(p.dtype, p.layout))
    return "tiles have no such dtype or layout; nearest kind: vector";
  bool known = false;
  for (const KernelConfig& kernel : KernelsOf(c.kind)) known = known || SameKernel(kernel, c);
  if (!known) {
    KernelConfig asked = c;
    asked.split_k = asked.group_m = 1;
    asked.fix_up = asked.stream_k = false;
    return fmt::format("no kernel {}; nearest: {}", Text(asked), Text(NearestKernel(c)));
  }
  if (c.kind == Kind::kTma && !TmaLoads(p))
    return fmt::format(
        "TMA loads rows of whole {} bytes; rows of A allow loads of {}, of B {}; "
        "nearest kind: copy",
        kTmaBytes, LoadBytesOfA(p), LoadBytesOfB(p));
  if (c.kind == Kind::kPad && TmaLoads(p))
    return "TMA loads both operands as they are; nearest kind: tma";
  const int workers = WorkersOf(units > 0 ? units : device.units, c);
  const double tiles = TilesOf(p, c);
  constexpr double kMega = 1e6;
  switch (FindGridObstacle(p, c, tiles, workers)) {
    case GridObstacle::kNone:
      return {};
    case GridObstacle::kUnits:
      return fmt::format("no room for a cluster of {} CTAs", c.cluster_m * c.cluster_n);
    case GridObstacle::kGroups:
      return "a grouped product is not cut along K; nearest: k1";
    case GridObstacle::kCounters:
      return "more tiles to add parts of than the workspace has counters; nearest: without .fix";
    case GridObstacle::kParts:
      return fmt::format("K has {} steps of {}; nearest split: k{}", StepsOf(p), StepDepth(p.dtype),
                         StepsOf(p));
    case GridObstacle::kNothingToCut:
      return fmt::format(
          "stream-K has nothing to cut: {:.0f} tiles of {} k steps for {} clusters; "
          "nearest: without .sk",
          tiles, StepsOf(p), workers);
    case GridObstacle::kTiles:
      return "more tiles than a kernel can count in 32 bits";
    case GridObstacle::kScratch:
      return fmt::format("{:.3g} MB of partial sums{}; the workspace has {:.3g}",
                         ScratchFor(p, c, tiles, workers).value / kMega,
                         c.kind == Kind::kPad ? " and copies" : "",
                         p.workspace.value_or(kUsualScratch).value / kMega);
  }
  return {};
}

Status CheckKernelProblem(const Device& device, const Problem& p) {
  if (!device.arch.starts_with("sm_90"))
    return BadInput(fmt::format("family cuda runs on Hopper GPUs, and {} is none", device.id),
                    "device");
  GNOMON_TRY(CheckProblem(p));
  if (!HasTiles(p.dtype, Layout::kNT) && !VectorDoes(p))
    return BadInput(fmt::format("family cuda has no kernel for {}; it has tf32, fp16, bf16, "
                                "fp8_e4m3 and fp8_e5m2, and fp32 for a side of at most {}",
                                Name(p.dtype), kSkinny),
                    "dtype");
  if (!Stores(p.dtype, p.dtype_out))
    return BadInput(
        fmt::format("family cuda stores a product of {} as fp32{}, not {}", Name(p.dtype),
                    p.dtype == DType::kFp16        ? " or fp16"
                    : SizeOf(p.dtype) < kFourBytes ? " or bf16"
                                                   : "",
                    Name(p.dtype_out)),
        "dtype_out");
  if (!HasTiles(p.dtype, p.layout) && !VectorDoes(p))
    return BadInput(p.layout == Layout::kTT
                        ? fmt::format("family cuda has layouts nt, nn and tn, and tt for a side of "
                                      "at most {}",
                                      kSkinny)
                        : fmt::format("family cuda takes {} in layout nt only: wgmma wants K next "
                                      "to K",
                                      Name(p.dtype)),
                    "layout");
  if (p.epilogue == Epilogue::kBiasGradient && !p.a_transposed())
    return BadInput("the bias gradient comes with a wgrad: layout tn", "epilogue");
  if (p.epilogue == Epilogue::kBiasGradient && p.grouped())
    return BadInput("a grouped product has no bias gradient", "epilogue");
  for (const std::int64_t side : {p.m, p.n, p.k})
    if (side > kMostSide)
      return BadInput(fmt::format("a side of {}; family cuda counts rows in 32 bits", side),
                      "problem");
  return Done{};
}

}  // namespace gnomon::cuda
