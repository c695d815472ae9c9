// Kernels on a CUDA device, timed by its own clock.
//
//   sample = time between two events around one run, of runs that follow one another
//
//   cold      operands rotate through copies that exceed the L2 twice over (gpu_operands.h): a run
//             finds none of what it reads there, and writes back what the run before left
//   ahead     a kernel that only waits comes first, so that everything timed is in the device's
//             queue when it starts; where the host took longer than that, the sample is taken again
//             behind a longer wait. Times are the kernel's own then, with the start of a launch in
//             a full queue, as for the rows of bench/triton_sweep.py.
//   code      one run that is not timed goes before, where another kernel ran last
//
// A run is checked the second time over, so that one which does not leave its workspace as it found
// it is seen. A kernel that does not end within kPatience, or that leaves an error that stays with
// the process, has taken the device with it: nothing is freed any more, since that would wait too.
// What is left out: clocks are read, not locked; a power limit acts on long kernels as it does in
// training.
// Entry points: CudaDeviceId, OpenCudaWorkbench.

#include "gnomon/families/cuda/cuda_workbench.h"

#include <cuda_runtime_api.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "gnomon/base/statistics.h"
#include "gnomon/families/cuda/cublaslt.h"
#include "gnomon/families/cuda/gemm.h"
#include "gnomon/families/cuda/gpu_check.h"
#include "gnomon/families/cuda/gpu_operands.h"
#include "gnomon/families/cuda/kernel_plan.h"
#include "gnomon/families/cuda/present_gpu.h"

namespace gnomon::cuda {
namespace {

using Ending = Outcome::Ending;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kRuns = 3;         // timed, of a sample
constexpr int kTakes = 4;                // of a sample that the host was too slow for
constexpr Seconds kFirstLead = {60e-6};  // of the device before its queue must be full
constexpr Seconds kMostLead = {20e-3};
constexpr Seconds kPatience = {10};  // for one sample: the slowest kernels take 0.1 s
constexpr std::size_t kVendorWorkspace = 64 << 20;

Status Checked(cudaError_t code, std::string_view call) {
  if (code == cudaSuccess) return Done{};
  (void)cudaGetLastError();
  return Fault(fmt::format("{}: {}", call, cudaGetErrorString(code)));
}

Seconds Since(Clock::time_point start) {
  return {std::chrono::duration<double>(Clock::now() - start).count()};
}

// "2026-12-01", of this place.
std::string Today() { return fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr))); }

std::string ClockText(const Result<Clocks>& clocks) {
  return clocks.ok() ? fmt::format("{:.0f} MHz", clocks->sm_mhz) : std::string("unknown");
}

class CudaWorkbench : public Workbench {
 public:
  CudaWorkbench(int ordinal, const Family& family) : ordinal_(ordinal), family_(family) {}
  CudaWorkbench(const CudaWorkbench&) = delete;
  CudaWorkbench& operator=(const CudaWorkbench&) = delete;

  ~CudaWorkbench() override {
    if (lost_) return;
    for (const cudaEvent_t event : events_)
      if (event != nullptr) (void)cudaEventDestroy(event);
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }

  Status Open(bool against_vendor) {
    GNOMON_TRY(Checked(cudaSetDevice(ordinal_), "cudaSetDevice"));
    GNOMON_ASSIGN(gpu_, ReadPresentGpu(ordinal_));
    int l2 = 0;
    GNOMON_TRY(Checked(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, ordinal_),
                       "cudaDeviceGetAttribute"));
    l2_bytes_ = static_cast<std::size_t>(l2);
    GNOMON_TRY(Checked(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                       "cudaStreamCreateWithFlags"));
    for (cudaEvent_t& event : events_)
      GNOMON_TRY(Checked(cudaEventCreate(&event), "cudaEventCreate"));
    against_vendor_ = against_vendor;
    if (against_vendor || OfLibrary()) {
      GNOMON_ASSIGN(library_, CublasLt::Load());
      GNOMON_TRY(library_workspace_.Reserve(kVendorWorkspace));
    }
    return Done{};
  }

  const Family& family() const override { return family_; }
  std::vector<std::string> Vendors() const override {
    if (!against_vendor_) return {};
    return {"cublaslt " + library_->version()};
  }

  Status Prepare(const Problem& problem) override {
    problem_ = problem;
    last_.reset();
    GNOMON_TRY(operands_.Prepare(problem, l2_bytes_, stream_));
    next_copy_ = operands_.first_timed();
    candidates_.clear();
    if (library_) {
      const int count = OfLibrary() ? kLtCandidates : 1;
      GNOMON_ASSIGN(candidates_, library_->Candidates(problem, count, kVendorWorkspace));
    }
    before_ = ReadClocks(ordinal_);
    after_ = before_;
    return Done{};
  }

  Outcome Verify(const Contestant& contestant) override {
    if (lost_) return Lost();
    if (const Status fits = ReserveWorkspace(contestant); !fits.ok()) return Failed(fits.error());
    const Status enqueued = [&]() -> Status {
      GNOMON_TRY(Run(contestant, 0));
      GNOMON_TRY(operands_.Poison(stream_));
      GNOMON_TRY(Run(contestant, 0));
      GNOMON_TRY(operands_.EnqueueCheck(stream_));
      return Checked(cudaEventRecord(events_.back(), stream_), "cudaEventRecord");
    }();
    if (!enqueued.ok()) return AfterFailure(Failed(enqueued.error()));
    if (const Outcome ended = Wait(); !ended.right()) return ended;
    const Result<std::string> verdict = operands_.Verdict();
    if (!verdict.ok()) return AfterFailure(Failed(verdict.error()));
    if (verdict->empty()) return {};
    return AfterFailure({Ending::kWrong, *verdict});
  }

  Outcome Sample(const Contestant& contestant, Samples& samples) override {
    if (lost_) return Lost();
    if (const Status fits = ReserveWorkspace(contestant); !fits.ok()) return Failed(fits.error());
    std::array<double, kRuns> seconds{};
    for (int take = 0; take < kTakes; ++take) {
      Seconds host;
      const Status enqueued = EnqueueRuns(contestant, host);
      if (!enqueued.ok()) return AfterFailure(Failed(enqueued.error()));
      if (const Outcome ended = Wait(); !ended.right()) return ended;
      for (std::size_t i = 0; i < kRuns; ++i) {
        float milliseconds = 0;
        const cudaError_t failed = cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]);
        if (failed != cudaSuccess)
          return AfterFailure(Failed(Checked(failed, "cudaEventElapsedTime").error()));
        seconds[i] = 1e-3 * static_cast<double>(milliseconds);
      }
      const bool ahead = host < lead_;
      lead_ = NextLead(host, ahead);
      if (!ahead && take + 1 < kTakes) continue;
      for (const double run : seconds) samples.Add({run}, !ahead);
      break;
    }
    after_ = std::nullopt;
    return {};
  }

  std::string Conditions() const override {
    if (!after_ && !lost_) after_ = ReadClocks(ordinal_);
    std::string text =
        fmt::format("{} {}; cold L2; {} copies", gpu_.name, Today(), operands_.copies());
    if (!before_ || !after_ || !before_->ok() || !(*after_).ok()) return text + "; clocks unknown";
    return text +
           fmt::format("; SM clock {} before, {} after", ClockText(*before_), ClockText(*after_));
  }

  void Describe(const Config& config, Measurement& row) const override {
    if (OfLibrary()) {
      const LtConfig library = LtConfigFrom(config);
      row.tile_m = TileOfId(library.tile).m;
      row.tile_n = TileOfId(library.tile).n;
      row.tile_k = StagesOfId(library.stages).depth;
      row.split_k = library.split_k;
      return;
    }
    const KernelConfig kernel = KernelConfigFrom(config);
    row.tile_m = kernel.tile_m;
    row.tile_n = kernel.tile_n;
    if (kernel.kind != Kind::kVector) row.tile_k = StepDepth(row.problem.dtype);
    row.split_k = kernel.split_k;
  }

  std::optional<HostCost> CostOfCalls(const Selector& selector) override;

 private:
  bool OfLibrary() const { return family_.name() == "cublaslt"; }

  Outcome Failed(const Error& error) const { return {Ending::kFailed, error.Text()}; }
  Outcome Lost() const { return {Ending::kLost, "the device was lost before"}; }

  // A failed run may leave counters in the workspace that are not zero, or an error that stays.
  Outcome AfterFailure(Outcome outcome) {
    const cudaError_t stays = cudaStreamSynchronize(stream_);
    if (stays != cudaSuccess) return Lose(cudaGetErrorString(stays));
    (void)cudaGetLastError();
    if (workspace_.bytes() > 0 &&
        cudaMemsetAsync(workspace_.data(), 0, workspace_.bytes(), stream_) != cudaSuccess)
      return Lose("the workspace cannot be cleared");
    last_.reset();
    return outcome;
  }

  Outcome Lose(std::string why) {
    lost_ = true;
    operands_.Abandon();
    workspace_.Abandon();
    library_workspace_.Abandon();
    return {Ending::kLost, std::move(why)};
  }

  // Until the last event has come.
  Outcome Wait() {
    const auto start = Clock::now();
    for (;;) {
      const cudaError_t state = cudaEventQuery(events_.back());
      if (state == cudaSuccess) return {};
      if (state != cudaErrorNotReady) return Lose(cudaGetErrorString(state));
      if (Since(start) > kPatience)
        return Lose(fmt::format("no end within {:.0f} s", kPatience.value));
    }
  }

  // Grown to what any config of the process needed, and zero then.
  Status ReserveWorkspace(const Contestant& contestant) {
    if (contestant.vendor >= 0 || OfLibrary()) return Done{};
    const std::size_t needed =
        WorkspaceBytes(problem_, KernelConfigFrom(contestant.config), gpu_.units);
    if (needed <= workspace_.bytes()) return Done{};
    GNOMON_TRY(workspace_.Reserve(needed));
    return Checked(cudaMemsetAsync(workspace_.data(), 0, needed, stream_), "cudaMemsetAsync");
  }

  Status Run(const Contestant& contestant, int copy) {
    Operands operands = operands_.At(copy);
    last_ = contestant;
    if (contestant.vendor < 0 && !OfLibrary()) {
      operands.workspace = workspace_.data();
      operands.workspace_bytes = workspace_.bytes();
      return cuda::Run(problem_, KernelConfigFrom(contestant.config), operands, stream_);
    }
    operands.workspace = library_workspace_.data();
    operands.workspace_bytes = library_workspace_.bytes();
    const LtConfig wanted = LtConfigFrom(contestant.config);
    for (const CublasLt::Candidate& candidate : candidates_)
      if (contestant.vendor >= 0 || candidate.config == wanted)
        return library_->Run(problem_, candidate, operands, stream_);
    return BadInput(fmt::format("cuBLASLt does not offer {} here", Text(wanted)));
  }

  // `host`: what it took after the device began to wait.
  Status EnqueueRuns(const Contestant& contestant, Seconds& host) {
    constexpr double kNanoseconds = 1e9;
    GNOMON_TRY(Checked(LaunchSpin(static_cast<std::uint64_t>(lead_.value * kNanoseconds), stream_),
                       "a wait"));
    const auto start = Clock::now();
    if (last_ != contestant) GNOMON_TRY(Run(contestant, NextCopy()));
    GNOMON_TRY(Checked(cudaEventRecord(events_[0], stream_), "cudaEventRecord"));
    for (std::size_t i = 0; i < kRuns; ++i) {
      GNOMON_TRY(Run(contestant, NextCopy()));
      GNOMON_TRY(Checked(cudaEventRecord(events_[i + 1], stream_), "cudaEventRecord"));
    }
    host = Since(start);
    return Done{};
  }

  // Twice what the host takes; after a slow spell of it, back to that in a few samples.
  Seconds NextLead(Seconds host, bool ahead) const {
    const double wanted = ahead ? (lead_.value + 2 * host.value) / 2 : 2 * host.value;
    return {std::clamp(wanted, kFirstLead.value, kMostLead.value)};
  }

  int NextCopy() {
    const int copy = next_copy_++;
    if (next_copy_ == operands_.copies()) next_copy_ = operands_.first_timed();
    return copy;
  }

  const int ordinal_;
  const Family& family_;
  PresentGpu gpu_;
  std::size_t l2_bytes_ = 0;
  bool against_vendor_ = false, lost_ = false;
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, kRuns + 1> events_{};

  Problem problem_;
  GpuOperands operands_;
  DeviceMemory workspace_, library_workspace_;
  std::unique_ptr<CublasLt> library_;
  std::vector<CublasLt::Candidate> candidates_;
  std::optional<Contestant> last_;  // that ran
  int next_copy_ = 0;
  Seconds lead_ = kFirstLead;
  std::optional<Result<Clocks>> before_;
  mutable std::optional<Result<Clocks>> after_;  // read when asked for, once a shape
};

// Medians of calls timed one by one. The queue of a stream holds about a thousand launches; it is
// emptied well before, so that no call waits for the device.
std::optional<HostCost> CudaWorkbench::CostOfCalls(const Selector& selector) {
  constexpr int kCalls = 200, kBetween = 50;
  if (lost_ || OfLibrary()) return std::nullopt;
  const Result<Pick> pick = selector.Select(problem_);
  if (!pick.ok() || !ReserveWorkspace({pick->config}).ok()) return std::nullopt;
  Operands operands = operands_.At(operands_.first_timed());
  operands.workspace = workspace_.data();
  operands.workspace_bytes = workspace_.bytes();
  bool good = true;
  const auto median = [&](auto call) {
    std::vector<double> seconds;
    for (int i = 0; i < kCalls && good; ++i) {
      if (i % kBetween == 0) good = cudaStreamSynchronize(stream_) == cudaSuccess;
      const auto start = Clock::now();
      good = good && call();
      seconds.push_back(Since(start).value);
    }
    return Seconds{Median(seconds)};
  };
  HostCost cost;
  cost.call = median([&] {
    const Result<Pick> again = selector.Select(problem_);
    return again.ok() &&
           cuda::Run(problem_, KernelConfigFrom(again->config), operands, stream_).ok();
  });
  cost.cold_select = median([&] { return selector.SelectCold(problem_).ok(); });
  cost.bare_launch = median([&] { return LaunchNothing(stream_) == cudaSuccess; });
  last_.reset();
  if (cudaStreamSynchronize(stream_) != cudaSuccess || !good) return std::nullopt;
  return cost;
}

}  // namespace

Result<std::string> CudaDeviceId(int ordinal) { return PresentGpuId(ordinal); }

Result<std::unique_ptr<Workbench>> OpenCudaWorkbench(int ordinal, const Family& family,
                                                     bool against_vendor) {
  auto bench = std::make_unique<CudaWorkbench>(ordinal, family);
  GNOMON_TRY(bench->Open(against_vendor));
  return std::unique_ptr<Workbench>(std::move(bench));
}

}  // namespace gnomon::cuda
