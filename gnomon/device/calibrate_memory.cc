// Bandwidth and latency of a cache or memory, seen by one core or by all.
//
// Read: vectors summed into independent accumulators over a slice that fits the level, again and
// again. Write: plain stores (a store to a missing line reads it first, as any program's stores
// do). Random: a list of line numbers is drawn beforehand and walked; each line is read whole and
// nothing waits for it, so that as many misses overlap as the core allows: what a gather of
// embedding rows does. Latency: each line holds the number of the next; the order is a scramble of
// 0, 1, 2, ... that needs no table and no prefetcher follows. Pages are what the system gives to
// any large allocation: TLB misses are part of the result. Left out: streaming stores, memory of
// another NUMA node.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/device/calibrate_memory.cc"
#include "gnomon/device/calibrate_memory.h"

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gnomon {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sum over `lines` whole lines; the result only keeps the loads alive.
float SumLines(const float* data, std::size_t lines) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t count = lines * (kLineBytes / sizeof(float));
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = hn::Add(a, hn::Load(d, data + i));
    b = hn::Add(b, hn::Load(d, data + i + lanes));
    c = hn::Add(c, hn::Load(d, data + i + 2 * lanes));
    e = hn::Add(e, hn::Load(d, data + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

void FillLines(float* data, std::size_t lines, float value) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto v = hn::Set(d, value);
  const std::size_t count = lines * (kLineBytes / sizeof(float));
  for (std::size_t i = 0; i + lanes <= count; i += lanes) hn::Store(v, d, data + i);
}

float SumListed(const float* data, const std::uint32_t* list, std::size_t count) {
  const hn::CappedTag<float, kLineBytes / sizeof(float)> d;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t kFloats = kLineBytes / sizeof(float);
  auto a = hn::Zero(d), b = hn::Zero(d);
  for (std::size_t i = 0; i + 2 <= count; i += 2) {
    const float* first = data + list[i] * kFloats;
    const float* second = data + list[i + 1] * kFloats;
    for (std::size_t j = 0; j < kFloats; j += lanes) {
      a = hn::Add(a, hn::Load(d, first + j));
      b = hn::Add(b, hn::Load(d, second + j));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "gnomon/device/calibrate_time.h"

namespace gnomon {
namespace {

HWY_EXPORT(SumLines);
HWY_EXPORT(FillLines);
HWY_EXPORT(SumListed);

constexpr std::size_t kLongestList = 1
                                     << 16;  // 256 KiB of line numbers, a small part of the traffic
constexpr std::size_t kShortestList = 1 << 11;
constexpr std::size_t kChaseSteps = 1 << 12;
constexpr std::uint64_t kWarmSteps = 1
                                     << 16;  // enough to bring a level-2 cache's worth of lines in

float* Slice(const Region& region, int thread) {
  return reinterpret_cast<float*>(region.arena->data() +
                                  static_cast<std::size_t>(thread) * region.bytes_each);
}

std::uint64_t Scramble(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// All lines once in random order, and again until the list is long enough for its start and end not
// to count.
std::vector<std::uint32_t> Shuffled(std::size_t lines, std::uint64_t seed) {
  std::vector<std::uint32_t> list;
  do {
    const std::size_t start = list.size();
    list.resize(start + lines);
    std::iota(list.begin() + static_cast<std::ptrdiff_t>(start), list.end(), 0u);
    for (std::size_t i = lines - 1; i > 0; --i) {
      std::swap(list[start + i], list[start + Scramble(seed * lines + start + i) % (i + 1)]);
    }
  } while (list.size() < kShortestList);
  return list;
}

std::vector<std::uint32_t> Drawn(std::size_t lines, std::uint64_t seed) {
  std::vector<std::uint32_t> list(kLongestList);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = static_cast<std::uint32_t>(Scramble(seed * kLongestList + i) % lines);
  }
  return list;
}

// A one-to-one scramble of 0..lines-1 for a power of two of lines: odd multipliers and xor-shifts
// undo.
std::uint64_t Place(std::uint64_t i, std::uint64_t lines) {
  const std::uint64_t mask = lines - 1;
  const int half = std::max(1, static_cast<int>(std::bit_width(mask)) / 2);
  i &= mask;
  i = (i * 0x9E3779B97F4A7C15) & mask;
  i ^= i >> half;
  i = (i * 0xBF58476D1CE4E5B9) & mask;
  i ^= i >> half;
  return (i * 0x94D049BB133111EB) & mask;
}

// Passes over a small slice must last long enough for the clock to be read between them.
std::size_t PassesAtOnce(std::size_t bytes) {
  constexpr std::size_t kBytesBetweenLooks = 4 << 20;
  return std::max<std::size_t>(1, kBytesBetweenLooks / bytes);
}

}  // namespace

Arena::Arena(std::size_t bytes, int threads) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes;
  const Region all{this, bytes / static_cast<std::size_t>(threads), threads};
// A page that is never written is the system's one page of zeros and would be read from the nearest
// cache.
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int i = 0; i < threads; ++i) {
    HWY_DYNAMIC_DISPATCH(FillLines)(Slice(all, i), all.bytes_each / kLineBytes, 1);
  }
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

BytesPerSecond ReadBandwidth(const Region& region, Seconds time) {
  const std::size_t passes = PassesAtOnce(region.bytes_each);
  return {RateOfAll(region.threads, time, [&](int thread) {
    float sum = 0;
    for (std::size_t i = 0; i < passes; ++i) {
      sum += HWY_DYNAMIC_DISPATCH(SumLines)(Slice(region, thread), region.bytes_each / kLineBytes);
    }
    KeepAlive(sum);
    return static_cast<double>(passes * region.bytes_each);
  })};
}

BytesPerSecond WriteBandwidth(const Region& region, Seconds time) {
  const std::size_t passes = PassesAtOnce(region.bytes_each);
  return {RateOfAll(region.threads, time, [&](int thread) {
    for (std::size_t i = 0; i < passes; ++i) {
      HWY_DYNAMIC_DISPATCH(FillLines)
      (Slice(region, thread), region.bytes_each / kLineBytes, static_cast<float>(i));
      KeepAlive(i);
    }
    return static_cast<double>(passes * region.bytes_each);
  })};
}

BytesPerSecond RandomBandwidth(const Region& region, Seconds time) {
  const auto slices = static_cast<std::size_t>(region.shared ? region.threads : 1);
  const std::size_t lines = region.bytes_each * slices / kLineBytes;
  // A list that is walked twice would find its lines in a nearer cache: where the list cannot name
  // all the lines, each round starts it at another line.
  const bool named_all = lines <= kLongestList;
  const std::size_t window = named_all ? lines : lines - lines / 8;
  std::vector<std::vector<std::uint32_t>> lists(static_cast<std::size_t>(region.threads));
  for (std::size_t i = 0; i < lists.size(); ++i)
    lists[i] = named_all ? Shuffled(lines, i) : Drawn(window, i);
  std::vector<std::uint64_t> rounds(lists.size());
  const std::size_t passes = PassesAtOnce(lists[0].size() * kLineBytes);
  return {RateOfAll(region.threads, time, [&](int thread) {
    const auto mine = static_cast<std::size_t>(thread);
    for (std::size_t i = 0; i < passes; ++i) {
      const std::uint64_t shift = named_all ? 0 : Scramble(++rounds[mine]) % (lines - window);
      const float* start =
          Slice(region, region.shared ? 0 : thread) + shift * (kLineBytes / sizeof(float));
      KeepAlive(HWY_DYNAMIC_DISPATCH(SumListed)(start, lists[mine].data(), lists[mine].size()));
    }
    return static_cast<double>(passes * lists[mine].size() * kLineBytes);
  })};
}

Seconds ChaseLatency(const Region& region, Seconds time) {
  const std::uint64_t lines = std::bit_floor(region.bytes_each / kLineBytes);
  auto* first = reinterpret_cast<std::uint64_t*>(Slice(region, 0));
  constexpr std::uint64_t kWords = kLineBytes / sizeof(std::uint64_t);
  for (std::uint64_t i = 0; i < lines; ++i) first[Place(i, lines) * kWords] = Place(i + 1, lines);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < std::min(lines, kWarmSteps); ++i) at = first[at * kWords];
  const double per_second = RateOfAll(1, time, [&](int) {
    for (std::size_t i = 0; i < kChaseSteps; ++i) at = first[at * kWords];
    KeepAlive(at);
    return static_cast<double>(kChaseSteps);
  });
  return {1 / per_second};
}

Bytes EffectiveCache(const Arena& arena, std::size_t smallest, int threads, Seconds time) {
  constexpr int kTries = 4;                       // the best counts: only disturbance lowers a rate
  constexpr double kGrowth = 1.4142135623730951;  // two sizes an octave
  constexpr double kStillCache = 0.8;             // of the cache's rate
  const auto rate = [&](std::size_t total) {
    const Region region{&arena, total / static_cast<std::size_t>(threads) / kLineBytes * kLineBytes,
                        threads};
    double best = 0;
    for (int i = 0; i < kTries; ++i) best = std::max(best, ReadBandwidth(region, time).value);
    return best;
  };
  const double cache = rate(smallest), memory = rate(arena.bytes());
  if (memory >= kStillCache * cache) return {0};
  std::size_t found = smallest;
  for (double size = static_cast<double>(smallest) * kGrowth;
       size < static_cast<double>(arena.bytes()); size *= kGrowth) {
    const auto total = static_cast<std::size_t>(size);
    if (rate(total) < kStillCache * cache) break;
    found = total;
  }
  return {static_cast<double>(found)};
}

}  // namespace gnomon
#endif  // HWY_ONCE
