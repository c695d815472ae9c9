#pragma once

/// Levers: the changes of a recipe that codesign chooses from, and which of them a device's
/// software offers.

#include <functional>
#include <string>
#include <vector>

#include "gnomon/device/device.h"
#include "gnomon/workload/model.h"
#include "gnomon/workload/recipe.h"

namespace gnomon {

/// One field of the recipe.
struct Lever {
  std::string name;    ///< "batch", "embedding update"
  std::string risk;    ///< what can go wrong when it is pulled; empty: the same arithmetic
  std::string source;  ///< why it is known to work: a published figure or the kernel that does it
  std::function<void(const Recipe& from, Recipe& to)>
      copy;                                        ///< sets this field of `to` as `from` has it
  std::function<std::string(const Recipe&)> show;  ///< the field as text
  std::vector<Recipe> choices;  ///< recipes of which only this field counts; the first is stock
};

/// What may be run on a device.
enum class Stack {
  kStock,   ///< an eager framework with its vendor's library
  kGnomon,  ///< the same, and our kernels where a family exists (now: CPUs)
};

struct LeverOptions {
  std::vector<std::int64_t> batches;  ///< empty: powers of two from 128 to 262144
};

/// Every lever of the stack on the device, in a fixed order.
std::vector<Lever> Levers(const Device& device, Stack stack, const LeverOptions& options);

}  // namespace gnomon
