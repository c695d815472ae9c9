// Which configs family cuda tries.
//
//   kernels   every row of the table: tma where TMA can load A and B, copy and pad where it cannot
//             (copy could do both, but issues an instruction for what TMA does by itself, and then
//             waits: never the faster of the two)
//   clusters  only along a side with more than one tile
//   order     group_m near-square: what runs at once then touches the fewest rows and columns; and
//             the powers of two around it, as many as make kLeastConfigs configs in all
//   splits    where tiles leave workers idle: those that fill one and two waves, and fewer parts;
//             each part has kLeastSteps k steps; added by a second kernel or by the last CTA
//   stream-K  where much of the last of few waves is idle
//   vector    whatever fits a skinny problem (vector_price.h)
//
// An exhaustive measurement of a shape covers this space; the search (kernel_search.h) gives its
// least time. Where K is a single step and C a single tile the configs that are left differ in
// little but their order of tiles.

#include "gnomon/families/cuda/kernel_space.h"

#include <algorithm>
#include <cmath>

namespace gnomon::cuda {
namespace {

constexpr std::size_t kLeastConfigs = 60;  // what an exhaustive measurement should choose from
constexpr std::size_t kLeastOrders = 3, kMostOrders = 10;
constexpr std::int64_t kLeastSteps = 4;  // k steps of a part: fewer do not pay for its sums
constexpr std::int64_t kMostSplit = 64;
constexpr double kMostStreamWaves = 8;        // beyond: the idle rest is a small share
constexpr double kIdleWorthStreaming = 0.05;  // of all waves
constexpr std::size_t kMostSplits = 5;
static_assert(kMostOrders + 2 * kMostSplits + 1 <= kMostWays);

// Rows of tiles to walk together.
std::int32_t SquareGroup(const KernelCandidate& placed) {
  const KernelTile& tile = *placed.tile;
  if (placed.grid.clusters <= tile.workers) return 1;  // all run at once in any order
  const TileKernel& cluster = tile.blocks.front().cluster;
  const double rows = std::sqrt(tile.workers * cluster.tile_n / cluster.tile_m);
  std::int32_t group = 1;
  while (group * std::sqrt(2.0) < rows && group < placed.grid.rows) group *= 2;
  return group;
}

bool WorthStreaming(const KernelCandidate& placed, std::int64_t steps) {
  const double waves = placed.grid.clusters / placed.tile->workers;
  const double idle = std::ceil(waves) - waves;
  return waves < kMostStreamWaves && idle > kIdleWorthStreaming * std::ceil(waves) &&
         placed.grid.clusters * static_cast<double>(steps) >=
             static_cast<double>(kLeastSteps) * placed.tile->workers;
}

bool CanRun(const KernelCandidate& candidate, const Problem& p) {
  return FindGridObstacle(p, candidate.config(), candidate.grid.clusters,
                          static_cast<int>(candidate.tile->workers)) == GridObstacle::kNone;
}

}  // namespace

KernelKind KindOf(const Problem& p) {
  const bool run = p.LeadingC() == p.n && static_cast<double>(p.n) * SizeOf(p.dtype_out) <=
                                              static_cast<double>(kStepBytes);
  return {p.dtype,      p.dtype_out, p.layout, TmaLoads(p) ? Kind::kTma : Kind::kCopy,
          TmaStores(p), run};
}

Result<KernelSpace> MakeKernelSpace(const Device& device, const KernelKind& kind, int units) {
  GNOMON_ASSIGN(const TileMachine machine, TileMachineOf(device, kind.dtype, units));
  KernelSpace space;
  space.kind = kind;
  space.machines = MachinesOf(machine);
  if (!HasTiles(kind.dtype, kind.layout)) return space;
  const auto add = [&](Kind of) {
    for (const KernelConfig& kernel : KernelsOf(of)) {
      const KernelTile tile = TileOf(machine, space.machines, kind, kernel);
      if (tile.workers >= 1) space.tiles.push_back(tile);
    }
  };
  add(kind.kind);
  if (kind.kind == Kind::kCopy) add(Kind::kPad);
  GNOMON_CHECK(space.tiles.size() <= kMostTiles, "more kernels than kMostTiles");
  return space;
}

void PlaceTiles(std::span<const KernelTile> tiles, const Problem& p, PlacedTiles& placed) {
  // Sides of whole clusters, counted once each: of a grouped problem every group is looked at.
  struct Counted {
    std::int32_t side = 0;
    double count = 0;
  };
  std::array<Counted, kMostTiles> rows;
  std::size_t known = 0;
  const auto rows_of = [&](std::int32_t side) {
    for (std::size_t i = 0; i < known; ++i)
      if (rows[i].side == side) return rows[i].count;
    rows[known] = {side, RowsOfTiles(p, side)};
    return rows[known++].count;
  };
  placed.count = 0;
  for (const KernelTile& tile : tiles) {
    const KernelConfig& c = tile.kernel;
    if ((c.cluster_m > 1 && p.m <= c.tile_m) || (c.cluster_n > 1 && p.n <= c.tile_n)) continue;
    KernelCandidate& candidate = placed.of[placed.count];
    candidate = {&tile, GridOf(p, rows_of(c.tile_m * c.cluster_m),
                               ColumnsOfTiles(p, c.tile_n * c.cluster_n))};
    if (CanRun(candidate, p)) ++placed.count;
  }
  const std::size_t each = placed.count > 0 ? (kLeastConfigs - 1) / placed.count + 1 : 0;
  placed.orders = std::clamp(each, kLeastOrders, kMostOrders);
}

std::size_t WaysOf(const KernelCandidate& placed, std::size_t orders, const Problem& p,
                   std::span<KernelCandidate, kMostWays> ways) {
  std::size_t count = 0;
  const std::int32_t square = SquareGroup(placed);
  const auto order = [&](std::int64_t group_m) {
    if (group_m < 1 || count == orders) return;
    ways[count] = placed;
    ways[count++].group_m = static_cast<std::int32_t>(group_m);
  };
  order(square);
  std::int64_t factor = 2;
  while (count < orders) {
    order(square * factor);
    order(square % factor == 0 ? square / factor : 0);
    factor *= 2;
  }

  const auto way = [&](Cut cut, std::int64_t split, bool fix_up) {
    KernelCandidate& candidate = ways[count];
    candidate = placed;
    candidate.cut = cut;
    candidate.split_k = static_cast<std::int32_t>(split);
    candidate.fix_up = fix_up;
    if (CanRun(candidate, p)) ++count;
  };
  const std::int64_t steps = StepsOf(p);
  const double tiles = placed.grid.clusters, workers = placed.tile->workers;
  if (tiles < workers && steps >= 2 * kLeastSteps) {
    const std::int64_t most = std::min(steps / kLeastSteps, kMostSplit);
    const auto filling = [&](double waves) {
      return std::min(static_cast<std::int64_t>(waves * workers / tiles), most);
    };
    const std::int64_t one = filling(1);
    // Few parts also where more would fill the device: each part is sums to write and to add.
    constexpr std::int64_t kMany = 16, kSome = 8;
    std::array<std::int64_t, kMostSplits> tried{};
    std::size_t so_far = 0;
    const std::size_t most_tried = placed.tile->kernel.kind == Kind::kPad ? 3 : tried.size();
    for (const std::int64_t split :
         {one, std::min(kSome, one), std::min(kMany, one), one * 2 / 3, one / 2, filling(2)}) {
      if (so_far == most_tried) break;
      const auto end = tried.begin() + static_cast<std::ptrdiff_t>(so_far);
      if (split < 2 || std::find(tried.begin(), end, split) != end) continue;
      tried[so_far++] = split;
      way(Cut::kParts, split, false);
      way(Cut::kParts, split, true);
    }
  }
  if (WorthStreaming(placed, steps)) way(Cut::kStream, 1, false);
  return count;
}

}  // namespace gnomon::cuda
