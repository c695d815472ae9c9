// Peak of the vector units: many independent FMA chains in registers, no memory at all.
//
// peak = threads x chains x lanes x 2 / time. Twelve chains cover two FMA units of four cycles and
// half as many again, and fit the 16 registers of AVX2. One chain alone gives the latency. The
// clock comes from a chain of xors, each of one cycle on every x86-64 core (an add of a constant
// would not do: recent cores fold it away). With the peak it tells how many FMA units a core has.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/device/calibrate_peak.cc"
#include "gnomon/device/calibrate_peak.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace gnomon {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Flops done by twelve chains of `steps` FMAs; x -> x * m + a with |m| < 1 stays finite and normal.
template <class T>
double FmaChains(std::size_t steps, T m_value, T* keep) {
  const hn::ScalableTag<T> d;
  const auto m = hn::Set(d, m_value), a = hn::Set(d, T(0.25));
  // Twelve different numbers: of equal chains a compiler would compute one.
  auto c0 = hn::Set(d, keep[0]), c1 = hn::Add(c0, a), c2 = hn::Add(c1, a), c3 = hn::Add(c2, a);
  auto c4 = hn::Add(c3, a), c5 = hn::Add(c4, a), c6 = hn::Add(c5, a), c7 = hn::Add(c6, a);
  auto c8 = hn::Add(c7, a), c9 = hn::Add(c8, a), c10 = hn::Add(c9, a), c11 = hn::Add(c10, a);
  for (std::size_t i = 0; i < steps; ++i) {
    c0 = hn::MulAdd(c0, m, a), c1 = hn::MulAdd(c1, m, a), c2 = hn::MulAdd(c2, m, a);
    c3 = hn::MulAdd(c3, m, a), c4 = hn::MulAdd(c4, m, a), c5 = hn::MulAdd(c5, m, a);
    c6 = hn::MulAdd(c6, m, a), c7 = hn::MulAdd(c7, m, a), c8 = hn::MulAdd(c8, m, a);
    c9 = hn::MulAdd(c9, m, a), c10 = hn::MulAdd(c10, m, a), c11 = hn::MulAdd(c11, m, a);
  }
  const auto low = hn::Add(hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)), hn::Add(c4, c5));
  const auto high = hn::Add(hn::Add(hn::Add(c6, c7), hn::Add(c8, c9)), hn::Add(c10, c11));
  *keep = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  constexpr double kChains = 12, kFlopsPerFma = 2;
  return kChains * kFlopsPerFma * static_cast<double>(steps * hn::Lanes(d));
}
double FmaChainsFp32(std::size_t steps, float m, float* keep) {
  return FmaChains<float>(steps, m, keep);
}
double FmaChainsFp64(std::size_t steps, double m, double* keep) {
  return FmaChains<double>(steps, m, keep);
}

float FmaChain(std::size_t steps, float m_value) {
  const hn::ScalableTag<float> d;
  const auto m = hn::Set(d, m_value), a = hn::Set(d, 0.25f);
  auto c = a;
  for (std::size_t i = 0; i < steps; ++i) c = hn::MulAdd(c, m, a);
  return hn::GetLane(c);
}

int LanesFp32() { return static_cast<int>(hn::Lanes(hn::ScalableTag<float>())); }

}  // namespace HWY_NAMESPACE
}  // namespace gnomon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "gnomon/device/calibrate_time.h"

namespace gnomon {
namespace {

HWY_EXPORT(FmaChainsFp32);
HWY_EXPORT(FmaChainsFp64);
HWY_EXPORT(FmaChain);
HWY_EXPORT(LanesFp32);

constexpr std::size_t kSteps = 1 << 14;
constexpr double kMultiplier = 0.75;

}  // namespace

Hertz CoreClock(Seconds time) {
#if defined(__x86_64__)
  constexpr int kXors = 16;
  constexpr std::size_t kRounds = 1 << 14;
  return {RateOfAll(1, time, [](int) {
    unsigned long value = 1;
    const unsigned long other = kRounds;
    for (std::size_t i = 0; i < kRounds; ++i) {
      asm volatile(
          "xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, "
          "%0\n"
          "xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, %0\n xor %1, "
          "%0\n"
          "xor %1, %0\n xor %1, %0\n"
          : "+r"(value)
          : "r"(other));
    }
    return static_cast<double>(kXors * kRounds);
  })};
#else
  return {time.value * 0};
#endif
}

FlopsPerSecond FmaPeakFp32(int threads, Seconds time) {
  return {RateOfAll(threads, time, [](int) {
    float keep = 0;
    const double flops =
        HWY_DYNAMIC_DISPATCH(FmaChainsFp32)(kSteps, static_cast<float>(kMultiplier), &keep);
    KeepAlive(keep);
    return flops;
  })};
}

FlopsPerSecond FmaPeakFp64(int threads, Seconds time) {
  return {RateOfAll(threads, time, [](int) {
    double keep = 0;
    const double flops = HWY_DYNAMIC_DISPATCH(FmaChainsFp64)(kSteps, kMultiplier, &keep);
    KeepAlive(keep);
    return flops;
  })};
}

Seconds FmaLatency(Seconds time) {
  return {1 / RateOfAll(1, time, [](int) {
            KeepAlive(HWY_DYNAMIC_DISPATCH(FmaChain)(kSteps, static_cast<float>(kMultiplier)));
            return static_cast<double>(kSteps);
          })};
}

int VectorLanesFp32() { return HWY_DYNAMIC_DISPATCH(LanesFp32)(); }

}  // namespace gnomon
#endif  // HWY_ONCE
