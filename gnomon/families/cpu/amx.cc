// bf16 blocks of C on AMX tiles: 16 × 16 fp32 sums a tile, 32 values of k a step.
//
//   C[r, c] += A[r, step] · B[step, c]   for the tiles r < kRows, c < kCols, tile registers 0 to 3
//
// Two by two tiles load four tiles for four products, so that the loads hide behind the products;
// one row or column of up to four is for skinny C. Then the epilogue: bias, ReLU and rounding to
// bf16 (nearest even) with AVX-512. AMX takes denormals as zero. Intrinsics and assembly instead of
// Highway, because Highway 1.0.3 has no AMX; the target is set after the includes, so that no
// inline function of theirs is compiled for AVX-512.

#include "gnomon/families/cpu/amx.h"

#include <immintrin.h>

// GCC 12 takes the deliberately undefined vectors inside its own intrinsics for a fault of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")

namespace gnomon::cpu {
namespace {

// Register numbers are part of the instruction; the intrinsics take literals only.
template <int kTile>
inline void LoadTile(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void StoreTile(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kC, int kA, int kB>
inline void Multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

constexpr int kFirstA = 4;  // tile registers: 0 to 3 C, 4 and 5 A, 6 and 7 B
constexpr int kFirstB = 6;

template <int kRows, int kCols>
class Block {
 public:
  static void Run(const AmxArgs& args) {
    Begin<0>(args);
    const char* a = args.a;
    const char* b = args.b;
    for (std::int64_t k = 0; k < args.k_blocks; ++k) {
      if constexpr (kRows == 2 && kCols == 2) {
        Square(args, a, b);
      } else if constexpr (kCols == 1) {
        LoadTile<kFirstB>(b, kRowBytes);
        Column<0>(args, a);
      } else {
        LoadTile<kFirstA>(a, args.a_stride);
        Row<0>(b);
      }
      a += args.a_step;
      b += kCols * kAmxTileBytes;
    }
    End<0>(args);
  }

 private:
  static constexpr std::int64_t kRowBytes = 64;
  static constexpr int kTiles = kRows * kCols;

  static std::int64_t Offset(int tile, std::int64_t stride) {
    return tile / kCols * kAmxSide * stride + tile % kCols * kRowBytes;
  }

  template <int kTile>
  static void Begin(const AmxArgs& args) {
    if constexpr (kTile < kTiles) {
      if (args.in == nullptr) {
        ZeroTile<kTile>();
      } else {
        LoadTile<kTile>(reinterpret_cast<const char*>(args.in) + Offset(kTile, args.in_stride),
                        args.in_stride);
      }
      Begin<kTile + 1>(args);
    }
  }

  template <int kTile>
  static void End(const AmxArgs& args) {
    if constexpr (kTile < kTiles) {
      StoreTile<kTile>(reinterpret_cast<char*>(args.out) + Offset(kTile, args.out_stride),
                       args.out_stride);
      End<kTile + 1>(args);
    }
  }

  static inline void Square(const AmxArgs& args, const char* a, const char* b) {
    LoadTile<kFirstB>(b, kRowBytes);
    LoadTile<kFirstA>(a, args.a_stride);
    LoadTile<kFirstB + 1>(b + kAmxTileBytes, kRowBytes);
    Multiply<0, kFirstA, kFirstB>();
    LoadTile<kFirstA + 1>(a + args.a_tile, args.a_stride);
    Multiply<1, kFirstA, kFirstB + 1>();
    Multiply<2, kFirstA + 1, kFirstB>();
    Multiply<3, kFirstA + 1, kFirstB + 1>();
  }

  template <int kR>
  static inline void Column(const AmxArgs& args, const char* a) {
    if constexpr (kR < kRows) {
      LoadTile<kFirstA + kR % 2>(a + kR * args.a_tile, args.a_stride);
      Multiply<kR, kFirstA + kR % 2, kFirstB>();
      Column<kR + 1>(args, a);
    }
  }

  template <int kC>
  static inline void Row(const char* b) {
    if constexpr (kC < kCols) {
      LoadTile<kFirstB + kC % 2>(b + kC * kAmxTileBytes, kRowBytes);
      Multiply<kC, kFirstA, kFirstB + kC % 2>();
      Row<kC + 1>(b);
    }
  }
};

using BlockFunction = void (*)(const AmxArgs&);
constexpr BlockFunction kBlocks[kMaxAmxTiles + 1][kMaxAmxTiles + 1] = {
    {},
    {nullptr, &Block<1, 1>::Run, &Block<1, 2>::Run, &Block<1, 3>::Run, &Block<1, 4>::Run},
    {nullptr, &Block<2, 1>::Run, &Block<2, 2>::Run},
    {nullptr, &Block<3, 1>::Run},
    {nullptr, &Block<4, 1>::Run},
};

inline __mmask16 FirstMask(std::int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFFu : (1u << count) - 1u);
}

inline __m512 AddBias(__m512 v, __m512 bias, bool relu) {
  v = _mm512_add_ps(v, bias);
  // Where v < 0, so that a NaN stays a NaN.
  const __mmask16 below =
      relu ? _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ) : __mmask16{0};
  return _mm512_maskz_mov_ps(static_cast<__mmask16>(~below), v);
}

inline __m512 LoadBias(const AmxStoreArgs& args, std::int64_t first, __mmask16 mask) {
  return args.bias == nullptr ? _mm512_setzero_ps()
                              : _mm512_maskz_loadu_ps(mask, args.bias + first);
}

template <bool kBf16>
void StoreColumn(const AmxStoreArgs& args, std::int64_t first) {
  const __mmask16 mask = FirstMask(args.cols - first);
  const __m512 bias = LoadBias(args, first, mask);
  const float* from = args.sums + first;
  for (std::int64_t i = 0; i < args.rows; ++i, from += args.sums_stride) {
    const __m512 v = AddBias(_mm512_maskz_loadu_ps(mask, from), bias, args.relu);
    const std::int64_t at = i * args.c_stride + first;
    if constexpr (kBf16) {
      const __m256bh rounded = _mm512_cvtneps_pbh(v);
      __m256i bits;
      static_assert(sizeof(bits) == sizeof(rounded));
      __builtin_memcpy(&bits, &rounded, sizeof(bits));
      _mm256_mask_storeu_epi16(static_cast<std::uint16_t*>(args.c) + at, mask, bits);
    } else {
      _mm512_mask_storeu_ps(static_cast<float*>(args.c) + at, mask, v);
    }
  }
}

// Two whole tile columns at once: a cache line of bf16 a row.
void StoreColumnPair(const AmxStoreArgs& args, std::int64_t first) {
  const __m512 bias0 = LoadBias(args, first, 0xFFFF),
               bias1 = LoadBias(args, first + kAmxSide, 0xFFFF);
  const float* from = args.sums + first;
  std::uint16_t* to = static_cast<std::uint16_t*>(args.c) + first;
  for (std::int64_t i = 0; i < args.rows; ++i, from += args.sums_stride, to += args.c_stride) {
    const __m512bh rounded =
        _mm512_cvtne2ps_pbh(AddBias(_mm512_loadu_ps(from + kAmxSide), bias1, args.relu),
                            AddBias(_mm512_loadu_ps(from), bias0, args.relu));
    __builtin_memcpy(to, &rounded, sizeof(rounded));
  }
}

}  // namespace

AmxScope::AmxScope() {
  struct alignas(64) TileConfiguration {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static constexpr TileConfiguration kConfiguration;
  asm volatile("ldtilecfg %0" ::"m"(kConfiguration));
}

AmxScope::~AmxScope() { asm volatile("tilerelease" ::); }

bool HasAmxBlock(std::int32_t rows, std::int32_t cols) {
  return rows >= 1 && cols >= 1 && rows <= kMaxAmxTiles && cols <= kMaxAmxTiles &&
         kBlocks[rows][cols] != nullptr;
}

void AmxBlock(std::int32_t rows, std::int32_t cols, const AmxArgs& args) {
  kBlocks[rows][cols](args);
}

void AmxStore(const AmxStoreArgs& args) {
  for (std::int64_t first = 0; first < args.cols; first += kAmxSide) {
    if (args.bf16 && args.cols - first >= 2 * kAmxSide) {
      StoreColumnPair(args, first);
      first += kAmxSide;
    } else if (args.bf16) {
      StoreColumn<true>(args, first);
    } else {
      StoreColumn<false>(args, first);
    }
  }
}

}  // namespace gnomon::cpu

#pragma GCC pop_options
