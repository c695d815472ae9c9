#pragma once

/// Copies of operands whose rows are not whole 16 bytes, so that TMA can load them (kind pad).

#include <cuda_runtime.h>

#include <cstdint>

namespace gnomon::cuda {

/// `rows` rows of `bytes` bytes, `pitch_from` and `pitch_to` apart; `to` and `pitch_to` are whole
/// 16 bytes. What lies behind a row's bytes is written as zeros.
struct Padding {
  const std::uint8_t* from = nullptr;
  std::uint8_t* to = nullptr;
  std::int64_t rows = 0, bytes = 0, pitch_from = 0, pitch_to = 0;
  std::int64_t chunks() const { return rows * (pitch_to / 16); }
};

/// Both in one launch; an empty one has no rows.
cudaError_t LaunchPad(const Padding& a, const Padding& b, cudaStream_t stream);

}  // namespace gnomon::cuda
