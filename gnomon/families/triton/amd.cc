// Triton on AMD: which configs there are and what each takes.
//
//   block sides 16 to 256, BLOCK_K of 64 to 256 bytes, 4 waves, 8 from 16384 outputs on; num_stages
//   2 (gfx942: the next operands wait in registers) or 2 and 3 (gfx950: asynchronous copies, one
//   LDS buffer a stage, triton#9087); matrix_instr_nonkdim 32 where both sides allow it, else 16;
//   kpack 2 on gfx942; waves_per_eu as it comes
//
// Left out because compiler or hardware refuse: LDS or registers that do not hold one workgroup, a
// block below the matrix instruction, and on gfx950 one-byte operands with BLOCK_K 128 under 16 x
// 16 instructions (crashes the compiler, pytorch#166442). GROUP_M, the order of the tiles, is the
// `mapping` of the CDNA model. The constants are those of plain Triton kernels timed on an MI350X
// in fp16 (kernel_families.cc, entry "triton"); waves_per_eu and kpack have no term: nothing public
// tells their effect apart.

#include "gnomon/families/triton/amd.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace gnomon::triton {
namespace {

// Expected |predicted / measured − 1|: held-out Triton rows of an MI350X (docs/accuracy.md); other
// architectures and dtypes were never timed.
constexpr double kTimedError = 0.10, kUntimedError = 0.3;

struct Space {
  CdnaMachine machine;
  const KernelFamilyTraits* traits = nullptr;
};

Result<Space> SpaceOn(const Device& device, const Problem& problem, int units) {
  Space space;
  GNOMON_ASSIGN(space.machine, CdnaMachineOf(device, problem.dtype, units));
  const KernelFamilyTraits* known = FindKernelFamily("triton", device.arch, problem.dtype);
  space.traits = known ? known : &GenericKernelFamily(device.arch, problem.dtype);
  return space;
}

CdnaKernel KernelOf(const Device& device, const TritonConfig& config) {
  CdnaKernel kernel;
  kernel.tile_m = config.block_m;
  kernel.tile_n = config.block_n;
  kernel.tile_k = config.block_k;
  kernel.split_k = config.split_k;
  kernel.waves = config.warps;
  const bool asynchronous = device.arch == "gfx950";
  kernel.buffers = std::max(1, asynchronous ? config.stages : config.stages - 1);
  kernel.mapping = config.group_m;
  return kernel;
}

bool CompilerTakes(const Device& device, const TritonConfig& config, double element_bytes) {
  constexpr std::int32_t kCrashingDepth = 128, kSmallMfma = 16;
  if (config.mfma > 0 && std::min(config.block_m, config.block_n) < config.mfma) return false;
  return !(device.arch == "gfx950" && element_bytes == 1 && config.mfma == kSmallMfma &&
           config.block_k == kCrashingDepth);
}

// The launch grid counts work-items in 32 bits.
bool GridFits(const Problem& problem, const TritonConfig& config) {
  constexpr double kMostWorkItems = 4294967295.0, kLanes = 64;
  const double tiles = std::ceil(static_cast<double>(problem.m) / config.block_m) *
                       std::ceil(static_cast<double>(problem.n) / config.block_n) *
                       static_cast<double>(problem.batch) * config.split_k;
  return tiles * config.warps * kLanes <= kMostWorkItems;
}

bool Oversized(std::int64_t side, std::int32_t block) {
  constexpr std::int32_t kLeast = 16;
  return block > kLeast && block / 2 >= side;
}

}  // namespace

bool IsAmd(const Device& device) { return device.arch.starts_with("gfx"); }

Status PriceAmd(const Device& device, const Problem& problem, int units,
                std::vector<Config>& configs, std::vector<double>& seconds) {
  GNOMON_ASSIGN(const Space space, SpaceOn(device, problem, units));
  const CdnaOperands operands = CdnaOperandsOf(problem);
  const double size = SizeOf(problem.dtype);
  constexpr std::array<std::int32_t, 5> kSides = {16, 32, 64, 128, 256};
  constexpr std::array<double, 3> kDepthBytes = {64, 128, 256};
  constexpr std::array<std::int32_t, 8> kSplits = {1, 2, 3, 4, 6, 8, 12, 16};
  constexpr std::int32_t kEightWaves = 16384, kMfmaWide = 32, kMfmaNarrow = 16;
  constexpr double kMostParts = 1024;
  const bool asynchronous = device.arch == "gfx950";
  for (const std::int32_t m : kSides) {
    if (Oversized(problem.m, m)) continue;
    for (const std::int32_t n : kSides) {
      if (Oversized(problem.n, n)) continue;
      const double tiles = std::ceil(static_cast<double>(problem.m) / m) *
                           std::ceil(static_cast<double>(problem.n) / n) *
                           static_cast<double>(problem.batch);
      for (const double bytes : kDepthBytes) {
        TritonConfig config;
        config.block_m = m;
        config.block_n = n;
        config.block_k = static_cast<std::int32_t>(bytes / size);
        config.warps = m * n >= kEightWaves ? 8 : 4;
        config.mfma = std::min(m, n) >= kMfmaWide ? kMfmaWide : kMfmaNarrow;
        config.kpack = device.arch == "gfx942" ? 2 : 1;
        if (!CompilerTakes(device, config, size)) continue;
        for (config.stages = 2; config.stages <= (asynchronous ? 3 : 2); ++config.stages) {
          if (CdnaOccupancy(space.machine, KernelOf(device, config)) < 1) continue;
          const double steps = std::ceil(static_cast<double>(problem.k) / config.block_k);
          for (const std::int32_t split : kSplits) {
            if (split > 1 && (tiles * split > kMostParts || steps < 2 * split)) break;
            config.split_k = split;
            if (!GridFits(problem, config)) continue;
            configs.push_back(ToConfig(config));
            seconds.push_back(
                PriceCdna(space.machine, *space.traits, operands, KernelOf(device, config)).total);
          }
        }
      }
    }
  }
  if (configs.empty())
    return BadInput(fmt::format("no Triton config fits {} on {}", problem.Text(), device.id),
                    "problem");
  return Done{};
}

Result<Prediction> PredictAmd(const Device& device, const Problem& problem, int units,
                              const TritonConfig& config) {
  GNOMON_ASSIGN(const Space space, SpaceOn(device, problem, units));
  const CdnaKernel kernel = KernelOf(device, config);
  if (CdnaOccupancy(space.machine, kernel) < 1 ||
      !CompilerTakes(device, config, SizeOf(problem.dtype)) || !GridFits(problem, config))
    return BadInput(fmt::format("{} cannot be launched on {}", Text(config), device.id), "config");
  Prediction out =
      ExplainCdna(space.machine, PriceCdna(space.machine, *space.traits, problem, kernel), kernel);
  const bool timed = device.arch == "gfx950" && SizeOf(problem.dtype) == 2;
  out.relative_error = timed ? kTimedError : kUntimedError;
  return out;
}

}  // namespace gnomon::triton
