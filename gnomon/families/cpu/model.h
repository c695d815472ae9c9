#pragma once

/// The time of one CPU GEMM, part by part. Internal to the family: family.cc turns it into
/// Predictions.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "gnomon/device/device.h"
#include "gnomon/families/cpu/cpu_gemm.h"

namespace gnomon::cpu {

/// Where data can lie, nearest first; the levels of a device file map onto these four.
enum Level { kL1, kL2, kShared, kMain, kLevels };

/// Facts of the device in the units of the model, looked up once for all configs of a problem.
struct Machine {
  double clock = 0;        ///< cycles a second
  double lanes = 0;        ///< fp32 values in a vector
  double ports = 0;        ///< vector FMAs a cycle
  double fma_latency = 0;  ///< cycles
  double registers = 0;
  double amx_flops = 0;                    ///< bf16 tile flops a cycle, 0: no tiles
  std::array<double, kLevels> capacity{};  ///< bytes
  std::array<double, kLevels> read{};      ///< cycles a byte, one core alone
  std::array<double, kLevels> write{};
  std::array<double, kLevels> read_all{};  ///< cycles a byte of all cores' bytes, when all pull
  std::array<double, kLevels> write_all{};
  std::array<double, kLevels> line{};  ///< cycles a line that no prefetcher foresees, one core
  double transfer = 0;                 ///< cycles until a line that another core wrote is here
  double call = 0, fork_join = 0;      ///< cycles
  double units = 1;
};
Machine MachineOf(const Device& device);

/// Cycles and shares of the kernels that no device file can know. Fitted to sweeps of this family
/// on one CPU (docs/model.md, "GEMM on a CPU"), where `issue_share`, `odd_rows` and `tile_cycles`
/// were also seen alone.
struct KernelCosts {
  double call_cycles = 21;            ///< checks, workspace, plan
  double issue_share = 0.96;          ///< of the step's bound that a tile's loop reaches from L1
  double odd_rows = 1.08;             ///< cycles of a step with an odd number of rows of unpacked A
  double tile_cycles = 30;            ///< call of a kernel, addresses, loop set-up and drain
  double store_vector_cycles = 0.47;  ///< one vector of a finished tile to C
  double masked_vector_cycles = 7.9;  ///< the same through memory: partial vectors, bias, ReLU
  double block_cycles = 275;          ///< one block of the loops around the tiles
  double copy_row_cycles = 4.8;     ///< packing: one k step of a panel, stored rows along the panel
  double copy_vector_cycles = 4.2;  ///< one vector of it
  double transpose_cycles = 0.41;   ///< packing: one element, stored rows along k
  double scalar_cycles = 1.2;       ///< one element of a transpose too small for vectors
  double amx_pack_cycles = 0.22;    ///< one element of a packed bf16 tile
  double amx_store_cycles = 4.1;    ///< 16 sums of an AMX tile finished: bias, ReLU, rounding, edge
  double dot_block_cycles = 4.8;    ///< one block of dot products: call, last part of k, addresses
  double dot_sum_cycles = 5;        ///< one dot product: fold of its vector and store
  double start_near = 1;            ///< start of a run of lines in L2, in lines of random access
  double start_far = 0.24;          ///< the same beyond L2
  double page_cycles = 1.7;         ///< first-level TLB miss, second-level hit, partly hidden
  double late_share =
      0.016;  ///< of L2 streaming that multiplying does not hide, for each row of the tile
  double exposed_far = 0.19;    ///< the same for the shared cache and memory, of any tile
  double exposed_store = 0.43;  ///< share of writing C that is not hidden
  double row_of_tile =
      0.37;  ///< of a run's start: a tile's row of C that continues the last tile's
  double fork_join_share = 1.62;  ///< of an empty region: threads also fetch each other's results
  double border_share =
      0.13;  ///< of a line's way between cores, in each row of C that two threads write
  double foreign_share =
      0.365;  ///< of a line's way between cores, for each line of B that another packed
  double barrier_share = 0.28;  ///< of fork_join: one barrier of a team
  double reduce_cycles = 0.1;   ///< one element of one partial sum
  double usable_l1 = 0.66;      ///< share of L1 that panels can count on
  double usable_l2 = 0.52;      ///< share of L2 that blocks can count on
};
extern const KernelCosts kKernelCosts;

/// Parts of a predicted time, in cycles of the slowest thread. They add up to the time.
struct Parts {
  double call = 0;       ///< entering RunGemm
  double fork_join = 0;  ///< parallel region
  double pack_a = 0, pack_b = 0;
  double multiply = 0;  ///< register tiles from the nearest cache
  double overhead = 0;  ///< entering and leaving tiles
  double stream =
      0;  ///< panels that come from farther than L1, as far as multiplying does not hide it
  double store = 0;    ///< C to where it lives, and back again for every further block of K
  double barrier = 0;  ///< waiting for other threads and for lines that they wrote
  double reduce = 0;   ///< split K: partial sums added up; bf16: sums rounded
  double Sum() const {
    return call + fork_join + pack_a + pack_b + multiply + overhead + stream + store + barrier +
           reduce;
  }
};

/// Cycles from L2, and from beyond it.
struct Cost {
  double near = 0, far = 0;
  void Add(Cost other) {
    near += other.near;
    far += other.far;
  }
};

/// Share of a cyclically used footprint that a cache of `capacity` still holds: all up to half of
/// it, none from one and a half.
inline double Held(double capacity, double footprint) {
  return std::clamp(1.5 - footprint / capacity, 0.0, 1.0);
}

/// Where the operands of one call lie, and what it costs a core to move bytes there. Caches are
/// warm: the call before used the same operands, so they lie in L2 as far as one core's part of all
/// of them fits, and so on outward.
class Home {
 public:
  Home(const Machine& machine, double bytes_of_core, double bytes_of_all, double threads)
      : machine_(machine),
        threads_(threads),
        in_l2_(Held(machine.capacity[kL2], bytes_of_core)),
        in_shared_(Held(machine.capacity[kShared], bytes_of_all)) {}

  /// Reads of `bytes` in runs of consecutive lines; `starts` runs begin where no prefetcher looked.
  Cost Read(double bytes, double starts, const KernelCosts& costs) const {
    return {in_l2_ * (bytes * machine_.read[kL2] + starts * costs.start_near * machine_.line[kL2]),
            (1 - in_l2_) * (bytes * Beyond(machine_.read, machine_.read_all) +
                            starts * costs.start_far * BeyondLine())};
  }
  double Write(double bytes, double starts, const KernelCosts& costs) const {
    return in_l2_ * (bytes * machine_.write[kL2] + starts * costs.start_near * machine_.line[kL2]) +
           (1 - in_l2_) * (bytes * Beyond(machine_.write, machine_.write_all) +
                           starts * costs.start_far * BeyondLine());
  }
  /// A core among `threads`: its own limit, or its part of what all get together.
  double Rate(const std::array<double, kLevels>& one, const std::array<double, kLevels>& all,
              Level level) const {
    return std::max(one[level], threads_ * all[level]);
  }
  double SharedRead() const { return Rate(machine_.read, machine_.read_all, kShared); }
  double SharedWrite() const { return Rate(machine_.write, machine_.write_all, kShared); }

 private:
  double Beyond(const std::array<double, kLevels>& one,
                const std::array<double, kLevels>& all) const {
    return in_shared_ * Rate(one, all, kShared) + (1 - in_shared_) * Rate(one, all, kMain);
  }
  double BeyondLine() const {
    return in_shared_ * machine_.line[kShared] + (1 - in_shared_) * machine_.line[kMain];
  }

  const Machine& machine_;
  double threads_, in_l2_, in_shared_;
};

/// What `cost` adds to `busy` when the two run beside each other: nothing while `cost` is small,
/// and the more the nearer they come, since neither keeps its queues full then. `share` of `cost`
/// is never hidden.
inline double Exposed(double busy, double cost, double share) {
  const double hidden = (1 - share) * cost;
  return share * cost + std::sqrt(busy * busy + hidden * hidden) - busy;
}

/// Loads a cycle of every x86-64 core since Haswell and Zen: two (Intel optimization manual, 2.1;
/// Agner Fog, microarchitecture.pdf).
inline constexpr double kLoadsPerCycle = 2;
inline constexpr double kLineBytes = 64;

/// Lines that a vector access touches on average, where rows of `leading` elements do not begin on
/// lines.
inline double LinesOfVector(const Machine& machine, std::int64_t leading, std::int64_t element) {
  constexpr std::int64_t kLine = 64;
  const bool aligned = leading * element % kLine == 0;
  return aligned ? 1 : 1 + machine.lanes * static_cast<double>(element) / kLineBytes;
}

/// The config must be legal for the problem (config_space.cc, RunGemm's CheckConfig).
Parts Price(const Machine& machine, const Problem& problem, const GemmConfig& config,
            const KernelCosts& costs = kKernelCosts);
/// The kernels' own formulas; Price adds calls and threads to them.
Parts PriceBlocked(const Machine& machine, const Problem& problem, const GemmConfig& config,
                   const KernelCosts& costs);
Parts PriceDot(const Machine& machine, const Problem& problem, const GemmConfig& config,
               const KernelCosts& costs);

/// Cycles of the slowest thread to add up the threads' partial sums of an m × n result.
double ReduceCycles(const Machine& machine, const Home& home, const Problem& problem,
                    double threads, const KernelCosts& costs);

}  // namespace gnomon::cpu
