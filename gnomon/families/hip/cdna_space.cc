// The config space: macro tiles as hipBLASLt's kernels have them × depths × splits.
//
//   tiles     sides of 16 to 256; a side twice as long as the problem's is left out
//   depth     128 bytes of a row; 256 for tiles whose k step is short of work
//   split     1, and where the tiles leave units idle, parts that fill one or two waves
//   stream-K  where there is more than one wave: it trades the idle rest of the last one for seams
//
// The rest follows: 16x16 instructions (the same rate as 32x32, twice the tile shapes), four waves,
// two k steps under way, direct-to-LDS where rows are aligned, tiles walked in near-squares an XCD,
// non-temporal loads where one operand is read once and does not fit the last-level cache. Left
// out: small tiles for grids that large ones already fill many times over.

#include "gnomon/families/hip/cdna_space.h"

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
                               Sides{128, 96},  Sides{128, 64},  Sides{96, 64},   Sides{64, 64},
                               Sides{128, 32},  Sides{64, 32},   Sides{32, 32},   Sides{128, 16},
                               Sides{64, 16},   Sides{32, 16},   Sides{16, 16}};
constexpr std::array kSplits = {2, 3, 4, 6, 8, 12, 16, 24, 32};

constexpr std::int32_t kSmallSide = 32;  // always tried
constexpr double kDepthBytes = 128, kDeepBytes = 256;
constexpr std::int32_t kDeepSides = 128;     // tiles up to this sum of sides also come deep,
constexpr std::int32_t kDeepOnlySides = 48;  // up to this only deep
// Small tiles are left out where this many waves of 128x128 tiles fill the units anyway.
constexpr double kMiddleArea = 128 * 128, kSmallArea = 64 * 64;
constexpr double kWavesForMiddle = 4, kWavesForSmall = 1;
constexpr double kIdleWorthStreaming = 0.05;         // of the last wave
constexpr double kLeastSteps = 4;                    // k steps of a part
constexpr double kMostWaves = 2.1, kFewWaves = 0.4;  // of workgroups with a split
constexpr std::int32_t kMostMapping = 16;

class Space {
 public:
  Space(const Device& device, const Problem& problem, const CdnaLimits& limits,
        std::vector<Config>& configs)
      : p_(problem), limits_(limits), dies_(std::max(1, device.dies)), configs_(configs) {
    const MemoryLevel* llc = device.FindMemory("llc");
    outgrows_cache_ = llc && problem.bytes() > llc->capacity;
    middle_waves_ = limits.m * limits.n * limits.batch / kMiddleArea / limits.units;
  }

  void Run() {
    if (limits_.instructions.empty()) return;
    mma_ = limits_.instructions.front();
    for (const Sides& sides : kSides) {
      Tile(sides.m, sides.n);
      if (sides.m != sides.n) Tile(sides.n, sides.m);
    }
  }

 private:
  void Tile(std::int32_t m, std::int32_t n) {
    if ((m > 2 * p_.m && m > kSmallSide) || (n > 2 * p_.n && n > kSmallSide)) return;
    const double tiles = std::ceil(limits_.m / m) * std::ceil(limits_.n / n) * limits_.batch;
    const double waves = tiles / limits_.units;
    const double area = static_cast<double>(m) * n;
    if (p_.m > m && p_.n > n &&
        ((area < kMiddleArea && middle_waves_ > kWavesForMiddle) ||
         (area < kSmallArea && middle_waves_ > kWavesForSmall)))
      return;
    if (m + n > kDeepOnlySides) Depth(m, n, kDepthBytes, waves);
    if (m + n <= kDeepSides) Depth(m, n, kDeepBytes, waves);
  }

  void Depth(std::int32_t m, std::int32_t n, double bytes, double waves) {
    CdnaConfig c;
    c.tile_m = m;
    c.tile_n = n;
    c.mma_m = mma_.m;
    c.mma_n = mma_.n;
    c.mma_k = mma_.k;
    const auto wanted = static_cast<std::int32_t>(bytes / limits_.size);
    c.tile_k = std::max(wanted / mma_.k, 1) * mma_.k;
    c.direct_to_lds = limits_.rows_aligned ? 1 : 0;
    const double resident = std::max(1.0, limits_.units * std::min(1.0, waves) / dies_);
    const double square = resident * n / m;  // rows² of a near-square region
    c.mapping = 1;
    while (c.mapping < kMostMapping && 2.0 * c.mapping * c.mapping < square) c.mapping *= 2;
    c.non_temporal = outgrows_cache_ && (p_.m <= m || p_.n <= n) ? 1 : 0;
    if (!Fits(c)) return;
    const double work_items = NeedsOf(limits_, c).work_items;
    if (work_items < kMostWorkItems) Add(c);
    if (waves > 1) {
      const double whole = std::ceil(waves);
      c.stream_k = 1;
      if ((whole - waves > kIdleWorthStreaming * whole || work_items >= kMostWorkItems) &&
          NeedsOf(limits_, c).workspace.value <= limits_.workspace)
        Add(c);
      return;
    }
    const double steps = std::ceil(limits_.k / c.tile_k);
    for (size_t i = 0; i < kSplits.size(); ++i) {
      const std::int32_t split = kSplits[i];
      const auto allowed = [&](std::int32_t parts) {
        return waves * parts <= kMostWaves && steps / parts >= kLeastSteps;
      };
      if (!allowed(split)) break;
      const bool last = i + 1 == kSplits.size() || !allowed(kSplits[i + 1]);
      if (waves * split < kFewWaves && !last) continue;
      c.split_k = split;
      const CdnaNeeds needs = NeedsOf(limits_, c);
      if (needs.workspace.value > limits_.workspace || needs.work_items >= kMostWorkItems) break;
      Add(c);
    }
  }

  // Settles what follows from the tile; false where no way of running it remains. The grid and the
  // workspace are Add's to check.
  bool Fits(CdnaConfig& c) const {
    const auto fits = [&] {
      const Obstacle obstacle = FindObstacle(limits_, c);
      return obstacle == Obstacle::kNone || obstacle == Obstacle::kGrid;
    };
    if (fits()) return true;
    c.direct_to_lds = 0;
    if (fits()) return true;
    c.prefetch = 1;
    return fits();
  }

  void Add(const CdnaConfig& c) { configs_.push_back(ToConfig(c)); }

  const Problem& p_;
  const CdnaLimits& limits_;
  const double dies_;
  std::vector<Config>& configs_;
  MatrixInstruction mma_{};
  bool outgrows_cache_ = false;
  double middle_waves_ = 0;
};

}  // namespace

void EnumerateCdna(const Device& device, const Problem& problem, int units, Bytes workspace,
                   std::vector<Config>& configs) {
  const CdnaLimits limits(device, problem, units, workspace);
  Space(device, problem, limits, configs).Run();
}

}  // namespace gnomon::hip
