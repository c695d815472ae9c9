#pragma once

/// Attention rows: what a row of measured/ops/attention.csv asks of PredictAttention.

#include "gnomon/cost/map_ops.h"

namespace gnomon {

/// What MapAttention answers.
Mapping MapAttentionRow(const Device& device, const OpsRow& row);

}  // namespace gnomon
