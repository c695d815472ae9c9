#pragma once

/// Numbers that know their unit: adding seconds to bytes does not compile.
/// Unit suffixes (`_us`, `_gb_per_s`) exist only at the file border.

#include <compare>

namespace gnomon {

template <class Tag>
struct Quantity {
  double value = 0;
  friend constexpr auto operator<=>(Quantity, Quantity) = default;  // NOLINT(modernize-use-nullptr)
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double s) { return {a.value * s}; }
  friend constexpr Quantity operator*(double s, Quantity a) { return {a.value * s}; }
  friend constexpr Quantity operator/(Quantity a, double s) { return {a.value / s}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  constexpr Quantity& operator+=(Quantity b) {
    value += b.value;
    return *this;
  }
};

using Seconds = Quantity<struct SecondsTag>;
using Bytes = Quantity<struct BytesTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using Flops = Quantity<struct FlopsTag>;  ///< a count of operations, not a rate
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;
using Hertz = Quantity<struct HertzTag>;
using Cycles = Quantity<struct CyclesTag>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) { return {b.value / r.value}; }
constexpr Seconds operator/(Flops f, FlopsPerSecond r) { return {f.value / r.value}; }
constexpr Seconds operator/(Cycles c, Hertz f) { return {c.value / f.value}; }
constexpr Bytes operator*(BytesPerSecond r, Seconds t) { return {r.value * t.value}; }
constexpr Cycles operator*(Hertz f, Seconds t) { return {f.value * t.value}; }
constexpr BytesPerSecond operator/(Bytes b, Seconds t) { return {b.value / t.value}; }
constexpr FlopsPerSecond operator/(Flops f, Seconds t) { return {f.value / t.value}; }

constexpr Seconds Microseconds(double us) { return {us * 1e-6}; }
constexpr double InMicroseconds(Seconds t) { return t.value * 1e6; }

}  // namespace gnomon
