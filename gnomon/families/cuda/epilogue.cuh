#pragma once

/// From accumulators to C: bias, activation, conversion, and the way out through shared memory, so
/// that rows leave in whole lines. Also partial sums: written, counted, added in order.

#include "gnomon/families/cuda/hopper.cuh"
#include "gnomon/families/cuda/kernel_arguments.h"
#include "gnomon/families/cuda/kernel_table.h"
#include "gnomon/families/cuda/wgmma.cuh"

namespace gnomon::cuda {

/// A warpgroup's rows of a tile.
struct TileShare {
  int product = 0;
  std::int64_t row = 0, rows = 0;  ///< first row of C; rows at and beyond `rows` are not stored
  std::int64_t column = 0;
};

__device__ inline float BiasAt(const Output& output, std::int64_t column) {
  if (column >= output.n) return 0;
  switch (output.type) {
    case OutType::kBf16:
      return __bfloat162float(__ldg(static_cast<const __nv_bfloat16*>(output.bias) + column));
    case OutType::kFp16:
      return __half2float(__ldg(static_cast<const __half*>(output.bias) + column));
    case OutType::kFp32:
      return __ldg(static_cast<const float*>(output.bias) + column);
  }
  return 0;
}

/// Adds the bias and applies the activation to accumulators, in place.
template <int kBlocks, int kTileN>
__device__ inline void Transform(const Output& output, std::int64_t column,
                                 float (&d)[kBlocks][kTileN / 2], int thread) {
  if (output.bias != nullptr) {
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) {
      const std::int64_t at = column + 8 * j + 2 * (thread % 4);
      const float low = BiasAt(output, at), high = BiasAt(output, at + 1);
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) {
        d[i][4 * j] += low;
        d[i][4 * j + 1] += high;
        d[i][4 * j + 2] += low;
        d[i][4 * j + 3] += high;
      }
    }
  }
  if (output.activation == Activation::kRelu) {
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
#pragma unroll
      for (int j = 0; j < kTileN / 2; ++j) d[i][j] = d[i][j] < 0 ? 0 : d[i][j];  // keeps NaN
  } else if (output.activation == Activation::kGelu) {
    constexpr float kInverseRoot2 = 0.70710678f;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i)
#pragma unroll
      for (int j = 0; j < kTileN / 2; ++j)
        d[i][j] = 0.5f * d[i][j] * (1 + erff(d[i][j] * kInverseRoot2));
  }
}

__device__ inline std::uint32_t Packed(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}
__device__ inline std::uint32_t Packed(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

/// Address of 16 bytes of a staged row: rows of 128 bytes, swizzled as TMA does it.
__device__ inline std::uint32_t StagedAt(std::uint32_t staging, int row, int chunk) {
  return staging + static_cast<std::uint32_t>(row * kStepBytes + ((chunk ^ (row & 7)) << 4));
}

/// The same value, which the compiler cannot compute ahead of a loop: two dozen addresses derived
/// from it would each hold a register that the accumulators need.
__device__ inline std::uint32_t ComputedHere(std::uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}

inline constexpr int kWarpRows = kBoxRowsOfC;  ///< of a warpgroup's 64 rows of C
inline constexpr int kWarpStaging = kWarpRows * kStepBytes;

/// kColumns columns of the warp's accumulators `d`, 16 rows, into shared memory. The swizzle is an
/// exclusive or of address bits, so that of a column is applied to a lane's first address.
template <class Out, int kColumns>
__device__ inline void Stage(const float* d, std::uint32_t staging, int lane) {
  if constexpr (sizeof(Out) == 2) {
    const std::uint32_t first = StagedAt(staging, lane & 15, lane >> 4);
#pragma unroll
    for (int j = 0; j < kColumns / 8; j += 2) {
      const float* v = d + 4 * j;
      StoreMatrices(first ^ (j << 4), Packed(v[0], v[1], Out()), Packed(v[2], v[3], Out()),
                    Packed(v[4], v[5], Out()), Packed(v[6], v[7], Out()));
    }
  } else {
    const std::uint32_t within = (lane % 2) * 8;
    const std::uint32_t upper = StagedAt(staging, lane / 4, lane % 4 / 2) + within;
    const std::uint32_t lower = StagedAt(staging, lane / 4 + 8, lane % 4 / 2) + within;
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      const float* v = d + 4 * j;
      StoreShared(upper ^ (j << 5), v[0], v[1]);
      StoreShared(lower ^ (j << 5), v[2], v[3]);
    }
  }
}

template <class Out>
__device__ inline std::uint32_t StagedHalf(std::uint32_t staging, int at, int within) {
  const std::uint32_t from = StagedAt(staging, at, within / 8) + (within % 8) * 2;
  const std::uint32_t word = LoadShared4(from & ~3u);
  return from & 2 ? word >> 16 : word & 0xFFFF;
}

/// `rows` rows of `columns` 16-bit elements, in memory one behind the other from `c` on.
template <class Out>
__device__ inline void CopyRun(Out* c, int rows, int columns, std::uint32_t staging, int lane) {
  unsigned short* const to = reinterpret_cast<unsigned short*>(c);
  const int odd = static_cast<int>(reinterpret_cast<std::uintptr_t>(c) / 2 & 1);
  const int all = rows * columns;
  if (odd && lane == 0) to[0] = static_cast<unsigned short>(StagedHalf<Out>(staging, 0, 0));
  // A lane's next pair is 64 elements on: so many rows down and columns right.
  const int down = 64 / columns, right = 64 - down * columns;
  int at = odd + 2 * lane, row = at / columns, within = at - row * columns;
#pragma unroll 4
  for (; at < all; at += 64) {
    const std::uint32_t low = StagedHalf<Out>(staging, row, within);
    const bool next = within + 1 == columns;
    if (at + 1 < all) {
      const std::uint32_t high =
          StagedHalf<Out>(staging, next ? row + 1 : row, next ? 0 : within + 1);
      *reinterpret_cast<std::uint32_t*>(to + at) = low | high << 16;
    } else {
      to[at] = static_cast<unsigned short>(low);
    }
    row += down;
    within += right;
    if (within >= columns) {
      within -= columns;
      ++row;
    }
  }
}

/// 16 rows from `row` on, from shared memory to C by ordinary stores.
template <class Out, int kColumns>
__device__ inline void CopyOut(const Output& output, const TileShare& block, std::int64_t row,
                               std::int64_t column, std::uint32_t staging, int lane) {
  Out* const c =
      static_cast<Out*>(output.c) + block.product * output.product + row * output.leading + column;
  constexpr int kEach = 16 / sizeof(Out);
  const int rows = static_cast<int>(block.rows - row < kWarpRows ? block.rows - row : kWarpRows);
  if (output.vectors && column + kColumns <= output.n) {
    constexpr int kChunks = kColumns / kEach;
#pragma unroll
    for (int i = lane; i < kWarpRows * kChunks; i += 32) {
      const int at = i / kChunks, chunk = i % kChunks;
      if (at < rows)
        *reinterpret_cast<uint4*>(c + at * output.leading + chunk * kEach) =
            LoadShared16(StagedAt(staging, at, chunk));
    }
    return;
  }
  const int columns = static_cast<int>(output.n - column < kColumns ? output.n - column : kColumns);
  if (sizeof(Out) == 2 && columns == output.leading) {
    // The rows are one run of memory: stored word by word.
    CopyRun<Out>(c, rows, columns, staging, lane);
    return;
  }
#pragma unroll 4
  for (int i = lane; i < kWarpRows * kColumns; i += 32) {
    const int at = i / kColumns, within = i % kColumns;
    if (at >= rows || within >= columns) continue;
    const std::uint32_t from =
        StagedAt(staging, at, within / kEach) + (within % kEach) * sizeof(Out);
    const std::uint32_t word = LoadShared4(from & ~3u);
    if constexpr (sizeof(Out) == 2) {
      const unsigned short half = static_cast<unsigned short>(from & 2 ? word >> 16 : word);
      reinterpret_cast<unsigned short*>(c)[at * output.leading + within] = half;
    } else {
      reinterpret_cast<std::uint32_t*>(c)[at * output.leading + within] = word;
    }
  }
}

/// kBlocks blocks of 64 rows by kTileN columns of accumulators to C. Every warp takes its 16 rows
/// of a block through two buffers of its own, so that no warp waits for another. `turn`: the buffer
/// that is next, from tile to tile: the one before it may still be read by its store.
template <class Out, int kBlocks, int kTileN>
__device__ inline void StoreAs(const KernelArguments& arguments, const TileShare& block,
                               const float (&d)[kBlocks][kTileN / 2], std::uint32_t staging,
                               std::uint32_t& turn, int thread) {
  constexpr int kWidth = kStepBytes / sizeof(Out);  // columns of a staged row
  constexpr bool kBoxes = kTileN % kWidth == 0;
  constexpr int kRest = kTileN % kWidth;
  const Output& output = arguments.output;
  const int lane = static_cast<int>(ComputedHere(thread % 32));
  const std::uint32_t own = ComputedHere(staging + thread / 32 * 2 * kWarpStaging);
  const std::int64_t first = block.row + thread / 32 * kWarpRows;
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
    const std::int64_t row = first + i * kWarpgroupRows;
    const bool boxes = kBoxes && output.boxes && row + kWarpRows <= block.rows;
#pragma unroll
    for (int column = 0; column < kTileN; column += kWidth) {
      if (block.column + column >= output.n) continue;
      const std::uint32_t buffer = own + turn * kWarpStaging;
      turn ^= 1;
      if (lane == 0) WaitStoresRead<1>();
      __syncwarp();
      const bool rest = kRest != 0 && column + kWidth > kTileN;
      const float* const from = &d[i][column / 2];
      if (!rest) {
        Stage<Out, kWidth>(from, buffer, lane);
      } else if constexpr (kRest != 0) {
        Stage<Out, kRest>(from, buffer, lane);
      }
      if (boxes) {
        FenceAsync();
        __syncwarp();
        if (lane == 0) {
          StoreBox(&arguments.map_c, buffer, static_cast<int>(block.column + column),
                   static_cast<int>(row), block.product);
          CommitStores();
        }
        continue;
      }
      __syncwarp();
      if (!rest) {
        CopyOut<Out, kWidth>(output, block, row, block.column + column, buffer, lane);
      } else if constexpr (kRest != 0) {
        CopyOut<Out, kRest>(output, block, row, block.column + column, buffer, lane);
      }
      __syncwarp();
    }
  }
}

/// C is fp32, or of the 16-bit type that goes with the operands; tf32's is always fp32.
template <class Element, int kBlocks, int kTileN>
__device__ inline void Store(const KernelArguments& arguments, const TileShare& block,
                             float (&d)[kBlocks][kTileN / 2], std::uint32_t staging,
                             std::uint32_t& turn, int thread) {
  Transform<kBlocks, kTileN>(arguments.output, block.column, d, thread);
  if (std::is_same_v<Element, Tf32> || arguments.output.type == OutType::kFp32)
    return StoreAs<float, kBlocks, kTileN>(arguments, block, d, staging, turn, thread);
  if constexpr (std::is_same_v<Element, __half>) {
    StoreAs<__half, kBlocks, kTileN>(arguments, block, d, staging, turn, thread);
  } else if constexpr (!std::is_same_v<Element, Tf32>) {
    StoreAs<__nv_bfloat16, kBlocks, kTileN>(arguments, block, d, staging, turn, thread);
  }
}

/// The warpgroup's share of a part, and of its bias gradient (`sums`: of kBlocks · 64 rows, thread
/// t has row t; nothing where it is not asked for).
template <int kBlocks, int kTileN>
__device__ inline void WritePart(float* slot, int first_block,
                                 const float (&d)[kBlocks][kTileN / 2], int thread) {
  float4* const to = reinterpret_cast<float4*>(slot);
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) {
      const float* v = d[i] + 4 * j;
      __stcg(to + ((first_block + i) * (kTileN / 8) + j) * kWarpgroup + thread,
             float4{v[0], v[1], v[2], v[3]});
    }
  }
}
template <int kBlocks, int kTileN>
__device__ inline void AddPart(const float* slot, int first_block, float (&d)[kBlocks][kTileN / 2],
                               int thread) {
  const float4* const from = reinterpret_cast<const float4*>(slot);
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) {
      const float4 v = __ldcg(from + ((first_block + i) * (kTileN / 8) + j) * kWarpgroup + thread);
      float* const to = d[i] + 4 * j;
      to[0] += v.x;
      to[1] += v.y;
      to[2] += v.z;
      to[3] += v.w;
    }
  }
}

/// True in every thread of the warpgroup that is the last of `parts` to come here; what the others
/// wrote before can then be read past L1. `flag`: a word of shared memory.
__device__ inline bool IsLast(unsigned* counter, int parts, std::uint32_t flag, int barrier,
                              int thread) {
  __threadfence();
  SyncThreads(barrier, kWarpgroup);
  if (thread == 0) {
    const unsigned before = atomicAdd(counter, 1u);
    const bool last = before + 1 == static_cast<unsigned>(parts);
    if (last) *counter = 0;
    __threadfence();
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(flag), "r"(last ? 1u : 0u) : "memory");
  }
  SyncThreads(barrier, kWarpgroup);
  const bool last = LoadShared4(flag) != 0;
  SyncThreads(barrier, kWarpgroup);
  return last;
}

}  // namespace gnomon::cuda
