#pragma once

/// OpCost: the time of one op of a workload on a device, and what it is made of. Private to cost/
/// but for the struct: step.h is the way in.

#include <string>
#include <vector>

#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"
#include "gnomon/workload/skew.h"
#include "gnomon/workload/workload.h"

namespace gnomon {

struct OpCost {
  std::string name;
  Op::Kind kind = Op::Kind::kElementwise;
  Op::Pass pass = Op::Pass::kForward;
  Seconds device;           ///< the device's units at work (CPU: the kernels themselves)
  Seconds host;             ///< the framework: dispatch, autograd, launches
  std::string kernel;       ///< GEMM: config of our family, or "library"
  std::vector<Term> terms;  ///< of the device time; they add up to it
};

/// What every op's cost may look at.
struct CostContext {
  const Model& model;
  const Device& device;
  const Recipe& recipe;
  const LookupSkew& skew;
  int units = 1;              ///< in use
  double unique_rows = 0;     ///< different rows in the batch
  Bytes stream_per_sample{};  ///< different bytes that the rest of the step moves through the
                              ///< caches, a sample
  /// Where a fresh output lands: allocations of a step go round through memory as large as its
  /// footprint.
  const MemoryLevel& OutputLevel() const;
  bool cpu() const { return device.kind == Device::Kind::kCpu; }
};

/// Time to read `read` bytes that ops before have written, and to write a fresh output of `write`
/// bytes.
Seconds PassTime(const CostContext& context, Bytes read, Bytes write, int units);

/// kElementwise, kOptimizer, kInputCopy.
void CostStreaming(const CostContext& context, const Op& op, OpCost& cost);
/// kEmbeddingLookup, kEmbeddingUpdate.
void CostEmbedding(const CostContext& context, const Op& op, OpCost& cost);

/// Adds a term and its time.
void AddTerm(OpCost& cost, std::string name, Seconds time, std::string why);

}  // namespace gnomon
