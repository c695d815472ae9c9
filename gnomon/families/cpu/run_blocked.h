#pragma once

/// The blocked GEMM that the tile kernels and the AMX kernels share: how a job is cut up, the loop
/// nest, and what becomes of sums that cannot go to C as they are. Internal to the family.
///
///   loop_n_outer:                                  otherwise:
///     for each block of N (nc) and K (kc):           for each block of K (kc):
///       pack B[kc, nc]                                 pack B[kc, N]
///       for each block of M (mc):                      for each block of M (mc):
///         pack A[mc, kc]                                 pack A[mc, kc]
///         for column panels, for row panels: tile        for blocks of N (nc): for row panels, for
///         column panels: tile
///
/// The panel of the outer of the two innermost loops stays in L1, the block of the other one in L2.

#include "gnomon/families/cpu/pack.h"
#include "gnomon/families/cpu/run.h"

namespace gnomon::cpu {

/// What a kernel is built from.
struct PanelShape {
  std::int64_t rows = 0, cols = 0;            ///< of a whole tile of C
  std::int64_t row_grain = 1, col_grain = 1;  ///< threads share out M and N in steps of these
  std::int64_t k_grain = 1;                   ///< blocks of K are multiples of it
  bool rounds_in_kernel = false;  ///< sums of a single K block may go to a bf16 C directly
};

/// Sizes that follow from a job, its config and the team alone, the same for every thread.
struct Plan {
  PanelShape panel;
  std::int64_t mc = 0, nc = 0, kc = 0;
  std::int64_t b_cols = 0;  ///< columns that one pack of B holds
  std::int64_t strip = 0;   ///< rows of C that are finished before the next ones start
  bool n_outer = true;
  bool share_b = false;  ///< the team packs one B together
  bool split_k = false;
  bool to_sums = false;                         ///< sums go to fp32 memory first
  std::int64_t sums_stride = 0, sums_size = 0;  ///< floats
};
Plan MakePlan(const Job& job, const PanelShape& panel, std::int64_t team_size);

/// Where sums go, and what they become in the last block of K.
struct Target {
  void* c = nullptr;
  std::int64_t stride = 0;
  std::int64_t first_row = 0;  ///< row of the job that c points at
  const float* bias = nullptr;
  bool relu = false;
  bool bf16 = false;
};

/// A tile of C within its blocks.
struct TilePlace {
  Range m, n;        ///< the blocks that A and B were packed in
  Range rows, cols;  ///< the tile
  Range k;
  bool first = false, last = false;  ///< block of K
};

/// Calls visit(rows) for the row panels of a block, balanced in units of the grain: an instance of
/// the kernel exists for every number of rows, so 128 rows in tiles of 14 are ten tiles of 12 or 13
/// and no remainder.
template <class Visit>
void ForEachRowPanel(Range m, const PanelShape& panel, const Visit& visit) {
  if (m.size() <= 0) return;
  const std::int64_t count = CeilDiv(m.size(), panel.rows),
                     units = CeilDiv(m.size(), panel.row_grain);
  const std::int64_t base = units / count, rest = units % count;
  std::int64_t begin = m.begin;
  for (std::int64_t index = 0; index < count; ++index) {
    const std::int64_t end =
        std::min(m.end, begin + (base + (index < rest ? 1 : 0)) * panel.row_grain);
    visit(Range{begin, end});
    begin = end;
  }
}

/// The loop nest over ranges of M, N and K. Kernel has PackA(m, k), PackB(n, k) and Tile(place,
/// target).
template <class Kernel>
void RunBlocks(const Plan& plan, Range m, Range n, Range k, const Target& target, Kernel& kernel) {
  const auto columns = [&](TilePlace& place, Range block) {
    for (std::int64_t j = block.begin; j < block.end; j += plan.panel.cols) {
      place.cols = {j, std::min(j + plan.panel.cols, block.end)};
      kernel.Tile(place, target);
    }
  };
  const auto depth_block = [&](Range cols, Range depth) {
    kernel.PackB(cols, depth);
    for (std::int64_t i = m.begin; i < m.end; i += plan.mc) {
      TilePlace place = {{i, std::min(i + plan.mc, m.end)},
                         cols,
                         {},
                         {},
                         depth,
                         depth.begin == k.begin,
                         depth.end == k.end};
      kernel.PackA(place.m, depth);
      if (plan.n_outer) {
        for (std::int64_t j = cols.begin; j < cols.end; j += plan.panel.cols) {
          place.cols = {j, std::min(j + plan.panel.cols, cols.end)};
          ForEachRowPanel(place.m, plan.panel, [&](Range rows) {
            place.rows = rows;
            kernel.Tile(place, target);
          });
        }
      } else {
        for (std::int64_t j = cols.begin; j < cols.end; j += plan.nc)
          ForEachRowPanel(place.m, plan.panel, [&](Range rows) {
            place.rows = rows;
            columns(place, {j, std::min(j + plan.nc, cols.end)});
          });
      }
    }
  };
  const std::int64_t n_step = plan.n_outer ? plan.nc : std::max<std::int64_t>(n.size(), 1);
  for (std::int64_t j = n.begin; j < n.end; j += n_step)
    for (std::int64_t kk = k.begin; kk < k.end; kk += plan.kc)
      depth_block({j, std::min(j + n_step, n.end)}, {kk, std::min(kk + plan.kc, k.end)});
}

/// Adds up the partial sums of a split K: every thread some rows.
void FinishSplitK(const Job& job, const Plan& plan, Team team, const float* sums);
/// Makes C of the sums of rows m and columns n; `sums` points at the first of the rows.
void FinishStrip(const Job& job, const Plan& plan, Range m, Range n, const float* sums);

/// All of a job, as one thread of the team does it.
template <class Kernel>
void RunBlocked(const Job& job, const Plan& plan, Team team, float* sums, Kernel& kernel) {
  const Problem& p = job.problem;
  if (plan.split_k) {
    const Range k = Share(p.k, plan.panel.k_grain, team.rank, team.size);
    float* mine = sums + team.rank * plan.sums_size;
    if (k.size() == 0) std::fill(mine, mine + plan.sums_size, 0.0f);
    RunBlocks(plan, {0, p.m}, {0, p.n}, k, {mine, plan.sums_stride}, kernel);
    team.Barrier();
    FinishSplitK(job, plan, team, sums);
    return;
  }
  const bool split_n = job.config.split == GemmConfig::Split::kN;
  const Range n = split_n ? Share(p.n, plan.panel.col_grain, team.rank, team.size) : Range{0, p.n};
  for (std::int64_t i = 0; i < p.m; i += plan.strip) {
    const std::int64_t rows = std::min(plan.strip, p.m - i);
    Range m = split_n ? Range{0, rows} : Share(rows, plan.panel.row_grain, team.rank, team.size);
    m = {i + m.begin, i + m.end};
    if (plan.to_sums) {
      RunBlocks(plan, m, n, {0, p.k}, {sums, plan.sums_stride, i}, kernel);
      FinishStrip(job, plan, m, n, sums + (m.begin - i) * plan.sums_stride);
    } else {
      RunBlocks(plan, m, n, {0, p.k},
                {job.c, p.LeadingC(), 0, job.bias, job.relu(), job.bf16_out()}, kernel);
    }
  }
}

}  // namespace gnomon::cpu
