#pragma once

/// A training run as text and JSON: `gnomon train`.

#include <string>

#include "gnomon/codesign/plan.h"
#include "gnomon/report/json.h"
#include "gnomon/train/engine.h"

namespace gnomon {

std::string TrainText(const Plan& plan, const train::TrainResult& result);
/// DESIGN.md "train": {steps, step_us, predicted_step_us, samples_per_s, normalized_entropy, auc,
/// peak_memory_bytes, losses[]}.
Json TrainJson(const Plan& plan, const train::TrainResult& result);

}  // namespace gnomon
