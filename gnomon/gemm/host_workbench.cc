// Kernels and vendor libraries on operands in main memory. All use the same operands and warm
// caches (gemm/timing.h); a result is checked by gemm/operands.h.

#include "gnomon/gemm/host_workbench.h"

namespace gnomon {
namespace {

Outcome Failed(const Error& error) { return {Outcome::Ending::kFailed, error.Text()}; }

}  // namespace

HostWorkbench::HostWorkbench(const KernelRunner& runner, Options options)
    : runner_(runner), options_(std::move(options)) {
  for (const auto& vendor : options_.vendors) vendor->SetThreads(options_.vendor_threads);
}

std::vector<std::string> HostWorkbench::Vendors() const {
  std::vector<std::string> names;
  for (const auto& vendor : options_.vendors) names.push_back(vendor->name());
  return names;
}

Status HostWorkbench::Prepare(const Problem& problem) {
  const bool fp32 = problem.dtype == DType::kFp32 && problem.dtype_out == DType::kFp32;
  if (!options_.vendors.empty() && !fp32)
    return BadInput("bench compares fp32: OpenBLAS and BLIS have no GEMM of another type here",
                    "--dtype");
  operands_.reset();
  GNOMON_ASSIGN(Operands operands, Operands::Make(problem));
  operands_.emplace(std::move(operands));
  problem_ = problem;
  return Done{};
}

Status HostWorkbench::Run(const Contestant& contestant) {
  const void *a = operands_->a(), *b = operands_->b();
  void* c = operands_->c();
  if (contestant.vendor < 0) return runner_.Run(problem_, contestant.config, a, b, c);
  const VendorBlas& vendor = *options_.vendors[static_cast<size_t>(contestant.vendor)];
  return vendor.Sgemm(problem_, static_cast<const float*>(a), static_cast<const float*>(b),
                      static_cast<float*>(c));
}

Outcome HostWorkbench::Verify(const Contestant& contestant) {
  operands_->Poison();
  if (const Status ran = Run(contestant); !ran.ok()) return Failed(ran.error());
  if (const Status correct = operands_->Check(); !correct.ok())
    return {Outcome::Ending::kWrong, correct.error().message};
  return {};
}

Outcome HostWorkbench::Sample(const Contestant& contestant, Samples& samples) {
  const Status taken =
      samples.Take([&] { return Run(contestant); }, Microseconds(options_.min_sample_us));
  return taken.ok() ? Outcome{} : Failed(taken.error());
}

}  // namespace gnomon
