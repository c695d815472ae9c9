#pragma once

/// For tests: what must hold of the picks of a family on AMD GPUs, as a suite that one file of a
/// family's tests includes and instantiates:
///
///   INSTANTIATE_TEST_SUITE_P(Cdna, PicksOnAmd, OnCdnaCards(CdnaFamily()));
///
/// Violations are counted beyond rounding, and the worst of them is kept for the message.
///
/// The tests have 2,000 problems and no violation. Over 30,000 others, two in 16,000 are up to 5%
/// faster with twice the rows (a tile twice as long as M is not tried, and now and then would have
/// won), four up to 0.005% slower with a unit more a die (tiles walk in powers of two).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "gnomon/gemm/breakpoints.h"
#include "gnomon/gemm/cdna_model.h"
#include "gnomon/gemm/count_allocations.h"
#include "gnomon/gemm/selector.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon {

struct Violations {
  int tried = 0, count = 0;
  double worst = 1;  ///< slower / faster
  std::string where;

  /// `less` must not exceed `more`.
  void Check(double less, double more, const std::string& what) {
    constexpr double kRounding = 1 + 1e-12;  // two ways of one sum may differ in the last places
    ++tried;
    if (less <= more * kRounding) return;
    ++count;
    if (less / more > worst) {
      worst = less / more;
      where = what;
    }
  }
  std::string Text() const {
    return fmt::format("{} of {}, worst {:.6f} at {}", count, tried, worst, where);
  }
};

inline constexpr int kCdnaProblems = 2000;

/// A changed device against the device itself.
template <class Change>
Violations SlowerWith(const Family& family, const Device& card, Change change) {
  const std::array<const Family*, 1> families = {&family};
  Device better = card;
  change(better);
  const Selector before(card, families), after(better, families);
  std::mt19937 random(3);
  Violations out;
  for (int i = 0; i < kCdnaProblems; ++i) {
    const Problem p = RandomProblem(random, i);
    out.Check(after.SelectCold(p)->predicted.value, before.SelectCold(p)->predicted.value,
              p.Text());
  }
  return out;
}

/// Twice the rows, or twice the rows of every group, where the rows' addresses stay as good.
inline Violations FasterWithTwiceTheRows(const Family& family, const Device& card) {
  const std::array<const Family*, 1> families = {&family};
  const Selector selector(card, families);
  std::mt19937 random(4);
  Violations out;
  for (int i = 0; i < kCdnaProblems; ++i) {
    const Problem p = RandomProblem(random, i);
    Problem twice = p;
    twice.m *= 2;
    for (std::int64_t& m : twice.group_m) m *= 2;
    const CdnaOperands a = CdnaOperandsOf(p), b = CdnaOperandsOf(twice);
    if (b.narrow_a < a.narrow_a || b.crossed_a < a.crossed_a) continue;  // now aligned
    out.Check(selector.SelectCold(p)->predicted.value, selector.SelectCold(twice)->predicted.value,
              p.Text());
  }
  return out;
}

/// Fastest, with and without a ready family, against the prices of all configs, ties included.
inline void ExpectTheFastestOfAll(const Family& family, const Device& card) {
  std::mt19937 random(1);
  std::vector<Config> configs;
  std::vector<double> seconds;
  constexpr size_t kTop = 3;
  const auto ready = family.Ready(card, 0);
  for (int i = 0; i < kCdnaProblems; ++i) {
    const Problem p = RandomProblem(random, i);
    configs.clear();
    seconds.clear();
    ASSERT_TRUE(family.Price(card, p, 0, configs, seconds).ok()) << p.Text();
    std::vector<size_t> order(configs.size());
    for (size_t at = 0; at < order.size(); ++at) order[at] = at;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return seconds[a] < seconds[b]; });
    for (const bool made_ready : {false, true}) {
      std::array<TimedConfig, kTop> fastest;
      const auto found =
          made_ready ? ready->Fastest(p, fastest) : family.Fastest(card, p, 0, fastest);
      ASSERT_TRUE(found.ok()) << p.Text();
      ASSERT_EQ(*found, std::min(kTop, order.size())) << p.Text();
      for (size_t at = 0; at < *found; ++at) {
        ASSERT_EQ(fastest[at].time.value, seconds[order[at]]) << p.Text() << ", place " << at;
        ASSERT_EQ(fastest[at].config, configs[order[at]]) << p.Text() << ", place " << at;
      }
      std::array<TimedConfig, 1> one;
      ASSERT_EQ(*(made_ready ? ready->Fastest(p, one) : family.Fastest(card, p, 0, one)), 1u);
      ASSERT_EQ(one[0].config, configs[order[0]]) << p.Text();
    }
    ASSERT_EQ(ready->TimeOf(p, configs[order[0]]).value, seconds[order[0]]) << p.Text();
    ASSERT_EQ(family.PredictTime(card, p, configs[order[0]]).value, seconds[order[0]]) << p.Text();
  }
}

/// Of all ways to do a problem a grant leaves those that Refusal passes with it, and the fastest of
/// them is picked. The grants are below what any family takes unasked.
inline void ExpectTheWorkspaceIsKeptTo(const Family& family, const Device& card) {
  constexpr int kProblems = 300;
  std::mt19937 random(5);
  int left_out = 0;
  for (int i = 0; i < kProblems; ++i) {
    Problem p = RandomProblem(random, i);
    std::vector<Config> all, granted;
    std::vector<double> seconds;
    ASSERT_TRUE(family.Enumerate(card, p, 0, all).ok()) << p.Text();
    p.workspace = Bytes{i % 10 == 0 ? 0 : std::exp2(static_cast<double>(random() % 27))};
    ASSERT_TRUE(family.Price(card, p, 0, granted, seconds).ok()) << p.Text();
    std::vector<Config> fitting;
    for (const Config& config : all) {
      const bool fits = family.Refusal(card, p, config).empty();
      EXPECT_EQ(family.PredictTime(card, p, config).value < 1e20, fits) << family.Print(config);
      if (fits) fitting.push_back(config);
    }
    ASSERT_EQ(granted, fitting) << p.Text() << " with " << p.workspace->value << " bytes";
    left_out += static_cast<int>(all.size() - granted.size());
    std::array<TimedConfig, 1> fastest;
    ASSERT_EQ(family.Ready(card, 0)->Fastest(p, fastest).value(), 1u);
    const auto least = std::min_element(seconds.begin(), seconds.end());
    EXPECT_EQ(fastest[0].config, granted[static_cast<size_t>(least - seconds.begin())]) << p.Text();
  }
  EXPECT_GT(left_out, 100);
}

struct FamilyOnCard {
  const Family* family = nullptr;
  const char* card = "";
};
inline void PrintTo(const FamilyOnCard& on, std::ostream* out) { *out << on.card; }

inline auto OnCdnaCards(const Family& family) {
  return testing::Values(FamilyOnCard{&family, "mi250x"}, FamilyOnCard{&family, "mi300x"},
                         FamilyOnCard{&family, "mi308x"}, FamilyOnCard{&family, "mi350x"});
}

class PicksOnAmd : public testing::TestWithParam<FamilyOnCard> {
 protected:
  const Family& family_ = *GetParam().family;
  const Device card_ = FindDevice(GetParam().card).value();
  static constexpr double kMore = 1.3;
};

TEST_P(PicksOnAmd, AreNeverSlowerWithMoreBandwidth) {
  for (const MemoryLevel& level : card_.memory) {
    const Violations found = SlowerWith(family_, card_, [&](Device& d) {
      for (MemoryLevel& other : d.memory)
        if (other.name == level.name)
          for (BytesPerSecond* rate : {&other.bandwidth, &other.peak_bandwidth})
            rate->value *= kMore;
    });
    EXPECT_EQ(found.count, 0) << level.name << ": " << found.Text();
  }
}

TEST_P(PicksOnAmd, AreNeverSlowerWithMoreCache) {
  const Violations found = SlowerWith(family_, card_, [](Device& d) {
    for (MemoryLevel& level : d.memory) level.capacity.value *= kMore;
  });
  EXPECT_EQ(found.count, 0) << found.Text();
}

TEST_P(PicksOnAmd, AreNeverSlowerWithMoreUnits) {
  Violations found = SlowerWith(family_, card_, [](Device& d) { d.units *= 2; });
  EXPECT_EQ(found.count, 0) << "twice: " << found.Text();
  found = SlowerWith(family_, card_, [](Device& d) { d.units += d.dies; });
  EXPECT_EQ(found.count, 0) << "one a die: " << found.Text();
}

TEST_P(PicksOnAmd, AreNeverSlowerWithAHigherClock) {
  const Violations found = SlowerWith(family_, card_, [](Device& d) {
    for (Hertz* clock : {&d.sustained_clock, &d.boost_clock, &d.max_clock}) clock->value *= kMore;
  });
  EXPECT_EQ(found.count, 0) << found.Text();
}

TEST_P(PicksOnAmd, AreNeverFasterWithTwiceTheRows) {
  const Violations found = FasterWithTwiceTheRows(family_, card_);
  EXPECT_GT(found.tried, kCdnaProblems / 2);
  EXPECT_EQ(found.count, 0) << found.Text();
}

TEST_P(PicksOnAmd, AreTheFastestOfAll) { ExpectTheFastestOfAll(family_, card_); }

TEST_P(PicksOnAmd, AllocateNothingOnceTheKindIsKnown) {
  const std::array<const Family*, 1> families = {&family_};
  const Selector selector(card_, families);
  std::mt19937 random(9);
  std::vector<Problem> problems;
  for (int i = 0; i < kCdnaProblems; ++i) {
    problems.push_back(RandomProblem(random, i));
    if (problems.back().grouped()) problems.pop_back();  // the cache does not hold lists
  }
  const auto run = [&](bool cold) {
    for (const Problem& p : problems)
      ASSERT_TRUE((cold ? selector.SelectCold(p) : selector.Select(p)).ok());
  };
  for (const bool cold : {true, false}) {
    run(cold);
    const long before = AllocationsOfThisThread();
    run(cold);
    EXPECT_EQ(AllocationsOfThisThread(), before);
  }
  EXPECT_GT(AllocationsOfThisThread(), 0);  // the count counts
}

TEST_P(PicksOnAmd, AreWithinTheToleranceAtEveryMOfARange) {
  const std::array<const Family*, 1> families = {&family_};
  const Selector selector(card_, families);
  constexpr int kMostLog2 = 24;
  std::mt19937 random(10);
  for (const Layout layout : {Layout::kNT, Layout::kTN}) {
    Problem p = Gemm(1, 1024, 512, DType::kBf16, layout);
    const auto points = SelectRange(selector, p, 1, 1 << kMostLog2);
    ASSERT_TRUE(points.ok()) << points.error().Text();
    EXPECT_LT(points->size(), 1000u);
    for (int i = 0; i < 1000; ++i) {
      p.m = static_cast<std::int64_t>(
          std::exp2(static_cast<double>(random()) / 4294967296.0 * kMostLog2));
      EXPECT_LE(selector.TimeOf(p, points->Lookup(p.m)).value,
                selector.SelectCold(p)->predicted.value * (1 + kNearTie) * (1 + 1e-12))
          << p.m;
    }
  }
}

TEST_P(PicksOnAmd, KeepToTheWorkspace) { ExpectTheWorkspaceIsKeptTo(family_, card_); }

}  // namespace gnomon
