#pragma once

/// A CPU BLAS that was found on the machine at run time: the baseline of `gemm bench`.

#include <memory>
#include <string>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

class VendorBlas {
 public:
  virtual ~VendorBlas() = default;
  virtual std::string name() const = 0;  ///< "openblas", "blis"
  virtual void SetThreads(int threads) const = 0;
  /// C = A·B, fp32, every layout, leading dimension and batch.
  virtual Status Sgemm(const Problem& problem, const float* a, const float* b, float* c) const = 0;
};

/// Those that can be loaded, OpenBLAS before BLIS. Error where there is none: names the Debian
/// packages.
Result<std::vector<std::unique_ptr<VendorBlas>>> LoadVendorBlas();

}  // namespace gnomon
