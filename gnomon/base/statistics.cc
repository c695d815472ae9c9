// Order statistics by sorting a copy (the sets here are small), moments by their definitions.
// Entry points: the header's.

#include "gnomon/base/statistics.h"

#include <algorithm>
#include <cmath>

#include "gnomon/base/check.h"

namespace gnomon {

double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

double Quantile(std::vector<double> values, double share) {
  GNOMON_CHECK(!values.empty());
  GNOMON_CHECK(share >= 0 && share <= 1, "share {}", share);
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  if (below + 1 == values.size()) return values.back();
  const double part = position - static_cast<double>(below);
  return values[below] + part * (values[below + 1] - values[below]);
}

double MedianAbsoluteDeviation(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const double median = Median(values);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - median));
  return Median(std::move(deviations));
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double StandardDeviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

}  // namespace gnomon
