// Skew: closed forms against drawing lookups and running a real LRU.

#include "gnomon/workload/skew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gnomon {
namespace {

Model Tables(std::vector<Table> tables, double exponent) {
  Model model;
  model.tables = std::move(tables);
  model.zipf_exponent = exponent;
  return model;
}

// Draws from i^−s by the inverse of the summed probabilities; its own small generator.
class Sampler {
 public:
  explicit Sampler(const Model& model) {
    for (const Table& table : model.tables) {
      std::vector<double>& sums = sums_.emplace_back();
      double sum = 0;
      for (std::int64_t i = 1; i <= table.rows; ++i)
        sums.push_back(sum += std::pow(static_cast<double>(i), -model.zipf_exponent));
    }
  }
  std::int64_t Draw(size_t table) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double u = static_cast<double>(state_ >> 11) * 0x1.0p-53 * sums_[table].back();
    return std::lower_bound(sums_[table].begin(), sums_[table].end(), u) - sums_[table].begin();
  }

 private:
  std::vector<std::vector<double>> sums_;
  std::uint64_t state_ = 12345;
};

TEST(Skew, UniqueRowsMatchDrawnOnes) {
  for (const double exponent : {0.0, 0.8, 1.05, 1.4}) {
    const Model model = Tables({{3, 1}, {500, 2}, {20000, 1}}, exponent);
    Sampler sampler(model);
    constexpr int kSamples = 4000;
    std::vector<std::unordered_set<std::int64_t>> seen(3);
    for (int i = 0; i < kSamples; ++i)
      for (size_t t = 0; t < 3; ++t)
        for (int h = 0; h < static_cast<int>(model.tables[t].hot); ++h)
          seen[t].insert(sampler.Draw(t));
    const auto drawn = static_cast<double>(seen[0].size() + seen[1].size() + seen[2].size());
    EXPECT_NEAR(LookupSkew(model).UniqueRows(kSamples), drawn, 0.03 * drawn) << exponent;
  }
}

// Hit share of an LRU of `capacity` rows over drawn lookups, after it has filled; `stream` lines of
// other traffic pass through it after every sample.
double SimulatedHits(const Model& model, size_t capacity, int stream) {
  Sampler sampler(model);
  std::list<std::int64_t> order;
  std::unordered_map<std::int64_t, std::list<std::int64_t>::iterator> where;
  std::int64_t next_streamed = -1;
  const auto touch = [&](std::int64_t key) {
    const auto found = where.find(key);
    const bool hit = found != where.end();
    if (hit) order.erase(found->second);
    order.push_front(key);
    where[key] = order.begin();
    if (order.size() > capacity) {
      where.erase(order.back());
      order.pop_back();
    }
    return hit;
  };
  int hits = 0, lookups = 0;
  constexpr int kWarm = 150000, kMeasured = 50000;
  for (int i = 0; i < kWarm + kMeasured; ++i) {
    for (size_t t = 0; t < model.tables.size(); ++t) {
      const bool hit = touch(sampler.Draw(t) + static_cast<std::int64_t>(t) * (1LL << 32));
      if (i >= kWarm) hits += hit, ++lookups;
    }
    for (int s = 0; s < stream; ++s) touch(next_streamed--);
  }
  return static_cast<double>(hits) / lookups;
}

TEST(Skew, HitShareMatchesARealLruCache) {
  const Bytes row{64};
  for (const double exponent : {0.6, 1.05, 1.3}) {
    const Model model = Tables({{50000, 1}, {4000, 1}}, exponent);
    for (const size_t capacity : {200u, 2000u, 20000u}) {
      const double predicted =
          LookupSkew(model).HitShare(Bytes{64.0 * static_cast<double>(capacity)}, row, Bytes{0});
      EXPECT_NEAR(predicted, SimulatedHits(model, capacity, 0), 0.015)
          << exponent << ' ' << capacity;
    }
  }
}

TEST(Skew, OtherTrafficThroughTheCacheLowersTheHitShare) {
  const Model model = Tables({{50000, 1}}, 1.05);
  const LookupSkew skew(model);
  const Bytes capacity{64.0 * 5000}, row{64};
  const double alone = skew.HitShare(capacity, row, Bytes{0});
  const double shared = skew.HitShare(capacity, row, Bytes{64.0 * 4});
  EXPECT_LT(shared, alone - 0.02);
  EXPECT_NEAR(shared, SimulatedHits(model, 5000, 4), 0.015);
}

TEST(Skew, GrowsWithBatchCapacityAndExponent) {
  const LookupSkew mild(Tables({{1000000, 1}}, 0.9)), strong(Tables({{1000000, 1}}, 1.2));
  double last_unique = 0, last_hits = -1;
  for (double x = 1; x < 1e6; x *= 4) {
    EXPECT_GT(mild.UniqueRows(x), last_unique);
    EXPECT_LE(mild.UniqueRows(x), x);
    EXPECT_LT(strong.UniqueRows(x), mild.UniqueRows(x) + 1e-9);
    const double hits = mild.HitShare(Bytes{64 * x}, Bytes{64}, Bytes{0});
    EXPECT_GT(hits, last_hits);
    EXPECT_GE(strong.HitShare(Bytes{64 * x}, Bytes{64}, Bytes{0}), hits);
    last_unique = mild.UniqueRows(x);
    last_hits = hits;
  }
  EXPECT_NEAR(mild.HitShare(Bytes{64e6 * 2}, Bytes{64}, Bytes{0}), 1, 1e-9);
}

TEST(Skew, ALargeTableIsBinnedWithoutLosingItsTotals) {
  const LookupSkew skew(Tables({{40000000, 100}}, 1.05));
  EXPECT_NEAR(skew.UniqueRows(1e18), 4e7, 1);
  EXPECT_NEAR(skew.UniqueRows(1e-6) / (100 * 1e-6), 1, 1e-3);
}

}  // namespace
}  // namespace gnomon
