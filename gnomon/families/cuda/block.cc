// Cycles of one CTA of a TMA kernel.
//
//   step     = (multiply³ + load³ + chain³)^(1/3)    what overlaps: nearly the longest
//   multiply = max(2·tile / matrix rate, operands read from shared memory / its rate)
//              wgmma reads 64 rows and its columns an instruction, tcgen05 128 rows; half as many
//              rows keep tcgen05 as long
//   load     = A and B of a step / shared memory's rate; of a pair, half of the common operand
//   chain    = step_cycles + load_latency / stages    more stages hide more of it
//   epilogue = tile_cycles + elements · epilogue_cycles
//
// What hides an epilogue under the next tile's k steps: ping-pong (the other warpgroup multiplies),
// and a second set of accumulators in tensor memory. Both need a CTA that goes from tile to tile.
// Multicast: a cluster asks L2 for each operand once; every unit still takes all its bytes in. The
// tile model sees the cluster as the workgroup, so its requests shrink by themselves.
//
// Constants: least absolute log(predicted / measured) of the fastest config on the fit rows
// (base/fit_split.h) of the public bf16 timings of H100 and H200, and of B200 and B300; held out:
// accuracy_test.cc. Not modelled: L2 slices near and far, tensor memory bandwidth, MX scales on
// their way to tensor memory, the cost of a cluster's launch.

#include "gnomon/families/cuda/block.h"

#include <array>
#include <bit>
#include <cmath>

#include "gnomon/gemm/gpu_load.h"

namespace gnomon::cuda {
namespace {

constexpr std::array<UnitCosts, 2> kCosts = {{
    {150, 0.12, 0.134, 640, 0, 0.09},
    {63, 0.72, 0.08, 500, 0.25e-6, 0.136},
}};

constexpr double kWgmmaRows = 64, kTcgenRows = 128;

double Cubed(double x) { return x * x * x; }

double MultiplyCycles(const TileMachine& machine, Generation generation, const TileConfig& c,
                      const ElementBytes& bytes) {
  const bool along_m = RowsAlongM(generation, c);
  const double rows = along_m ? c.tile_m : c.tile_n, columns = along_m ? c.tile_n : c.tile_m;
  const double depth = c.tile_k * bytes.staged / kInstructionBytes;
  const double instruction_rows = generation == Generation::kSm90 ? kWgmmaRows : kTcgenRows;
  const double padded = std::ceil(rows / instruction_rows);
  double instruction_columns = columns;
  if (generation == Generation::kSm90 && !c.ping_pong && c.consumers == 2 &&
      static_cast<int>(padded) % 2 != 0)
    instruction_columns = columns / 2;  // the warpgroups halve the columns
  const double instructions = padded * depth * columns / instruction_columns;
  const double read = std::min(rows, instruction_rows) + instruction_columns / c.pair;
  const double at_peak = 2 * padded * instruction_rows * columns * c.tile_k / machine.matrix_flops;
  return std::max(at_peak, instructions * read * kInstructionBytes / machine.shared_rate);
}

}  // namespace

const UnitCosts& CostsOf(Generation generation) {
  return kCosts[static_cast<std::size_t>(generation)];
}

TileTraits TraitsOf(Generation generation, bool stream_k) {
  const UnitCosts& costs = CostsOf(generation);
  TileTraits traits;
  traits.wave_rounding = 1;  // equal CTAs started together end together
  traits.exposed_memory = costs.exposed_memory;
  traits.hbm_share = kStreamShare;
  traits.memory_latency = costs.memory_latency;
  traits.reduction_start = stream_k ? 0 : kSecondKernel;
  return traits;
}

TileMachine MachineOfClusters(const TileMachine& machine, std::int32_t cluster) {
  TileMachine out = machine;
  out.dies = 1;  // NVIDIA's dies serve one L2
  out.units = std::floor(UnitsInClusters(machine.units, cluster) / cluster);
  out.units_per_die = out.units;
  out.l2_unit_rate *= cluster;
  out.hbm_unit_rate *= cluster;
  return out;
}

Block BlockOf(const TileMachine& machine, Generation generation, const TileConfig& c,
              const ElementBytes& bytes) {
  const UnitCosts& costs = CostsOf(generation);
  const UnitNeeds needs = UnitNeedsOf(generation, c, bytes);
  Block block;
  block.config = c;
  block.cluster_index = static_cast<std::size_t>(
      std::countr_zero(static_cast<std::uint32_t>(c.cluster_m * c.cluster_n)));
  TileKernel& kernel = block.cluster;
  kernel.tile_m = c.tile_m * c.cluster_m;
  kernel.tile_n = c.tile_n * c.cluster_n;
  kernel.tile_k = c.tile_k;
  kernel.group_m = c.group_m;
  kernel.stream_k = c.stream_k;
  kernel.persistent = c.persistent || c.stream_k;
  kernel.bytes_c = c.split_k > 1 ? SizeOf(DType::kFp32) : bytes.out;
  kernel.occupancy = Occupancy(machine, needs.warps, needs.launch_registers, needs.shared.value);
  if (needs.tensor_columns > 0) {
    kernel.occupancy =
        std::min(kernel.occupancy, std::floor(kTensorColumns / needs.tensor_columns));
  }
  if (kernel.occupancy == 0) return block;

  const double m = c.tile_m, n = c.tile_n, k = c.tile_k;
  const bool along_m = RowsAlongM(generation, c);
  const double taken = (along_m ? m : n) + (along_m ? n : m) / c.pair;
  const double multiply = MultiplyCycles(machine, generation, c, bytes);
  const double load = taken * k * bytes.staged / machine.shared_rate;
  // Cycles are those of the highest clock; the machine counts in the sustained one's.
  const double faster = machine.light_hertz / machine.hertz;
  const double latency = costs.load_latency * machine.hbm_latency * faster;
  const double chain = costs.step_cycles + latency / c.stages;
  kernel.step_busy = std::cbrt(Cubed(multiply) + Cubed(load));
  kernel.step_chain = std::cbrt(Cubed(multiply) + Cubed(load) + Cubed(chain));
  kernel.prologue = latency;
  const double stored_elements = kernel.bytes_c / bytes.out;  // partial sums are wider
  kernel.epilogue =
      costs.tile_cycles + m * n * costs.epilogue_cycles * std::max(1.0, stored_elements);
  kernel.epilogue_busy = kernel.epilogue;  // one way out of a unit
  const bool turns = c.ping_pong || c.accumulators > 1;
  block.hidden_epilogue = turns && kernel.persistent ? 1 : 0;
  // Out and in again through the port to L2, and the wait for the neighbour's flag.
  block.fix_up =
      (2 * m * n * SizeOf(DType::kFp32) / machine.l2_unit_rate + 2 * machine.l2_latency) * faster;
  return block;
}

}  // namespace gnomon::cuda
