#pragma once

/// Moves operand blocks into the order that the kernels read, and sums of C out of it. Internal to
/// the family.

#include <cstdint>

namespace gnomon::cpu {

/// A block of an operand, k steps × count values of its outer side (rows of A, columns of B), in
/// one panel: panel[k·width + i] = source(k, i); values from count to width are zero.
struct PanelArgs {
  const float* source = nullptr;
  std::int64_t stride = 0;  ///< elements between the stored rows of the source
  std::int64_t k = 0;
  std::int64_t count = 0;
  std::int64_t width = 0;  ///< ≥ count
  float* panel = nullptr;
};

/// Stored rows run along the outer side: source(k, i) = source[k·stride + i].
void PackCopy(const PanelArgs& args);
/// Stored rows run along k: source(k, i) = source[i·stride + k].
void PackTranspose(const PanelArgs& args);

/// bf16 to fp32, rows of `cols` values.
void Promote(const std::uint16_t* source, std::int64_t stride, std::int64_t rows, std::int64_t cols,
             float* to);

/// C = epilogue(first + the parts), for a block of C. fp32 or bf16 (nearest even) as `bf16` says.
struct FinishArgs {
  const float* first = nullptr;  ///< may be C itself
  std::int64_t first_stride = 0;
  const float* parts =
      nullptr;  ///< `part_count` blocks of part_size values, rows part_stride apart
  std::int64_t part_count = 0, part_size = 0, part_stride = 0;
  std::int64_t rows = 0, cols = 0;
  const float* bias = nullptr;
  bool relu = false;
  void* c = nullptr;
  std::int64_t c_stride = 0;
  bool bf16 = false;
};
void Finish(const FinishArgs& args);

}  // namespace gnomon::cpu
