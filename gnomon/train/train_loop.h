#pragma once

/// The two runs of the engine, over networks that hide LibTorch.

#include "gnomon/train/engine.h"

namespace gnomon::train {

Result<TrainResult> TrainPlan(const Plan& plan, const TrainOptions& options);
Result<CompareResult> ComparePlans(const std::vector<Arm>& arms, const CompareOptions& options);

}  // namespace gnomon::train
