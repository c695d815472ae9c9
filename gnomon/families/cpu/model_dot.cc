// The time of a GEMM as blocks of dot products (run_dot.cc), in cycles of its slowest thread.
//
//   time = Σ blocks ⌈k / lanes⌉ · max(mr·nr / ports, (mr + nr) · vector load, fma_latency) + sums +
//   stream
//
// Nothing is packed. The operand of the inner loop is read once for every block of the outer one:
// from L1 or L2 where all of it fits, else from where it lies. The rows of a block are runs along
// k. Adding up the lanes of a sum costs as much as some steps, which is what makes short k slow
// here. Left out: the masked last step of k, which is counted as a whole one.

#include <cmath>

#include "gnomon/families/cpu/model.h"

namespace gnomon::cpu {
namespace {

double Share(std::int64_t side, double threads, bool split, double grain) {
  const double whole = static_cast<double>(side);
  return split ? std::min(whole, std::ceil(std::ceil(whole / grain) / threads) * grain) : whole;
}

}  // namespace

Parts PriceDot(const Machine& machine, const Problem& p, const GemmConfig& c,
               const KernelCosts& costs) {
  constexpr double kDepthGrain = 64;  // of run_dot.cc
  const double threads = c.threads;
  const bool many = c.threads > 1;
  const bool split_k = many && c.split == GemmConfig::Split::kK;
  const double m = Share(p.m, threads, many && c.split == GemmConfig::Split::kM, 1);
  const double n = Share(p.n, threads, many && c.split == GemmConfig::Split::kN, 1);
  const double k = Share(p.k, threads, split_k, kDepthGrain);
  const double element = SizeOf(p.dtype);
  const auto bytes = static_cast<std::int64_t>(element);
  const Home home(machine, (m * k + n * k) * element + m * n * SizeOf(p.dtype_out), p.bytes().value,
                  threads);

  const double row_blocks = std::ceil(m / c.mr), column_blocks = std::ceil(n / c.nr);
  const double rows = m / row_blocks, columns = n / column_blocks;
  const double load = std::max(1 / kLoadsPerCycle, machine.lanes * element * machine.read[kL1]);
  const double row_lines = p.m > 1 ? LinesOfVector(machine, p.LeadingA(), bytes) : 1;
  const double column_lines = p.n > 1 ? LinesOfVector(machine, p.LeadingB(), bytes) : 1;
  // Widening bf16 takes an unpack and a shift on the ports that multiply.
  const double widening = p.dtype == DType::kBf16 ? 2 * (rows + columns) : 0;
  const double step =
      std::max({(rows * columns + widening) / machine.ports,
                (rows * row_lines + columns * column_lines) * load, machine.fma_latency});
  Parts parts;
  parts.multiply = row_blocks * column_blocks * std::ceil(k / machine.lanes) * step;
  parts.overhead =
      row_blocks * column_blocks * costs.dot_block_cycles + m * n * costs.dot_sum_cycles;

  // The inner loop's operand moves, the outer one's block stays.
  const double inner = (c.loop_n_outer ? m : n) * k * element;
  const double outer = (c.loop_n_outer ? n : m) * k * element;
  const double passes = c.loop_n_outer ? column_blocks : row_blocks;
  const double outer_block = outer / passes;
  const double inner_rows = c.loop_n_outer ? m : n, outer_rows = c.loop_n_outer ? n : m;
  const double in_l1 = Held(machine.capacity[kL1] * costs.usable_l1, inner + outer_block);
  const double in_l2 = Held(machine.capacity[kL2] * costs.usable_l2, inner + outer_block);
  Cost cost = home.Read(inner + outer, inner_rows + outer_rows, costs);
  const double again = (passes - 1) * (1 - in_l1);
  cost.near += again * in_l2 * inner * machine.read[kL2];
  cost.Add(home.Read(again * (1 - in_l2) * inner, again * (1 - in_l2) * inner_rows, costs));
  const double near = Exposed(parts.multiply, cost.near, std::min(1.0, costs.late_share * rows));
  const double far = Exposed(parts.multiply + near, cost.far, costs.exposed_far);
  parts.stream = near + far;
  parts.store = Exposed(parts.multiply + parts.overhead + parts.stream,
                        home.Write(m * n * SizeOf(p.dtype_out), 0, costs), costs.exposed_store);
  if (split_k) parts.reduce = ReduceCycles(machine, home, p, threads, costs);
  return parts;
}

}  // namespace gnomon::cpu
