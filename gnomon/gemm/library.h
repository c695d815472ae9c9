#pragma once

/// The vendor's GEMM library (cuBLAS, hipBLASLt, rocBLAS, OpenBLAS, BLIS, oneDNN) as a model: what
/// the framework runs when nothing picks a kernel. Used for the source device and for the stock
/// baseline.

#include <string_view>

#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// Time of one library call on `units` units (0: all). A dtype that is not native runs at the fp32
/// rate. Device.framework.gemm_efficiency sets the share of peak on large squares where it was
/// measured.
Prediction PredictLibrary(const Device& device, const Problem& problem, int units);

/// "library", "cublas", "hipblaslt", "openblas", …: families of measured files that this model
/// speaks for.
bool IsVendorLibrary(std::string_view family);

}  // namespace gnomon
