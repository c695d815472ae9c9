// Triton on AMD: which configs there are and what each takes.
//
//   block sides 16 to 256, BLOCK_K of 64 to 256 bytes, 4 waves, 8 from 16384 outputs on; num_stages
//   2; split_k 1 to 16 where few tiles leave units idle; matrix_instr_nonkdim 32 where both sides
//   allow it, else 16; kpack 2 on gfx942; waves_per_eu as it comes
//
// LDS holds one buffer a stage on gfx950 (asynchronous copies, triton#9087), one less on others
// (the next operands wait in registers). Left out because compiler or hardware refuse: LDS or
// registers that do not hold one workgroup, a block below the matrix instruction, and on gfx950
// one-byte operands with BLOCK_K 128 under 16 x 16 instructions (crashes the compiler,
// pytorch#166442). Left out because nothing public tells their effect apart, so that they would
// only tie: waves_per_eu, other kpack, a third stage (it takes LDS; --config prices it).
//
// GROUP_M, the order of the tiles, is the `mapping` of the CDNA model. The constants are those of
// plain Triton kernels timed on an MI350X in fp16 (kernel_families.cc, entry "triton") but for the
// stores: that bench filled the last-level cache with dirty lines before every run, which says
// nothing of the kernel; here, as for family cdna, C is stored past clean lines.
//
// Entry points: the header's.

#include "gnomon/families/triton/amd.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>

namespace gnomon::triton {
namespace {

// Expected |predicted / measured − 1|: held-out Triton rows of an MI350X (docs/accuracy.md); other
// architectures and dtypes were never timed.
constexpr double kTimedError = 0.10, kUntimedError = 0.3;

constexpr std::array<std::int32_t, 5> kSides = {16, 32, 64, 128, 256};
constexpr std::array<double, 3> kDepthBytes = {64, 128, 256};
constexpr std::array<std::int32_t, 8> kSplits = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kMostParts = 1024;              // workgroups of a split kernel
constexpr double kMostWorkItems = 4294967295.0;  // the launch grid counts them in 32 bits
constexpr double kLanes = 64;                    // of a wave

bool Asynchronous(std::string_view arch) { return arch == "gfx950"; }

CdnaKernel KernelOf(std::string_view arch, const TritonConfig& config) {
  CdnaKernel kernel;
  kernel.tile_m = config.block_m;
  kernel.tile_n = config.block_n;
  kernel.tile_k = config.block_k;
  kernel.split_k = config.split_k;
  kernel.waves = config.warps;
  kernel.buffers = std::max(1, Asynchronous(arch) ? config.stages : config.stages - 1);
  kernel.mapping = config.group_m;
  return kernel;
}

bool CompilerTakes(std::string_view arch, const TritonConfig& config, double element_bytes) {
  constexpr std::int32_t kCrashingDepth = 128, kSmallMfma = 16;
  if (config.mfma > 0 && std::min(config.block_m, config.block_n) < config.mfma) return false;
  return !(arch == "gfx950" && element_bytes == 1 && config.mfma == kSmallMfma &&
           config.block_k == kCrashingDepth);
}

bool Oversized(double side, std::int32_t block) {
  return block > kSides.front() && block >= 2 * side;
}

CdnaWays& Scratch() {
  thread_local CdnaWays ways;
  return ways;
}

}  // namespace

bool IsAmd(const Device& device) { return device.arch.starts_with("gfx"); }

Result<AmdSpace> MakeAmdSpace(const Device& device, DType dtype, int units) {
  AmdSpace space;
  GNOMON_ASSIGN(space.machine, CdnaMachineOf(device, dtype, units));
  const KernelFamilyTraits* known = FindKernelFamily("triton", device.arch, dtype);
  const KernelFamilyTraits& generic = GenericKernelFamily(device.arch, dtype);
  space.traits = known ? *known : generic;
  space.traits.store_share = generic.store_share;
  const double size = SizeOf(dtype);
  constexpr std::int32_t kEightWaves = 16384, kMfmaWide = 32, kMfmaNarrow = 16;
  for (const std::int32_t m : kSides)
    for (const std::int32_t n : kSides)
      for (const double bytes : kDepthBytes) {
        TritonConfig config;
        config.block_m = m;
        config.block_n = n;
        config.block_k = static_cast<std::int32_t>(bytes / size);
        config.warps = m * n >= kEightWaves ? 8 : 4;
        config.stages = 2;
        config.mfma = std::min(m, n) >= kMfmaWide ? kMfmaWide : kMfmaNarrow;
        config.kpack = device.arch == "gfx942" ? 2 : 1;
        if (!CompilerTakes(device.arch, config, size)) continue;
        const CdnaKernel kernel = KernelOf(device.arch, config);
        const CdnaBlock block = CdnaBlockOf(space.machine, space.traits, kernel);
        if (block.occupancy < 1) continue;
        space.configs.push_back(config);
        space.tiles.push_back({kernel, block});
      }
  return space;
}

Result<const AmdSpace*> AmdSpaceOf(const Device& device, DType dtype, int units) {
  struct Kept {
    std::string arch;
    DType dtype;
    AmdSpace space;
  };
  GNOMON_ASSIGN(const CdnaMachine machine, CdnaMachineOf(device, dtype, units));
  // A pointer into this stays good: spaces are on the heap and never dropped by their thread.
  thread_local std::vector<std::unique_ptr<Kept>> kept;
  for (const auto& entry : kept)
    if (entry->dtype == dtype && entry->arch == device.arch && entry->space.machine == machine)
      return &entry->space;
  GNOMON_ASSIGN(AmdSpace space, MakeAmdSpace(device, dtype, units));
  kept.push_back(std::make_unique<Kept>(Kept{device.arch, dtype, std::move(space)}));
  return &kept.back()->space;
}

void EnumerateAmd(const AmdSpace& space, const Problem& problem, const CdnaOperands& operands,
                  CdnaWays& ways) {
  ways.Clear(space.tiles.size(), kSplits.size());
  for (size_t i = 0; i < space.tiles.size(); ++i) {
    const CdnaTile& tile = space.tiles[i];
    if (Oversized(operands.longest, tile.kernel.tile_m) ||
        Oversized(operands.n, tile.kernel.tile_n))
      continue;
    const CdnaTask task =
        CdnaTaskOf(space.machine, space.traits, operands, tile.kernel, tile.block);
    const double work_items = task.tiles * tile.kernel.waves * kLanes;
    CdnaLaunch launch;
    launch.tile = static_cast<std::uint32_t>(i);
    launch.task = static_cast<std::uint32_t>(ways.tasks.size());
    launch.mapping = tile.kernel.mapping;
    ways.tasks.push_back(task);
    for (const std::int32_t split : kSplits) {
      if (split > 1 && (task.tiles * split > kMostParts || task.steps < 2 * split ||
                        !problem.Grants(problem.PartialSums(split))))
        break;
      if (work_items * split > kMostWorkItems) break;
      launch.split_k = split;
      ways.launches.push_back(launch);
    }
  }
}

TritonConfig ConfigOf(const AmdSpace& space, const CdnaLaunch& launch) {
  TritonConfig config = space.configs[launch.tile];
  config.split_k = launch.split_k;
  return config;
}

void PriceAmd(const AmdSpace& space, const Problem& problem, std::vector<Config>& configs,
              std::vector<double>& seconds) {
  const CdnaOperands operands = CdnaOperandsOf(problem);
  CdnaWays& ways = Scratch();
  EnumerateAmd(space, problem, operands, ways);
  for (const CdnaLaunch& launch : ways.launches) {
    configs.push_back(ToConfig(ConfigOf(space, launch)));
    seconds.push_back(PriceCdna(space.machine, space.traits, operands, space.tiles, ways, launch));
  }
}

size_t FastestAmd(const AmdSpace& space, const Problem& problem, std::span<TimedConfig> fastest,
                  size_t* priced) {
  const CdnaOperands operands = CdnaOperandsOf(problem);
  CdnaWays& ways = Scratch();
  EnumerateAmd(space, problem, operands, ways);
  const size_t found =
      FastestCdna(space.machine, space.traits, operands, space.tiles, ways, fastest, priced);
  for (size_t i = 0; i < found; ++i)
    fastest[i].config = ToConfig(ConfigOf(space, ways.launches[ways.fastest[i]]));
  return found;
}

Result<CdnaTime> PriceOneAmd(const Device& device, const AmdSpace& space, const Problem& problem,
                             const TritonConfig& config) {
  const CdnaKernel kernel = KernelOf(device.arch, config);
  const CdnaOperands operands = CdnaOperandsOf(problem);
  const CdnaBlock block = CdnaBlockOf(space.machine, space.traits, kernel);
  const CdnaTask task = CdnaTaskOf(space.machine, space.traits, operands, kernel, block);
  if (block.occupancy < 1 || !CompilerTakes(device.arch, config, SizeOf(problem.dtype)) ||
      task.tiles * config.split_k * config.warps * kLanes > kMostWorkItems ||
      (config.split_k > 1 && !problem.Grants(problem.PartialSums(config.split_k))))
    return BadInput(fmt::format("{} cannot be launched on {}", Text(config), device.id), "config");
  return PriceCdna(space.machine, space.traits, operands, kernel, block, task);
}

Result<Prediction> PredictAmd(const Device& device, const AmdSpace& space, const Problem& problem,
                              const TritonConfig& config) {
  GNOMON_ASSIGN(const CdnaTime time, PriceOneAmd(device, space, problem, config));
  Prediction out = ExplainCdna(space.machine, time, KernelOf(device.arch, config));
  const bool timed = device.arch == "gfx950" && SizeOf(problem.dtype) == 2;
  out.relative_error = timed ? kTimedError : kUntimedError;
  return out;
}

}  // namespace gnomon::triton
