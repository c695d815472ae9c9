#pragma once

/// Adagrad over all dense parameters in one pass, which also refreshes the bf16 copies the GEMMs
/// read.

#include <cstdint>
#include <span>

#include "gnomon/families/cpu/embedding_bag.h"

namespace gnomon::cpu {

struct DenseParameter {
  float* weight = nullptr;
  const float* grad = nullptr;
  float* state = nullptr;              ///< running sum of squares
  std::uint16_t* bf16_copy = nullptr;  ///< may be null
  std::int64_t size = 0;
};

/// state += g²; weight −= lr·g / (√state + ε), element by element.
void DenseAdagrad(std::span<const DenseParameter> parameters, const AdagradParams& params,
                  int threads);

}  // namespace gnomon::cpu
