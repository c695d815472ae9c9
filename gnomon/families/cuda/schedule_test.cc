#include "gnomon/families/cuda/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gnomon/families/cuda/kernel_needs.h"

namespace gnomon::cuda {
namespace {

constexpr int kMost = 2147483647;

int Draw(std::mt19937& random, int least, int most) {
  return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

Schedule SetWhole(Schedule s) {
  s.tiles = s.tiles_m * s.tiles_n * s.tiles;
  s.group_m = std::min(s.group_m, s.tiles_m);
  if (s.stream) {
    s.split = 1;
    s.whole = static_cast<int>(WholeTiles(s.tiles, s.workers));
    if (s.Cut() < s.workers) s.stream = false;
  }
  if (!s.stream) s.whole = 0;
  return s;
}

// Small enough to walk; every kind of schedule.
Schedule RandomSchedule(std::mt19937& random, int i) {
  Schedule s;
  s.tiles_m = Draw(random, 1, 12);
  s.tiles_n = Draw(random, 1, 12);
  s.tiles = Draw(random, 1, 3);  // products
  s.steps = Draw(random, 1, i % 3 ? 9 : 70);
  s.workers = Draw(random, 1, i % 5 ? 40 : 132);
  s.group_m = 1 << Draw(random, 0, 4);
  s.stream = i % 2 == 0;
  s.split = s.stream ? 1 : Draw(random, 1, std::min(s.steps, 8));
  return SetWhole(s);
}

std::string Text(const Schedule& s) {
  return (s.stream ? "stream " : "split ") + std::to_string(s.split) + ", " +
         std::to_string(s.tiles_m) + "x" + std::to_string(s.tiles_n) + " of " +
         std::to_string(s.tiles) + " tiles, " + std::to_string(s.steps) + " steps, " +
         std::to_string(s.workers) + " workers, whole " + std::to_string(s.whole);
}

struct Done {
  Unit unit;
  int worker;
};

std::vector<Done> AllUnits(const Schedule& s) {
  std::vector<Done> units;
  for (int worker = 0; worker < s.workers; ++worker) {
    Walk walk(s, worker);
    Unit unit;
    while (walk.Next(unit)) units.push_back({unit, worker});
  }
  return units;
}

TEST(Schedule, DoesEveryStepOfEveryTileOnce) {
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    const Schedule s = RandomSchedule(random, i);
    std::vector<int> times(static_cast<size_t>(s.tiles) * static_cast<size_t>(s.steps));
    for (const Done& done : AllUnits(s)) {
      ASSERT_LT(done.unit.first, done.unit.last) << Text(s);
      ASSERT_GE(done.unit.first, 0) << Text(s);
      ASSERT_LE(done.unit.last, s.steps) << Text(s);
      ASSERT_GE(done.unit.tile, 0) << Text(s);
      ASSERT_LT(done.unit.tile, s.tiles) << Text(s);
      for (int step = done.unit.first; step < done.unit.last; ++step)
        ++times[static_cast<size_t>(done.unit.tile) * static_cast<size_t>(s.steps) +
                static_cast<size_t>(step)];
    }
    ASSERT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; })) << Text(s);
  }
}

TEST(Schedule, NumbersThePartsOfATileInTheOrderOfTheirSteps) {
  std::mt19937 random(2);
  for (int i = 0; i < 4000; ++i) {
    const Schedule s = RandomSchedule(random, i);
    std::map<int, std::vector<Unit>> parts;
    for (const Done& done : AllUnits(s)) parts[done.unit.tile].push_back(done.unit);
    ASSERT_EQ(parts.size(), static_cast<size_t>(s.tiles)) << Text(s);
    for (auto& [tile, units] : parts) {
      std::sort(units.begin(), units.end(),
                [](const Unit& a, const Unit& b) { return a.first < b.first; });
      int next = 0;
      for (size_t part = 0; part < units.size(); ++part) {
        ASSERT_EQ(units[part].part, static_cast<int>(part)) << Text(s) << ", tile " << tile;
        ASSERT_EQ(units[part].parts, static_cast<int>(units.size())) << Text(s);
        ASSERT_EQ(units[part].first, next) << Text(s);
        next = units[part].last;
      }
      ASSERT_EQ(next, s.steps) << Text(s);
    }
  }
}

TEST(Schedule, GivesEveryPartASlotOfItsOwn) {
  std::mt19937 random(3);
  for (int i = 0; i < 4000; ++i) {
    const Schedule s = RandomSchedule(random, i);
    std::set<int> taken;
    for (const Done& done : AllUnits(s)) {
      const Unit& unit = done.unit;
      if (unit.parts == 1) continue;
      const int slot = SlotOf(s, unit.tile, unit.part);
      ASSERT_GE(slot, 0) << Text(s);
      ASSERT_LT(slot, SlotsOf(s)) << Text(s);
      ASSERT_TRUE(taken.insert(slot).second) << Text(s) << ", slot " << slot << " twice";
      // Whoever adds the parts knows only the tile: of stream-K the slot says who left it there.
      if (s.stream) {
        ASSERT_EQ(slot / 2, done.worker) << Text(s);
      }
    }
    if (!s.stream && s.split > 1) {
      ASSERT_EQ(static_cast<std::int64_t>(taken.size()), SlotsOf(s)) << Text(s);
    }
  }
}

TEST(Schedule, SharesStepsOutEvenly) {
  std::mt19937 random(4);
  for (int i = 0; i < 4000; i += 2) {
    const Schedule s = RandomSchedule(random, i);
    if (!s.stream || s.whole == s.tiles) continue;
    std::vector<std::int64_t> steps(static_cast<size_t>(s.workers));
    for (const Done& done : AllUnits(s))
      steps[static_cast<size_t>(done.worker)] += done.unit.last - done.unit.first;
    const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
    ASSERT_LE(*most - *least, 1) << Text(s);
  }
}

TEST(Schedule, PlacesEachTileOnce) {
  std::mt19937 random(5);
  for (int i = 0; i < 1000; ++i) {
    Schedule s;
    s.tiles_m = Draw(random, 1, 20);
    s.tiles_n = Draw(random, 1, 20);
    const int products = Draw(random, 1, 3);
    s.tiles = s.tiles_m * s.tiles_n * products;
    s.group_m = Draw(random, 1, s.tiles_m);
    std::set<std::array<int, 3>> seen;
    for (int tile = 0; tile < s.tiles; ++tile) {
      const TilePlace place = PlaceOf(s, tile);
      ASSERT_TRUE(place.m >= 0 && place.m < s.tiles_m && place.n >= 0 && place.n < s.tiles_n);
      ASSERT_EQ(place.product, tile / (s.tiles_m * s.tiles_n));
      ASSERT_TRUE(seen.insert({place.product, place.m, place.n}).second);
    }
  }
}

TEST(Schedule, WalksAGroupOfRowsColumnByColumn) {
  Schedule s;
  s.tiles_m = 3;
  s.tiles_n = 2;
  s.tiles = 6;
  s.group_m = 2;
  std::string order;
  for (int tile = 0; tile < s.tiles; ++tile) {
    const TilePlace place = PlaceOf(s, tile);
    order += std::to_string(place.m) + std::to_string(place.n) + " ";
  }
  EXPECT_EQ(order, "00 10 01 11 20 21 ");
}

// What a worker does first and last where tiles hardly count in 32 bits.
TEST(Schedule, CountsUpTo32Bits) {
  std::mt19937 random(6);
  for (const int workers : {1, 66, 132}) {
    const int most = kMost - workers;
    for (const bool tall : {true, false}) {
      Schedule s;
      s.tiles = most;
      s.tiles_m = tall ? most : 1;
      s.tiles_n = tall ? 1 : most;
      s.group_m = std::min(8, s.tiles_m);
      s.steps = 1000;
      s.workers = workers;
      for (int i = 0; i < 1000; ++i) {
        const int tile = static_cast<int>(random() % static_cast<unsigned>(most));
        const TilePlace place = PlaceOf(s, tile);
        ASSERT_EQ(tall ? place.m : place.n, tile);
        ASSERT_EQ(tall ? place.n : place.m, 0);
      }

      s.stream = true;
      s.whole = static_cast<int>(WholeTiles(s.tiles, s.workers));
      ASSERT_EQ(s.whole % s.workers, 0);
      ASSERT_LT(s.tiles - s.whole, 2 * s.workers);
      std::int64_t steps = 0;
      Schedule rest = s;  // the cut end alone, its tiles numbered from 0
      rest.tiles -= rest.whole;
      rest.whole = 0;
      for (int worker = 0; worker < s.workers; ++worker) {
        Walk walk(rest, worker);
        Unit unit;
        while (walk.Next(unit)) {
          steps += unit.last - unit.first;
          if (unit.parts > 1) {
            ASSERT_EQ(SlotOf(s, s.whole + unit.tile, unit.part),
                      SlotOf(rest, unit.tile, unit.part));
          }
        }
      }
      ASSERT_EQ(steps, s.Cut());
    }
  }
}

TEST(Schedule, EndsAWorkersStrideBeforeTheCountOverflows) {
  Schedule s;
  s.workers = 1 << 20;
  s.tiles = s.tiles_m = (kMost - s.workers) / 2;
  s.split = 2;
  s.steps = 5;
  std::int64_t units = 0;
  for (const int worker : {0, 1, s.workers - 1}) {
    Walk walk(s, worker);
    Unit unit;
    std::int64_t count = 0;
    while (walk.Next(unit)) {
      ASSERT_EQ(unit.tile + static_cast<std::int64_t>(unit.part) * s.tiles,
                worker + count * s.workers);
      ++count;
    }
    units += count;
  }
  EXPECT_EQ(units, 3 * 2046 + 2);  // 2 · tiles / workers is 2047 less a little
}

TEST(Schedule, FollowsFromAConfigAndAProblem) {
  Problem p;
  p.m = 1000;
  p.n = 520;
  p.k = 300;
  p.batch = 2;
  p.dtype = p.dtype_out = DType::kBf16;
  KernelConfig c = ParseKernelConfig("tma.128x256.c2x1.both.k3.fix.g8").value();
  Schedule s = ScheduleOf(p, c, 132);
  EXPECT_EQ(s.tiles_m, 4);  // of 256 rows
  EXPECT_EQ(s.tiles_n, 3);
  EXPECT_EQ(s.tiles, 24);
  EXPECT_EQ(s.steps, 5);  // of 64
  EXPECT_EQ(s.workers, 66);
  EXPECT_EQ(s.split, 3);
  EXPECT_EQ(s.group_m, 4);  // as many as there are
  EXPECT_EQ(SlotsOf(s), 72);

  c = ParseKernelConfig("tma.64x64.c1x1.turns.k1.sk").value();
  s = ScheduleOf(p, c, 132);
  EXPECT_EQ(s.tiles, 16 * 9 * 2);
  EXPECT_EQ(s.whole, 132);  // 288 are two waves and a bit: one whole, the rest cut
  EXPECT_EQ(SlotsOf(s), 264);

  p.batch = 1;
  p.group_m = {500, 0, 1, 499};
  s = ScheduleOf(p, ParseKernelConfig("copy.64x64.c1x1.turns.k1").value(), 132);
  EXPECT_EQ(s.tiles_m, 8 + 1 + 8);
}

}  // namespace
}  // namespace gnomon::cuda
