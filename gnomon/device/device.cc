// Small questions a Device answers about itself: which rate a number format runs at, what that
// gives under load, and where a memory is. A matrix unit is preferred to the vector unit for the
// same format.

#include "gnomon/device/device.h"

#include <algorithm>

namespace gnomon {

const Rate* Device::FindRate(DType dtype) const {
  for (const std::vector<Rate>* rates : {&matrix, &vector}) {
    const auto rate = std::ranges::find(*rates, dtype, &Rate::dtype);
    if (rate != rates->end()) return &*rate;
  }
  return nullptr;
}

FlopsPerSecond Device::SustainedPeak(DType dtype) const {
  const Rate* rate = FindRate(dtype);
  if (rate == nullptr) return {0};
  return {units * rate->flops_per_unit_clock * sustained_clock.value};
}

const MemoryLevel* Device::FindMemory(std::string_view level) const {
  const auto found = std::ranges::find(memory, level, &MemoryLevel::name);
  return found == memory.end() ? nullptr : &*found;
}

}  // namespace gnomon
