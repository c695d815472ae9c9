#pragma once

/// bf16 GEMM blocks on AMX tiles of 16 × 16 outputs, and the packing that they need. Internal to
/// the family. Everything but AmxUsable may only be called where it returns true.

#include <cstdint>

namespace gnomon::cpu {

inline constexpr std::int64_t kAmxSide = 16;         ///< rows and columns of a tile of C
inline constexpr std::int64_t kAmxDepth = 32;        ///< k values of a tile of A or B
inline constexpr std::int64_t kAmxTileBytes = 1024;  ///< of any tile
inline constexpr std::int32_t kMaxAmxTiles = 4;      ///< tiles of C in registers

/// AMX bf16 tiles, the AVX-512 that goes with them, and the system's permission, which the first
/// call asks for.
bool AmxUsable();

/// Tile registers are set up for the calling thread while one of these lives.
class AmxScope {
 public:
  AmxScope();
  ~AmxScope();
  AmxScope(const AmxScope&) = delete;
  AmxScope& operator=(const AmxScope&) = delete;
};

/// out[rows · 16, cols · 16] = in + A · B over k_blocks steps of 32. Strides and steps are bytes.
struct AmxArgs {
  const char* a = nullptr;
  std::int64_t a_stride = 0;  ///< between rows
  std::int64_t a_tile = 0;    ///< between tiles of rows
  std::int64_t a_step = 0;    ///< between steps of k
  const char* b = nullptr;    ///< packed: the tiles of a step side by side, then the next step
  std::int64_t k_blocks = 0;
  const float* in = nullptr;  ///< null: zero
  std::int64_t in_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
};
/// For rows × cols tiles that HasAmxBlock: 2 × 2, or one row or column of up to kMaxAmxTiles.
void AmxBlock(std::int32_t rows, std::int32_t cols, const AmxArgs& args);
bool HasAmxBlock(std::int32_t rows, std::int32_t cols);

/// C = epilogue(sums) for the part of a block that exists.
struct AmxStoreArgs {
  const float* sums = nullptr;
  std::int64_t sums_stride = 0;  ///< floats
  std::int64_t rows = 0, cols = 0;
  const float* bias = nullptr;
  bool relu = false;
  void* c = nullptr;
  std::int64_t c_stride = 0;  ///< elements
  bool bf16 = false;
};
void AmxStore(const AmxStoreArgs& args);

/// One tile of A or B from the stored operand, zero where it ends: `outer` rows of A (columns of B)
/// ≤ 16, `k` ≤ 32.
struct AmxPackArgs {
  const std::uint16_t* source = nullptr;
  std::int64_t stride = 0;  ///< elements between stored rows
  std::int64_t outer = 0, k = 0;
  void* tile = nullptr;
};
void AmxPackCopy(const AmxPackArgs& args);        ///< A stored along k: rows as they are
void AmxPackTranspose(const AmxPackArgs& args);   ///< B stored along k: pairs of k by column
void AmxPackInterleave(const AmxPackArgs& args);  ///< B stored along N: pairs of stored rows
void AmxPackInterleaveTranspose(
    const AmxPackArgs& args);  ///< A stored along M: rows of A from stored columns

}  // namespace gnomon::cpu
