#pragma once

/// bf16 by scalars, for tests: conversion both ways and arrays of either dtype behind one type.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gnomon/base/dtype.h"

namespace gnomon::oracle {

inline float FromBf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Of the two bf16 neighbours the nearer one; of equally near ones the even one. Finite values
/// only.
inline std::uint16_t ToBf16(float value) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  const auto above = static_cast<std::uint16_t>(below + 1);
  const double down = std::abs(static_cast<double>(value) - FromBf16(below));
  // Beyond the largest finite value the upper neighbour counts as the next power of two.
  const double top = std::isinf(FromBf16(above)) ? std::ldexp(1.0, 128) : std::abs(FromBf16(above));
  const double up = top - std::abs(static_cast<double>(value));
  if (down < up) return below;
  if (up < down) return above;
  return below % 2 == 0 ? below : above;
}

/// Values of fp32 or bf16 with poisoned guard bytes on both sides.
class Array {
 public:
  Array(DType dtype, std::size_t count)
      : dtype_(dtype),
        width_(dtype == DType::kBf16 ? 2 : 4),
        count_(count),
        bytes_(count * width_ + 2 * kGuard, kPoison) {}
  Array(DType dtype, const std::vector<float>& values) : Array(dtype, values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) Set(i, values[i]);
  }

  void* data() { return bytes_.data() + kGuard; }
  std::size_t size() const { return count_; }
  double operator[](std::size_t i) const {
    const std::uint8_t* at = bytes_.data() + kGuard + i * width_;
    if (dtype_ == DType::kBf16) return FromBf16(static_cast<std::uint16_t>(at[0] | at[1] << 8));
    std::uint32_t bits = 0;
    for (int byte = 3; byte >= 0; --byte) bits = bits << 8 | at[byte];
    return std::bit_cast<float>(bits);
  }
  void Set(std::size_t i, float value) {
    std::uint32_t bits =
        dtype_ == DType::kBf16 ? ToBf16(value) : std::bit_cast<std::uint32_t>(value);
    std::uint8_t* at = bytes_.data() + kGuard + i * width_;
    for (std::size_t byte = 0; byte < width_; ++byte, bits >>= 8)
      at[byte] = static_cast<std::uint8_t>(bits & 0xff);
  }
  /// Did nothing write outside the values?
  bool GuardsHold() const {
    for (std::size_t i = 0; i < kGuard; ++i)
      if (bytes_[i] != kPoison || bytes_[bytes_.size() - 1 - i] != kPoison) return false;
    return true;
  }
  /// Do the values hold nothing but the poison they began with?
  bool Untouched() const {
    for (const std::uint8_t byte : bytes_)
      if (byte != kPoison) return false;
    return true;
  }
  bool operator==(const Array& other) const { return bytes_ == other.bytes_; }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr std::uint8_t kPoison = 0xff;  // both formats: NaN

  DType dtype_;
  std::size_t width_, count_;
  std::vector<std::uint8_t> bytes_;
};

/// Relative error of one rounding to the format.
inline double UnitRoundoff(DType dtype) {
  return std::ldexp(1.0, dtype == DType::kBf16 ? -8 : -24);
}

}  // namespace gnomon::oracle
