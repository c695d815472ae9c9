#pragma once

/// Codesign: the best recipe for a target against what comes over unchanged from the source.

#include <optional>
#include <string>
#include <vector>

#include "gnomon/codesign/levers.h"
#include "gnomon/codesign/plan.h"
#include "gnomon/cost/step.h"

namespace gnomon {

struct CodesignOptions {
  std::vector<std::int64_t> batches;  ///< to choose from; empty: powers of two from 128 to 262144
  std::optional<std::int64_t> batch;  ///< fixed on both devices
  std::optional<DType> dtype;         ///< fixed on the target's plan
  std::optional<EmbeddingUpdate> embedding_update;  ///< the same
  std::optional<std::int64_t> pad_to;               ///< the same
  int units = 0;                                    ///< of the target in use; 0: all
};

/// A recipe on a device with its predicted cost.
struct ArmPrediction {
  Recipe recipe;
  StepCost cost;
  double samples_factor = 1;       ///< samples to quality over those of a vanishing batch
  std::optional<Error> refused;    ///< over the device's memory
  std::vector<std::string> notes;  ///< what the numbers cannot say ("tf32 is a mode of fp32 here")
  /// Samples that count towards quality, a second: what the search maximises.
  double QualityRate() const { return cost.samples_per_second / samples_factor; }
};

/// One lever of the plan, from the direct port's setting to the plan's.
struct LeverGain {
  std::string name, from, to, risk, source;
  double gain = 1;             ///< samples/s with this lever alone, over the direct port's
  double gain_to_quality = 1;  ///< the same in samples that count towards quality
  double cumulative = 1;  ///< samples/s with this lever and those before it, over the direct port's
  double cumulative_to_quality = 1;
};

/// What would be tried next on the plan, and the most it could bring.
struct NextStep {
  std::string what, why;
  double gain = 1;  ///< samples/s over the plan's
};

struct CodesignResult {
  std::string model, source, target;  ///< ids
  ArmPrediction on_source;            ///< the best stock recipe on the source device, there
  ArmPrediction direct_port;          ///< the same recipe on the target
  ArmPrediction
      native_dtype;  ///< the direct port with only its dtype made the target's fastest native one
  ArmPrediction plan;
  std::vector<LeverGain> levers;            ///< that differ, in the order applied
  std::vector<NextStep> next;               ///< largest gain first
  double speedup_predicted = 1;             ///< samples/s, plan over direct port
  double speedup_to_quality_predicted = 1;  ///< the same in time to a fixed quality
  double speedup_over_native_dtype = 1;     ///< samples/s, plan over the native-dtype port
  int recipes_costed = 0;
};

/// Error: no recipe fits the memory of the source or the target (says the smallest need), or a
/// fixed field that a device does not offer. Pure: the same input gives the same result.
Result<CodesignResult> Codesign(const Model& model, const Device& source, const Device& target,
                                const CodesignOptions& options);

/// An arm as a plan that `train` can run: with the kernel of every GEMM where they are ours.
Plan MakePlan(const Model& model, const std::string& model_path, const Device& device,
              const ArmPrediction& arm);

}  // namespace gnomon
