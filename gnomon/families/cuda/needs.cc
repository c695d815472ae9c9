// What a TMA kernel needs.
//
//   registers      tile_m·tile_n / (128 · consumers) accumulators a thread + kOtherRegisters ≤ 232
//                  (sm90; ping-pong: a tile a warpgroup); sm100 has them in tensor memory
//   tensor memory  128 lanes × columns: tile columns · ⌈rows / 128⌉ · accumulators, a power of two
//                  from 32 to 512
//   shared memory  stages · (A + B of a k step) + a box of C for each storing warpgroup, twice +
//                  barriers; a CTA of a pair (sm100) holds half of the common operand
//   workspace      fp32 partial sums: a split's, whole; stream-K's, two tiles a CTA
//   TMA            leading dimensions of whole 16 bytes; boxes of at most 256 rows
//
// Facts: PTX ISA (wgmma, tcgen05, setmaxnreg, cp.async.bulk.tensor), CUDA programming guide.

#include "gnomon/families/cuda/needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "gnomon/gemm/tile_model.h"

namespace gnomon::cuda {
namespace {

constexpr double kThreads = 128, kWarps = 4;  // of a warpgroup
constexpr double kOtherRegisters = 48;        // descriptors, loop state, C on its way out
constexpr double kMostRegisters = 232;        // of a consumer after setmaxnreg, two of them a CTA
constexpr double kProducerRegisters = 40;     // the same of the producer's warpgroup
constexpr double kEpilogueRegisters = 128;    // sm100: of warps that take C out of tensor memory
constexpr std::int32_t kWgmmaRows = 64, kColumnStep = 8;  // wgmma: 64 rows a warpgroup
constexpr std::int32_t kLanes = 128, kHalfLanes = 64, kTcgenColumnStep = 16;  // tcgen05
constexpr std::int32_t kMostColumns = 256;  // of one matrix instruction
constexpr double kLeastTensorColumns = 32;
constexpr double kBoxRows = 64, kBoxColumnBytes = 128;   // of C on its way out: one swizzled box
constexpr double kBarrierBytes = 16, kAlignment = 1024;  // full and empty of a stage; swizzle atoms
constexpr std::int32_t kMostCluster = 8;                 // portable
constexpr double kMostGrid = 2147483647.0;               // CTAs of a launch
constexpr std::int64_t kTmaBytes = 16;
constexpr std::int64_t kScaleBlock = 32;  // elements of an MX format that share a byte of scale

bool IsMx(DType dtype) {
  return dtype == DType::kMxFp8 || dtype == DType::kMxFp6 || dtype == DType::kMxFp4;
}

std::int32_t Warpgroups(const TileConfig& c) { return c.ping_pong ? 1 : c.consumers; }

bool Aligned(std::int64_t rows, std::int64_t leading, DType dtype) {
  if (rows == 1) return true;  // TMA is told any stride
  constexpr std::int64_t kBits = 8, kTmaBits = kTmaBytes * kBits;
  const auto bits = static_cast<std::int64_t>(SizeOf(dtype) * static_cast<double>(kBits));
  return leading % kTmaBits * bits % kTmaBits == 0;
}

bool Hopper(Generation generation) { return generation == Generation::kSm90; }

}  // namespace

ElementBytes ElementBytesOf(DType dtype, DType dtype_out) {
  ElementBytes bytes;
  const double size = SizeOf(dtype);
  bytes.stored = size + (IsMx(dtype) ? 1.0 / static_cast<double>(kScaleBlock) : 0);
  // TMA pads 6-bit elements to bytes.
  bytes.staged = dtype == DType::kMxFp6 ? SizeOf(DType::kMxFp8) : size;
  bytes.out = SizeOf(dtype_out);
  return bytes;
}

bool RowsAlongM(Generation generation, const TileConfig& c) {
  if (Hopper(generation)) return c.tile_m % kWgmmaRows == 0;
  if (c.tile_m % kLanes == 0) return true;
  return c.tile_m == kHalfLanes && c.tile_n % kLanes != 0;
}

UnitNeeds UnitNeedsOf(Generation generation, const TileConfig& c, const ElementBytes& bytes) {
  UnitNeeds needs;
  const double m = c.tile_m, n = c.tile_n, k = c.tile_k;
  double held_m = m, held_n = n;
  double storing = 1;
  if (Hopper(generation)) {
    needs.consumer_registers = m * n / (kThreads * Warpgroups(c)) + kOtherRegisters;
    const double groups = c.consumers + 1;
    needs.launch_registers = (needs.consumer_registers * c.consumers + kProducerRegisters) / groups;
    needs.warps = kWarps * groups;
    storing = c.consumers;
  } else {
    const bool along_m = RowsAlongM(generation, c);
    const double rows = along_m ? m : n, columns = along_m ? n : m;
    const double used = columns * std::ceil(rows / kLanes) * c.accumulators;
    needs.tensor_columns = std::max(
        kLeastTensorColumns, static_cast<double>(std::bit_ceil(static_cast<std::uint32_t>(used))));
    needs.consumer_registers = needs.launch_registers = kEpilogueRegisters;
    needs.warps = 2 * kWarps;  // producer, issuer and four that store
    if (c.pair == 2) (along_m ? held_n : held_m) /= 2;
  }
  const double staged = std::min(m * n * bytes.out, 2 * storing * kBoxRows * kBoxColumnBytes);
  needs.shared = {c.stages * ((held_m + held_n) * k * bytes.staged + kBarrierBytes) + staged +
                  kAlignment};
  return needs;
}

Bytes WorkspaceOf(const Problem& problem, const TileConfig& c, std::int32_t split_k, double units) {
  const double sum = SizeOf(DType::kFp32);
  if (c.stream_k) return {2 * sum * c.tile_m * c.tile_n * units};
  if (split_k == 1) return {};
  return {sum * split_k * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
          static_cast<double>(problem.batch)};
}

Obstacle FindUnitObstacle(const Device& device, Generation generation, const TileConfig& c,
                          const ElementBytes& bytes) {
  using enum Obstacle;
  const bool along_m = RowsAlongM(generation, c);
  const std::int32_t rows = along_m ? c.tile_m : c.tile_n, columns = along_m ? c.tile_n : c.tile_m;
  if (columns > kMostColumns || rows > kMostColumns) return kTile;
  if (std::fmod(c.tile_k * bytes.staged, kInstructionBytes) != 0) return kDepth;
  if (c.cluster_m * c.cluster_n > kMostCluster) return kCluster;
  if (Hopper(generation)) {
    if (rows % kWgmmaRows != 0 || columns % kColumnStep != 0) return kTile;
    const std::int32_t groups = Warpgroups(c);
    if (rows % (kWgmmaRows * groups) != 0 && columns % (kColumnStep * groups) != 0)
      return kConsumers;
  } else {
    if ((rows != kHalfLanes && rows % kLanes != 0) || columns % kTcgenColumnStep != 0) return kTile;
    if (c.pair == 2 && ((along_m ? c.cluster_m : c.cluster_n) % 2 != 0 || rows % kLanes != 0 ||
                        columns % (2 * kTcgenColumnStep) != 0))
      return kPair;
  }
  const UnitNeeds needs = UnitNeedsOf(generation, c, bytes);
  if (needs.consumer_registers > kMostRegisters) return kRegisters;
  if (needs.shared > device.shared_memory_block) return kShared;
  const double columns_there = device.tensor_memory.value / (kLanes * SizeOf(DType::kFp32));
  if (needs.tensor_columns > std::min(kTensorColumns, columns_there)) return kTensorMemory;
  return kNone;
}

Obstacle FindGridObstacle(const Problem& problem, const TileConfig& c, std::int32_t split_k,
                          double clusters, double units) {
  using enum Obstacle;
  if (split_k > 1 && (problem.k + c.tile_k - 1) / c.tile_k < split_k) return kParts;
  // The tiles of a persistent grid are counted in 32 bits, too.
  if (clusters * c.cluster_m * c.cluster_n * split_k > kMostGrid) return kGrid;
  if (WorkspaceOf(problem, c, split_k, units) > problem.workspace.value_or(kUsualWorkspace))
    return kWorkspace;
  return kNone;
}

std::string WhyNot(const Device& device, Generation generation, const Problem& problem,
                   const TileConfig& c, int units) {
  const Status status = CheckProblemFor(device, generation, problem);
  if (!status.ok()) return status.error().message;
  const ElementBytes bytes = ElementBytesOf(problem);
  const double used = units > 0 ? units : device.units;
  Obstacle obstacle = FindUnitObstacle(device, generation, c, bytes);
  const double clusters = RowsOfTiles(problem, c.tile_m * c.cluster_m) *
                          std::ceil(static_cast<double>(problem.n) / (c.tile_n * c.cluster_n)) *
                          static_cast<double>(problem.batch);
  if (obstacle == Obstacle::kNone)
    obstacle = FindGridObstacle(problem, c, c.split_k, clusters, used);
  const UnitNeeds needs = UnitNeedsOf(generation, c, bytes);
  constexpr double kMega = 1e6;
  switch (obstacle) {
    case Obstacle::kNone:
      return {};
    case Obstacle::kTile:
      return fmt::format("no matrix instruction makes a tile of {}x{}", c.tile_m, c.tile_n);
    case Obstacle::kDepth:
      return fmt::format("a k step of {} is not made of whole {}-byte instructions", c.tile_k,
                         kInstructionBytes);
    case Obstacle::kConsumers:
      return fmt::format("a tile of {}x{} cannot be halved between {} warpgroups", c.tile_m,
                         c.tile_n, c.consumers);
    case Obstacle::kPair:
      return fmt::format(
          "a pair of CTAs needs 128 rows each, columns in steps of {} and a cluster "
          "along the rows",
          2 * kTcgenColumnStep);
    case Obstacle::kCluster:
      return fmt::format("a cluster of {}; portable ones have at most {}",
                         c.cluster_m * c.cluster_n, kMostCluster);
    case Obstacle::kRegisters:
      return fmt::format("{:.0f} registers a consumer thread; it has {:.0f}",
                         needs.consumer_registers, kMostRegisters);
    case Obstacle::kShared:
      return fmt::format("{:.0f} bytes of shared memory; a CTA has {:.0f}", needs.shared.value,
                         device.shared_memory_block.value);
    case Obstacle::kTensorMemory:
      return fmt::format("{:.0f} columns of tensor memory; a unit has {:.0f}", needs.tensor_columns,
                         kTensorColumns);
    case Obstacle::kParts:
      return fmt::format("K has fewer steps of {} than {} parts", c.tile_k, c.split_k);
    case Obstacle::kGrid:
      return "more CTAs than a launch can count in 32 bits";
    case Obstacle::kWorkspace:
      return fmt::format("{:.3g} MB of partial sums; the workspace has {:.3g}",
                         WorkspaceOf(problem, c, c.split_k, used).value / kMega,
                         problem.workspace.value_or(kUsualWorkspace).value / kMega);
  }
  return {};
}

Status CheckProblemFor(const Device& device, Generation generation, const Problem& problem) {
  const std::string_view family = Hopper(generation) ? "sm90" : "sm100";
  if (!device.arch.starts_with(Hopper(generation) ? "sm_90" : "sm_10"))
    return BadInput(fmt::format("family {} runs on {}, and {} is none", family,
                                Hopper(generation) ? "Hopper GPUs" : "Blackwell GPUs", device.id),
                    "device");
  GNOMON_TRY(CheckProblem(problem));
  const DType dtype = problem.dtype;
  switch (dtype) {
    case DType::kTf32:
    case DType::kFp16:
    case DType::kBf16:
    case DType::kFp8E4m3:
    case DType::kFp8E5m2:
    case DType::kInt8:
      break;
    case DType::kMxFp8:
    case DType::kMxFp6:
    case DType::kMxFp4:
      if (!Hopper(generation)) break;
      [[fallthrough]];
    default:
      return BadInput(fmt::format("family {} has no kernel for {}", family, Name(dtype)), "dtype");
  }
  if (SizeOf(dtype) != 2 && problem.layout != Layout::kNT)
    return BadInput(
        fmt::format("family {} takes {} in layout nt only: its matrix instructions want "
                    "K next to K",
                    family, Name(dtype)),
        "layout");
  if (IsMx(dtype) && problem.k % kScaleBlock != 0)
    return BadInput(
        fmt::format("K is {}; {} has a scale for every {}", problem.k, Name(dtype), kScaleBlock),
        "k");
  const auto unaligned = [&](std::string_view operand) {
    return BadInput(fmt::format("rows of {} are not whole {} bytes, which TMA needs; unaligned "
                                "operands need another family (triton)",
                                operand, kTmaBytes),
                    "problem");
  };
  if (!Aligned(problem.a_transposed() ? problem.k : problem.m, problem.LeadingA(), dtype))
    return unaligned("A");
  if (!Aligned(problem.b_transposed() ? problem.n : problem.k, problem.LeadingB(), dtype))
    return unaligned("B");
  if (!Aligned(problem.m, problem.LeadingC(), problem.dtype_out)) return unaligned("C");
  return Done{};
}

double UnitsInClusters(double units, double cluster) {
  // Units come in TPCs of two; TPCs are spread over eight GPCs as evenly as they go (GH100: six
  // GPCs of 16 and two of 18 make 132; cuda_occupancy gives 32 clusters of four there).
  constexpr std::int32_t kGpcs = 8, kTpcUnits = 2;
  if (cluster <= 1) return units;
  const std::int32_t all = static_cast<std::int32_t>(units), tpcs = all / kTpcUnits;
  const std::int32_t size = static_cast<std::int32_t>(cluster);
  std::int32_t used = 0;
  for (std::int32_t gpc = 0; gpc < kGpcs; ++gpc)
    used += (tpcs + gpc) / kGpcs * kTpcUnits / size * size;
  return used;
}

}  // namespace gnomon::cuda
