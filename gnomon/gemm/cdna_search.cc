// Branch and bound over the ways to do one problem.
//
//   a floor below every price (CdnaFloors); the price in full only where the floor does not exceed
//   the slowest of the fastest found so far
//
// The few ways of least floor are priced first: they are near the best, and most others then fall
// at their floor.
//
// Entry points: the header's.

#include "gnomon/gemm/cdna_search.h"

#include <algorithm>
#include <array>
#include <limits>

namespace gnomon {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

CdnaKernel KernelOf(const CdnaTile& tile, const CdnaLaunch& launch) {
  CdnaKernel kernel = tile.kernel;
  kernel.split_k = launch.split_k;
  kernel.mapping = launch.mapping;
  kernel.stream_k = launch.stream_k;
  kernel.non_temporal = launch.non_temporal;
  return kernel;
}

}  // namespace

void CdnaWays::Clear(size_t tiles, size_t launches_each) {
  tasks.clear();
  launches.clear();
  floors.clear();
  fastest.clear();
  tasks.reserve(tiles);
  launches.reserve(tiles * launches_each);
  floors.reserve(tiles * launches_each);
}

double PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                 const CdnaOperands& operands, std::span<const CdnaTile> tiles,
                 const CdnaWays& ways, const CdnaLaunch& launch) {
  const CdnaTile& tile = tiles[launch.tile];
  return PriceCdna(machine, traits, operands, KernelOf(tile, launch), tile.block,
                   ways.tasks[launch.task])
      .total;
}

size_t FastestCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const CdnaOperands& operands, std::span<const CdnaTile> tiles, CdnaWays& ways,
                   std::span<TimedConfig> fastest, size_t* priced) {
  if (priced) *priced = 0;
  if (fastest.empty()) return 0;
  constexpr size_t kFirst = 4;  // ways of least floor, priced before the others
  std::array<std::uint32_t, kFirst> first{};
  size_t firsts = 0;
  double last_floor = kNever;
  const CdnaFloors floors(machine, traits, operands);
  const auto count = static_cast<std::uint32_t>(ways.launches.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const CdnaLaunch& launch = ways.launches[i];
    const CdnaTile& tile = tiles[launch.tile];
    const double floor = floors.Of(KernelOf(tile, launch), tile.block, ways.tasks[launch.task]);
    ways.floors.push_back(floor);
    if (floor >= last_floor) continue;
    size_t at = firsts < kFirst ? firsts++ : kFirst - 1;
    for (; at > 0 && floor < ways.floors[first[at - 1]]; --at) first[at] = first[at - 1];
    first[at] = i;
    if (firsts == kFirst) last_floor = ways.floors[first[kFirst - 1]];
  }

  ways.fastest.resize(std::min<size_t>(fastest.size(), count));
  size_t found = 0;
  double worst = kNever;
  const auto price = [&](std::uint32_t i) {
    ways.floors[i] = kNever;
    if (priced) ++*priced;
    const double seconds = PriceCdna(machine, traits, operands, tiles, ways, ways.launches[i]);
    const auto before = [&](size_t place) {
      const double other = fastest[place].time.value;
      return seconds < other || (seconds == other && i < ways.fastest[place]);
    };
    size_t at = found;
    if (found < ways.fastest.size())
      ++found;
    else if (before(found - 1))
      --at;
    else
      return;
    for (; at > 0 && before(at - 1); --at) {
      fastest[at].time = fastest[at - 1].time;
      ways.fastest[at] = ways.fastest[at - 1];
    }
    fastest[at].time = {seconds};
    ways.fastest[at] = i;
    if (found == ways.fastest.size()) worst = fastest[found - 1].time.value;
  };
  for (size_t i = 0; i < firsts; ++i)
    if (ways.floors[first[i]] <= worst) price(first[i]);
  for (std::uint32_t i = 0; i < count; ++i)
    if (ways.floors[i] <= worst && ways.floors[i] < kNever) price(i);
  return found;
}

}  // namespace gnomon
