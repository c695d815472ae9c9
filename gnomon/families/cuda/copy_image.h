#pragma once

/// Where an element of an operand stands in a pipeline stage: lines of 128 bytes, whose 16-byte
/// chunks are swizzled by the line's last three bits, as TMA leaves them and wgmma reads them.
///
///   K innermost   line r: 128 bytes of K of row r
///   K outermost   boxes of 64 rows, 64 lines each; line k of a box: the 64 rows at that k
///
/// Read by host compilers and by nvcc.

#if defined(__CUDACC__)
#define GNOMON_BOTH_CONSTEXPR __host__ __device__ constexpr
#else
#define GNOMON_BOTH_CONSTEXPR constexpr
#endif

namespace gnomon::cuda {

inline constexpr int kLineBytes = 128;
inline constexpr int kBoxRows = 64;  ///< and lines of a box

GNOMON_BOTH_CONSTEXPR int ImageLines(bool outer, int rows) {
  return outer ? (rows + kBoxRows - 1) / kBoxRows * kBoxRows : rows;
}
/// Byte `at` (below 128) of a line, from the first byte of the stage. Bytes of one chunk stay
/// together.
GNOMON_BOTH_CONSTEXPR int ImageByte(int line, int at) {
  return line * kLineBytes + (at ^ ((line & 7) << 4));
}
/// The first byte of an element of `size` bytes, counted from the tile's first row and first k.
GNOMON_BOTH_CONSTEXPR int ImageAt(bool outer, int row, int k, int size) {
  return outer ? ImageByte(row / kBoxRows * kBoxRows + k, row % kBoxRows * size)
               : ImageByte(row, k * size);
}

/// Words of four bytes that hold `bytes` bytes which begin `ahead` bytes into the first one.
GNOMON_BOTH_CONSTEXPR int WordsOf(int bytes, int ahead) { return (bytes + ahead + 3) / 4; }

/// Lines that start inside a word, of those that one warp copies: line first + step · i. All of
/// them where rows are whole words apart; every second where rows of 16-bit elements are odd.
struct ShiftedLines {
  int first = 0, step = 1;
};
GNOMON_BOTH_CONSTEXPR ShiftedLines ShiftedLinesOf(int ahead, int pitch_bytes, int element_bytes) {
  if (element_bytes == 2 && (pitch_bytes & 3) == 2) return {ahead == 0 ? 1 : 0, 2};
  return {0, 1};
}

}  // namespace gnomon::cuda
