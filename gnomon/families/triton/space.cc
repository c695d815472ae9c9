// Which configs family triton tries on NVIDIA GPUs.
//
//   block sides 32 to 256, BLOCK_K 32 to 128 (bytes scaled: 16-bit 32, 64, 128; 8-bit
//   64, 128, 256), at most 32768 accumulators, 4 warps, 8 from 128 x 128 on; stages 3 to 5
//
// Left out because the compiler or the hardware refuse: shared memory over the workgroup's limit,
// registers that do not fit, a block side below the matrix instruction's, BLOCK_K below its k.

#include "gnomon/families/triton/space.h"

#include <array>
#include <memory>
#include <string>

namespace gnomon::triton {
namespace {

bool SameMachine(const TileMachine& a, const TileMachine& b) {
  return a.hertz == b.hertz && a.light_hertz == b.light_hertz && a.units == b.units &&
         a.dies == b.dies && a.matrix_flops == b.matrix_flops && a.registers == b.registers &&
         a.registers_per_thread == b.registers_per_thread && a.shared_bytes == b.shared_bytes &&
         a.shared_block_bytes == b.shared_block_bytes && a.shared_rate == b.shared_rate &&
         a.l2_bytes == b.l2_bytes && a.l2_rate == b.l2_rate && a.l2_unit_rate == b.l2_unit_rate &&
         a.llc_bytes == b.llc_bytes && a.llc_rate == b.llc_rate && a.hbm_rate == b.hbm_rate &&
         a.hbm_latency == b.hbm_latency && a.start == b.start && a.max_waves == b.max_waves &&
         a.max_blocks == b.max_blocks && a.schedulers == b.schedulers &&
         a.wave_width == b.wave_width;
}

// Shapes of workgroups before the device has its say.
std::vector<TritonConfig> Candidates(double element_bytes) {
  std::vector<TritonConfig> configs;
  constexpr std::array<std::int32_t, 4> kSides = {32, 64, 128, 256};
  constexpr std::array<std::int32_t, 3> kDepths16 = {32, 64, 128};
  constexpr std::int32_t kMostAccumulators = 32768, kEightWarps = 16384, kSmallTile = 8192;
  // The same bytes a step for every type, but no less than 16 deep.
  const auto depth_of = [&](std::int32_t depth16) {
    constexpr double kUsualBytes = 2, kLeastDepth = 16;
    return static_cast<std::int32_t>(
        std::max(kLeastDepth, depth16 * kUsualBytes / std::max(1.0, element_bytes)));
  };
  for (const std::int32_t m : kSides) {
    for (const std::int32_t n : kSides) {
      if (m * n > kMostAccumulators) continue;
      for (const std::int32_t depth : kDepths16) {
        if (depth == kDepths16[0] && depth_of(depth) == depth_of(kDepths16[1])) continue;
        for (const std::int32_t warps : {4, 8}) {
          if (m * n != kEightWarps && (warps == 8) != (m * n > kEightWarps)) continue;
          for (std::int32_t stages = 3; stages <= 5; ++stages) {
            if ((depth == kDepths16[0] && stages != 4) || (depth == kDepths16[2] && stages != 3) ||
                (depth == kDepths16[1] && stages == 5 && m * n > kSmallTile))
              continue;
            TritonConfig config;
            config.block_m = m;
            config.block_n = n;
            config.block_k = depth_of(depth);
            config.warps = warps;
            config.stages = stages;
            configs.push_back(config);
          }
        }
      }
    }
  }
  return configs;
}

struct Kept {
  TileMachine machine;
  std::string arch;
  SpaceKind kind;
  Space space;
};

}  // namespace

SpaceKind KindOf(const Problem& problem) {
  return {problem.dtype, problem.dtype_out, SpecialisationOf(problem)};
}

Space MakeSpace(const TileMachine& machine, std::string_view arch, const SpaceKind& kind) {
  Space space;
  space.machine = machine;
  space.traits = LaunchTraits();
  const double size = SizeOf(kind.dtype), out = SizeOf(kind.dtype_out);
  for (TritonConfig config : Candidates(size)) {
    for (const std::int32_t split : {1, 2}) {
      config.split_k = split;
      const TileKernel block = BlockOf(machine, arch, kind.spec, config, size, out);
      if (block.occupancy == 0) continue;
      space.entries.push_back({config, block});
      space.outlines.push_back({.alone = block.prologue + block.epilogue,
                                .alone_step = std::max(block.step_busy, block.step_chain),
                                .shared = block.epilogue_busy,
                                .shared_step = block.step_busy,
                                .log2_k = Log2(config.block_k),
                                .split = split > 1});
      const std::uint32_t log2_m = Log2(config.block_m), log2_n = Log2(config.block_n);
      if (space.tiles.empty() || space.tiles.back().log2_m != log2_m ||
          space.tiles.back().log2_n != log2_n)
        space.tiles.push_back({log2_m, log2_n, space.entries.size() - 1, space.entries.size()});
      space.tiles.back().end = space.entries.size();
    }
  }
  return space;
}

Result<TileMachine> MachineOf(const Device& device, DType dtype, int units) {
  GNOMON_ASSIGN(TileMachine machine, TileMachineOf(device, dtype, units));
  // A unit that waits for lines which others have asked for waits no less than alone: left out, a
  // larger M is never faster and the sweep's held-out shapes are met better.
  machine.hbm_unit_rate = 0;
  return machine;
}

Result<const Space*> SpaceOf(const Device& device, const Problem& problem, int units) {
  GNOMON_ASSIGN(const TileMachine machine, MachineOf(device, problem.dtype, units));
  const SpaceKind kind = KindOf(problem);
  // A pointer into this stays good: spaces are on the heap and never dropped by their thread.
  thread_local std::vector<std::unique_ptr<Kept>> kept;
  for (const auto& entry : kept)
    if (entry->kind == kind && entry->arch == device.arch && SameMachine(entry->machine, machine))
      return &entry->space;
  kept.push_back(std::make_unique<Kept>(
      Kept{machine, device.arch, kind, MakeSpace(machine, device.arch, kind)}));
  return &kept.back()->space;
}

ProblemGrid::ProblemGrid(const Problem& problem) {
  batch_ = static_cast<double>(problem.batch);
  if (problem.workspace) most_parts_ = *problem.workspace / problem.PartialSums(1);
  std::int64_t longest = problem.m;
  if (problem.grouped())
    longest = *std::max_element(problem.group_m.begin(), problem.group_m.end());
  const auto most = [](std::int64_t side) {
    constexpr size_t kLeast = 6;  // always allowed: warpgroup instructions need 64 rows
    size_t log2 = kLeast;
    while (log2 + 1 < kSides && (std::int64_t{1} << log2) < 2 * side) ++log2;
    return log2;
  };
  most_m_ = most(longest);
  most_n_ = most(problem.n);
  for (size_t i = 0; i < kSides; ++i) {
    const std::int64_t side = std::int64_t{1} << i;
    rows_[i] = problem.grouped() ? RowsOfTiles(problem, static_cast<int>(side))
                                 : static_cast<double>((problem.m + side - 1) >> i);
    columns_[i] = static_cast<double>((problem.n + side - 1) >> i);
    steps_[i] = (problem.k + side - 1) >> i;
  }
}

}  // namespace gnomon::triton
