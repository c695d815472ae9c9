// Tiles, k steps and workers of a launch.
//
//   workers    clusters that a unit each of the device can hold; never more than there is to do
//   stream-K   whole waves while more than two are left; the rest, one to two waves, is cut. Fewer
//              tiles than workers: all are cut
//   scratch    a slot a part: tile_m · tile_n sums and tile_m sums of the bias gradient

#include "gnomon/families/cuda/kernel_plan.h"

#include <algorithm>
#include <cmath>

namespace gnomon::cuda {
namespace {

std::int64_t Ceil(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t RowTiles(const Problem& problem, const KernelConfig& config) {
  const std::int64_t side = static_cast<std::int64_t>(config.tile_m) * config.cluster_m;
  if (!problem.grouped()) return Ceil(problem.m, side);
  std::int64_t tiles = 0;
  for (const std::int64_t rows : problem.group_m) tiles += Ceil(rows, side);
  return tiles;
}

std::int64_t ColumnTiles(const Problem& problem, const KernelConfig& config) {
  return Ceil(problem.n, static_cast<std::int64_t>(config.tile_n) * config.cluster_n);
}

}  // namespace

int StepDepth(DType dtype) { return static_cast<int>(kStepBytes / SizeOf(dtype)); }

double TilesOf(const Problem& problem, const KernelConfig& config) {
  return static_cast<double>(RowTiles(problem, config)) *
         static_cast<double>(ColumnTiles(problem, config)) * static_cast<double>(problem.batch);
}

Schedule ScheduleOf(const Problem& problem, const KernelConfig& config, int units) {
  Schedule s;
  s.tiles_m = static_cast<int>(RowTiles(problem, config));
  s.tiles_n = static_cast<int>(ColumnTiles(problem, config));
  s.tiles = s.tiles_m * s.tiles_n * static_cast<int>(problem.batch);
  s.steps = static_cast<int>(Ceil(problem.k, StepDepth(problem.dtype)));
  s.split = std::min(config.split_k, s.steps);
  s.group_m = std::min(config.group_m, s.tiles_m);
  const int most = std::max(1, units / (config.cluster_m * config.cluster_n));
  const std::int64_t cut = static_cast<std::int64_t>(s.tiles) * s.steps;
  if (config.stream_k) {
    s.workers = static_cast<int>(std::min<std::int64_t>(most, cut));
    const int waves = s.tiles / s.workers;
    const bool even = s.tiles % s.workers == 0;
    s.whole = even ? s.tiles : std::max(0, waves - 1) * s.workers;
    s.stream = true;
    return s;
  }
  s.workers =
      static_cast<int>(std::min<std::int64_t>(most, static_cast<std::int64_t>(s.tiles) * s.split));
  return s;
}

double CountersOf(const Schedule& s, const KernelConfig& config) {
  constexpr double kWarpgroups = 2;
  if (SlotsOf(s) == 0 || !(s.stream || config.fix_up)) return 0;
  return static_cast<double>(s.tiles - s.whole) * config.cluster_m * config.cluster_n * kWarpgroups;
}

double PartialBytesOf(const Schedule& s, const KernelConfig& config) {
  const double values = static_cast<double>(config.tile_m) * config.tile_n + config.tile_m;
  return static_cast<double>(SlotsOf(s)) * config.cluster_m * config.cluster_n * values *
         SizeOf(DType::kFp32);
}

std::int64_t PaddedLeading(std::int64_t columns, DType dtype) {
  // Whole lines, so that a box row is one; short rows would grow too much by that.
  constexpr std::int64_t kTmaBytes = 16, kShort = std::int64_t{4} * kStepBytes;
  const auto size = static_cast<std::int64_t>(SizeOf(dtype));
  const std::int64_t whole = (columns * size < kShort ? kTmaBytes : kStepBytes) / size;
  return Ceil(columns, whole) * whole;
}

double PaddedBytesOfA(const Problem& p) {
  const std::int64_t rows = p.a_transposed() ? p.k : p.m, columns = p.a_transposed() ? p.m : p.k;
  return static_cast<double>(rows) * static_cast<double>(p.batch) *
         static_cast<double>(PaddedLeading(columns, p.dtype)) * SizeOf(p.dtype);
}

double PaddedBytesOfB(const Problem& p) {
  const std::int64_t rows = p.b_transposed() ? p.n : p.k, columns = p.b_transposed() ? p.k : p.n;
  const std::int64_t products = p.grouped() ? static_cast<std::int64_t>(p.group_m.size()) : p.batch;
  return static_cast<double>(rows) * static_cast<double>(products) *
         static_cast<double>(PaddedLeading(columns, p.dtype)) * SizeOf(p.dtype);
}

}  // namespace gnomon::cuda
