#pragma once

/// The kernels of kind vector: a product with a short side, on the vector units (vector_table.h
/// says who does what). Each streams the long operand once, at the rate of memory:
///
///   dot   c[l][s] = Σ x[l][k]·y[s][k]: `lanes` lanes share a row, eight k a lane; the others of
///         the warp have other rows. Sums are added over lanes at the end.
///   sum   the same, x stored [k][l]: `lanes` lanes take eight l each; the others other k.
///
/// A tile's sums pass through shared memory, where the warps that share K are added in order, and
/// leave it as whole runs of C. Where K is also split over CTAs, each leaves its sums in scratch
/// and the last to arrive adds all of them in order: the same bytes every time, and nobody waits.
///
/// Rows beyond a side are read as the last row and not stored; k beyond K is zero.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <type_traits>

#include "gnomon/families/cuda/vector_arguments.h"
#include "gnomon/families/cuda/vector_tiles.h"

namespace gnomon::cuda {

inline constexpr int kVectorThreads = 32 * kVectorWarps;
/// Floats of shared memory: eight warps' tiles of 1024 sums, or twice the largest tile with its
/// bias gradient (256 x 16 + 256).
inline constexpr int kVectorShared = 2 * (256 * 16 + 256);
inline constexpr int kWarpShared = 1024;

/// CTAs of a multiprocessor that registers should leave room for: the fewer sums a thread has, the
/// more loads have to be under way in other warps. 65536 registers: 80, 128 or 255 a thread.
constexpr int CtasOf(int long_tile, int short_tile) {
  const int sums = long_tile * short_tile;
  return sums <= 8 ? 3 : sums <= 64 ? 2 : 1;
}

/// kVectorRun elements side by side, as loaded.
template <class Element>
struct VectorRun {
  static constexpr int kWords = kVectorRun * sizeof(Element) / 4;
  std::uint32_t words[kWords];
};

__device__ inline float Widened(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ inline float Widened(__half v) { return __half2float(v); }
__device__ inline float Widened(float v) { return v; }
__device__ inline float Widened(__nv_fp8_e4m3 v) { return static_cast<float>(v); }
__device__ inline float Widened(__nv_fp8_e5m2 v) { return static_cast<float>(v); }

template <class Element>
__device__ inline void Widen(const VectorRun<Element>& run, float (&to)[kVectorRun]) {
#pragma unroll
  for (int i = 0; i < VectorRun<Element>::kWords; ++i) {
    const std::uint32_t word = run.words[i];
    if constexpr (std::is_same_v<Element, float>) {
      to[i] = __uint_as_float(word);
    } else if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
      to[2 * i] = __uint_as_float(word << 16);
      to[2 * i + 1] = __uint_as_float(word & 0xFFFF0000u);
    } else if constexpr (std::is_same_v<Element, __half>) {
      const float2 pair = __half22float2(reinterpret_cast<const __half2&>(word));
      to[2 * i] = pair.x;
      to[2 * i + 1] = pair.y;
    } else {
      constexpr auto kKind = std::is_same_v<Element, __nv_fp8_e4m3> ? __NV_E4M3 : __NV_E5M2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const __half2_raw raw = __nv_cvt_fp8x2_to_halfraw2(
            static_cast<__nv_fp8x2_storage_t>(word >> (16 * half)), kKind);
        const float2 pair = __half22float2(__half2(raw));
        to[4 * i + 2 * half] = pair.x;
        to[4 * i + 2 * half + 1] = pair.y;
      }
    }
  }
}

/// A run, or zeros. kStream: read once, so not kept in L1.
template <class Element, bool kStream>
__device__ inline VectorRun<Element> LoadRun(const Element* from, bool inside) {
  VectorRun<Element> run = {};
  if (!inside) return run;
  if constexpr (sizeof(Element) == 1) {
    const uint2 v = kStream ? __ldcs(reinterpret_cast<const uint2*>(from))
                            : __ldg(reinterpret_cast<const uint2*>(from));
    run.words[0] = v.x;
    run.words[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < VectorRun<Element>::kWords / 4; ++i) {
      const uint4 v = kStream ? __ldcs(reinterpret_cast<const uint4*>(from) + i)
                              : __ldg(reinterpret_cast<const uint4*>(from) + i);
      run.words[4 * i] = v.x;
      run.words[4 * i + 1] = v.y;
      run.words[4 * i + 2] = v.z;
      run.words[4 * i + 3] = v.w;
    }
  }
  return run;
}

/// Where a tile stands.
struct VectorPlace {
  std::int32_t product = 0, first_long = 0, first_short = 0;
};
__device__ inline VectorPlace PlaceOf(const VectorArguments& g, unsigned tile, int short_tile) {
  const unsigned column = tile / static_cast<unsigned>(g.long_tiles);
  const unsigned product = column / static_cast<unsigned>(g.short_tiles);
  return {static_cast<std::int32_t>(product),
          static_cast<std::int32_t>(tile - column * g.long_tiles) * g.warp_long,
          static_cast<std::int32_t>(column - product * g.short_tiles) * short_tile};
}

/// What a warp does: chunks first, first + step, … below last, of one part of one tile.
struct VectorWork {
  unsigned tile = 0;
  int part = 0, first = 0, last = 0, step = 1;
};
/// Alone, a warp may have nothing to do: its tile is beyond the last.
__device__ inline VectorWork WorkOf(const VectorArguments& g, int warp) {
  VectorWork work;
  if (!g.together) {
    work.tile = blockIdx.x * kVectorWarps + warp;
    work.last = g.chunks;
    return work;
  }
  work.tile = blockIdx.x / static_cast<unsigned>(g.parts_count);
  work.part = static_cast<int>(blockIdx.x - work.tile * g.parts_count);
  work.first = static_cast<int>(static_cast<std::int64_t>(g.chunks) * work.part / g.parts_count);
  work.first += warp;
  work.last =
      static_cast<int>(static_cast<std::int64_t>(g.chunks) * (work.part + 1) / g.parts_count);
  work.step = kVectorWarps;
  return work;
}

__device__ inline float BiasOf(const VectorArguments& g, int at) {
  switch (g.type) {
    case OutType::kBf16:
      return __bfloat162float(__ldg(static_cast<const __nv_bfloat16*>(g.bias) + at));
    case OutType::kFp16:
      return __half2float(__ldg(static_cast<const __half*>(g.bias) + at));
    case OutType::kFp32:
      return __ldg(static_cast<const float*>(g.bias) + at);
  }
  return 0;
}
__device__ inline float Activated(const VectorArguments& g, float v, int at_long, int at_short) {
  if (g.bias != nullptr) v += BiasOf(g, g.bias_along_long ? at_long : at_short);
  if (g.activation == Activation::kRelu) return v < 0 ? 0 : v;  // keeps NaN
  if (g.activation == Activation::kGelu) {
    constexpr float kInverseRoot2 = 0.70710678f;
    return 0.5f * v * (1 + erff(v * kInverseRoot2));
  }
  return v;
}
__device__ inline void StoreOne(const VectorArguments& g, std::int64_t at, float v) {
  switch (g.type) {
    case OutType::kBf16:
      static_cast<__nv_bfloat16*>(g.c)[at] = __float2bfloat16_rn(v);
      return;
    case OutType::kFp16:
      static_cast<__half*>(g.c)[at] = __float2half_rn(v);
      return;
    case OutType::kFp32:
      static_cast<float*>(g.c)[at] = v;
      return;
  }
}
__device__ inline void StoreRun(const VectorArguments& g, std::int64_t at,
                                const float (&v)[kVectorRun]) {
  if (g.type == OutType::kFp32) {
    float4* const to = reinterpret_cast<float4*>(static_cast<float*>(g.c) + at);
    to[0] = {v[0], v[1], v[2], v[3]};
    to[1] = {v[4], v[5], v[6], v[7]};
    return;
  }
  std::uint32_t words[kVectorRun / 2];
#pragma unroll
  for (int i = 0; i < kVectorRun / 2; ++i) {
    if (g.type == OutType::kBf16) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
      words[i] = reinterpret_cast<const std::uint32_t&>(pair);
    } else {
      const __half2 pair = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
      words[i] = reinterpret_cast<const std::uint32_t&>(pair);
    }
  }
  *reinterpret_cast<uint4*>(static_cast<std::uint16_t*>(g.c) + at) = {words[0], words[1], words[2],
                                                                      words[3]};
}

/// From shared memory to C: `rows` of the short side by warp_long of the long side, each the sum of
/// `slots` values that are g.sums apart, in order.
__device__ __noinline__ inline void StoreTile(const VectorArguments& g, const float* from,
                                              int slots, VectorPlace place, int rows, int thread,
                                              int threads) {
  const int longs = min(g.warp_long, g.long_side - place.first_long);
  const int shorts = min(rows, g.short_side - place.first_short);
  const std::int64_t c = place.product * g.c_at.product + place.first_long * g.c_at.side +
                         place.first_short * g.c_at.other;
  if (g.c_runs && g.warp_long % kVectorRun == 0 && longs % kVectorRun == 0) {
    const int runs = longs / kVectorRun;
    for (int i = thread; i < shorts * runs; i += threads) {
      const int s = i / runs, l = (i - s * runs) * kVectorRun;
      float v[kVectorRun] = {};
      for (int slot = 0; slot < slots; ++slot) {
        const float4* const at =
            reinterpret_cast<const float4*>(from + slot * g.sums + s * g.warp_long + l);
        const float4 low = at[0], high = at[1];
        v[0] += low.x, v[1] += low.y, v[2] += low.z, v[3] += low.w;
        v[4] += high.x, v[5] += high.y, v[6] += high.z, v[7] += high.w;
      }
      if (g.bias != nullptr || g.activation != Activation::kNone) {
#pragma unroll
        for (int j = 0; j < kVectorRun; ++j)
          v[j] = Activated(g, v[j], place.first_long + l + j, place.first_short + s);
      }
      StoreRun(g, c + l + s * g.c_at.other, v);
    }
    return;
  }
  const bool along_long = g.c_at.side == 1;
  const int inner = along_long ? longs : shorts;
  for (int i = thread; i < shorts * longs; i += threads) {
    const int outer = i / inner, within = i - outer * inner;
    const int l = along_long ? within : outer, s = along_long ? outer : within;
    float v = 0;
    for (int slot = 0; slot < slots; ++slot) v += from[slot * g.sums + s * g.warp_long + l];
    v = Activated(g, v, place.first_long + l, place.first_short + s);
    StoreOne(g, c + l * g.c_at.side + s * g.c_at.other, v);
  }
}

/// The sums of the tile of a CTA whose warps stand in `slots` slots of shared memory: to C, or to
/// scratch and, by the last part to come, from there to C.
__device__ __noinline__ inline void StoreTogether(const VectorArguments& g, float* shared,
                                                  int slots, const VectorWork& work,
                                                  VectorPlace place, int short_tile) {
  const int thread = threadIdx.x;
  if (g.parts_count > 1) {
    float* const parts = g.parts + static_cast<std::int64_t>(work.tile) * g.parts_count * g.sums;
    float* const mine = parts + static_cast<std::int64_t>(work.part) * g.sums;
    for (int i = thread; i < g.sums; i += kVectorThreads) {
      float v = 0;
      for (int slot = 0; slot < slots; ++slot) v += shared[slot * g.sums + i];
      __stcg(mine + i, v);
    }
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (thread == 0) {
      // Wraps to zero with the last part, as the next run needs it.
      last = atomicInc(g.counters + work.tile, g.parts_count - 1u) == g.parts_count - 1u;
      __threadfence();
    }
    __syncthreads();
    if (!last) return;
    // Groups of threads add a run of parts each; the groups are the slots of what follows.
    const int columns = g.sums / 4;
    slots = max(1, min(min(kVectorThreads / columns, g.parts_count), kVectorShared / g.sums));
    for (int i = thread; i < columns * slots; i += kVectorThreads) {
      const int group = i / columns, column = i - group * columns;
      const int first = g.parts_count * group / slots;
      const int end = g.parts_count * (group + 1) / slots;
      float4 v = {0, 0, 0, 0};
      const float4* from =
          reinterpret_cast<const float4*>(parts + static_cast<std::int64_t>(first) * g.sums) +
          column;
#pragma unroll 16
      for (int part = first; part < end; ++part, from += columns) {
        const float4 more = __ldcg(from);
        v.x += more.x, v.y += more.y, v.z += more.z, v.w += more.w;
      }
      reinterpret_cast<float4*>(shared + group * g.sums)[column] = v;
    }
    __syncthreads();
  }
  StoreTile(g, shared, slots, place, short_tile, thread, kVectorThreads);
  if (g.bias_gradient == nullptr) return;
  const bool along_long = g.gradient_of_long;
  if ((along_long ? place.first_short : place.first_long) != 0) return;
  const int first = along_long ? place.first_long : place.first_short;
  const int side = along_long ? g.long_side : g.short_side;
  const int count = min(along_long ? g.warp_long : short_tile, side - first);
  for (int i = thread; i < count; i += kVectorThreads) {
    float v = 0;
    for (int slot = 0; slot < slots; ++slot)
      v += shared[slot * g.sums + short_tile * g.warp_long + i];
    g.bias_gradient[static_cast<std::int64_t>(place.product) * side + first + i] = v;
  }
}

/// Warps that share K put their sums into shared memory: as many slots as it holds, later warps
/// add to earlier ones' in order. `put(slot, add)` writes a warp's. Returns the slots.
template <class Put>
__device__ inline int Gather(const VectorArguments& g, float* shared, int warp, const Put& put) {
  const int slots = min(kVectorWarps, kVectorShared / g.sums);
  for (int round = 0; round * slots < kVectorWarps; ++round) {
    if (warp / slots == round) put(shared + warp % slots * g.sums, round > 0);
    __syncthreads();
  }
  return slots;
}
__device__ inline void PutFloat(float* to, float v, bool add) { *to = add ? *to + v : v; }

/// kLong x kShort sums a thread. kRuns: rows of x and of y are whole runs of eight aligned
/// elements.
template <class Element, int kLong, int kShort, bool kRuns>
__global__ __launch_bounds__(kVectorThreads, CtasOf(kLong, kShort)) void DotKernel(
    const __grid_constant__ VectorArguments g) {
  __shared__ __align__(16) float shared[kVectorShared];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const VectorWork work = WorkOf(g, warp);
  if (work.tile >= static_cast<unsigned>(g.tiles)) return;
  const VectorPlace place = PlaceOf(g, work.tile, kShort);
  const int lanes = g.lanes, rows = 32 / lanes;
  const int along = lane & (lanes - 1), row = lane / lanes;

  const Element* x[kLong];
#pragma unroll
  for (int r = 0; r < kLong; ++r)
    x[r] = static_cast<const Element*>(g.x) + place.product * g.x_at.product +
           min(place.first_long + r * rows + row, g.long_side - 1) * g.x_at.side;
  const Element* const y = static_cast<const Element*>(g.y) + place.product * g.y_at.product;
  const auto row_of_y = [&](int s) {
    return y + min(place.first_short + s, g.short_side - 1) * g.y_at.side;
  };

  float sums[kLong][kShort] = {};
  const auto multiply = [&](const float(&values)[kLong][kVectorRun], const float(&by)[kVectorRun],
                            int s) {
#pragma unroll
    for (int r = 0; r < kLong; ++r)
#pragma unroll
      for (int j = 0; j < kVectorRun; ++j) sums[r][s] += values[r][j] * by[j];
  };
  if constexpr (kRuns) {
    VectorRun<Element> next[kLong];
    const auto load = [&](int chunk) {
      const int k = chunk * g.chunk + along * kVectorRun;
#pragma unroll
      for (int r = 0; r < kLong; ++r) next[r] = LoadRun<Element, true>(x[r] + k, k < g.k);
    };
    if (work.first < work.last) load(work.first);
#pragma unroll 1
    for (int chunk = work.first; chunk < work.last; chunk += work.step) {
      float values[kLong][kVectorRun];
#pragma unroll
      for (int r = 0; r < kLong; ++r) Widen(next[r], values[r]);
      if (chunk + work.step < work.last) load(chunk + work.step);
      const int k = chunk * g.chunk + along * kVectorRun;
#pragma unroll
      for (int s = 0; s < kShort; ++s) {
        float by[kVectorRun];
        Widen(LoadRun<Element, false>(row_of_y(s) + k, k < g.k), by);
        multiply(values, by, s);
      }
    }
  } else {
#pragma unroll 1
    for (int chunk = work.first; chunk < work.last; chunk += work.step) {
      const int k = chunk * g.chunk + along;
      float values[kLong][kVectorRun];
#pragma unroll
      for (int r = 0; r < kLong; ++r)
#pragma unroll
        for (int j = 0; j < kVectorRun; ++j)
          values[r][j] = k + j * lanes < g.k ? Widened(x[r][k + j * lanes]) : 0.0f;
#pragma unroll
      for (int s = 0; s < kShort; ++s) {
        float by[kVectorRun];
#pragma unroll
        for (int j = 0; j < kVectorRun; ++j)
          by[j] = k + j * lanes < g.k ? Widened(row_of_y(s)[(k + j * lanes) * g.y_at.other]) : 0.0f;
        multiply(values, by, s);
      }
    }
  }
  for (int offset = lanes / 2; offset > 0; offset /= 2)
#pragma unroll
    for (int r = 0; r < kLong; ++r)
#pragma unroll
      for (int s = 0; s < kShort; ++s)
        sums[r][s] += __shfl_xor_sync(0xFFFFFFFFu, sums[r][s], offset);

  const auto put = [&](float* to, bool add) {
#pragma unroll
    for (int r = 0; r < kLong; ++r)
#pragma unroll
      for (int s = 0; s < kShort; ++s)
        if (((r * kShort + s) & (lanes - 1)) == along)
          PutFloat(to + s * g.warp_long + r * rows + row, sums[r][s], add);
  };
  if (g.together) {
    const int slots = Gather(g, shared, warp, put);
    StoreTogether(g, shared, slots, work, place, kShort);
  } else {
    float* const mine = shared + warp * kWarpShared;
    put(mine, false);
    __syncwarp();
    StoreTile(g, mine, 1, place, kShort, lane, 32);
  }
}

/// kVectorRun x kShort sums a thread. kRuns: lines of x (a k each) are whole runs of eight aligned
/// elements; else any strides, and a thread's l are `lanes` apart.
template <class Element, int kShort, bool kRuns, bool kGradient>
__global__ __launch_bounds__(kVectorThreads, CtasOf(kVectorRun, kShort)) void SumKernel(
    const __grid_constant__ VectorArguments g) {
  // k under way in a thread: what registers hold beside the sums.
  constexpr bool kNarrow = kRuns && sizeof(Element) == 2;  // a run is four registers
  constexpr int kAtOnce = (kShort > 4 ? 2 : kShort > 1 ? 4 : 8) / (kNarrow || kShort > 4 ? 1 : 2);
  __shared__ __align__(16) float shared[kVectorShared];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const VectorWork work = WorkOf(g, warp);
  if (work.tile >= static_cast<unsigned>(g.tiles)) return;
  const VectorPlace place = PlaceOf(g, work.tile, kShort);
  const int lanes = g.lanes;
  const int along = lane & (lanes - 1), depth = lane / lanes;

  const int first = place.first_long + (kRuns ? along * kVectorRun : along);
  const Element* const x = static_cast<const Element*>(g.x) + place.product * g.x_at.product;
  const Element* const y = static_cast<const Element*>(g.y) + place.product * g.y_at.product;
  float sums[kShort][kVectorRun] = {};
  float of_long[kVectorRun] = {}, of_short[kShort] = {};

#pragma unroll 1
  for (int chunk = work.first; chunk < work.last; chunk += kAtOnce * work.step) {
    float values[kAtOnce][kRuns ? 1 : kVectorRun], by[kAtOnce][kShort];
    VectorRun<Element> runs[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int now = chunk + u * work.step, k = now * g.chunk + depth;
      const bool inside = now < work.last && k < g.k;
      if constexpr (kRuns) {
        runs[u] =
            LoadRun<Element, true>(x + first + k * g.x_at.other, inside && first < g.long_side);
      } else {
#pragma unroll
        for (int v = 0; v < kVectorRun; ++v) {
          const int l = min(first + v * lanes, g.long_side - 1);
          values[u][v] = inside ? Widened(x[l * g.x_at.side + k * g.x_at.other]) : 0.0f;
        }
      }
#pragma unroll
      for (int s = 0; s < kShort; ++s) {
        const int at = min(place.first_short + s, g.short_side - 1);
        by[u][s] = inside ? Widened(y[at * g.y_at.side + k * g.y_at.other]) : 0.0f;
      }
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (chunk + u * work.step >= work.last) break;
      float wide[kVectorRun];
      if constexpr (kRuns) {
        Widen(runs[u], wide);
      } else {
#pragma unroll
        for (int v = 0; v < kVectorRun; ++v) wide[v] = values[u][v];
      }
#pragma unroll
      for (int s = 0; s < kShort; ++s)
#pragma unroll
        for (int v = 0; v < kVectorRun; ++v) sums[s][v] += wide[v] * by[u][s];
      if constexpr (kGradient) {
#pragma unroll
        for (int v = 0; v < kVectorRun; ++v) of_long[v] += wide[v];
#pragma unroll
        for (int s = 0; s < kShort; ++s) of_short[s] += by[u][s];
      }
    }
  }
  for (int offset = lanes; offset < 32; offset *= 2) {
#pragma unroll
    for (int s = 0; s < kShort; ++s)
#pragma unroll
      for (int v = 0; v < kVectorRun; ++v)
        sums[s][v] += __shfl_xor_sync(0xFFFFFFFFu, sums[s][v], offset);
    if constexpr (kGradient) {
#pragma unroll
      for (int v = 0; v < kVectorRun; ++v)
        of_long[v] += __shfl_xor_sync(0xFFFFFFFFu, of_long[v], offset);
#pragma unroll
      for (int s = 0; s < kShort; ++s)
        of_short[s] += __shfl_xor_sync(0xFFFFFFFFu, of_short[s], offset);
    }
  }

  const auto put_line = [&](float* to, const float(&line)[kVectorRun], bool add) {
    if constexpr (kRuns) {
      float4* const at = reinterpret_cast<float4*>(to + along * kVectorRun);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float4 v = {line[4 * i], line[4 * i + 1], line[4 * i + 2], line[4 * i + 3]};
        if (add) {
          const float4 old = at[i];
          v.x = old.x + v.x, v.y = old.y + v.y, v.z = old.z + v.z, v.w = old.w + v.w;
        }
        at[i] = v;
      }
    } else {
#pragma unroll
      for (int v = 0; v < kVectorRun; ++v) PutFloat(to + along + v * lanes, line[v], add);
    }
  };
  if (g.together) {
    const int slots = Gather(g, shared, warp, [&](float* to, bool add) {
      if (depth != 0) return;
#pragma unroll
      for (int s = 0; s < kShort; ++s) put_line(to + s * g.warp_long, sums[s], add);
      if constexpr (kGradient) {
        float* const beside = to + kShort * g.warp_long;
        if (g.gradient_of_long) {
          put_line(beside, of_long, add);
        } else if (along == 0) {
#pragma unroll
          for (int s = 0; s < kShort; ++s) PutFloat(beside + s, of_short[s], add);
        }
      }
    });
    StoreTogether(g, shared, slots, work, place, kShort);
    return;
  }
  constexpr int kRows = kShort < 4 ? kShort : 4;  // at a time
  float* const mine = shared + warp * kWarpShared;
#pragma unroll
  for (int s = 0; s < kShort; s += kRows) {
    if (place.first_short + s >= g.short_side) break;
    if (depth == 0) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) put_line(mine + i * g.warp_long, sums[s + i], false);
    }
    __syncwarp();
    StoreTile(g, mine, 1, {place.product, place.first_long, place.first_short + s}, kRows, lane,
              32);
    __syncwarp();
  }
}

}  // namespace gnomon::cuda
