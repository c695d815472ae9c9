// Tiles of bf16 operands in the order that AMX multiplies: A as 16 rows of 32 k, B as 16 pairs of k
// by 16 columns, a pair being one 32-bit word.
//
//   A: tile[i][2q, 2q + 1] = A(i, k = 2q, 2q + 1)        B: tile[q][2j, 2j + 1] = B(k = 2q, 2q + 1,
//   j)
//
// An operand stored along k already has its pairs as words: A is copied, B is a 16 × 16 transpose
// of words. One stored along its other side has two stored rows interleaved into words: that is B,
// and A is its transpose. Edges are masked loads, zero beyond. AVX-512 intrinsics for the reason
// given in amx.cc.

#include <immintrin.h>

#include "gnomon/families/cpu/amx.h"

// GCC 12 takes the deliberately undefined vectors inside its own intrinsics for a fault of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")

namespace gnomon::cpu {
namespace {

constexpr int kWords = 16;

inline std::uint32_t FirstBits(std::int64_t count) {
  if (count <= 0) return 0;
  return count >= 32 ? 0xFFFFFFFFu : (1u << count) - 1u;
}

// Stored rows of up to 32 k values, one a word vector.
inline void LoadRows(const AmxPackArgs& args, __m512i* row) {
  const __mmask32 mask = FirstBits(args.k);
  for (int i = 0; i < kWords; ++i)
    row[i] = i < args.outer ? _mm512_maskz_loadu_epi16(mask, args.source + i * args.stride)
                            : _mm512_setzero_si512();
}

// Two stored rows of up to 16 values interleaved into words, for the 16 pairs of k.
inline void LoadPairs(const AmxPackArgs& args, __m512i* pair) {
  const __mmask16 mask = static_cast<__mmask16>(FirstBits(args.outer));
  for (int q = 0; q < kWords; ++q) {
    const std::uint16_t* from = args.source + 2 * q * args.stride;
    const __mmask16 low_mask = 2 * q < args.k ? mask : __mmask16{0};
    const __mmask16 high_mask = 2 * q + 1 < args.k ? mask : __mmask16{0};
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(low_mask, from));
    const __m512i high =
        _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(high_mask, from + args.stride));
    pair[q] = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
}

inline void StoreRows(const __m512i* row, void* tile) {
  for (int i = 0; i < kWords; ++i) _mm512_store_si512(static_cast<char*>(tile) + i * 64, row[i]);
}

// Transposes 16 × 16 words: 4 × 4 inside the 128-bit quarters, then the quarters.
inline void TransposeWords(__m512i* v) {
  __m512i t[kWords];
  for (int i = 0; i < kWords; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < kWords; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // v[4g + c] now holds column 4p + c of the rows 4g to 4g + 3 in quarter p.
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xEE);
    const __m512i low23 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x44);
    const __m512i high23 = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xEE);
    t[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(low01, low23, 0xDD);
    t[8 + c] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    t[12 + c] = _mm512_shuffle_i32x4(high01, high23, 0xDD);
  }
  for (int i = 0; i < kWords; ++i) v[i] = t[i];
}

}  // namespace

void AmxPackCopy(const AmxPackArgs& args) {
  __m512i row[kWords];
  LoadRows(args, row);
  StoreRows(row, args.tile);
}

void AmxPackTranspose(const AmxPackArgs& args) {
  __m512i row[kWords];
  LoadRows(args, row);
  TransposeWords(row);
  StoreRows(row, args.tile);
}

void AmxPackInterleave(const AmxPackArgs& args) {
  __m512i pair[kWords];
  LoadPairs(args, pair);
  StoreRows(pair, args.tile);
}

void AmxPackInterleaveTranspose(const AmxPackArgs& args) {
  __m512i pair[kWords];
  LoadPairs(args, pair);
  TransposeWords(pair);
  StoreRows(pair, args.tile);
}

}  // namespace gnomon::cpu

#pragma GCC pop_options
