#pragma once

/// The second kernel of a split: adds the parts of every tile in order.

#include <cuda_runtime.h>

#include "gnomon/families/cuda/kernel_arguments.h"

namespace gnomon::cuda {

struct ReduceArguments {
  Schedule schedule;
  Output output;
  Partials partials;
  std::int32_t m = 0;
  std::int32_t tile_m = 0, tile_n = 0, cluster_m = 1, cluster_n = 1;
};

/// Enqueued so that its launch overlaps the end of the kernel before it on the stream.
cudaError_t LaunchReduce(const ReduceArguments& arguments, cudaStream_t stream);

}  // namespace gnomon::cuda
