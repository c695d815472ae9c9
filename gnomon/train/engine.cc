// The module's one exported symbol, and what is set up once when it is loaded.
//
// No exception leaves: LibTorch reports by throwing, which becomes an Error here. LibTorch's own
// GEMM comes from the system's BLAS; Debian's default is the reference one at about 1 GFLOP/s,
// which would make every baseline meaningless, so training refuses it and names the package that
// replaces it.

#include "gnomon/train/engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <new>

#include "gnomon/train/framework_calibration.h"
#include "gnomon/train/session.h"
#include "gnomon/train/train_loop.h"

namespace gnomon::train {
namespace {

// Any optimised BLAS is far above this on one core (dozens of GFLOP/s), the reference one below (1
// to 3).
constexpr double kSlowestBlas = 5e9;
constexpr int kTries = 20;  // on a busy machine one of them runs undisturbed

double BlasRate() {
  constexpr std::int64_t kSide = 256;
  at::NoGradGuard no_grad;
  const at::Tensor a = at::ones({kSide, kSide}), b = at::ones({kSide, kSide});
  at::set_num_threads(1);
  double best = 0;
  for (int i = 0; i < kTries && best < kSlowestBlas; ++i) {
    const double begin = Now();
    at::mm(a, b);
    best = std::max(best, 2.0 * kSide * kSide * kSide / (Now() - begin));
  }
  return best;
}

Status CheckBlas() {
  static const double rate = BlasRate();
  if (rate >= kSlowestBlas) return Done{};
  return Fault(
      fmt::format("LibTorch multiplies matrices at {:.1f} GFLOP/s here: the system's BLAS is the "
                  "slow reference one; apt-get install libopenblas0-openmp (then check "
                  "update-alternatives --display libblas.so.3-x86_64-linux-gnu)",
                  rate / 1e9));
}

// Runs `work` after the process is set up, with exceptions turned into errors.
template <class T, class Work>
Result<T> Guarded(Work work) {
  try {
    static std::once_flag once;
    std::call_once(once, KeepAllocations);
    GNOMON_TRY(CheckBlas());
    return work();
  } catch (const std::bad_alloc&) {
    return Fault("out of memory in the trainer; a smaller batch or fewer table rows need less");
  } catch (const c10::Error& error) {
    return Fault(std::string("LibTorch: ") + error.what_without_backtrace());
  } catch (const std::exception& error) {
    return Fault(std::string("the trainer failed: ") + error.what());
  }
}

class LibTorchEngine final : public Engine {
 public:
  Result<TrainResult> Train(const Plan& plan, const TrainOptions& options) const override {
    return Guarded<TrainResult>([&] { return TrainPlan(plan, options); });
  }
  Result<CompareResult> Compare(const std::vector<Arm>& arms,
                                const CompareOptions& options) const override {
    return Guarded<CompareResult>([&] { return ComparePlans(arms, options); });
  }
  Status CalibrateFramework(Device& device) const override {
    return Guarded<Done>([&] { return CalibrateFrameworkOn(device); });
  }
};

}  // namespace
}  // namespace gnomon::train

extern "C" __attribute__((visibility("default"))) const gnomon::train::Engine*
gnomon_train_engine() {
  static const gnomon::train::LibTorchEngine engine;
  return &engine;
}
