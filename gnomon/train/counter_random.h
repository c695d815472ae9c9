#pragma once

/// Random numbers as a pure function of a seed and counters: sample j, row r or weight i is the
/// same whatever was drawn before, on any number of threads.

#include <cstdint>

namespace gnomon::train {

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection of 64 bits that passes for random.
constexpr std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// 64 random bits of (seed, a, b).
constexpr std::uint64_t RandomBits(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
  return Mix(Mix(Mix(seed) ^ a) + b);
}

/// Uniform in [0, 1): the top 53 bits.
constexpr double UnitDouble(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

/// Uniform in [-1, 1) from 32 bits.
constexpr float SignedUnit(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1.0p-31f;
}

/// Draws in a row from one counter.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t counter) : state_(RandomBits(seed, counter)) {}
  std::uint64_t Bits() { return Mix(state_ += 0x632be59bd9b4e019ULL); }
  double Unit() { return UnitDouble(Bits()); }

 private:
  std::uint64_t state_;
};

}  // namespace gnomon::train
