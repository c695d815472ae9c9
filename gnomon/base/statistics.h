#pragma once

/// The few statistics that measurements and reports quote.

#include <vector>

namespace gnomon {

/// The middle value; of an even number the mean of the two. Empty is a broken invariant.
double Median(std::vector<double> values);

/// Value below which `share` of the sorted values lie (linear between neighbours).
double Quantile(std::vector<double> values, double share);

/// Median of the distances from the median; 0 for no values.
double MedianAbsoluteDeviation(const std::vector<double>& values);

double Mean(const std::vector<double>& values);  ///< 0 for no values

/// Of a sample (divided by n − 1); 0 below two values.
double StandardDeviation(const std::vector<double>& values);

}  // namespace gnomon
