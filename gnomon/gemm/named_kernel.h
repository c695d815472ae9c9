#pragma once

/// A vendor's kernel, known by its name, as the model sees it: can it do the problem, and how long
/// would it take?

#include <string>

#include "gnomon/device/device.h"
#include "gnomon/gemm/kernel_name.h"
#include "gnomon/gemm/prediction.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// Why the kernel cannot do the problem on the device: wrong vendor, chip, dtype or layout, a side
/// that is no multiple of what it needs. Empty: nothing in its name speaks against it.
std::string WhyItCannot(const Device& device, const Problem& problem, const KernelName& kernel);

struct NamedPrediction {
  Prediction prediction;
  int split_k = 1;       ///< the one predicted: where the name leaves it open, the fastest
  bool generic = false;  ///< the name says too little: predicted as its library's average kernel
  std::string note;      ///< what was assumed, in words; empty: nothing
};

/// Time of the kernel on `units` units (0: all). It must be able to do the problem.
NamedPrediction PredictNamed(const Device& device, const Problem& problem, const KernelName& kernel,
                             int units = 0);

}  // namespace gnomon
