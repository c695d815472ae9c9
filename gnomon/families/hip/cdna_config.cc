// What a config of family `cdna` is and what it needs.
//
//   registers a lane = accumulators + operands of one k step of the instruction, twice
//                    + the next k step on its way (none with direct-to-LDS) + addresses
//   LDS              = prefetch · (tile_m + tile_n) · tile_k · size, at least the staging of C
//   workspace        = split_k · M · N partial sums
//
// Checked in this order: instruction, tile of whole instructions, waves, registers, LDS, access
// widths, K against the split, grid, workspace. Not checked: bank conflicts, code size.
//
// Entry points: the header's.

#include "gnomon/families/hip/cdna_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "gnomon/base/nearest.h"
#include "gnomon/gemm/config_text.h"

namespace gnomon::hip {
namespace {

constexpr std::string_view kForm = "256x224x64.mi16x16x32.w4.pgr2.dtl1.sk4.str0.wgm8.nt0";

constexpr double kLanes = 64;           // of a wave
constexpr double kSimds = 4;            // of a unit
constexpr double kLaneRegisters = 512;  // 256 vector and 256 accumulation, gfx90a and later
constexpr double kRegisterBytes = 4;
constexpr double kAddressRegisters = 40;  // addresses, loop state, bounds: from Tensile's listings
constexpr double kMostWaves = 16;         // 1024 work-items a workgroup
constexpr std::int64_t kDirectWideBytes = 16;  // gfx950 loads 96 and 128 bits straight to LDS
constexpr std::int64_t kDirectBytes = 4;       // gfx942 and before: 32 bits
constexpr std::int32_t kLeastPrefetch = 1, kMostPrefetch = 4;

// AMD matrix instruction calculator; CDNA 2, 3 and 4 ISA documents.
constexpr std::array kInstructions = {
    MatrixInstruction{"gfx90a", DType::kFp64, 16, 16, 4},
    MatrixInstruction{"gfx90a", DType::kFp32, 16, 16, 4},
    MatrixInstruction{"gfx90a", DType::kFp32, 32, 32, 2},
    MatrixInstruction{"gfx90a", DType::kFp16, 16, 16, 16},
    MatrixInstruction{"gfx90a", DType::kFp16, 32, 32, 8},
    MatrixInstruction{"gfx90a", DType::kBf16, 16, 16, 16},
    MatrixInstruction{"gfx90a", DType::kBf16, 32, 32, 8},
    MatrixInstruction{"gfx90a", DType::kInt8, 16, 16, 16},
    MatrixInstruction{"gfx90a", DType::kInt8, 32, 32, 8},
    MatrixInstruction{"gfx942", DType::kFp64, 16, 16, 4},
    MatrixInstruction{"gfx942", DType::kFp32, 16, 16, 4},
    MatrixInstruction{"gfx942", DType::kFp32, 32, 32, 2},
    MatrixInstruction{"gfx942", DType::kTf32, 16, 16, 8},
    MatrixInstruction{"gfx942", DType::kTf32, 32, 32, 4},
    MatrixInstruction{"gfx942", DType::kFp16, 16, 16, 16},
    MatrixInstruction{"gfx942", DType::kFp16, 32, 32, 8},
    MatrixInstruction{"gfx942", DType::kBf16, 16, 16, 16},
    MatrixInstruction{"gfx942", DType::kBf16, 32, 32, 8},
    MatrixInstruction{"gfx942", DType::kFp8E4m3Fnuz, 16, 16, 32},
    MatrixInstruction{"gfx942", DType::kFp8E4m3Fnuz, 32, 32, 16},
    MatrixInstruction{"gfx942", DType::kFp8E5m2Fnuz, 16, 16, 32},
    MatrixInstruction{"gfx942", DType::kFp8E5m2Fnuz, 32, 32, 16},
    MatrixInstruction{"gfx942", DType::kInt8, 16, 16, 32},
    MatrixInstruction{"gfx942", DType::kInt8, 32, 32, 16},
    MatrixInstruction{"gfx950", DType::kFp64, 16, 16, 4},
    MatrixInstruction{"gfx950", DType::kFp32, 16, 16, 4},
    MatrixInstruction{"gfx950", DType::kFp32, 32, 32, 2},
    MatrixInstruction{"gfx950", DType::kFp16, 16, 16, 32},
    MatrixInstruction{"gfx950", DType::kFp16, 32, 32, 16},
    MatrixInstruction{"gfx950", DType::kBf16, 16, 16, 32},
    MatrixInstruction{"gfx950", DType::kBf16, 32, 32, 16},
    MatrixInstruction{"gfx950", DType::kFp8E4m3, 16, 16, 128},
    MatrixInstruction{"gfx950", DType::kFp8E4m3, 32, 32, 64},
    MatrixInstruction{"gfx950", DType::kFp8E5m2, 16, 16, 128},
    MatrixInstruction{"gfx950", DType::kFp8E5m2, 32, 32, 64},
    MatrixInstruction{"gfx950", DType::kMxFp8, 16, 16, 128},
    MatrixInstruction{"gfx950", DType::kMxFp8, 32, 32, 64},
    MatrixInstruction{"gfx950", DType::kMxFp6, 16, 16, 128},
    MatrixInstruction{"gfx950", DType::kMxFp6, 32, 32, 64},
    MatrixInstruction{"gfx950", DType::kMxFp4, 16, 16, 128},
    MatrixInstruction{"gfx950", DType::kMxFp4, 32, 32, 64},
    MatrixInstruction{"gfx950", DType::kInt8, 16, 16, 64},
    MatrixInstruction{"gfx950", DType::kInt8, 32, 32, 32},
};

double AccumulatorBytes(DType dtype) { return dtype == DType::kFp64 ? SizeOf(dtype) : 4; }

// Bytes that every row start of an operand is a multiple of.
std::int64_t RowAlignment(std::int64_t lead, DType dtype) {
  constexpr std::int64_t kEnough = 16;
  const auto bytes =
      static_cast<std::int64_t>(std::llround(static_cast<double>(lead) * SizeOf(dtype)));
  return std::gcd(bytes, kEnough);
}

std::int64_t DirectWidth(std::string_view arch) {
  return arch == "gfx950" ? kDirectWideBytes : kDirectBytes;
}

Status Known(std::string_view text, const CdnaConfig& c) {
  std::array<std::string, kInstructions.size()> names;
  std::array<std::string_view, kInstructions.size()> views;
  for (size_t i = 0; i < kInstructions.size(); ++i) {
    const MatrixInstruction& one = kInstructions[i];
    if (one.m == c.mma_m && one.n == c.mma_n && one.k == c.mma_k) return Done{};
    views[i] = names[i] = fmt::format("{}x{}x{}", one.m, one.n, one.k);
  }
  const std::string asked = fmt::format("{}x{}x{}", c.mma_m, c.mma_n, c.mma_k);
  return BadInput(fmt::format("config '{}': no matrix instruction {}; nearest is {}", text, asked,
                              Nearest(asked, views)));
}

Status Flag(ConfigText& text, std::string_view name, std::int32_t& value) {
  bool set = false;
  GNOMON_TRY(text.Flag(name, set));
  value = set ? 1 : 0;
  return Done{};
}

}  // namespace

Config ToConfig(const CdnaConfig& c) {
  Config out;
  out.value = {c.tile_m,   c.tile_n,  c.tile_k,      c.mma_m,         c.mma_n,
               c.mma_k,    c.waves,   c.prefetch,    c.direct_to_lds, c.split_k,
               c.stream_k, c.mapping, c.non_temporal};
  return out;
}

CdnaConfig FromConfig(const Config& config) {
  const auto& v = config.value;
  return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12]};
}

std::string Print(const CdnaConfig& c) {
  return fmt::format("{}x{}x{}.mi{}x{}x{}.w{}.pgr{}.dtl{}.sk{}.str{}.wgm{}.nt{}", c.tile_m,
                     c.tile_n, c.tile_k, c.mma_m, c.mma_n, c.mma_k, c.waves, c.prefetch,
                     c.direct_to_lds, c.split_k, c.stream_k, c.mapping, c.non_temporal);
}

Result<CdnaConfig> Parse(std::string_view config_text) {
  ConfigText text(config_text, "cdna", kForm);
  CdnaConfig c;
  GNOMON_TRY(text.Number(c.tile_m));
  GNOMON_TRY(text.Field("x", c.tile_n));
  GNOMON_TRY(text.Field("x", c.tile_k));
  GNOMON_TRY(text.Field(".mi", c.mma_m));
  GNOMON_TRY(text.Field("x", c.mma_n));
  GNOMON_TRY(text.Field("x", c.mma_k));
  GNOMON_TRY(Known(config_text, c));
  GNOMON_TRY(text.Field(".w", c.waves));
  GNOMON_TRY(text.Field(".pgr", c.prefetch, kLeastPrefetch));
  GNOMON_TRY(Flag(text, ".dtl", c.direct_to_lds));
  GNOMON_TRY(text.Field(".sk", c.split_k));
  GNOMON_TRY(Flag(text, ".str", c.stream_k));
  GNOMON_TRY(text.Field(".wgm", c.mapping));
  GNOMON_TRY(Flag(text, ".nt", c.non_temporal));
  GNOMON_TRY(text.End());
  return c;
}

std::span<const MatrixInstruction> InstructionsOf(std::string_view arch, DType dtype) {
  const auto is = [&](const MatrixInstruction& one) {
    return one.arch == arch && one.dtype == dtype;
  };
  const auto first = std::find_if(kInstructions.begin(), kInstructions.end(), is);
  const auto last = std::find_if_not(first, kInstructions.end(), is);
  return {first, last};
}

bool RowsAligned(std::string_view arch, const Problem& problem) {
  const std::int64_t width = DirectWidth(arch);
  return RowAlignment(problem.LeadingA(), problem.dtype) % width == 0 &&
         RowAlignment(problem.LeadingB(), problem.dtype) % width == 0;
}

CdnaLimits::CdnaLimits(const Device& device, const Problem& problem, int wanted_units)
    : arch(device.arch),
      instructions(InstructionsOf(device.arch, problem.dtype)),
      units(wanted_units > 0 ? wanted_units : device.units),
      lds(device.shared_memory.value),
      workspace(problem.workspace.value_or(kUsualWorkspace).value),
      size(SizeOf(problem.dtype)),
      size_out(SizeOf(problem.dtype_out)),
      accumulator(AccumulatorBytes(problem.dtype)),
      m(static_cast<double>(problem.m)),
      n(static_cast<double>(problem.n)),
      k(static_cast<double>(problem.k)),
      batch(static_cast<double>(problem.batch)),
      groups(problem.group_m) {
  rows_aligned = RowsAligned(arch, problem);
  const bool mx = problem.dtype == DType::kMxFp8 || problem.dtype == DType::kMxFp6 ||
                  problem.dtype == DType::kMxFp4;
  scales_whole = !mx || problem.k % kMxBlock == 0;
}

CdnaNeeds NeedsOf(const CdnaLimits& limits, const CdnaConfig& c) {
  const double lanes = kLanes * c.waves;
  const double area = static_cast<double>(c.tile_m) * c.tile_n;
  const double sides = static_cast<double>(c.tile_m) + c.tile_n;
  CdnaNeeds needs;
  const double accumulators = area * limits.accumulator / kRegisterBytes / lanes;
  // A wave holds its rows and columns for one instruction depth, and the next ones.
  const double wave_sides = sides / std::sqrt(static_cast<double>(c.waves));
  const double operands = 2 * wave_sides * c.mma_k * limits.size / kRegisterBytes / kLanes;
  const double arriving =
      c.direct_to_lds ? 0 : sides * c.tile_k * limits.size / kRegisterBytes / lanes;
  needs.registers = accumulators + operands + arriving + kAddressRegisters;
  // C leaves through LDS a row of instructions at a time, by half of the waves.
  const double staging = static_cast<double>(c.mma_m) * c.waves * c.tile_n * limits.size_out / 2;
  needs.lds = {std::max(c.prefetch * sides * c.tile_k * limits.size, staging)};
  if (c.split_k > 1)
    needs.workspace = {limits.accumulator * c.split_k * limits.m * limits.n * limits.batch};
  else if (c.stream_k)
    needs.workspace = {limits.accumulator * area * limits.units};
  double rows = std::ceil(limits.m / c.tile_m) * limits.batch;
  if (!limits.groups.empty()) rows = 0;
  for (const std::int64_t group : limits.groups)
    rows += std::ceil(static_cast<double>(group) / c.tile_m);
  const double tiles = rows * std::ceil(limits.n / c.tile_n);
  needs.work_items = lanes * (c.stream_k ? limits.units : tiles * c.split_k);
  return needs;
}

Obstacle FindObstacle(const CdnaLimits& limits, const CdnaConfig& c) {
  using enum Obstacle;
  if (std::none_of(limits.instructions.begin(), limits.instructions.end(),
                   [&](const MatrixInstruction& one) {
                     return one.m == c.mma_m && one.n == c.mma_n && one.k == c.mma_k;
                   }))
    return kInstruction;
  if (c.tile_m % c.mma_m != 0 || c.tile_n % c.mma_n != 0 || c.tile_k % c.mma_k != 0) return kTile;
  if (c.waves < 1 || c.waves > kMostWaves) return kWaves;
  if (c.prefetch < kLeastPrefetch || c.prefetch > kMostPrefetch) return kPrefetch;
  if (c.direct_to_lds && c.prefetch < 2) return kDirectBuffers;
  const CdnaNeeds needs = NeedsOf(limits, c);
  if (needs.registers * std::max(1.0, c.waves / kSimds) > kLaneRegisters) return kRegisters;
  if (needs.lds.value > limits.lds) return kLds;
  if (c.direct_to_lds && !limits.rows_aligned) return kDirectWidth;
  if (!limits.scales_whole) return kScales;
  if (c.split_k > 1 && c.stream_k) return kTwoSplits;
  if (c.split_k > 1 && limits.k / c.tile_k < c.split_k) return kParts;
  if (needs.work_items >= kMostWorkItems) return kGrid;
  if (needs.workspace.value > limits.workspace) return kWorkspace;
  return kNone;
}

std::string WhyNot(const Device& device, const Problem& problem, const CdnaConfig& c) {
  constexpr double kMega = 1e6;
  const CdnaLimits limits(device, problem);
  const Obstacle obstacle = FindObstacle(limits, c);
  const CdnaNeeds needs = NeedsOf(limits, c);
  switch (obstacle) {
    case Obstacle::kNone:
      return {};
    case Obstacle::kInstruction:
      return fmt::format("{} has no {}x{}x{} instruction for {}", limits.arch, c.mma_m, c.mma_n,
                         c.mma_k, Name(problem.dtype));
    case Obstacle::kTile:
      return fmt::format("tile {}x{}x{} is not made of whole {}x{}x{} instructions", c.tile_m,
                         c.tile_n, c.tile_k, c.mma_m, c.mma_n, c.mma_k);
    case Obstacle::kWaves:
      return fmt::format("{} waves; a workgroup has 1 to {:.0f}", c.waves, kMostWaves);
    case Obstacle::kPrefetch:
      return fmt::format("prefetch {}; kernels have {} to {}", c.prefetch, kLeastPrefetch,
                         kMostPrefetch);
    case Obstacle::kDirectBuffers:
      return "direct-to-LDS needs a second buffer to load into";
    case Obstacle::kRegisters:
      return fmt::format("{:.0f} registers a lane; {} has {:.0f}",
                         needs.registers * std::max(1.0, c.waves / kSimds), limits.arch,
                         kLaneRegisters);
    case Obstacle::kLds:
      return fmt::format("{:.0f} bytes of LDS; {} has {:.0f}", needs.lds.value, limits.arch,
                         limits.lds);
    case Obstacle::kDirectWidth:
      return fmt::format("direct-to-LDS moves {} bytes a lane; rows of A and B do not start there",
                         DirectWidth(limits.arch));
    case Obstacle::kScales:
      return fmt::format("K is {}; {} has a scale for every {}", problem.k, Name(problem.dtype),
                         kMxBlock);
    case Obstacle::kTwoSplits:
      return "stream-K splits K by itself";
    case Obstacle::kParts:
      return fmt::format("K has fewer steps of {} than {} parts", c.tile_k, c.split_k);
    case Obstacle::kGrid:
      return fmt::format("{:.3g} work-items; a launch has at most 2^32", needs.work_items);
    case Obstacle::kWorkspace:
      return fmt::format("{:.3g} MB of partial sums; the workspace has {:.3g}",
                         needs.workspace.value / kMega, limits.workspace / kMega);
  }
  return {};
}

CdnaKernel KernelOf(const CdnaConfig& c) {
  CdnaKernel kernel;
  kernel.tile_m = c.tile_m;
  kernel.tile_n = c.tile_n;
  kernel.tile_k = c.tile_k;
  kernel.split_k = c.split_k;
  kernel.waves = c.waves;
  kernel.buffers = c.prefetch;
  kernel.stream_k = c.stream_k != 0;
  kernel.non_temporal = c.non_temporal != 0;
  kernel.mapping = c.mapping;
  return kernel;
}

}  // namespace gnomon::hip
