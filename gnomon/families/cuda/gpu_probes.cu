// Kernels whose time is one fact of a GPU each.
//
// Reads go past L1 (.cg) and end in a sum that decides about a store, so that none is left out.
// A chain of dependent loads runs through all lines of a buffer in the order of a linear
// congruential generator of full period: the next place is no constant distance away, so neither
// prefetch nor one open row of memory helps. Entry points: the header's.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "gnomon/families/cuda/gpu_probes.h"

namespace gnomon::cuda::probes {
namespace {

constexpr int kThreads = 256;

// Stores for one of 2^32 sums of what was read, which keeps the reads.
__device__ void Keep(const uint4& sum, void* sink) {
  constexpr unsigned kNever = 0x5a5a1234;
  if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == kNever) *static_cast<unsigned*>(sink) = 1;
}
__device__ void Add(uint4& sum, const uint4& value) {
  sum.x ^= value.x;
  sum.y ^= value.y;
  sum.z ^= value.z;
  sum.w ^= value.w;
}

__device__ std::uint32_t Scrambled(std::uint32_t x) {  // a bijection that mixes all bits
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

__global__ void SmallKernel(float* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(threadIdx.x);
}

__global__ void WriteKernel(uint4* to, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = uint4{1, 2, 3, 4};
}

__global__ void ReadOnceKernel(const uint4* from, std::size_t count, void* sink) {
  uint4 sum{0, 0, 0, 0};
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
#pragma unroll 8
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    Add(sum, __ldcg(from + i));
  Keep(sum, sink);
}

__global__ void ReadByAllKernel(const uint4* from, std::size_t count, int passes, void* sink) {
  uint4 sum{0, 0, 0, 0};
  const std::size_t start = count / gridDim.x * blockIdx.x;
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll 8
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) {
      const std::size_t at = start + i;
      Add(sum, __ldcg(from + (at < count ? at : at - count)));
    }
  }
  Keep(sum, sink);
}

__global__ void CopyKernel(uint4* to, const uint4* from, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
#pragma unroll 4
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = __ldcg(from + i);
}

__global__ void RandomRowsKernel(const uint4* from, std::uint32_t mask, std::size_t rows,
                                 void* sink) {
  constexpr unsigned kLanes = kLineBytes / sizeof(uint4);  // of a row
  uint4 sum{0, 0, 0, 0};
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x / kLanes;
#pragma unroll 8
  for (std::size_t row = thread / kLanes; row < rows; row += step) {
    const std::size_t line = Scrambled(static_cast<std::uint32_t>(row)) & mask;
    Add(sum, __ldcg(from + line * kLanes + thread % kLanes));
  }
  Keep(sum, sink);
}

__global__ void ChainKernel(std::uint32_t* chain, std::uint32_t lines) {
  // Full period modulo a power of two: multiplier 1 modulo 4, odd increment (Hull and Dobell).
  constexpr std::uint32_t kMultiplier = 1664525, kIncrement = 1013904223;
  constexpr std::uint32_t kWords = kLineBytes / sizeof(std::uint32_t);
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < lines)
    chain[std::size_t{i} * kWords] = ((i * kMultiplier + kIncrement) & (lines - 1)) * kWords;
}

__global__ void ChaseKernel(const std::uint32_t* chain, int steps, std::uint32_t* sink) {
  std::uint32_t at = 0;
  for (int i = 0; i < steps; ++i) at = __ldcg(chain + at);
  *sink = at;
}

__device__ void Store(float* to, float value) { *to = value; }
__device__ void Store(__half* to, float value) { *to = __float2half(value); }
__device__ void Store(__nv_bfloat16* to, float value) { *to = __float2bfloat16(value); }
__device__ void Store(__nv_fp8_e4m3* to, float value) { *to = __nv_fp8_e4m3(value); }
__device__ void Store(__nv_fp8_e5m2* to, float value) { *to = __nv_fp8_e5m2(value); }

template <class T>
__global__ void FillKernel(T* to, std::size_t count, std::uint32_t seed) {
  constexpr float kHalfRange = 2147483648.f;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::uint32_t bits = Scrambled(static_cast<std::uint32_t>(i) * 2654435769u + seed);
    Store(to + i, static_cast<float>(bits) / kHalfRange - 1.f);
  }
}

template <class T>
void Fill(void* to, std::size_t count, std::uint32_t seed, cudaStream_t stream) {
  constexpr int kBlocks = 4096;
  FillKernel<<<kBlocks, kThreads, 0, stream>>>(static_cast<T*>(to), count, seed);
}

int Code() { return static_cast<int>(cudaGetLastError()); }

std::size_t Vectors(std::size_t bytes) { return bytes / sizeof(uint4); }

}  // namespace

int Small(float* out, int blocks, CUstream_st* stream) {
  constexpr int kSmallThreads = 128;
  SmallKernel<<<blocks, kSmallThreads, 0, stream>>>(out);
  return Code();
}

int Write(void* to, std::size_t bytes, int blocks, CUstream_st* stream) {
  WriteKernel<<<blocks, kThreads, 0, stream>>>(static_cast<uint4*>(to), Vectors(bytes));
  return Code();
}

int ReadOnce(const void* from, std::size_t bytes, int blocks, int threads, void* sink,
             CUstream_st* stream) {
  ReadOnceKernel<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(from), Vectors(bytes),
                                                 sink);
  return Code();
}

int ReadByAll(const void* from, std::size_t bytes, int blocks, int threads, int passes, void* sink,
              CUstream_st* stream) {
  ReadByAllKernel<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(from), Vectors(bytes),
                                                  passes, sink);
  return Code();
}

int Copy(void* to, const void* from, std::size_t bytes, int blocks, CUstream_st* stream) {
  CopyKernel<<<blocks, kThreads, 0, stream>>>(static_cast<uint4*>(to),
                                              static_cast<const uint4*>(from), Vectors(bytes));
  return Code();
}

int ReadRandomRows(const void* from, std::size_t bytes, std::size_t rows, int blocks, void* sink,
                   CUstream_st* stream) {
  RandomRowsKernel<<<blocks, kThreads, 0, stream>>>(
      static_cast<const uint4*>(from), static_cast<std::uint32_t>(bytes / kLineBytes - 1), rows,
      sink);
  return Code();
}

int MakeChain(void* chain, std::size_t bytes, CUstream_st* stream) {
  const auto lines = static_cast<std::uint32_t>(bytes / kLineBytes);
  ChainKernel<<<(lines + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      static_cast<std::uint32_t*>(chain), lines);
  return Code();
}

int Chase(const void* chain, int steps, void* sink, CUstream_st* stream) {
  ChaseKernel<<<1, 1, 0, stream>>>(static_cast<const std::uint32_t*>(chain), steps,
                                   static_cast<std::uint32_t*>(sink));
  return Code();
}

int FillRandom(void* to, Element element, std::size_t count, std::uint32_t seed,
               CUstream_st* stream) {
  switch (element) {
    case Element::kFp32:
      Fill<float>(to, count, seed, stream);
      break;
    case Element::kFp16:
      Fill<__half>(to, count, seed, stream);
      break;
    case Element::kBf16:
      Fill<__nv_bfloat16>(to, count, seed, stream);
      break;
    case Element::kFp8E4m3:
      Fill<__nv_fp8_e4m3>(to, count, seed, stream);
      break;
    case Element::kFp8E5m2:
      Fill<__nv_fp8_e5m2>(to, count, seed, stream);
      break;
  }
  return Code();
}

}  // namespace gnomon::cuda::probes
