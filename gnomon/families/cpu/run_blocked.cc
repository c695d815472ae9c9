// How a blocked GEMM is cut up (MakePlan), and the passes over sums that could not go to C
// directly.
//
// Blocks are balanced: as few as the config's sizes allow, all but the last equal. Sums take the
// way over fp32 memory in two cases. With K shared out, every thread has partial sums of all of C,
// and then adds up some rows of all of them. With a bf16 C, sums of several K blocks (or of kernels
// that cannot round) stay in a strip of rows that is converted before the next strip starts, so
// that the memory they need is bounded. The loop nest itself is in run_blocked.h.

#include "gnomon/families/cpu/run_blocked.h"

namespace gnomon::cpu {
namespace {

constexpr std::int64_t kCacheLine = 16;  // floats
constexpr std::int64_t kStripFloats = std::int64_t{1}
                                      << 21;  // 8 MiB of fp32 sums before they become bf16

FinishArgs FinishOf(const Job& job, Range m, Range n, const float* sums, std::int64_t stride) {
  FinishArgs finish;
  finish.first = sums;
  finish.first_stride = finish.part_stride = stride;
  finish.rows = m.size();
  finish.cols = n.size();
  finish.bias = job.bias == nullptr ? nullptr : job.bias + n.begin;
  finish.relu = job.relu();
  finish.c = job.ElementOfC(m.begin, n.begin);
  finish.c_stride = job.problem.LeadingC();
  finish.bf16 = job.bf16_out();
  return finish;
}

}  // namespace

Plan MakePlan(const Job& job, const PanelShape& panel, std::int64_t team_size) {
  const Problem& p = job.problem;
  const GemmConfig& config = job.config;
  const bool split_m = team_size > 1 && config.split == GemmConfig::Split::kM;
  Plan plan;
  plan.panel = panel;
  plan.n_outer = config.loop_n_outer;
  plan.share_b = split_m && config.pack_b;
  plan.split_k = team_size > 1 && config.split == GemmConfig::Split::kK;
  const std::int64_t depth = plan.split_k ? Share(p.k, panel.k_grain, 0, team_size).size() : p.k;
  plan.kc = BalancedBlock(depth, config.kc, panel.k_grain);
  plan.nc = BalancedBlock(p.n, config.nc, panel.cols);
  plan.b_cols = plan.n_outer ? plan.nc : RoundUp(p.n, panel.cols);
  plan.to_sums = plan.split_k || (job.bf16_out() && !(panel.rounds_in_kernel && plan.kc >= p.k));
  plan.sums_stride = RoundUp(p.n, kCacheLine);
  plan.strip = p.m;
  if (plan.to_sums && !plan.split_k)
    plan.strip = std::min(
        p.m, RoundUp(std::max<std::int64_t>(kStripFloats / plan.sums_stride, 1), panel.row_grain));
  plan.sums_size = plan.to_sums ? plan.strip * plan.sums_stride : 0;
  const std::int64_t rows =
      split_m ? Share(plan.strip, panel.row_grain, 0, team_size).size() : plan.strip;
  plan.mc = BalancedBlock(rows, config.mc, panel.rows);
  return plan;
}

void FinishSplitK(const Job& job, const Plan& plan, Team team, const float* sums) {
  const Range rows = Share(job.problem.m, 1, team.rank, team.size);
  FinishArgs finish = FinishOf(job, rows, {0, job.problem.n}, sums + rows.begin * plan.sums_stride,
                               plan.sums_stride);
  finish.parts = finish.first + plan.sums_size;
  finish.part_count = team.size - 1;
  finish.part_size = plan.sums_size;
  Finish(finish);
}

void FinishStrip(const Job& job, const Plan& plan, Range m, Range n, const float* sums) {
  Finish(FinishOf(job, m, n, sums + n.begin, plan.sums_stride));
}

}  // namespace gnomon::cpu
