// Quality of click predictions: normalised entropy and the area under the ROC curve.
//
//   log loss = mean of log(1 + e^z) - y·z           (the stable form of cross entropy on a logit z)
//   NE       = log loss / H(p), H(p) = -p·ln p - (1-p)·ln(1-p), p = share of positive labels
//   AUC      = (Σ ranks of positives - P(P+1)/2) / (P·N)     (Mann-Whitney; ties share their mean
//   rank)

#include "gnomon/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "gnomon/base/check.h"

namespace gnomon::train {

double LogLoss(std::span<const float> logits, std::span<const float> labels) {
  GNOMON_CHECK(logits.size() == labels.size() && !logits.empty(), "{} logits, {} labels",
               logits.size(), labels.size());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double z = logits[i];
    sum += std::max(z, 0.0) - z * labels[i] + std::log1p(std::exp(-std::abs(z)));
  }
  return sum / static_cast<double>(logits.size());
}

double NormalizedEntropy(std::span<const float> logits, std::span<const float> labels) {
  double positives = 0;
  for (float label : labels) positives += label;
  const double p = positives / static_cast<double>(labels.size());
  if (!(p > 0 && p < 1)) return std::numeric_limits<double>::quiet_NaN();
  return LogLoss(logits, labels) / (-p * std::log(p) - (1 - p) * std::log1p(-p));
}

double AreaUnderCurve(std::span<const float> logits, std::span<const float> labels) {
  GNOMON_CHECK(logits.size() == labels.size());
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return logits[a] < logits[b]; });
  double positives = 0, rank_sum = 0;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && logits[order[end]] == logits[order[begin]]) ++end;
    const double mean_rank = (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
    for (std::size_t i = begin; i < end; ++i) {
      if (labels[order[i]] > 0.5f) {
        rank_sum += mean_rank;
        ++positives;
      }
    }
    begin = end;
  }
  const double negatives = static_cast<double>(order.size()) - positives;
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

}  // namespace gnomon::train
