// A thread writes 16 aligned bytes. What it reads starts anywhere: up to five aligned words are
// loaded and shifted into place. Words that reach over either end of the matrix are put together
// byte by byte, so that nothing outside is read.

#include <algorithm>

#include "gnomon/families/cuda/hopper.cuh"
#include "gnomon/families/cuda/pad.cuh"

namespace gnomon::cuda {
namespace {

constexpr std::int64_t kMostBlocks = 132 * 8, kMostIndex = std::int64_t{1} << 31;
constexpr int kPadThreads = 256, kChunk = 16, kWord = 4, kWords = kChunk / kWord;

__device__ std::uint32_t WordAt(const std::uint8_t* word, const std::uint8_t* begin,
                                const std::uint8_t* end) {
  if (word >= begin && word + kWord <= end) return __ldg(reinterpret_cast<const unsigned*>(word));
  std::uint32_t value = 0;
#pragma unroll
  for (int i = 0; i < kWord; ++i)
    if (word + i >= begin && word + i < end)
      value |= static_cast<std::uint32_t>(word[i]) << (8 * i);
  return value;
}

template <class Index>
__device__ void Pad(const Padding& p, Index at, Index step) {
  const Index chunks_of_row = static_cast<Index>(p.pitch_to / kChunk);
  const Index all = static_cast<Index>(p.rows) * chunks_of_row;
  const std::uint8_t* const end = p.from + (p.rows - 1) * p.pitch_from + p.bytes;
  for (; at < all; at += step) {
    const Index row = at / chunks_of_row, chunk = at - row * chunks_of_row;
    const std::uint8_t* const from = p.from + static_cast<std::int64_t>(row) * p.pitch_from +
                                     static_cast<std::int64_t>(chunk) * kChunk;
    const std::int64_t left = p.bytes - static_cast<std::int64_t>(chunk) * kChunk;
    const int valid = left < kChunk ? static_cast<int>(left) : kChunk;
    const int ahead = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % kWord);
    std::uint32_t words[kWords + 1] = {};
#pragma unroll
    for (int i = 0; i <= kWords; ++i)
      if (i * kWord - ahead < valid) words[i] = WordAt(from - ahead + i * kWord, p.from, end);
    std::uint32_t out[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      out[i] = __funnelshift_r(words[i], words[i + 1], ahead * 8);
      const int inside = valid - i * kWord;  // bytes of this word that belong to the row
      if (inside < kWord) out[i] &= inside <= 0 ? 0 : 0xFFFFFFFFu >> (32 - 8 * inside);
    }
    *reinterpret_cast<uint4*>(p.to + static_cast<std::int64_t>(at) * kChunk) =
        uint4{out[0], out[1], out[2], out[3]};
  }
}

template <class Index>
__global__ void __launch_bounds__(kPadThreads)
    PadOperands(const __grid_constant__ Padding a, const __grid_constant__ Padding b,
                int blocks_a) {
  LetDependentsStart();
  WaitForDependency();
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  if (block < blocks_a) {
    Pad<Index>(a, static_cast<Index>(block) * kPadThreads + threadIdx.x,
               static_cast<Index>(blocks_a) * kPadThreads);
  } else {
    Pad<Index>(b, static_cast<Index>(block - blocks_a) * kPadThreads + threadIdx.x,
               static_cast<Index>(blocks - blocks_a) * kPadThreads);
  }
}

}  // namespace

cudaError_t LaunchPad(const Padding& a, const Padding& b, cudaStream_t stream) {
  // Enough threads to keep memory busy; the rest is done in rounds.
  const auto blocks = [](const Padding& p) {
    return std::min((p.chunks() + kPadThreads - 1) / kPadThreads, kMostBlocks);
  };
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(static_cast<unsigned>(blocks(a) + blocks(b)));
  launch.blockDim = dim3(kPadThreads);
  launch.stream = stream;
  launch.attrs = &early;
  launch.numAttrs = 1;
  const int blocks_a = static_cast<int>(blocks(a));
  if (std::max(a.chunks(), b.chunks()) < kMostIndex)
    return cudaLaunchKernelEx(&launch, PadOperands<std::uint32_t>, a, b, blocks_a);
  return cudaLaunchKernelEx(&launch, PadOperands<std::uint64_t>, a, b, blocks_a);
}

}  // namespace gnomon::cuda
