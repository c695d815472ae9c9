#pragma once

/// Table-batched embedding (TBE): lookups of many tables in one kernel on a GPU, forward and the
/// backward fused with its optimiser, with tables in the device's memory, the host's, or the host's
/// behind a software cache.

#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"

namespace gnomon {

struct TableBatchedProblem {
  enum class Pass { kForward, kBackward, kForwardBackward };
  enum class Home {
    kDevice,
    kHost,        ///< rows cross the host link at every use (unified memory)
    kHostCached,  ///< weights in a device cache that holds the batch's rows; state with the host
  };
  Pass pass = Pass::kForward;
  Home home = Home::kDevice;
  double lookups = 0;      ///< of all tables together
  double unique_rows = 0;  ///< different rows among them: skew makes it less than `lookups`
  double bags = 0;         ///< output rows; unpooled: as many as lookups
  double dim = 0;
  double weight_bytes = 4;
  double gradient_bytes = 4;
  double state_rows = 0;  ///< optimiser state in rows of `dim`: SGD 0, Adam 2; row-wise Adagrad: 0
};

/// The terms add up to the time. Counts must not be negative, unique_rows at most lookups.
Prediction PredictTableBatched(const Device& device, const TableBatchedProblem& problem);

}  // namespace gnomon
