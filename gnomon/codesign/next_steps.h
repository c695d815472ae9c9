#pragma once

/// NextSteps: what a plan leaves on the table, by its largest remaining costs. Private to
/// codesign/.

#include <vector>

#include "gnomon/codesign/search.h"

namespace gnomon {

/// Steps that could bring at least one percent, largest first; gain is the most each could bring.
std::vector<NextStep> NextSteps(const Model& model, const Device& device,
                                const ArmPrediction& plan);

}  // namespace gnomon
