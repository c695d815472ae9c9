// Which configs families sm90 and sm100 try.
//
//   tiles      those of the vendor library's kernels, as traces name them, both ways round
//   depth      128 bytes of K: one swizzled TMA box
//   cluster    none, or two CTAs that share the longer operand of a step
//   stages     as many as shared memory holds, up to kMostStages
//   consumers  sm90: one warpgroup where its registers hold the tile, else two; ping-pong where
//              both hold one each
//   pair       sm100: the cluster's two CTAs as one matrix instruction, along its rows
//   waves      more than one: persistent, with two accumulators where tensor memory holds them, and
//              stream-K where much of the last wave is idle; else splits of K that fill one
//
// Left out: tiles more than twice as long as the problem's side; small tiles for grids that large
// ones fill many times over. Tile order: groups that make what is resident together near-square.

#include "gnomon/families/cuda/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace gnomon::cuda {
namespace {

struct Sides {
  std::int32_t m, n;
};
constexpr std::array kSides = {Sides{256, 256}, Sides{256, 192}, Sides{256, 128}, Sides{224, 128},
                               Sides{192, 192}, Sides{192, 128}, Sides{160, 128}, Sides{128, 128},
                               Sides{256, 64},  Sides{192, 64},  Sides{128, 96},  Sides{128, 64},
                               Sides{96, 64},   Sides{128, 32},  Sides{64, 64},   Sides{128, 16},
                               Sides{64, 32},   Sides{64, 16},   Sides{64, 8}};
constexpr std::int32_t kStepBytes = 128;   // of K
constexpr std::int32_t kMostStages = 12;   // more hide nothing that these do not
constexpr double kClusterArea = 128 * 64;  // smaller tiles do not load L2 enough to share
constexpr double kMiddleArea = 128 * 128, kSmallArea = 128 * 64;
constexpr double kWavesForMiddle = 4, kWavesForSmall = 1.5;
constexpr double kStreamArea = 128 * 128, kMostStreamWaves = 8, kIdleWorthStreaming = 0.05;
constexpr double kLeastSteps = 4;  // k steps of a part
constexpr std::int32_t kMostSplit = 64;
constexpr int kMostSplitsTried = 3;
constexpr std::int32_t kMostGroup = 16;
constexpr std::size_t kMostSides = 2 * kSides.size();  // a tile's and a cluster's of it

bool SameMachine(const TileMachine& a, const TileMachine& b) {
  return a.hertz == b.hertz && a.light_hertz == b.light_hertz && a.units == b.units &&
         a.matrix_flops == b.matrix_flops && a.registers == b.registers &&
         a.registers_per_thread == b.registers_per_thread && a.shared_bytes == b.shared_bytes &&
         a.shared_block_bytes == b.shared_block_bytes && a.shared_rate == b.shared_rate &&
         a.l2_bytes == b.l2_bytes && a.l2_rate == b.l2_rate && a.l2_unit_rate == b.l2_unit_rate &&
         a.l2_latency == b.l2_latency && a.hbm_rate == b.hbm_rate &&
         a.hbm_unit_rate == b.hbm_unit_rate && a.hbm_latency == b.hbm_latency &&
         a.start == b.start && a.max_waves == b.max_waves && a.max_blocks == b.max_blocks &&
         a.register_granularity == b.register_granularity;
}

class Builder {
 public:
  Builder(const Device& device, Generation generation, const TileMachine& machine,
          const ElementBytes& bytes, Space& space)
      : device_(device), generation_(generation), machine_(machine), bytes_(bytes), space_(space) {}

  void Run() {
    for (const Sides& sides : kSides) {
      AddTile(sides.m, sides.n);
      if (sides.m != sides.n) AddTile(sides.n, sides.m);
    }
  }

 private:
  void AddTile(std::int32_t m, std::int32_t n) {
    TileConfig c;
    c.tile_m = m;
    c.tile_n = n;
    c.tile_k = static_cast<std::int32_t>(kStepBytes / bytes_.staged);
    AddCluster(c);
    if (static_cast<double>(m) * n < kClusterArea) return;
    if (generation_ == Generation::kSm90) {
      (n >= m ? c.cluster_m : c.cluster_n) = 2;
    } else {
      (RowsAlongM(generation_, c) ? c.cluster_m : c.cluster_n) = 2;
      c.pair = 2;
    }
    AddCluster(c);
  }

  void AddCluster(const TileConfig& c) {
    const std::size_t first = space_.blocks.size();
    Multipliers(c);
    if (space_.blocks.size() == first) return;
    space_.tiles.push_back({c.tile_m, c.tile_n, c.cluster_m, c.cluster_n,
                            SideOf(c.tile_m * c.cluster_m), SideOf(c.tile_n * c.cluster_n), first,
                            space_.blocks.size()});
  }

  std::size_t SideOf(std::int32_t length) {
    std::vector<std::int32_t>& sides = space_.sides;
    const auto found = std::find(sides.begin(), sides.end(), length);
    if (found != sides.end()) return static_cast<std::size_t>(found - sides.begin());
    sides.push_back(length);
    return sides.size() - 1;
  }

  void Multipliers(TileConfig c) {
    if (generation_ == Generation::kSm90) {
      c.consumers = 1;
      const bool one = Schedules(c);
      c.consumers = 2;
      if (!one) Schedules(c);
      c.ping_pong = c.persistent = true;
      Add(c);
      c.persistent = false;
      c.stream_k = true;
      if (one) Stream(c);
      return;
    }
    c.accumulators = 1;
    if (!Add(c)) return;
    c.accumulators = 2;
    c.persistent = true;
    if (!Add(c)) {
      c.accumulators = 1;
      Add(c);
    }
    Stream(c);
  }

  // One tile a CTA, and cooperative warpgroups from tile to tile.
  bool Schedules(TileConfig c) {
    if (!Add(c)) return false;
    c.persistent = true;
    Add(c);
    if (c.consumers == 2) Stream(c);
    return true;
  }

  void Stream(TileConfig c) {
    if (static_cast<double>(c.tile_m) * c.tile_n < kStreamArea) return;
    c.persistent = false;
    c.stream_k = true;
    Add(c);
  }

  bool Add(TileConfig c) {
    c.stages = 1;
    const double first = UnitNeedsOf(generation_, c, bytes_).shared.value;
    c.stages = 2;
    const double stage = UnitNeedsOf(generation_, c, bytes_).shared.value - first;
    const double room = device_.shared_memory_block.value - first;
    if (room < stage) return false;
    c.stages = std::min(kMostStages, 1 + static_cast<std::int32_t>(room / stage));
    if (FindUnitObstacle(device_, generation_, c, bytes_) != Obstacle::kNone) return false;
    // Not split and split: partial sums are stored wider.
    for (const std::int32_t split : {1, 2}) {
      if (split > 1 && (c.persistent || c.stream_k)) continue;
      c.split_k = split;
      const Block block = BlockOf(machine_, generation_, c, bytes_);
      if (block.cluster.occupancy == 0) return false;
      const double slots =
          space_.machines.of_clusters[block.cluster_index].units * block.cluster.occupancy;
      if (slots < 1) continue;
      space_.blocks.push_back(block);
      space_.outlines.push_back({slots, UseOf(c)});
    }
    return true;
  }

  static Space::Use UseOf(const TileConfig& c) {
    if (c.stream_k) return Space::Use::kStream;
    if (c.persistent) return Space::Use::kWaves;
    return c.split_k > 1 ? Space::Use::kSplit : Space::Use::kOneWave;
  }

  const Device& device_;
  const Generation generation_;
  const TileMachine& machine_;
  const ElementBytes& bytes_;
  Space& space_;
};

struct Kept {
  TileMachine machine;
  Generation generation;
  SpaceKind kind;
  Space space;
};

bool TooLong(double side, double tile) {
  constexpr double kShortest = 64;
  return tile > kShortest && tile > 2 * side;
}

// The splits of K that a problem can use a block with.
void AddSplits(const Problem& p, double units, double slots, Candidate candidate,
               std::vector<Candidate>& candidates) {
  const TileConfig& c = candidate.block->config;
  const double clusters = candidate.grid.clusters;
  const std::int64_t steps = (p.k + c.tile_k - 1) / c.tile_k;
  // The split that fills one wave; further ones save partial sums.
  const double filling = std::min({slots / clusters, static_cast<double>(steps) / kLeastSteps,
                                   static_cast<double>(kMostSplit)});
  std::int32_t split = static_cast<std::int32_t>(filling);
  for (int tried = 0; split > 1 && tried < kMostSplitsTried; ++tried) {
    candidate.split_k = split;
    if (FindGridObstacle(p, c, split, clusters, units) == Obstacle::kNone)
      candidates.push_back(candidate);
    split = split * 2 / 3;
  }
}

bool WorthStreaming(const Problem& p, double units, double slots, const Candidate& candidate) {
  const double clusters = candidate.grid.clusters;
  const double waves = clusters / slots;
  if (waves >= kMostStreamWaves) return false;
  const double whole = std::ceil(waves);
  const TileConfig& c = candidate.block->config;
  const std::int64_t steps = (p.k + c.tile_k - 1) / c.tile_k;
  return whole - waves > kIdleWorthStreaming * whole &&
         clusters * static_cast<double>(steps) >= kLeastSteps * slots &&
         FindGridObstacle(p, c, 1, clusters, units) == Obstacle::kNone;
}

}  // namespace

Result<Space> MakeSpace(const Device& device, Generation generation, const SpaceKind& kind,
                        int units) {
  GNOMON_ASSIGN(const TileMachine machine, TileMachineOf(device, kind.dtype, units));
  Space space;
  space.machines = MachinesOf(machine);
  Builder(device, generation, machine, ElementBytesOf(kind.dtype, kind.dtype_out), space).Run();
  if (space.blocks.empty())
    return BadInput(fmt::format("no tile of family {} fits a unit of {}: {:.0f} bytes of shared "
                                "memory a CTA, {:.0f} registers a unit",
                                generation == Generation::kSm90 ? "sm90" : "sm100", device.id,
                                device.shared_memory_block.value, machine.registers),
                    "device");
  return space;
}

Result<const Space*> SpaceOf(const Device& device, Generation generation, const Problem& problem,
                             int units) {
  GNOMON_ASSIGN(const TileMachine machine, TileMachineOf(device, problem.dtype, units));
  const SpaceKind kind = {problem.dtype, problem.dtype_out};
  // A pointer into this stays good: spaces are on the heap and never dropped by their thread.
  thread_local std::vector<std::unique_ptr<Kept>> kept;
  for (const auto& entry : kept) {
    if (entry->generation == generation && entry->kind == kind &&
        SameMachine(entry->machine, machine))
      return &entry->space;
  }
  GNOMON_ASSIGN(Space space, MakeSpace(device, generation, kind, units));
  kept.push_back(std::make_unique<Kept>(Kept{machine, generation, kind, std::move(space)}));
  return &kept.back()->space;
}

void CandidatesFor(const Space& space, const Problem& p, std::vector<Candidate>& candidates) {
  candidates.clear();
  GNOMON_CHECK(space.sides.size() <= kMostSides, "more sides of tiles than kMostSides");
  std::array<double, kMostSides> rows, columns;
  for (std::size_t i = 0; i < space.sides.size(); ++i) {
    rows[i] = RowsOfTiles(p, space.sides[i]);
    columns[i] = ColumnsOfTiles(p, space.sides[i]);
  }
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  const double units = space.machines.of_clusters.front().units;
  const double middle_waves = m * n * static_cast<double>(p.batch) / kMiddleArea / units;
  for (const Space::Tile& tile : space.tiles) {
    if (TooLong(m, tile.m) || TooLong(n, tile.n)) continue;
    if ((tile.cluster_m > 1 && p.m <= tile.m) || (tile.cluster_n > 1 && p.n <= tile.n)) continue;
    const double area = static_cast<double>(tile.m) * tile.n;
    if (p.m > tile.m && p.n > tile.n &&
        ((area < kMiddleArea && middle_waves > kWavesForMiddle) ||
         (area < kSmallArea && middle_waves > kWavesForSmall)))
      continue;
    Candidate candidate;
    candidate.grid = GridOf(p, rows[tile.rows], columns[tile.columns]);
    const double clusters = candidate.grid.clusters;
    TileConfig whole;
    whole.cluster_m = tile.cluster_m;
    whole.cluster_n = tile.cluster_n;
    if (FindGridObstacle(p, whole, 1, clusters, units) != Obstacle::kNone) continue;
    for (std::size_t i = tile.first; i < tile.last; ++i) {
      const auto [slots, use] = space.outlines[i];
      candidate.block = &space.blocks[i];
      switch (use) {
        case Space::Use::kOneWave:
          if (clusters <= slots) candidates.push_back(candidate);
          break;
        case Space::Use::kSplit:
          if (clusters <= slots) AddSplits(p, units, slots, candidate, candidates);
          break;
        case Space::Use::kWaves:
          if (clusters > slots) candidates.push_back(candidate);
          break;
        case Space::Use::kStream:
          if (WorthStreaming(p, units, slots, candidate)) candidates.push_back(candidate);
          break;
      }
    }
  }
}

std::int32_t GroupOf(const Space& space, const Problem& p, const Candidate& candidate) {
  const TileKernel& cluster = candidate.block->cluster;
  const double slots =
      space.machines.of_clusters[candidate.block->cluster_index].units * cluster.occupancy;
  const double resident = std::min(slots, candidate.grid.clusters);
  const double square = resident * cluster.tile_n / cluster.tile_m;  // rows of tiles²
  std::int32_t group = 1;
  while (group < kMostGroup && 2.0 * group * group < square &&
         std::int64_t{group} * cluster.tile_m < p.m)
    group *= 2;
  return group;
}

}  // namespace gnomon::cuda
