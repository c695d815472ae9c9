#pragma once

/// The few statistics that reports quote, beside Median of gemm/timing.h.

#include <cmath>
#include <vector>

#include "gnomon/gemm/timing.h"

namespace gnomon {

inline double MedianAbsoluteDeviation(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const double median = Median(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - median));
  return Median(std::move(deviations));
}

inline double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Of a sample (n − 1); 0 below two values.
inline double StandardDeviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

}  // namespace gnomon
