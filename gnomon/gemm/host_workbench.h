#pragma once

/// The host as a workbench: operands in main memory, calls timed by the clock, caches warm.

#include <memory>
#include <optional>

#include "gnomon/gemm/operands.h"
#include "gnomon/gemm/vendor_blas.h"
#include "gnomon/gemm/workbench.h"

namespace gnomon {

/// A family whose kernels run on the host.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  virtual const Family& family() const = 0;
  /// C = A·B with the config; operands as problem.dtype, C as problem.dtype_out.
  virtual Status Run(const Problem& problem, const Config& config, const void* a, const void* b,
                     void* c) const = 0;
  /// Puts tile and split columns of a measured row; the config string is the sweep's.
  virtual void Describe(const Config& config, Measurement& row) const = 0;
};

class HostWorkbench : public Workbench {
 public:
  struct Options {
    std::string conditions;     ///< CPU class, date, policy
    double min_sample_us = 60;  ///< calls are repeated until a sample is this long
    int vendor_threads = 1;
    std::vector<std::unique_ptr<VendorBlas>> vendors = {};
  };
  /// The runner must outlive the workbench.
  HostWorkbench(const KernelRunner& runner, Options options);

  const Family& family() const override { return runner_.family(); }
  std::vector<std::string> Vendors() const override;
  Status Prepare(const Problem& problem) override;
  Outcome Verify(const Contestant& contestant) override;
  Outcome Sample(const Contestant& contestant, Samples& samples) override;
  std::string Conditions() const override { return options_.conditions; }
  void Describe(const Config& config, Measurement& row) const override {
    runner_.Describe(config, row);
  }

 private:
  Status Run(const Contestant& contestant);

  const KernelRunner& runner_;
  Options options_;
  Problem problem_;
  std::optional<Operands> operands_;
};

}  // namespace gnomon
