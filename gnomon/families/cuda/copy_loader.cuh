#pragma once

/// The producer of kind `copy`: fills a pipeline stage with operands that TMA cannot load (rows
/// that are not whole 16 bytes), in the image that TMA would leave (copy_image.h).
///
/// A warpgroup copies global to shared memory by cp.async, which needs no registers, so that as
/// many bytes are under way as stages are free. cp.async moves 4, 8 or 16 aligned bytes. Rows that
/// are not whole words (odd K of 16-bit elements) are copied as the words that hold them; when they
/// have arrived, lines that start inside a word are shifted in place by a funnel shift. Such a line
/// of 128 bytes has a 33rd word, which waits in a side buffer of one word a line.
///
/// Use, for each k step (a warp copies and shifts its own lines, so a warp's barrier is enough):
///
///   note = copy.Start(…); … CommitCopies();                               // step i
///   WaitCopies<kLag>(); __syncwarp(); copy.Finish(…, note of i − kLag);
///   FenceAsync(); Arrive(full of i − kLag);
///
/// What lies outside the operand, or beyond the tile's rows in its last box, is zero in the image
/// and is not read, but for the up to 3 bytes in
/// front of its first row that share that row's first word.

#include "gnomon/families/cuda/copy_image.h"
#include "gnomon/families/cuda/hopper.cuh"
#include "gnomon/families/cuda/kernel_table.h"

namespace gnomon::cuda {

/// kBytes (4, 8 or 16), of which the first `valid` are read and the others become zero.
template <int kBytes>
__device__ inline void CopyAsync(std::uint32_t to, const std::uint8_t* from, int valid) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                 "n"(kBytes), "r"(valid)
                 : "memory");
  }
}
/// The same where no byte at `end` or beyond may be touched.
template <int kBytes>
__device__ inline void CopyUpTo(std::uint32_t to, const std::uint8_t* from, int valid,
                                const std::uint8_t* end) {
  if (valid == 0 || from + kBytes <= end) {
    CopyAsync<kBytes>(to, from, valid);
    return;
  }
#pragma unroll
  for (int word = 0; word < kBytes; word += 4) {
    std::uint32_t value = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (word + i < valid) value |= static_cast<std::uint32_t>(from[word + i]) << (8 * i);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + word), "r"(value) : "memory");
  }
}
/// kBytes, or zeros where `outside`.
template <int kBytes>
__device__ inline void CopyAsyncOrZero(std::uint32_t to, const std::uint8_t* from, bool outside) {
  if constexpr (kBytes == 16) {
    asm volatile(
        "{\n.reg .pred outside;\nsetp.ne.u32 outside, %2, 0;\n"
        "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, outside;\n}" ::"r"(to),
        "l"(from), "r"(static_cast<int>(outside))
        : "memory");
  } else {
    asm volatile(
        "{\n.reg .pred outside;\nsetp.ne.u32 outside, %3, 0;\n"
        "cp.async.ca.shared.global.L2::128B [%0], [%1], %2, outside;\n}" ::"r"(to),
        "l"(from), "n"(kBytes), "r"(static_cast<int>(outside))
        : "memory");
  }
}
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most kPending of the thread's groups of copies are under way.
template <int kPending>
__device__ inline void WaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ inline void StoreShared4(std::uint32_t to, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ inline void ZeroShared16(std::uint32_t to) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
}

/// One operand's copies. `thread`: of the warpgroup. All addresses are of shared memory.
template <class Element, bool kOuter, int kRows>
class OperandCopy {
 public:
  static constexpr int kLines = ImageLines(kOuter, kRows);
  /// Of the side buffer of a stage; elements of whole words need none.
  static constexpr int kSideBytes = sizeof(Element) < 4 ? kLines * 4 : 0;

  /// Rows `row` up to `row` + kRows of a matrix of `rows`, k up to a k step further, of `depth`.
  /// `vector_bytes`: the widest load that the matrix's address and `ld` allow. Gives what Finish
  /// has to know about the step.
  __device__ static std::uint32_t Start(std::uint32_t stage, std::uint32_t side,
                                        const Element* matrix, std::int64_t ld, std::int64_t row,
                                        std::int64_t rows, std::int64_t k, std::int64_t depth,
                                        int vector_bytes, int thread) {
    constexpr int kDepth = kStepBytes / kBytes;
    const int inside_rows = Within(rows - row, kRows), inside_k = Within(depth - k, kDepth);
    const int lines = kOuter ? inside_k : inside_rows;
    const int bytes = (kOuter ? inside_rows : inside_k) * kBytes;
    const std::int64_t line = kOuter ? k : row, at = kOuter ? row : k;
    const std::uint8_t* const from = reinterpret_cast<const std::uint8_t*>(matrix + line * ld + at);
    const std::int64_t pitch = ld * kBytes;
#pragma unroll 1
    for (int panel = 0; panel < kPanels; ++panel) {
      const Panel to{stage + panel * kPanelBytes,
                     side + panel * kPanelLines * 4,
                     from + panel * kLineBytes,
                     pitch,
                     lines,
                     Within(bytes - panel * kLineBytes, kLineBytes),
                     reinterpret_cast<const std::uint8_t*>(
                         matrix + ((kOuter ? depth : rows) - 1) * ld + (kOuter ? rows : depth))};
      if (vector_bytes >= 16) {
        Copy<16, false>(to, thread);
      } else if (vector_bytes >= 8) {
        Copy<8, false>(to, thread);
      } else if (kBytes >= 4 || vector_bytes >= 4) {
        Copy<4, false>(to, thread);
      } else if constexpr (kBytes < 4) {
        Copy<4, true>(to, thread);
      }
    }
    return Ahead(from) | static_cast<std::uint32_t>(bytes) << 2;
  }

  /// When the copies have arrived: shifts the lines that start inside a word.
  __device__ static void Finish(std::uint32_t stage, std::uint32_t side, std::int64_t ld,
                                int vector_bytes, std::uint32_t note, int thread) {
    if constexpr (kBytes < 4) {
      if (vector_bytes >= 4) return;
      const int ahead = static_cast<int>(note & 3), bytes = static_cast<int>(note >> 2);
#pragma unroll 1
      for (int panel = 0; panel < kPanels; ++panel)
        Shift(stage + panel * kPanelBytes, side + panel * kPanelLines * 4, ahead,
              static_cast<int>(ld * kBytes & 3), Within(bytes - panel * kLineBytes, kLineBytes),
              thread);
    }
  }

 private:
  static constexpr int kBytes = sizeof(Element);
  static constexpr int kPanels = kOuter ? kLines / kBoxRows : 1;
  static constexpr int kPanelLines = kLines / kPanels;
  static constexpr int kPanelBytes = kPanelLines * kLineBytes;
  static constexpr int kWarpLines = kPanelLines / (kWarpgroup / 32);
  static_assert(kPanelLines % 16 == 0, "a warp fills four lines at a time");
  static_assert(!kOuter || kBytes == 2, "wgmma reads only 16-bit elements with K outermost");

  struct Panel {
    std::uint32_t image, side;
    const std::uint8_t* from;  ///< of its first line
    std::int64_t pitch;        ///< bytes from line to line
    int lines, bytes;          ///< inside the matrix: lines, and bytes of each
    const std::uint8_t* end;   ///< of the whole matrix
  };

  __device__ static int Within(std::int64_t left, int most) {
    return left <= 0 ? 0 : left < most ? static_cast<int>(left) : most;
  }
  __device__ static std::uint32_t Ahead(const std::uint8_t* from) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from)) & 3;
  }

  template <int kWidth, bool kInsideWords>
  __device__ static void Copy(const Panel& panel, int thread) {
    if (panel.bytes == kLineBytes) {
      CopyWhole<kWidth, kInsideWords>(panel, thread);
    } else {
      CopyPart<kWidth, kInsideWords>(panel, thread);
    }
  }

  /// Lines of 128 bytes: the lanes of a warp side by side along them.
  template <int kWidth, bool kInsideWords>
  __device__ static void CopyWhole(const Panel& panel, int thread) {
    constexpr int kLanes = kLineBytes / kWidth, kAtOnce = 32 / kLanes;
    const int lane = thread % 32, first = thread / 32 * kWarpLines;
    const int at = lane % kLanes * kWidth;
    int line = first + lane / kLanes;
    const std::uint8_t* from = panel.from + line * panel.pitch;
#pragma unroll 4
    for (int i = 0; i < kWarpLines / kAtOnce; ++i) {
      const std::uint8_t* const word = from - (kInsideWords ? Ahead(from) : 0);
      CopyAsyncOrZero<kWidth>(panel.image + ImageByte(line, at), word + at, line >= panel.lines);
      line += kAtOnce;
      from += kAtOnce * panel.pitch;
    }
    if constexpr (kInsideWords) {
#pragma unroll 1
      for (int last = first + lane; last < first + kWarpLines; last += 32) {
        const std::uint8_t* const start = panel.from + last * panel.pitch;
        const int ahead = static_cast<int>(Ahead(start));
        if (ahead != 0)
          CopyUpTo<4>(panel.side + last * 4, start - ahead + kLineBytes,
                      last < panel.lines ? ahead : 0, panel.end);
      }
    }
  }

  /// Shorter lines: a warp's lines laid end to end, the lanes side by side along all of them. What
  /// no copy reaches is made zero.
  template <int kWidth, bool kInsideWords>
  __device__ static void CopyPart(const Panel& panel, int thread) {
    const int lane = thread % 32, first = thread / 32 * kWarpLines;
    int pieces = 0;  // of a line
    if constexpr (kInsideWords) {
      pieces = WordsOf(panel.bytes, 4 - kBytes);
    } else {
      pieces = (panel.bytes + kWidth - 1) / kWidth;
    }
    if (panel.bytes == 0 || panel.lines == 0) pieces = 0;
    constexpr int kChunk = 16 / kWidth;
    if (pieces * kWidth < kLineBytes) pieces = (pieces + kChunk - 1) / kChunk * kChunk;
    if (pieces > 0) {
      const int lines_on = 32 / pieces, pieces_on = 32 - lines_on * pieces;
      int line = lane / pieces, piece = lane - line * pieces;
      line += first;
#pragma unroll 2
      for (; line < first + kWarpLines;) {
        const std::uint8_t* const from = panel.from + line * panel.pitch;
        const int ahead = kInsideWords ? static_cast<int>(Ahead(from)) : 0;
        const int at = piece * kWidth, left = panel.bytes + ahead - at;
        const int valid = line >= panel.lines || left < 0 ? 0 : left < kWidth ? left : kWidth;
        const std::uint32_t to = kInsideWords && at >= kLineBytes
                                     ? panel.side + line * 4
                                     : panel.image + ImageByte(line, at);
        CopyUpTo<kWidth>(to, from - ahead + at, valid, panel.end);
        line += lines_on;
        piece += pieces_on;
        if (piece >= pieces) {
          piece -= pieces;
          ++line;
        }
      }
    }
    const int chunk = lane % 8;
    if (chunk * kChunk >= pieces) {
#pragma unroll 4
      for (int i = 0; i < kWarpLines / 4; ++i)
        ZeroShared16(panel.image + ImageByte(first + i * 4 + lane / 8, chunk * 16));
    }
  }

  __device__ static void Shift(std::uint32_t image, std::uint32_t side, int ahead, int pitch,
                               int bytes, int thread) {
    const int words = WordsOf(bytes, 4 - kBytes);
    if (words <= 8) {
      ShiftBy<8>(image, side, ahead, pitch, bytes, thread);
    } else if (words <= 16) {
      ShiftBy<16>(image, side, ahead, pitch, bytes, thread);
    } else {
      ShiftBy<32>(image, side, ahead, pitch, bytes, thread);
    }
  }

  /// kLanes words of a line are shifted at once, of 32 / kLanes lines.
  template <int kLanes>
  __device__ static void ShiftBy(std::uint32_t image, std::uint32_t side, int ahead, int pitch,
                                 int bytes, int thread) {
    constexpr int kAtOnce = 32 / kLanes;
    const int lane = thread % 32, first = thread / 32 * kWarpLines;
    const int word = lane % kLanes;
    const ShiftedLines shifted = ShiftedLinesOf((ahead + first * pitch) & 3, pitch, kBytes);
    const int stop = first + kWarpLines, on = kAtOnce * shifted.step;
#pragma unroll 4
    for (int from = first + shifted.first; from < stop; from += on) {
      const int line = from + lane / kLanes * shifted.step;
      const int inside = (ahead + line * pitch) & 3;
      const std::uint32_t at = image + ImageByte(line < stop ? line : from, word * 4);
      const std::uint32_t low = LoadShared4(at);
      std::uint32_t high = __shfl_down_sync(0xFFFFFFFFu, low, 1, kLanes);
      if (word == kLanes - 1)
        high = kLanes == 32 && bytes + inside > kLineBytes ? LoadShared4(side + line * 4) : 0;
      __syncwarp();
      if (line < stop && inside != 0) StoreShared4(at, __funnelshift_r(low, high, inside * 8));
    }
  }
};

/// A step's operand, waited for: for a producer that does not run ahead.
template <class Element, bool kOuter, int kRows>
__device__ inline void CopyOperand(std::uint32_t stage, std::uint32_t side, const Element* matrix,
                                   std::int64_t ld, std::int64_t row, std::int64_t rows,
                                   std::int64_t k, std::int64_t depth, int vector_bytes,
                                   int thread) {
  using Copy = OperandCopy<Element, kOuter, kRows>;
  const std::uint32_t note =
      Copy::Start(stage, side, matrix, ld, row, rows, k, depth, vector_bytes, thread);
  CommitCopies();
  WaitCopies<0>();
  __syncwarp();
  Copy::Finish(stage, side, ld, vector_bytes, note, thread);
}

}  // namespace gnomon::cuda
