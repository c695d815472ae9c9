// The kernels that fill operands, poison C, check a result, and keep the device waiting: what of
// each, and why, is in gpu_operands.cc and cuda_workbench.cc. Sums are fp64 and meet in atomic
// additions, so that their last bits vary; the tolerance is far above that.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "gnomon/families/cuda/gpu_check.h"

namespace gnomon::cuda {
namespace {

// --- values ---

// Uniform in [0, 2^32): the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
__device__ std::uint32_t Hash(std::uint64_t position) {
  std::uint64_t z = (position + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

__device__ float Uniform(std::uint64_t position) {
  return static_cast<float>(static_cast<std::int32_t>(Hash(position))) * 0x1p-31f;
}

// Between 0.5 and 1.5, no two columns alike.
__device__ double CheckValue(std::int64_t column) {
  constexpr std::uint64_t kOther = std::uint64_t{1} << 60;  // positions that operands do not have
  return 1.0 + 0.5 *
                   static_cast<double>(static_cast<std::int32_t>(
                       Hash(kOther + static_cast<std::uint64_t>(column)))) *
                   0x1p-31;
}

// fp32 memory whose low 13 bits are zero.
struct Tf32 {
  float value;
};

template <class T>
__device__ T Narrowed(float value) {
  if constexpr (std::is_same_v<T, Tf32>) {
    return {__uint_as_float(__float_as_uint(value) & 0xFFFFE000u)};
  } else if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else {
    return T(value);
  }
}

template <class T>
__device__ double Loaded(T stored) {
  if constexpr (std::is_same_v<T, Tf32>) {
    return static_cast<double>(stored.value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return static_cast<double>(__bfloat162float(stored));
  } else if constexpr (std::is_same_v<T, __half>) {
    return static_cast<double>(__half2float(stored));
  } else {
    return static_cast<double>(static_cast<float>(stored));
  }
}

// `whole` is 0 for values in [-1, 1), else for whole numbers from -whole to whole.
template <class T>
__global__ void FillKernel(T* to, std::int64_t count, std::uint64_t seed, int whole) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const std::uint64_t position = seed + static_cast<std::uint64_t>(i);
    const float value =
        whole == 0
            ? Uniform(position)
            : static_cast<float>(static_cast<int>(Hash(position) % (2u * whole + 1u)) - whole);
    to[i] = Narrowed<T>(value);
  }
}

template <class T>
__global__ void PoisonKernel(T* to, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    to[i] = Narrowed<T>(__int_as_float(0x7FFFFFFF));  // NaN
}

__global__ void CheckVectorKernel(double* x, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] = CheckValue(i);
}

// --- sums ---

constexpr int kSumThreads = 256, kWarp = 32;

// out[row] += Σ over the block's columns of value · v[column]; a warp a row.
template <class T>
__global__ void RowSumsKernel(const T* data, Rows at, const double* v, std::int64_t v_product,
                              double* out) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (kSumThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= at.rows) return;
  const std::int64_t chunk = (at.columns + gridDim.y - 1) / gridDim.y;
  const std::int64_t first = chunk * blockIdx.y,
                     last = first + chunk < at.columns ? first + chunk : at.columns;
  const T* from = data + blockIdx.z * at.product + row * at.leading;
  const double* with = v + blockIdx.z * v_product;
  double sum = 0;
  for (std::int64_t column = first + threadIdx.x % kWarp; column < last; column += kWarp)
    sum += Loaded(from[column]) * with[column];
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    sum += __shfl_down_sync(0xFFFFFFFFu, sum, offset);
  if (threadIdx.x % kWarp == 0) atomicAdd(out + blockIdx.z * at.rows + row, sum);
}

// out[column] += Σ over the block's rows of value · v[row]; 32 columns a block.
template <class T>
__global__ void ColumnSumsKernel(const T* data, Rows at, const double* v, std::int64_t v_product,
                                 double* out) {
  constexpr int kLanes = kSumThreads / kWarp;
  __shared__ double sums[kLanes][kWarp];
  const int x = threadIdx.x % kWarp, y = threadIdx.x / kWarp;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + x;
  const std::int64_t chunk = (at.rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t first = chunk * blockIdx.y,
                     last = first + chunk < at.rows ? first + chunk : at.rows;
  const T* from = data + blockIdx.z * at.product + column;
  const double* with = v + blockIdx.z * v_product;
  double sum = 0;
  if (column < at.columns)
    for (std::int64_t row = first + y; row < last; row += kLanes)
      sum += Loaded(from[row * at.leading]) * with[row];
  sums[y][x] = sum;
  __syncthreads();
  if (y != 0 || column >= at.columns) return;
  for (int lane = 1; lane < kLanes; ++lane) sum += sums[lane][x];
  atomicAdd(out + blockIdx.z * at.columns + column, sum);
}

// out[m][n] += Σ over the block's part of K; a thread an element.
template <class T>
__global__ void ProductKernel(const T* a, Steps at_a, const T* b, Steps at_b, Sides sides,
                              int parts, double* out) {
  const std::int64_t m = sides.m, n = sides.n, k = sides.k;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int product = blockIdx.z, part = blockIdx.y;
  if (i >= m * n) return;
  const std::int64_t row = i / n, column = i - row * n;
  const T* from_a = a + product * at_a.product + row * at_a.outer;
  const T* from_b = b + product * at_b.product + column * at_b.outer;
  double sum = 0;
  for (std::int64_t at = k * part / parts; at < k * (part + 1) / parts; ++at)
    sum += Loaded(from_a[at * at_a.k]) * Loaded(from_b[at * at_b.k]);
  atomicAdd(out + product * m * n + i, sum);
}

// --- comparisons ---

__global__ void CompareSumsKernel(const double* got, const double* expected, std::int64_t count,
                                  double absolute, unsigned long long* first_wrong) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count || fabs(got[i] - expected[i]) <= absolute) return;  // a NaN is wrong
  atomicMin(first_wrong, static_cast<unsigned long long>(i + 1));
}

template <class T>
__global__ void CompareElementsKernel(const T* c, Rows at, const double* expected, double absolute,
                                      double relative, double* got,
                                      unsigned long long* first_wrong) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t each = at.rows * at.columns;
  if (i >= each) return;
  const std::int64_t row = i / at.columns, column = i - row * at.columns;
  const std::int64_t place = blockIdx.z * each + i;
  const double value = Loaded(c[blockIdx.z * at.product + row * at.leading + column]);
  got[place] = value;
  if (fabs(value - expected[place]) <= absolute + relative * fabs(expected[place])) return;
  atomicMin(first_wrong, static_cast<unsigned long long>(place + 1));
}

// --- launches ---

template <class T>
struct As {
  using Type = T;
};

// Calls `visit(As<T>)` for the type that such memory holds; tells how the launch went.
template <class Visit>
cudaError_t OfType(Stored type, Visit visit) {
  switch (type) {
    case Stored::kBf16:
      visit(As<__nv_bfloat16>{});
      break;
    case Stored::kFp16:
      visit(As<__half>{});
      break;
    case Stored::kFp8E4m3:
      visit(As<__nv_fp8_e4m3>{});
      break;
    case Stored::kFp8E5m2:
      visit(As<__nv_fp8_e5m2>{});
      break;
    case Stored::kTf32:
      visit(As<Tf32>{});
      break;
    case Stored::kFp32:
      visit(As<float>{});
      break;
  }
  return cudaGetLastError();
}

unsigned Blocks(std::int64_t items, std::int64_t each) {
  return static_cast<unsigned>((items + each - 1) / each);
}

unsigned BlocksOfLoop(std::int64_t items) {
  constexpr unsigned kMostBlocks = 4096;  // some for every multiprocessor; the rest is looped over
  return std::clamp(Blocks(std::min<std::int64_t>(items, 1LL << 30), kSumThreads), 1u, kMostBlocks);
}

// Parts that the summed side is cut into, so that there are warps enough for the device.
unsigned Parts(std::int64_t independent, std::int64_t summed) {
  constexpr std::int64_t kWarps = 8192, kLeast = 256, kMostParts = 32768;
  const std::int64_t wanted = (kWarps + independent - 1) / independent;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(std::min(wanted, summed / kLeast), 1, kMostParts));
}

// What keeps a device busy until a time has passed.
__global__ void SpinKernel(std::uint64_t nanoseconds) {
  std::uint64_t start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

__global__ void NothingKernel() {}

}  // namespace

cudaError_t LaunchFill(Stored type, void* to, std::int64_t count, std::uint64_t seed, int whole,
                       cudaStream_t stream) {
  return OfType(type, [&]<class T>(As<T>) {
    FillKernel<T>
        <<<BlocksOfLoop(count), kSumThreads, 0, stream>>>(static_cast<T*>(to), count, seed, whole);
  });
}

cudaError_t LaunchPoison(Stored type, void* to, std::int64_t count, cudaStream_t stream) {
  return OfType(type, [&]<class T>(As<T>) {
    PoisonKernel<T><<<BlocksOfLoop(count), kSumThreads, 0, stream>>>(static_cast<T*>(to), count);
  });
}

cudaError_t LaunchCheckVector(double* x, std::int64_t n, cudaStream_t stream) {
  CheckVectorKernel<<<Blocks(n, kSumThreads), kSumThreads, 0, stream>>>(x, n);
  return cudaGetLastError();
}

cudaError_t LaunchRowSums(Stored type, const void* data, const Rows& at, const double* v,
                          std::int64_t v_product, double* out, cudaStream_t stream) {
  const dim3 grid(Blocks(at.rows, kSumThreads / kWarp), Parts(at.rows * at.products, at.columns),
                  static_cast<unsigned>(at.products));
  return OfType(type, [&]<class T>(As<T>) {
    RowSumsKernel<T>
        <<<grid, kSumThreads, 0, stream>>>(static_cast<const T*>(data), at, v, v_product, out);
  });
}

cudaError_t LaunchColumnSums(Stored type, const void* data, const Rows& at, const double* v,
                             std::int64_t v_product, double* out, cudaStream_t stream) {
  const unsigned wide = Blocks(at.columns, kWarp);
  const std::int64_t warps = static_cast<std::int64_t>(wide) * (kSumThreads / kWarp) * at.products;
  const dim3 grid(wide, Parts(warps, at.rows), static_cast<unsigned>(at.products));
  return OfType(type, [&]<class T>(As<T>) {
    ColumnSumsKernel<T>
        <<<grid, kSumThreads, 0, stream>>>(static_cast<const T*>(data), at, v, v_product, out);
  });
}

cudaError_t LaunchProduct(Stored type, const void* a, const Steps& at_a, const void* b,
                          const Steps& at_b, const Sides& sides, double* out, cudaStream_t stream) {
  const std::int64_t each = sides.m * sides.n;
  const unsigned parts = Parts(Blocks(each, kWarp) * sides.products, sides.k);
  const dim3 grid(Blocks(each, kSumThreads), parts, static_cast<unsigned>(sides.products));
  return OfType(type, [&]<class T>(As<T>) {
    ProductKernel<T><<<grid, kSumThreads, 0, stream>>>(static_cast<const T*>(a), at_a,
                                                       static_cast<const T*>(b), at_b, sides,
                                                       static_cast<int>(parts), out);
  });
}

cudaError_t LaunchCompareSums(const double* got, const double* expected, std::int64_t count,
                              double absolute, unsigned long long* first_wrong,
                              cudaStream_t stream) {
  CompareSumsKernel<<<Blocks(count, kSumThreads), kSumThreads, 0, stream>>>(got, expected, count,
                                                                            absolute, first_wrong);
  return cudaGetLastError();
}

cudaError_t LaunchCompareElements(Stored type, const void* c, const Rows& at,
                                  const double* expected, double absolute, double relative,
                                  double* got, unsigned long long* first_wrong,
                                  cudaStream_t stream) {
  const dim3 grid(Blocks(at.rows * at.columns, kSumThreads), 1, static_cast<unsigned>(at.products));
  return OfType(type, [&]<class T>(As<T>) {
    CompareElementsKernel<T><<<grid, kSumThreads, 0, stream>>>(
        static_cast<const T*>(c), at, expected, absolute, relative, got, first_wrong);
  });
}

cudaError_t LaunchSpin(std::uint64_t nanoseconds, cudaStream_t stream) {
  SpinKernel<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

cudaError_t LaunchNothing(cudaStream_t stream) {
  NothingKernel<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}

}  // namespace gnomon::cuda
