// Connects RunGemm to gemm/sweep.h, so that gemm/ need not know the family.

#include "gnomon/families/cpu/runner.h"

#include "gnomon/families/cpu/amx.h"
#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cpu/kernel.h"

namespace gnomon::cpu {
namespace {

class CpuRunner : public KernelRunner {
 public:
  const Family& family() const override { return GemmFamily(); }

  Status Run(const Problem& problem, const Config& config, const void* a, const void* b,
             void* c) const override {
    return RunGemm(problem, FromConfig(config), a, b, c, nullptr);
  }

  void Describe(const Config& config, Measurement& row) const override {
    const GemmConfig c = FromConfig(config);
    const bool amx = c.kernel == GemmConfig::Kernel::kAmx;
    const std::int64_t vector = c.kernel == GemmConfig::Kernel::kDot ? 1 : PanelTileKernels().lanes;
    row.tile_m = c.mr * (amx ? kAmxSide : 1);
    row.tile_n = c.nr * (amx ? kAmxSide : vector);
    row.tile_k = c.kc;
    row.split_k = c.threads > 1 && c.split == GemmConfig::Split::kK ? c.threads : 1;
  }
};

}  // namespace

const KernelRunner& GemmRunner() {
  static const CpuRunner runner;
  return runner;
}

}  // namespace gnomon::cpu
