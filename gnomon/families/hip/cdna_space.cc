// The config space: macro tiles as hipBLASLt's kernels have them × depths × splits.
//
//   tiles     sides of 16 to 256; a side twice as long as the problem's is left out
//   depth     128 bytes of a row; 256 for tiles whose k step is short of work
//   split     1, and where the tiles leave units idle, up to what fills two waves
//   stream-K  where there is more than one wave: it trades the idle rest of the last one for seams
//
// The rest follows: 16x16 instructions (the same rate as 32x32, twice the tile shapes), four waves,
// two k steps under way, direct-to-LDS where rows are aligned, tiles walked in near-squares an XCD,
// non-temporal loads where one operand is read once and does not fit the last-level cache. Left
// out: small tiles for grids that large ones already fill many times over.
//
// What fits a unit depends on the device, the dtypes and the alignment of rows alone: it is worked
// out once, and a problem only says which of it is launched how.

#include "gnomon/families/hip/cdna_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gnomon::hip {
namespace {

struct Sides {
  std::int32_t m, n;
};
// The long tiles stand in one orientation and are tried in both.
constexpr std::array kSides = {Sides{256, 256}, Sides{256, 224}, Sides{256, 192}, Sides{256, 160},
                               Sides{256, 128}, Sides{192, 128}, Sides{128, 128}, Sides{256, 64},
                               Sides{256, 32},  Sides{128, 96},  Sides{128, 64},  Sides{96, 64},
                               Sides{64, 64},   Sides{128, 32},  Sides{64, 32},   Sides{32, 32},
                               Sides{128, 16},  Sides{64, 16},   Sides{32, 16},   Sides{16, 16}};

constexpr std::array<std::int32_t, 9> kSplits = {2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr size_t kMostLaunches = kSplits.size() + 1;

constexpr std::int32_t kSmallSide = 32;  // always tried
constexpr double kDepthBytes = 128, kDeepBytes = 256;
constexpr std::int32_t kDeepSides = 128;  // tiles up to this sum of sides also come deep
// Small tiles are left out where this many waves of 128x128 tiles fill the units anyway.
constexpr double kMiddleArea = 128 * 128, kSmallArea = 64 * 64;
constexpr double kWavesForMiddle = 4, kWavesForSmall = 1;
constexpr double kIdleWorthStreaming = 0.05;  // of the last wave
constexpr double kLeastSteps = 4;             // k steps of a part
constexpr double kMostWaves = 2.1;            // of workgroups with a split
constexpr std::int32_t kMostMapping = 16;
constexpr double kLanes = 64;  // of a wave

bool IsMx(DType dtype) {
  return dtype == DType::kMxFp8 || dtype == DType::kMxFp6 || dtype == DType::kMxFp4;
}

// Settles what follows from the tile; false where no way of running it remains.
bool Fits(const CdnaLimits& limits, CdnaConfig& c) {
  if (FindObstacle(limits, c) == Obstacle::kNone) return true;
  c.direct_to_lds = 0;
  if (FindObstacle(limits, c) == Obstacle::kNone) return true;
  c.prefetch = 1;
  return FindObstacle(limits, c) == Obstacle::kNone;
}

void AddTile(const CdnaLimits& limits, const Sides& sides, double bytes, CdnaSpace& space) {
  const MatrixInstruction& mma = limits.instructions.front();
  CdnaConfig c;
  c.tile_m = sides.m;
  c.tile_n = sides.n;
  c.mma_m = mma.m;
  c.mma_n = mma.n;
  c.mma_k = mma.k;
  c.tile_k = std::max(static_cast<std::int32_t>(bytes / limits.size) / mma.k, 1) * mma.k;
  c.direct_to_lds = limits.rows_aligned ? 1 : 0;
  if (!Fits(limits, c)) return;
  space.configs.push_back(c);
  const CdnaKernel kernel = KernelOf(c);
  space.tiles.push_back({kernel, CdnaBlockOf(space.machine, *space.traits, kernel)});
}

// Rows of tiles, a power of two, that make what runs together on a die near-square.
std::int32_t MappingOf(const CdnaMachine& machine, const CdnaTile& tile, double waves) {
  const double together = std::max(
      1.0, machine.units * std::min(std::max(1.0, tile.block.occupancy), waves) / machine.dies);
  const double square = together * tile.kernel.tile_n / tile.kernel.tile_m;
  std::int32_t mapping = 1;
  while (mapping < kMostMapping && 2.0 * mapping * mapping < square) mapping *= 2;
  return mapping;
}

}  // namespace

const KernelFamilyTraits& TraitsOf(std::string_view arch, DType dtype) {
  if (arch == "gfx90a") arch = "gfx942";
  const KernelFamilyTraits* traits = FindKernelFamily("hipblaslt", arch, dtype);
  return traits ? *traits : GenericKernelFamily(arch, dtype);
}

CdnaKind KindOf(std::string_view arch, const Problem& problem) {
  return {problem.dtype, problem.dtype_out, RowsAligned(arch, problem)};
}

Result<CdnaSpace> MakeSpace(const Device& device, const CdnaKind& kind, int units) {
  CdnaSpace space;
  GNOMON_ASSIGN(space.machine, CdnaMachineOf(device, kind.dtype, units));
  Problem any;  // of the kind; larger than any tile is deep
  any.m = any.n = 1;
  any.k = std::int64_t{1} << 20;
  any.dtype = kind.dtype;
  any.dtype_out = kind.dtype_out;
  CdnaLimits limits(device, any, units);
  limits.rows_aligned = kind.rows_aligned;
  space.traits = &TraitsOf(device.arch, kind.dtype);
  space.accumulator = limits.accumulator;
  if (limits.instructions.empty())
    return BadInput(
        fmt::format("{} has no matrix instruction for {}", device.arch, Name(kind.dtype)),
        "problem.dtype");
  const auto both_depths = [&](const Sides& sides) {
    AddTile(limits, sides, kDepthBytes, space);
    if (sides.m + sides.n <= kDeepSides) AddTile(limits, sides, kDeepBytes, space);
  };
  for (const Sides& sides : kSides) {
    both_depths(sides);
    if (sides.m != sides.n) both_depths({sides.n, sides.m});
  }
  return space;
}

void EnumerateCdna(const CdnaSpace& space, const Problem& problem, const CdnaOperands& operands,
                   CdnaWays& ways) {
  ways.Clear(space.tiles.size(), kMostLaunches);
  if (IsMx(problem.dtype) && problem.k % kMxBlock != 0) return;
  const CdnaMachine& machine = space.machine;
  const double elements = operands.m * operands.n * operands.batch;
  const double middle_waves = elements / kMiddleArea / machine.units;
  const bool outgrows_cache = OutgrowsCache(machine, operands);
  const double workspace = problem.workspace.value_or(kUsualWorkspace).value;
  for (size_t i = 0; i < space.tiles.size(); ++i) {
    const CdnaTile& tile = space.tiles[i];
    const std::int32_t m = tile.kernel.tile_m, n = tile.kernel.tile_n;
    if ((m > 2 * operands.longest && m > kSmallSide) || (n > 2 * operands.n && n > kSmallSide))
      continue;
    const double area = static_cast<double>(m) * n;
    if (operands.longest > m && operands.n > n &&
        ((area < kMiddleArea && middle_waves > kWavesForMiddle) ||
         (area < kSmallArea && middle_waves > kWavesForSmall)))
      continue;
    const CdnaTask task = CdnaTaskOf(machine, *space.traits, operands, tile.kernel, tile.block);
    CdnaLaunch launch;
    launch.tile = static_cast<std::uint32_t>(i);
    launch.task = static_cast<std::uint32_t>(ways.tasks.size());
    launch.non_temporal = outgrows_cache && (task.rows <= operands.batch || task.columns <= 1);
    ways.tasks.push_back(task);
    const auto add = [&](double waves) {
      launch.mapping = MappingOf(machine, tile, waves);
      ways.launches.push_back(launch);
    };
    const double work_items = kLanes * tile.kernel.waves * task.tiles;
    if (work_items < kMostWorkItems) add(task.waves);
    if (task.waves > 1) {
      const double whole = std::ceil(task.waves);
      launch.stream_k = true;
      if ((whole - task.waves > kIdleWorthStreaming * whole || work_items >= kMostWorkItems) &&
          space.accumulator * area * machine.units <= workspace)
        add(1);
      continue;
    }
    for (const std::int32_t split : kSplits) {
      if (task.waves * split > kMostWaves || task.steps < kLeastSteps * split ||
          space.accumulator * split * elements > workspace || work_items * split >= kMostWorkItems)
        break;
      launch.split_k = split;
      add(task.waves * split);
    }
  }
}

CdnaConfig ConfigOf(const CdnaSpace& space, const CdnaLaunch& launch) {
  CdnaConfig config = space.configs[launch.tile];
  config.split_k = launch.split_k;
  config.stream_k = launch.stream_k ? 1 : 0;
  config.mapping = launch.mapping;
  config.non_temporal = launch.non_temporal ? 1 : 0;
  return config;
}

}  // namespace gnomon::hip
