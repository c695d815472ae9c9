#pragma once

/// Step: the time of one training step of a model under a recipe on a device, op by op, and its
/// memory.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gnomon/cost/memory.h"
#include "gnomon/cost/op_cost.h"

namespace gnomon {

struct StepCost {
  Seconds time;
  std::vector<OpCost> ops;
  MemoryCost memory;
  double samples_per_second = 0;
  Seconds device_total, host_total;  ///< CPU: time is their sum; GPU: about the longer one
  std::vector<Term> terms;           ///< by kind of work; they add up to the time
};

/// Costs many recipes of one model on one device; remembers GEMM times between them.
class StepModel {
 public:
  StepModel(const Model& model, const Device& device);

  /// Error: a recipe the model cannot take, or a GEMM that no kernel can do. Memory over capacity
  /// is no error here: CheckCapacity says so.
  Result<StepCost> Cost(const Recipe& recipe);

  const Model& model() const { return model_; }
  const Device& device() const { return device_; }

 private:
  struct GemmTime {
    Seconds time;
    std::string kernel;
    std::vector<Term> terms;
  };
  using GemmKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int, int,
                             int, int, bool>;
  Result<GemmTime> Gemm(const CostContext& context, const Op& op);

  Model model_;
  Device device_;
  LookupSkew skew_;
  std::map<GemmKey, GemmTime> gemms_;
};

/// One recipe, once.
Result<StepCost> CostStep(const Model& model, const Device& device, const Recipe& recipe);

}  // namespace gnomon
