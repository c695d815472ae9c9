// A vendor's GEMM library on a GPU as a black box: it knows its kernels and picks a good one.
//
//   time = start + cold start + (matrix³ + memory³)^(1/3) + reduction      least over tiles, splits
//   matrix = waves · (k steps · step + epilogue) / clock,   waves rounded up
//   step   = (multiply³ + load³ + chain³)^(1/3)             cycles of 128 bytes of K of one tile
//   memory = (what L2 does not hold of A and B, and C) / streaming bandwidth
//
// Work that overlaps is added as cubes: nearly the longer one, a quarter more where two are equal.
// What a roofline lacks and these rows show:
// - tiles from a menu, one workgroup a unit: an eighth of a wave more is a whole wave more;
// - a skinny tile is bound by the chain of its k steps (wait for operands, multiply, next), the
//   others by what one unit gets from L2 or by its matrix unit;
// - power: a matrix unit that is busy all the time runs at the sustained clock, one that waits runs
//   faster, up to the highest clock; the same work costs the same energy either way;
// - operands that the last calls left in L2: a soft edge at 0.4 of its capacity (two partitions may
//   both keep a copy; no strict order of replacement); C is always written to memory;
// - caches that were emptied by overwriting them hold dirty lines: each line read writes one back.
// - rows that are no multiple of 16 bytes rule out bulk loads: each element is a load of its own.
// Left out: which kernel it really takes (its heuristic errs, by up to 2x on single shapes), raster
// order and reads beyond the first from memory, batched entry points (a batch is one launch).
// Entry point: PredictGpuLibrary. Constants: fitted on the fit rows (base/fit_split.h) of
// measured/{a100,h100,h200,b200,b300}_bf16_library.csv together, held out: docs/accuracy.md.

#include "gnomon/gemm/library_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "gnomon/gemm/gpu_load.h"
#include "gnomon/gemm/library_families.h"
#include "gnomon/gemm/tile_model.h"

namespace gnomon {
namespace {

struct Tile {
  double m, n;
};

// Tiles of nvjet (sm_90, sm_100), as traces name them; each also the other way round.
constexpr std::array<Tile, 20> kNvjetTiles = {
    {{64, 8},    {64, 16},   {64, 32},   {64, 64},   {64, 96},   {64, 128},  {64, 192},
     {64, 256},  {128, 16},  {128, 32},  {128, 64},  {128, 96},  {128, 128}, {128, 160},
     {128, 192}, {128, 224}, {128, 256}, {192, 192}, {256, 192}, {256, 256}}};
constexpr size_t kOneUnitTiles = 18;  // the last two need a pair of units (sm_100)
// Tiles of the s16816 kernels (sm_80).
constexpr std::array<Tile, 8> kAmpereTiles = {
    {{256, 128}, {128, 128}, {256, 64}, {128, 64}, {64, 64}, {64, 32}, {32, 32}, {128, 32}}};
constexpr std::array<double, 15> kSplits = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64};

// What differs between architectures: how a unit is fed, and what a kernel costs beside its loop.
struct Generation {
  std::string_view arch;
  std::span<const Tile> tiles;
  double step_bytes;       // of K that one step of the pipeline holds
  double load_bytes;       // a clock, from L2 to shared memory of one unit
  double chain_cycles;     // one k step after the other where nothing else is slower
  double epilogue_cycles;  // an element of the tile: its way out of the accumulators
  double tile_cycles;      // a tile's set-up that the tile before does not hide
  double start_us;         // kernel to kernel in a graph: launch, first operands, drain
  double cold_us;          // more where the operands come from memory
};
constexpr std::array<Generation, 3> kGenerations = {{
    {"sm_80", kAmpereTiles, 64, 37.6, 265, 0.198, 0, 2.86, 0.80},
    // wgmma, TMA: the loads need no threads; half of the epilogue lies under the next tile's loop.
    {"sm_90", std::span(kNvjetTiles).first(kOneUnitTiles), 128, 87.6, 163, 0.098, 600, 2.31, 0},
    // tcgen05: accumulators in tensor memory, twice; pairs of units share a tile's operands.
    {"sm_100", kNvjetTiles, 128, 122.7, 120, 0.053, 0, 1.89, 0.72},
}};

constexpr double kPartialsRate = 7.1e12;  // bytes/s: fp32 partial sums, written and read in L2
// Not a bf16 row of a graph: fitted on the fit rows of what else is measured.
constexpr double kEventUs = 1.8;        // between a pair of events (h200_triton_bf16_sweep, cublas)
constexpr double kFlushedUs = 1.2;      // code and descriptors are not in L2 either
constexpr double kScalingEffort = 1.8;  // partial sums scaled in registers every 128 of K
constexpr double kUnalignedElements = 3.6;  // a clock: loads that are no 16 bytes go by single ones
constexpr double kVectorBytes = 16;         // what one bulk load must be a multiple of

// Median errors on held-out rows: of a graph of nvjet kernels and of Ampere's; rows of single
// loads; a listed family; one that is not listed or whose vendor's library this was not fitted on.
constexpr double kNvjetError = 0.045, kAmpereError = 0.06, kUnalignedError = 0.14;
constexpr double kFamilyError = 0.12, kUnlistedError = 0.3;

double Side(std::int64_t value) { return static_cast<double>(value); }
double Cubed(double x) { return x * x * x; }
double Overlapped(double a, double b) { return std::cbrt(Cubed(a) + Cubed(b)); }

const Generation& GenerationOf(const Device& device) {
  if (device.arch.starts_with("sm_8")) return kGenerations[0];
  if (device.arch.starts_with("sm_10")) return kGenerations[2];
  return kGenerations[1];
}

// An operand element with its share of the scales.
double StoredBytes(DType dtype) {
  constexpr double kBlock = 32;  // elements of an MX format that share a byte of scale
  const bool scaled = dtype == DType::kMxFp8 || dtype == DType::kMxFp6 || dtype == DType::kMxFp4;
  return SizeOf(dtype) + (scaled ? 1 / kBlock : 0);
}

// Bytes of the widest load that every stored row of A, B and C allows, up to kVectorBytes.
double AccessBytes(const Problem& p) {
  double width = kVectorBytes;
  const auto narrow = [&](std::int64_t rows, std::int64_t leading, double size) {
    if (rows == 1 || leading == 1) return;  // a vector
    const double bytes = Side(leading) * size;
    while (width > size && std::fmod(bytes, width) != 0) width /= 2;
  };
  narrow(p.a_transposed() ? p.k : p.m, p.LeadingA(), SizeOf(p.dtype));
  narrow(p.b_transposed() ? p.n : p.k, p.LeadingB(), SizeOf(p.dtype));
  narrow(p.m, p.LeadingC(), SizeOf(p.dtype_out));
  return width;
}

double ErrorOf(const Device& device, const Problem& problem, const LibraryFamily& family) {
  if (!family.known || !device.arch.starts_with("sm_")) return kUnlistedError;
  if (AccessBytes(problem) < kVectorBytes) return kUnalignedError;
  if (family.effort > 1 || family.start_us > 0) return kFamilyError;
  return device.arch.starts_with("sm_8") ? kAmpereError : kNvjetError;
}

struct Parts {
  double start = 0, cold = 0, matrix = 0, memory = 0, reduction = 0, conversion = 0;  // seconds
  Tile tile{};
  double split = 1, waves = 0, hit = 0;
  bool chained = false;  // the k steps wait for latency
  bool storing = false;  // a tile's way out takes longer than its k steps
  double body() const { return Overlapped(matrix, memory); }
  double total() const { return start + cold + body() + reduction + conversion; }
};

// One problem on one device, all that does not depend on the tile.
struct Setting {
  const Generation* generation;
  const Problem* problem;
  double longest;              // rows of the longest product
  double m, n, k, batch;       // m: mean of a grouped problem's products; batch: products
  double units, clock, rate;   // flops of a unit, a clock
  double step_k, step_bytes;   // of K, elements and bytes
  double load, chain, effort;  // bytes a clock; cycles; factor
  double ideal;                // seconds of the multiplications at full rate and clock
  double slowest;              // clock / sustained clock
  double free_share;           // busy share below which the clock is not lowered
  Parts common;
};

double L2Bytes(const Device& device) {
  const MemoryLevel* l2 = device.FindMemory("l2");
  return l2 ? l2->capacity.value * (l2->scope == MemoryLevel::Scope::kDie ? device.dies : 1) : 0;
}

// Share of the operands that is still in L2.
double Hit(double l2, double a, double b, double c, const LibraryConditions& conditions) {
  if (conditions.cold_l2 || l2 <= 0) return 0;
  double copies = conditions.weight_copies;
  if (conditions.copies_until_l2) copies = std::min(copies, std::ceil(l2 / b));
  const double footprint = conditions.own_activations ? copies * (a + b + c) : copies * b + a + c;
  return std::min(1.0, std::pow(kKeptShare * l2 / footprint, kKeptExponent));
}

Setting SettingOf(const Device& device, const Problem& p, double units, const Rate& rate,
                  const LibraryConditions& conditions, const LibraryFamily& family) {
  Setting s{};
  const Generation& g = GenerationOf(device);
  s.generation = &g;
  s.problem = &p;
  s.batch = Side(p.Products());
  s.m = Side(p.m) / (p.grouped() ? s.batch : 1);
  s.longest = p.grouped() ? Side(*std::max_element(p.group_m.begin(), p.group_m.end())) : s.m;
  s.n = Side(p.n), s.k = Side(p.k);
  s.units = units;
  s.clock = device.max_clock.value > 0 ? device.max_clock.value : device.boost_clock.value;
  s.rate = rate.flops_per_unit_clock;
  s.effort = family.effort * (conditions.scales_in_loop ? kScalingEffort : 1);
  const double size = StoredBytes(p.dtype);
  s.step_bytes = g.step_bytes;
  s.step_k = std::floor(g.step_bytes / SizeOf(p.dtype));
  const double width = AccessBytes(p);
  s.load = width < kVectorBytes ? kUnalignedElements * width : g.load_bytes;
  s.chain = std::max(g.chain_cycles,
                     conditions.cold_l2 && SizeOf(p.dtype) < 1 ? family.cold_fp4_chain : 0);

  const auto stated = device.framework.gemm_efficiency.find(p.dtype);
  const bool known = stated != device.framework.gemm_efficiency.end();
  s.ideal = p.flops().value / (s.rate * units * s.clock);
  const double settled = conditions.sustained ? 1 : s.ideal / (s.ideal + kBurstSeconds);
  double sustained = device.sustained_clock.value * (known ? stated->second : kMatrixEfficiency) /
                     (1 + kSustainedLoss * settled);
  if (conditions.power_limit > 0 && device.tdp_watts > conditions.power_limit)
    sustained *= std::pow(conditions.power_limit / device.tdp_watts, kPowerExponent);
  s.slowest = s.clock / sustained;
  s.free_share = std::pow(s.slowest, -1 / kPowerExponent);

  const double a = s.m * s.k * s.batch * size, b = s.n * s.k * s.batch * size;
  const double c = s.m * s.n * s.batch * SizeOf(p.dtype_out);
  const double l2 = L2Bytes(device), stream = device.MainMemory().bandwidth.value * kStreamShare;
  s.common.hit = Hit(l2, a, b, c, conditions);
  double moved = (1 - s.common.hit) * (a + b) + c;
  if (conditions.dirty_l2) moved += std::min(moved, l2);
  s.common.memory = moved / stream;
  s.common.start = (g.start_us + family.start_us + (conditions.events ? kEventUs : 0)) * 1e-6;
  s.common.cold = ((1 - s.common.hit) * g.cold_us + (conditions.cold_l2 ? kFlushedUs : 0)) * 1e-6;
  if (conditions.converts_a)
    s.common.conversion =
        kSecondKernel + s.m * s.k * s.batch * (SizeOf(DType::kBf16) + size) / stream;
  return s;
}

// Seconds of the matrix units with the clock that their busy share leaves.
double MatrixTime(const Setting& s, double cycles) {
  const double time = cycles / s.clock, share = s.ideal / time;
  return share <= s.free_share ? time : time * s.slowest * std::pow(share, kPowerExponent);
}

struct Best {
  Parts parts;
  double total = std::numeric_limits<double>::infinity();
};

void TryTile(const Setting& s, const LibraryFamily& family, const Tile& tile, Best& best) {
  const Generation& g = *s.generation;
  const double grid = RowsOfTiles(*s.problem, static_cast<int>(tile.m)) * Side(s.problem->batch) *
                      std::ceil(s.n / tile.n);
  const double multiply = 2 * tile.m * tile.n * s.step_k / s.rate * s.effort;
  const double load = (tile.m + tile.n) * s.step_bytes / s.load * s.effort;
  const double step = std::cbrt(Cubed(multiply) + Cubed(load) + Cubed(s.chain));
  const double beside = g.tile_cycles + tile.m * tile.n * g.epilogue_cycles;
  const double all_steps = std::ceil(s.k / s.step_k);
  for (const double wanted : kSplits) {
    if (wanted > 1 && (!family.splits || wanted > all_steps || grid > s.units)) break;
    Parts parts = s.common;
    const double steps = std::ceil(all_steps / wanted);
    parts.split = std::ceil(all_steps / steps);
    parts.waves = grid * parts.split / s.units;
    if (parts.split > 1)
      parts.reduction = kSecondKernel + 2 * SizeOf(DType::kFp32) * s.m * s.n * s.batch *
                                            parts.split / kPartialsRate;
    parts.matrix = MatrixTime(s, std::ceil(parts.waves) * (steps * step + beside));
    const double beside_body = parts.start + parts.cold + parts.reduction + parts.conversion;
    if (beside_body + std::max(parts.matrix, parts.memory) >= best.total) continue;
    const double total = parts.total();
    if (total >= best.total) continue;
    parts.tile = tile;
    parts.chained = s.chain > std::max(multiply, load);
    parts.storing = beside > steps * step;
    best = {parts, total};
  }
}

// A tile that is twice as long as C is no better than the next shorter one.
bool TooLong(double side, double tile) {
  constexpr double kShortest = 64;
  return tile > kShortest && tile >= 2 * side;
}

Parts Cheapest(const Setting& s, const LibraryFamily& family) {
  Best best;
  for (const Tile& tile : s.generation->tiles) {
    const Tile turned{tile.n, tile.m};
    if (!TooLong(s.longest, tile.m) && !TooLong(s.n, tile.n)) TryTile(s, family, tile, best);
    if (tile.m != tile.n && !TooLong(s.longest, turned.m) && !TooLong(s.n, turned.n))
      TryTile(s, family, turned, best);
  }
  return best.parts;
}

}  // namespace

Prediction PredictGpuLibrary(const Device& device, const Problem& problem, double units,
                             const Rate& rate, const LibraryConditions& conditions,
                             std::string_view family_name) {
  const LibraryFamily& family = FindLibraryFamily(family_name);
  const Setting setting = SettingOf(device, problem, units, rate, conditions, family);
  const Parts parts = Cheapest(setting, family);

  Prediction out;
  out.time = {parts.total()};
  out.relative_error = ErrorOf(device, problem, family);
  const double body = parts.body(), beside = parts.start + parts.cold + parts.reduction;
  const bool memory_longer = parts.memory > parts.matrix;
  out.bound = beside > body                    ? Bound::kLaunch
              : memory_longer || parts.storing ? Bound::kMemory
              : parts.chained                  ? Bound::kLatency
                                               : Bound::kCompute;
  const std::string tile = fmt::format("tile {}x{}, split {}, {:.3g} waves on {} units",
                                       parts.tile.m, parts.tile.n, parts.split, parts.waves, units);
  out.terms.push_back({"start", {parts.start}, "start, first operands and drain of a kernel"});
  if (parts.cold > 0)
    out.terms.push_back({"cold start", {parts.cold}, "first operands come from memory"});
  const std::string matrix = (parts.storing   ? "mostly C's way out; "
                              : parts.chained ? "k steps in a row; "
                                              : "") +
                             tile;
  const std::string memory =
      fmt::format("A, B and C once, {:.0f}% of A and B still in L2", parts.hit * 100);
  if (memory_longer) {
    out.terms.push_back({"memory", {parts.memory}, memory});
    out.terms.push_back({"matrix", {body - parts.memory}, "not hidden behind memory: " + matrix});
  } else {
    out.terms.push_back({"matrix", {parts.matrix}, matrix});
    out.terms.push_back({"memory", {body - parts.matrix}, "not hidden: " + memory});
  }
  if (parts.reduction > 0)
    out.terms.push_back({"reduction", {parts.reduction}, "partial sums of the split added"});
  if (parts.conversion > 0)
    out.terms.push_back({"conversion", {parts.conversion}, "A made of bf16 by a kernel before"});
  const double host = conditions.events ? family.host_us * 1e-6 : 0;
  if (host > parts.total()) {
    out.terms.push_back({"host", {host - parts.total()}, "the kernel waits for its launch"});
    out.time = {host};
    out.bound = Bound::kLaunch;
  }
  return out;
}

}  // namespace gnomon
