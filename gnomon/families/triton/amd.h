#pragma once

/// Triton's GEMM on AMD GPUs: the same config space, priced by AMD's model (gemm/cdna_model.h) with
/// the constants of Triton kernels timed there.

#include <vector>

#include "gnomon/families/triton/triton_gemm.h"
#include "gnomon/gemm/cdna_model.h"

namespace gnomon::triton {

bool IsAmd(const Device& device);

/// Appends every config that can run and its time. Error: no matrix rate for the dtype.
Status PriceAmd(const Device& device, const Problem& problem, int units,
                std::vector<Config>& configs, std::vector<double>& seconds);

/// One config. Error: it does not fit the device.
Result<Prediction> PredictAmd(const Device& device, const Problem& problem, int units,
                              const TritonConfig& config);

}  // namespace gnomon::triton
