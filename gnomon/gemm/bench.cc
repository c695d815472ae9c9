// The selected kernel and each vendor library in turn on the same operands.
//
//   ratio = median time of the faster library / median time of the pick
//
// Rounds interleave the contestants, so that a slow spell hits all; each contestant's result is
// checked once; all use the same number of threads and warm caches (gemm/timing.h). Selection
// itself is not in the pick's time: it is done once a shape and costs microseconds
// (families/cpu/select_bench.cc).

#include "gnomon/gemm/bench.h"

#include <cmath>

#include "gnomon/gemm/operands.h"
#include "gnomon/gemm/select.h"
#include "gnomon/gemm/timing.h"
#include "gnomon/gemm/vendor_blas.h"

namespace gnomon {
namespace {

struct Contestant {
  std::string name;
  TimedCall call;
  Samples samples;
};

Status CheckOnce(Contestant& contestant, const Problem& problem, Operands& operands) {
  operands.Poison();
  GNOMON_TRY(contestant.call());
  const Status correct = operands.Check();
  if (!correct.ok())
    return Fault(fmt::format("{} computes {} wrongly: {}", contestant.name, problem.Text(),
                             correct.error().message));
  return Done{};
}

Result<BenchRow> BenchShape(const Device& device, const KernelRunner& runner, const Shape& shape,
                            std::span<const std::unique_ptr<VendorBlas>> libraries,
                            const BenchOptions& options) {
  const Problem& problem = shape.problem;
  const Family* family = &runner.family();
  GNOMON_ASSIGN(const std::vector<Pick> picks,
                Select(device, problem, std::span(&family, 1), options.units));
  GNOMON_ASSIGN(Operands operands, Operands::Make(problem));
  const auto* a = static_cast<const float*>(operands.a());
  const auto* b = static_cast<const float*>(operands.b());
  auto* c = static_cast<float*>(operands.c());

  std::vector<Contestant> contestants;
  contestants.push_back(
      {"the pick", [&] { return runner.Run(problem, picks[0].config, a, b, c); }, {}});
  for (const std::unique_ptr<VendorBlas>& library : libraries)
    contestants.push_back(
        {library->name(),
         [&problem, &library, a, b, c] { return library->Sgemm(problem, a, b, c); },
         {}});
  for (Contestant& contestant : contestants) GNOMON_TRY(CheckOnce(contestant, problem, operands));
  for (int round = 0; round < options.rounds; ++round) {
    for (Contestant& contestant : contestants) {
      GNOMON_TRY(contestant.samples.Take(contestant.call, Microseconds(options.min_sample_us)));
    }
  }

  BenchRow row;
  row.shape = shape;
  row.config = family->Print(picks[0].config);
  row.predicted = picks[0].predicted;
  row.pick = contestants[0].samples.Time();
  for (size_t i = 1; i < contestants.size(); ++i) {
    const Seconds time = contestants[i].samples.Time();
    if (i > 1 && time >= row.vendor) continue;
    row.vendor = time;
    row.vendor_name = contestants[i].name;
  }
  return row;
}

}  // namespace

Result<BenchResult> BenchAgainstVendor(const Device& device, const KernelRunner& runner,
                                       const std::vector<Shape>& shapes,
                                       const BenchOptions& options) {
  constexpr double kGflop = 1e9;
  GNOMON_ASSIGN(const auto libraries, LoadVendorBlas());
  BenchResult result;
  for (const auto& library : libraries) {
    library->SetThreads(options.units > 0 ? options.units : device.units);
    result.vendors.push_back(library->name());
  }
  double log_sum = 0;
  int done = 0;
  for (const Shape& shape : shapes) {
    ++done;
    if (options.max_gflop > 0 && shape.problem.flops().value > options.max_gflop * kGflop) continue;
    if (shape.problem.dtype != DType::kFp32 || shape.problem.dtype_out != DType::kFp32)
      return BadInput("bench compares fp32: OpenBLAS and BLIS have no GEMM of another type here",
                      "--dtype");
    if (options.progress)
      options.progress(done - 1, static_cast<int>(shapes.size()),
                       fmt::format("{} {}", shape.name, shape.problem.Text()));
    GNOMON_ASSIGN(BenchRow row, BenchShape(device, runner, shape, libraries, options));
    log_sum += std::log(row.ratio());
    result.rows.push_back(std::move(row));
  }
  if (result.rows.empty()) return BadInput("no shape is within the size limit", "--max-gflop");
  result.geomean_ratio = std::exp(log_sum / static_cast<double>(result.rows.size()));
  return result;
}

}  // namespace gnomon
