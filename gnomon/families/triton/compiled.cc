// What Triton 3.6 and ptxas make of a plain GEMM kernel, from the figures of 8,112 compiled kernels
// (bench/results/h200_triton_compiled.csv) and their intermediate code.
//
//   wide      an operand whose contiguous side and leading dimension are multiples of 16 elements
//   is
//             copied by 16-byte asynchronous copies into `stages` buffers (warpgroup instructions)
//             or stages − 1 (others); any other is loaded element by element through registers, at
//             once, into one buffer: nothing is asynchronous below 4 bytes
//   scattered the rows of B that are contiguous along N lose their contiguity to `offs_n % n`
//   unless
//             n is a multiple of 16; the compiler then lays the threads along K, and each touches a
//             line of its own
//   registers = the larger of loop and epilogue, at most 255. ptxas fills the registers that an
//   occupancy
//     leaves, so the constants are those that give the right number of resident workgroups: for 96%
//     of wide kernels, 87% of the others loop: base + accumulators + wide copies, and a 64-bit
//     pointer and a value a narrow element epilogue of a narrow C: a pointer and a predicate an
//     accumulator
//   spilled   what both need beyond 255 (median error 24 to 38 of some hundreds)
//   collapse  mma.sync kernels with 128 narrow elements a thread or more are given 32 registers and
//             keep everything in local memory
//   shared    buffers, or the tile of C where that is larger (it is staged in its own type)
//   serialised  layout nt, eight warps, BLOCK_N 256: ptxas reports C7515, accumulators defined
//   between
//             the start and the end of a pipeline stage; seen in 6 of 6 such configs and in none of
//             428 others
//
// Other versions of Triton and other architectures are taken to be alike where nothing else is
// known; their figures were never measured.

#include "gnomon/families/triton/compiled.h"

namespace gnomon::triton {
namespace {

constexpr double kWideElements = 16;  // Triton specialises integers divisible by this
constexpr double kCopyBytes = 16;
constexpr double kWarpgroupRows = 64;
constexpr double kWarpsOfGroup = 4;
constexpr double kAccumulatorBytes = 4;
constexpr double kWidestGrouped = 4;  // bytes of an element (tf32)

struct Registers {
  double base, accumulator, narrow, wide;
  double operator()(const CompiledKernel& kernel) const {
    return base + accumulator * kernel.accumulators + narrow * (kernel.narrow_a + kernel.narrow_b) +
           wide * kernel.wide_copies;
  }
};
constexpr Registers kWideLoop = {28.9, 1.28, 0, 2.09}, kNarrowLoop = {30.9, 0.49, 2.68, 1.91};
constexpr double kManyNarrow = 73, kManyNarrowMore = 1.38;  // beyond: predicates no longer packed
constexpr Registers kWideEpilogue = {10.1, 2, 0, 0}, kNarrowEpilogue = {26.9, 2.26, 0, 0};
constexpr Registers kSpilledWideC = {-298, 1.07, 3.66, -7.2},
                    kSpilledNarrowC = {-351, 2.38, 3.33, 5.17};
constexpr Registers kCollapsed = {0, 1, 6.5, 0};
constexpr double kCollapseElements = 128, kCollapseRegisters = 32;

}  // namespace

Specialisation SpecialisationOf(const Problem& problem) {
  const auto wide = [](std::int64_t contiguous, std::int64_t leading) {
    constexpr std::int64_t kMultiple = static_cast<std::int64_t>(kWideElements);
    return contiguous % kMultiple == 0 && leading % kMultiple == 0;
  };
  Specialisation spec;
  spec.wide_a = wide(problem.a_transposed() ? problem.m : problem.k, problem.LeadingA());
  spec.wide_b = wide(problem.b_transposed() ? problem.k : problem.n, problem.LeadingB());
  spec.wide_c = wide(problem.n, problem.LeadingC());
  spec.b_by_k = problem.b_transposed();
  spec.scattered_b = !spec.wide_b && !spec.b_by_k;
  return spec;
}

CompiledKernel Compile(const TileMachine& machine, std::string_view arch,
                       const Specialisation& spec, const TritonConfig& config,
                       double element_bytes) {
  CompiledKernel kernel;
  const double m = config.block_m, n = config.block_n, k = config.block_k;
  // Warpgroup instructions take operands of up to 4 bytes; wider ones and the vector units work
  // warp by warp.
  const bool grouped = !machine.vector_units && element_bytes <= kWidestGrouped;
  if (grouped && arch.starts_with("sm_10") && m >= kWarpgroupRows)
    kernel.path = MatrixPath::kTensorMemory;
  else if (grouped && arch.starts_with("sm_90") && m >= kWarpgroupRows &&
           config.warps >= kWarpsOfGroup)
    kernel.path = MatrixPath::kWarpgroup;
  kernel.threads = config.warps * machine.wave_width;
  const double registers_each = std::max(1.0, element_bytes / kAccumulatorBytes);  // fp64: two
  kernel.accumulators =
      kernel.path == MatrixPath::kTensorMemory ? 0 : registers_each * m * n / kernel.threads;

  const double copy = kCopyBytes / element_bytes;
  const double a = m * k / kernel.threads, b = n * k / kernel.threads;
  kernel.wide_copies = (spec.wide_a ? a / copy : 0) + (spec.wide_b ? b / copy : 0);
  kernel.narrow_a = spec.wide_a ? 0 : a;
  kernel.narrow_b = spec.wide_b ? 0 : b;
  const double narrow = kernel.narrow_a + kernel.narrow_b;

  const double most = machine.registers_per_thread;
  double needed = narrow > 0
                      ? kNarrowLoop(kernel) + kManyNarrowMore * std::max(0.0, narrow - kManyNarrow)
                      : kWideLoop(kernel);
  if (!spec.wide_c)
    needed = std::max(needed, narrow > 0 ? kNarrowEpilogue(kernel) : kWideEpilogue(kernel));
  kernel.registers = std::min(most, needed);
  if (narrow > 0) {
    // A narrow C asks for more, never for less.
    const double spilled = spec.wide_c ? kSpilledWideC(kernel)
                                       : std::max(kSpilledWideC(kernel), kSpilledNarrowC(kernel));
    kernel.spilled = std::max(0.0, spilled);
  }
  if (kernel.path == MatrixPath::kSync && narrow >= kCollapseElements) {
    kernel.registers = kCollapseRegisters;
    kernel.spilled = kCollapsed(kernel);
  }

  const bool reads_shared =
      kernel.path == MatrixPath::kWarpgroup || kernel.path == MatrixPath::kTensorMemory;
  kernel.buffers = std::max(1, reads_shared ? config.stages : config.stages - 1);
  const double out_bytes = config.split_k > 1 ? kAccumulatorBytes : element_bytes;
  kernel.shared_bytes = std::max(
      ((spec.wide_a ? kernel.buffers : 1) * m * k + (spec.wide_b ? kernel.buffers : 1) * n * k) *
          element_bytes,
      m * n * out_bytes);
  constexpr std::int32_t kSerialWarps = 8, kSerialColumns = 256;
  kernel.serialised = kernel.path == MatrixPath::kWarpgroup && spec.b_by_k && spec.wide_a &&
                      spec.wide_b && config.warps == kSerialWarps &&
                      config.block_n == kSerialColumns;
  return kernel;
}

}  // namespace gnomon::triton
