// What all kernels of the family share: the device's facts in cycles, calls and threads around a
// kernel, a batch, and the reduction of a split K.
//
//   time = call + fork_join + kernel's parts      a batch: shared out whole, or one GEMM after the
//   other
//
// The kernels' own formulas are in model_blocked.cc and model_dot.cc.

#include "gnomon/families/cpu/model.h"

#include <cmath>

namespace gnomon::cpu {

const KernelCosts kKernelCosts;

Machine MachineOf(const Device& device) {
  Machine out;
  out.clock = device.sustained_clock.value;
  constexpr double kFp32Bits = 32;
  out.lanes = std::max(1.0, device.vector_bits / kFp32Bits);
  double flops = 2 * out.lanes;
  for (const Rate& rate : device.vector)
    if (rate.dtype == DType::kFp32) flops = rate.flops_per_unit_clock;
  out.ports = flops / (2 * out.lanes);
  out.fma_latency = device.fma_latency_cycles;
  out.registers = device.vector_registers;
  for (const Rate& rate : device.matrix)
    if (rate.dtype == DType::kBf16) out.amx_flops = rate.flops_per_unit_clock;
  out.units = device.units;
  out.call = device.launch.value * out.clock;
  out.fork_join = device.fork_join.value * out.clock;

  // A level that the file does not have behaves as the next one outward.
  constexpr std::array<std::string_view, kLevels> kNames = {"l1", "l2", "llc", ""};
  for (int i = kLevels - 1; i >= 0; --i) {
    const auto level = static_cast<size_t>(i);
    const MemoryLevel* memory =
        i == kMain ? &device.MainMemory() : device.FindMemory(kNames[level]);
    if (!memory) {
      out.capacity[level] = out.capacity[level + 1];
      out.read[level] = out.read[level + 1];
      out.write[level] = out.write[level + 1];
      out.read_all[level] = out.read_all[level + 1];
      out.write_all[level] = out.write_all[level + 1];
      out.line[level] = out.line[level + 1];
      continue;
    }
    const double all = memory->bandwidth.value;
    const double one = memory->unit_bandwidth.value > 0 ? memory->unit_bandwidth.value : all;
    const double write_all =
        memory->write_bandwidth.value > 0 ? memory->write_bandwidth.value : all;
    const double random_all =
        memory->random_bandwidth.value > 0 ? memory->random_bandwidth.value : all;
    const double share = std::min(1.0, one / all);  // of what all get, that one core alone can pull
    out.capacity[level] = memory->capacity.value;
    out.read[level] = out.clock / one;
    out.read_all[level] = out.clock / all;
    out.write[level] = out.clock / (write_all * share);
    out.write_all[level] = out.clock / write_all;
    out.line[level] = kLineBytes * out.units * out.clock / random_all;
  }
  const MemoryLevel* shared = device.FindMemory(kNames[kShared]);
  out.transfer = (shared ? shared->latency : device.MainMemory().latency).value * out.clock;
  return out;
}

double ReduceCycles(const Machine& machine, const Home& home, const Problem& problem,
                    double threads, const KernelCosts& costs) {
  const double rows = std::ceil(static_cast<double>(problem.m) / threads);
  const double elements = rows * static_cast<double>(problem.n);
  const double bytes = elements * SizeOf(DType::kFp32);
  return elements * threads * costs.reduce_cycles + bytes * (threads - 1) * home.SharedRead() +
         home.Write(bytes, 0, costs) + costs.barrier_share * machine.fork_join;
}

Parts Price(const Machine& machine, const Problem& problem, const GemmConfig& config,
            const KernelCosts& costs) {
  const auto one = [&](const Problem& p, const GemmConfig& c) {
    return c.kernel == GemmConfig::Kernel::kDot ? PriceDot(machine, p, c, costs)
                                                : PriceBlocked(machine, p, c, costs);
  };
  const double call = machine.call + costs.call_cycles;
  const double fork_join = config.threads > 1 ? machine.fork_join * costs.fork_join_share : 0;
  if (problem.batch == 1) {
    Parts parts = one(problem, config);
    parts.call = call;
    parts.fork_join = fork_join;
    return parts;
  }
  Problem single = problem;
  single.batch = 1;
  GemmConfig shared = config;
  double rounds = static_cast<double>(problem.batch);
  if (SharesBatch(problem.batch, config.threads)) {
    shared.threads = 1;
    rounds = std::ceil(rounds / config.threads);
  }
  Parts parts = one(single, shared);
  for (double* part : {&parts.pack_a, &parts.pack_b, &parts.multiply, &parts.overhead,
                       &parts.stream, &parts.store, &parts.barrier, &parts.reduce})
    *part *= rounds;
  parts.call = call;
  parts.fork_join = fork_join;
  if (shared.threads > 1) parts.barrier += (rounds - 1) * costs.barrier_share * machine.fork_join;
  return parts;
}

}  // namespace gnomon::cpu
