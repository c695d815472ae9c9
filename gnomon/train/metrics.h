#pragma once

/// Quality of click predictions.

#include <span>

namespace gnomon::train {

/// Mean log loss of sigmoid(logits), in nats.
double LogLoss(std::span<const float> logits, std::span<const float> labels);

/// Log loss over the entropy of the labels' base rate (He et al. 2014): 1 means nothing learned.
/// NaN where the labels are all alike, since their entropy is 0.
double NormalizedEntropy(std::span<const float> logits, std::span<const float> labels);

/// Area under the ROC curve by the rank sum; equal scores share their mean rank. NaN as above.
double AreaUnderCurve(std::span<const float> logits, std::span<const float> labels);

}  // namespace gnomon::train
