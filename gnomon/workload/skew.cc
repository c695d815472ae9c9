// Unique rows and cache hits of Zipf-distributed embedding lookups.
//
//   rate of row i      λ_i = hot · i^−s / Σ_j j^−s
//   unique rows in B   U(B) = Σ_i 1 − e^(−λ_i·B)
//   cache of C bytes   row·U(T) + stream·T = C gives T;  hits = Σ λ_i·(1 − e^(−λ_i·T)) / Σ λ_i
//
// The last is Che's approximation of LRU (Che, Tung, Wang 2002): a row is present if it was used in
// the last T samples. The stream term is ours: between two uses of a row the rest of the step
// passes through the same cache. Rows are binned by rate (eight bins an octave), so that a table of
// 10^7 rows costs no more than one of 10^3: popular ranks are taken one by one, the tail in
// geometric steps with the integral of i^−s. Left out: correlation between samples (sessions, time
// of day) and between tables.

#include "gnomon/workload/skew.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace gnomon {
namespace {

constexpr double kExactRanks = 64;    // ranks taken one by one
constexpr double kTailStep = 1.05;    // geometric step of the tail beyond them
constexpr double kBinsPerOctave = 8;  // of the rate histogram
constexpr int kBisections = 40;       // halvings of log T: a share to ten digits
constexpr double kShortestWindow = 1e-9,
                 kLongestWindow = 1e18;  // samples: nothing, everything is present

// Σ i^−s over first ≤ i < last, by the midpoint integral; exact enough beyond kExactRanks.
double PowerSum(double first, double last, double s) {
  const double a = first - 1.0 / 2, b = last - 1.0 / 2;
  if (std::abs(s - 1) < 1e-9) return std::log(b / a);  // NOLINT: the integral's special case
  return (std::pow(b, 1 - s) - std::pow(a, 1 - s)) / (1 - s);
}

// Calls add(count, popularity of one row before normalisation) over all ranks of n rows.
template <class Add>
void ForRanks(double n, double s, Add add) {
  double rank = 1;
  for (; rank <= std::min(n, kExactRanks); ++rank) add(1.0, std::pow(rank, -s));
  while (rank <= n) {
    const double last = std::min(std::floor(rank * kTailStep) + 1, n + 1);
    add(last - rank, PowerSum(rank, last, s) / (last - rank));
    rank = last;
  }
}

}  // namespace

LookupSkew::LookupSkew(const Model& model) {
  std::map<int, Bin> histogram;  // rate here: the sum over the bin's rows
  for (const Table& table : model.tables) {
    if (table.hot <= 0) continue;
    const auto rows = static_cast<double>(table.rows);
    double norm = 0;
    ForRanks(rows, model.zipf_exponent, [&](double count, double p) { norm += count * p; });
    ForRanks(rows, model.zipf_exponent, [&](double count, double p) {
      const double rate = table.hot * p / norm;
      Bin& bin = histogram[static_cast<int>(std::floor(std::log2(rate) * kBinsPerOctave))];
      bin.rows += count;
      bin.rate += count * rate;
    });
    lookups_ += table.hot;
    rows_ += rows;
  }
  for (const auto& [key, bin] : histogram) bins_.push_back({bin.rows, bin.rate / bin.rows});
}

double LookupSkew::UniqueRows(double samples) const {
  double unique = 0;
  for (const Bin& bin : bins_) unique -= bin.rows * std::expm1(-bin.rate * samples);
  return unique;
}

double LookupSkew::HitShare(Bytes capacity, Bytes row, Bytes stream) const {
  if (lookups_ <= 0 || capacity.value <= 0) return 0;
  double low = std::log(kShortestWindow), high = std::log(kLongestWindow);
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2, window = std::exp(middle);
    const double used = row.value * UniqueRows(window) + stream.value * window;
    (used > capacity.value ? high : low) = middle;
  }
  const double window = std::exp(low);
  double hits = 0;
  for (const Bin& bin : bins_) hits -= bin.rows * bin.rate * std::expm1(-bin.rate * window);
  return hits / lookups_;
}

}  // namespace gnomon
