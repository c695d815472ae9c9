#pragma once

/// Launches of the kernels that fill operands and check results (gpu_operands.h), for host code
/// that includes CUDA's headers. None waits; each tells how its launch went.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gnomon::cuda {

enum class Stored { kBf16, kFp16, kFp8E4m3, kFp8E5m2, kTf32, kFp32 };

/// Stored rows, product after product.
struct Rows {
  std::int64_t rows = 0, columns = 0, leading = 0;
  std::int64_t product = 0;  ///< elements between products
  std::int64_t products = 1;
};
/// How an operand is read: element (outer, k) is at outer·outer_step + k·k_step.
struct Steps {
  std::int64_t outer = 0, k = 0, product = 0;
};
struct Sides {
  std::int64_t m = 0, n = 0, k = 0, products = 1;
};

/// Values in [-1, 1) of the positions `seed` and up; or, `whole` not 0, whole numbers up to that.
cudaError_t LaunchFill(Stored type, void* to, std::int64_t count, std::uint64_t seed, int whole,
                       cudaStream_t stream);
cudaError_t LaunchPoison(Stored type, void* to, std::int64_t count, cudaStream_t stream);
/// Values between 0.5 and 1.5, no two alike.
cudaError_t LaunchCheckVector(double* x, std::int64_t n, cudaStream_t stream);

/// out[row] += sum of value times v[column]; `v_product`: values of v between products.
cudaError_t LaunchRowSums(Stored type, const void* data, const Rows& at, const double* v,
                          std::int64_t v_product, double* out, cudaStream_t stream);
/// out[column] += sum of value times v[row].
cudaError_t LaunchColumnSums(Stored type, const void* data, const Rows& at, const double* v,
                             std::int64_t v_product, double* out, cudaStream_t stream);
/// out += A·B in fp64, dense: slow and obvious.
cudaError_t LaunchProduct(Stored type, const void* a, const Steps& at_a, const void* b,
                          const Steps& at_b, const Sides& sides, double* out, cudaStream_t stream);

/// Lowers `first_wrong` to 1 + the first place that is off by more.
cudaError_t LaunchCompareSums(const double* got, const double* expected, std::int64_t count,
                              double absolute, unsigned long long* first_wrong,
                              cudaStream_t stream);
/// The same for every element, allowed to be off by `relative` of it besides; they go to `got`.
cudaError_t LaunchCompareElements(Stored type, const void* c, const Rows& at,
                                  const double* expected, double absolute, double relative,
                                  double* got, unsigned long long* first_wrong,
                                  cudaStream_t stream);

/// Keeps the device busy for so long.
cudaError_t LaunchSpin(std::uint64_t nanoseconds, cudaStream_t stream);
cudaError_t LaunchNothing(cudaStream_t stream);

}  // namespace gnomon::cuda
