// C = epilogue(sum of the parts of K), for splits that are not added by their last CTA.
//
// A slot holds the accumulators as the threads of the main kernel held them (kernel_arguments.h):
// four values are two columns of two rows, eight rows apart. A thread here adds the same four of
// every part, always in the order of the parts.

#include "gnomon/families/cuda/epilogue.cuh"
#include "gnomon/families/cuda/reduce.cuh"

namespace gnomon::cuda {
namespace {

constexpr int kReduceThreads = 256;

struct Corner {
  std::int64_t row = 0, column = 0;
  int product = 0;
};

__device__ Corner CornerOf(const ReduceArguments& a, int tile, int rank) {
  const TilePlace place = PlaceOf(a.schedule, tile);
  const int rank_m = rank % a.cluster_m, rank_n = rank / a.cluster_m;
  return {(static_cast<std::int64_t>(place.m) * a.cluster_m + rank_m) * a.tile_m,
          (static_cast<std::int64_t>(place.n) * a.cluster_n + rank_n) * a.tile_n, place.product};
}

__device__ float ReducedActivation(Activation activation, float x) {
  constexpr float kInverseRoot2 = 0.70710678f;
  if (activation == Activation::kRelu) return x < 0 ? 0 : x;
  if (activation == Activation::kGelu) return 0.5f * x * (1 + erff(x * kInverseRoot2));
  return x;
}

__device__ void StoreOne(const Output& o, std::int64_t at, float x) {
  switch (o.type) {
    case OutType::kBf16:
      static_cast<__nv_bfloat16*>(o.c)[at] = __float2bfloat16_rn(x);
      return;
    case OutType::kFp16:
      static_cast<__half*>(o.c)[at] = __float2half_rn(x);
      return;
    case OutType::kFp32:
      static_cast<float*>(o.c)[at] = x;
      return;
  }
}

__global__ void __launch_bounds__(kReduceThreads)
    Reduce(const __grid_constant__ ReduceArguments a) {
  WaitForDependency();
  const int cluster = a.cluster_m * a.cluster_n;
  const std::int64_t values = static_cast<std::int64_t>(a.tile_m) * a.tile_n + a.tile_m;
  const int quads = a.tile_m * a.tile_n / 4;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kReduceThreads + threadIdx.x;
  const std::int64_t place = at / quads;  // a CTA's tile
  const int quad = static_cast<int>(at - place * quads);
  const int tile = static_cast<int>(place / cluster), rank = static_cast<int>(place % cluster);
  if (tile >= a.schedule.tiles) return;
  const Corner corner = CornerOf(a, tile, rank);

  const int thread = quad % kWarpgroup, block = quad / kWarpgroup;
  const int eights = a.tile_n / 8;
  const std::int64_t row =
      corner.row + block / eights * kWarpgroupRows + thread / 32 * 16 + thread % 32 / 4;
  const std::int64_t column = corner.column + block % eights * 8 + thread % 4 * 2;
  const Output& o = a.output;

  const std::int64_t next = static_cast<std::int64_t>(a.schedule.tiles) * cluster * values;
  const float* const slot =
      a.partials.slots + (static_cast<std::int64_t>(tile) * cluster + rank) * values;
  if (row < a.m && column < o.n) {
    float4 sum{0, 0, 0, 0};
#pragma unroll 8
    for (int part = 0; part < a.schedule.split; ++part) {
      const float4 v = __ldcg(reinterpret_cast<const float4*>(slot + part * next) + quad);
      sum.x += v.x;
      sum.y += v.y;
      sum.z += v.z;
      sum.w += v.w;
    }
    const bool second = column + 1 < o.n;
    const float low = o.bias ? BiasAt(o, column) : 0;
    const float high = o.bias && second ? BiasAt(o, column + 1) : 0;
    const std::int64_t upper = corner.product * o.product + row * o.leading + column;
    StoreOne(o, upper, ReducedActivation(o.activation, sum.x + low));
    if (second) StoreOne(o, upper + 1, ReducedActivation(o.activation, sum.y + high));
    if (row + 8 < a.m) {
      const std::int64_t lower = upper + 8 * o.leading;
      StoreOne(o, lower, ReducedActivation(o.activation, sum.z + low));
      if (second) StoreOne(o, lower + 1, ReducedActivation(o.activation, sum.w + high));
    }
  }
  if (o.bias_gradient != nullptr && corner.column == 0 && quad < a.tile_m &&
      corner.row + quad < a.m) {
    float sum = 0;
    for (int part = 0; part < a.schedule.split; ++part)
      sum += __ldcg(slot + part * next + a.tile_m * a.tile_n + quad);
    o.bias_gradient[static_cast<std::int64_t>(corner.product) * a.m + corner.row + quad] = sum;
  }
}

}  // namespace

cudaError_t LaunchReduce(const ReduceArguments& a, cudaStream_t stream) {
  const std::int64_t quads = static_cast<std::int64_t>(a.schedule.tiles) * a.cluster_m *
                             a.cluster_n * a.tile_m * a.tile_n / 4;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(static_cast<unsigned>((quads + kReduceThreads - 1) / kReduceThreads));
  launch.blockDim = dim3(kReduceThreads);
  launch.stream = stream;
  launch.attrs = &early;
  launch.numAttrs = 1;
  return cudaLaunchKernelEx(&launch, Reduce, a);
}

}  // namespace gnomon::cuda
