// Synthetic click data: sample j is a pure function of (seed, j), so any batch size, thread count
// or resume sees the same samples.
//
//   row of a table:  rank = ((N+1)^(1-s) - 1)·u + 1)^(1/(1-s)), the continuous power law of
//   exponent s cut
//                    at N; ranks are then scattered over the rows, as hashing does to real
//                    categories
//   dense feature:   log(1 + 4·Exp(1)), shaped like a log-transformed count
//   label:           Bernoulli(sigmoid(bias + Σ row effects + Σ products of pairs + dense weights ·
//   x))
//
// The teacher's effects are hashes of (table, row): nothing is stored, so tables of any size cost
// nothing. Shares of the logit's variance (kTableVariance and so on) leave a Bayes-optimal
// normalised entropy near 0.85; the bias gives the base rate under the probit approximation of a
// normal logit (MacKay 1992). Not modelled: drift over time, correlated categories.

#include "gnomon/train/data_synthetic.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "gnomon/train/counter_random.h"

namespace gnomon::train {
namespace {

constexpr double kClickRate = 0.25;  // Criteo Kaggle's base rate is 0.256
constexpr double kTableVariance = 0.9, kPairVariance = 0.2, kDenseVariance = 0.4;
constexpr std::size_t kPairs = 4;
constexpr double kCountScale = 4;
// Mean and standard deviation of log(1 + 4·Exp(1)): e^(1/4)·E1(1/4), and by quadrature.
constexpr double kDenseMean = 1.3409, kDenseDeviation = 0.7294;
// Streams of random bits that must not meet.
constexpr std::uint64_t kTrainStream = 1, kHeldOutStream = 2, kEffectStream = 3, kPairStream = 4,
                        kWeightStream = 5, kScatterStream = 6;

struct TableDraw {
  std::int64_t rows = 0;
  double span = 0, inverse = 1;  // rank = (1 + span·u)^inverse
  bool logarithmic = false;      // exponent 1: rank = e^(span·u)
  std::uint64_t multiplier = 1, shift = 0;
  double amplitude = 0;

  std::int64_t Row(double u) const {
    const double x = logarithmic ? std::exp(span * u) : std::pow(1 + span * u, inverse);
    const auto rank = std::min<std::uint64_t>(static_cast<std::uint64_t>(x - 1),
                                              static_cast<std::uint64_t>(rows - 1));
    return static_cast<std::int64_t>((rank * multiplier + shift) %
                                     static_cast<std::uint64_t>(rows));
  }
};

TableDraw MakeTableDraw(std::int64_t rows, double exponent, std::uint64_t seed,
                        std::uint64_t table) {
  TableDraw draw;
  draw.rows = rows;
  const double end = static_cast<double>(rows) + 1;
  draw.logarithmic = std::abs(exponent - 1) < 1e-6;
  draw.span = draw.logarithmic ? std::log(end) : std::pow(end, 1 - exponent) - 1;
  draw.inverse = draw.logarithmic ? 1 : 1 / (1 - exponent);
  // A multiplier without a common factor with the row count permutes the rows.
  const auto n = static_cast<std::uint64_t>(rows);
  draw.multiplier = RandomBits(seed, kScatterStream, 2 * table) % n;
  while (std::gcd(draw.multiplier, n) != 1) draw.multiplier = (draw.multiplier + 1) % n;
  draw.shift = RandomBits(seed, kScatterStream, 2 * table + 1) % n;
  return draw;
}

// Uniform with variance 1.
double Effect(std::uint64_t seed, std::uint64_t stream, std::uint64_t table, std::int64_t row) {
  const std::uint64_t bits =
      RandomBits(seed ^ (stream << 56), table, static_cast<std::uint64_t>(row));
  return (2 * UnitDouble(bits) - 1) * std::numbers::sqrt3;
}

class SyntheticSource final : public SampleSource {
 public:
  SyntheticSource(const SampleShape& shape, double exponent, std::uint64_t seed, int threads)
      : shape_(shape), seed_(seed), threads_(std::max(1, threads)) {
    const auto tables = shape.table_rows.size();
    for (std::size_t t = 0; t < tables; ++t) {
      draws_.push_back(MakeTableDraw(shape.table_rows[t], exponent, seed, t));
      draws_[t].amplitude = std::sqrt(kTableVariance / static_cast<double>(tables));
    }
    ChoosePairs();
    for (std::int64_t d = 0; d < shape.dense_features; ++d) {
      weights_.push_back(Effect(seed, kWeightStream, 0, d) *
                         std::sqrt(kDenseVariance / static_cast<double>(shape.dense_features)) /
                         kDenseDeviation);
    }
    const double variance = kTableVariance + (pairs_.empty() ? 0 : kPairVariance) + kDenseVariance;
    bias_ =
        std::log(kClickRate / (1 - kClickRate)) * std::sqrt(1 + std::numbers::pi * variance / 8);
  }

  Status Read(std::int64_t first, std::int64_t count, Samples& samples) override {
    Fill(kTrainStream, first, count, samples);
    return Done{};
  }
  Status ReadHeldOut(std::int64_t count, Samples& samples) override {
    Fill(kHeldOutStream, 0, count, samples);
    return Done{};
  }

 private:
  // Pairs among the tables with few rows: there a dot product can learn them within a short run.
  void ChoosePairs() {
    std::vector<std::size_t> order(draws_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return draws_[a].rows < draws_[b].rows; });
    for (std::size_t i = 0; i + 1 < order.size() && pairs_.size() < kPairs; i += 2)
      pairs_.push_back({order[i], order[i + 1]});
  }

  void Fill(std::uint64_t stream, std::int64_t first, std::int64_t count, Samples& samples) const {
    samples.count = count;
    samples.dense.resize(static_cast<std::size_t>(count * shape_.dense_features));
    samples.indices.resize(static_cast<std::size_t>(count * shape_.lookups()));
    samples.labels.resize(static_cast<std::size_t>(count));
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t i = 0; i < count; ++i) FillOne(stream, first + i, i, samples);
  }

  void FillOne(std::uint64_t stream, std::int64_t number, std::int64_t at, Samples& samples) const {
    RandomStream random(seed_ ^ (stream << 56), static_cast<std::uint64_t>(number));
    float* dense = samples.dense.data() + at * shape_.dense_features;
    std::int32_t* index = samples.indices.data() + at * shape_.lookups();
    double logit = bias_;
    for (std::size_t d = 0; d < weights_.size(); ++d) {
      const double count = -kCountScale * std::log1p(-random.Unit());
      const double x = std::log1p(count);
      dense[d] = static_cast<float>(x);
      logit += weights_[d] * (x - kDenseMean);
    }
    const std::int32_t* begin = index;
    for (std::size_t t = 0; t < draws_.size(); ++t) {
      const std::int64_t hot = shape_.hot[t];
      const double share = draws_[t].amplitude / std::sqrt(static_cast<double>(hot));
      for (std::int64_t h = 0; h < hot; ++h) {
        const std::int64_t row = draws_[t].Row(random.Unit());
        *index++ = static_cast<std::int32_t>(row);
        logit += share * Effect(seed_, kEffectStream, t, row);
      }
    }
    logit += PairTerm(begin);
    const double click = 1 / (1 + std::exp(-logit));
    samples.labels[static_cast<std::size_t>(at)] = random.Unit() < click ? 1.0f : 0.0f;
  }

  // The first lookup of each table takes part in its pair.
  double PairTerm(const std::int32_t* sample) const {
    double sum = 0;
    for (const auto& [a, b] : pairs_) {
      sum += Effect(seed_, kPairStream, a, sample[Column(a)]) *
             Effect(seed_, kPairStream, b, sample[Column(b)]);
    }
    return sum *
           std::sqrt(kPairVariance / static_cast<double>(std::max<std::size_t>(1, pairs_.size())));
  }
  std::int64_t Column(std::size_t table) const {
    return std::accumulate(shape_.hot.begin(),
                           shape_.hot.begin() + static_cast<std::ptrdiff_t>(table),
                           std::int64_t{0});
  }

  SampleShape shape_;
  std::uint64_t seed_;
  int threads_;
  std::vector<TableDraw> draws_;
  struct Pair {
    std::size_t a, b;
  };
  std::vector<Pair> pairs_;
  std::vector<double> weights_;
  double bias_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> MakeSyntheticSource(const SampleShape& shape, double zipf_exponent,
                                                  std::uint64_t seed, int threads) {
  return std::make_unique<SyntheticSource>(shape, zipf_exponent, seed, threads);
}

}  // namespace gnomon::train
