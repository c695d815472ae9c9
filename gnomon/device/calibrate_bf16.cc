// Peak of the bf16 instructions of x86-64, from registers only: AVX-512 VDPBF16PS and AMX
// TDPBF16PS.
//
// VDPBF16PS: 16 lanes x 2 products x 2 flops an instruction, twelve chains.
// TDPBF16PS: tiles of 16 rows x 64 bytes: 16 x 16 x 32 products x 2 flops, four accumulators from
// two tiles of A and two of B, as a GEMM holds them, without its loads. Each function is compiled
// for its instructions and called only where CPUID, the operating system's saved state (XCR0) and,
// for tiles, Linux's permission request say yes. Elsewhere the peaks are 0.

#include <cstddef>
#include <cstdint>

#include "gnomon/device/calibrate_peak.h"
#include "gnomon/device/calibrate_time.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gnomon {
namespace {

constexpr double kFlopsPerProduct = 2;  // a multiplication and an addition
constexpr int kChains = 12;
constexpr std::size_t kSteps = 1 << 13;

bool HasBit(unsigned word, int bit) { return (word >> bit) & 1; }

std::uint64_t SavedState() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr int kOsxsave = 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !HasBit(c, kOsxsave)) return 0;
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

bool DotIsUsable() {
  constexpr std::uint64_t kAvx512State = 0xE6;
  constexpr int kAvx512F = 16, kAvx512Bf16 = 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if ((SavedState() & kAvx512State) != kAvx512State) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !HasBit(b, kAvx512F)) return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && HasBit(a, kAvx512Bf16);
}

bool TilesAreUsable() {
  constexpr std::uint64_t kTileState = 0x60000;
  constexpr int kAmxBf16 = 22, kAmxTile = 24;
  constexpr long kRequestPermission = 0x1023,
                 kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if ((SavedState() & kTileState) != kTileState) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !HasBit(d, kAmxBf16) || !HasBit(d, kAmxTile))
    return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

__attribute__((target("avx512f,avx512bf16"))) double DotChains() {
  __m512 c[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i)
    c[i] = _mm512_set1_ps(static_cast<float>(i));  // equal ones would be merged
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  for (std::size_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) c[j] = _mm512_dpbf16_ps(c[j], a, a);
  }
  __m512 sum = c[0];
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) sum = _mm512_add_ps(sum, c[i]);
  alignas(64) float kept[16];
  _mm512_store_ps(kept, sum);
  KeepAlive(kept[0]);
  constexpr double kProducts = 32;
  return kFlopsPerProduct * kProducts * kChains * kSteps;
}

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig
    kTileConfig;  // in memory as a whole: the intrinsic tells the compiler of 8 bytes only

__attribute__((target("amx-tile,amx-bf16"))) double TileChains() {
  _tile_loadconfig(&kTileConfig);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::size_t i = 0; i < kSteps; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  constexpr double kProducts = 16 * 16 * 32, kTiles = 4;
  return kFlopsPerProduct * kProducts * kTiles * kSteps;
}

}  // namespace

FlopsPerSecond DotPeakBf16(int threads, Seconds time) {
  if (!DotIsUsable()) return {0};
  return {RateOfAll(threads, time, [](int) { return DotChains(); })};
}

FlopsPerSecond TilePeakBf16(int threads, Seconds time) {
  if (!TilesAreUsable()) return {0};
  return {RateOfAll(threads, time, [](int) { return TileChains(); })};
}

}  // namespace gnomon

#else

namespace gnomon {
FlopsPerSecond DotPeakBf16(int, Seconds) { return {0}; }
FlopsPerSecond TilePeakBf16(int, Seconds) { return {0}; }
}  // namespace gnomon

#endif
