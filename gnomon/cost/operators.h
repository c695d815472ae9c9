#pragma once

/// Operators: the time of one memory-bound operator on a GPU: norms, softmax, elementwise passes,
/// copies, and the moves between jagged and dense that recommendation models are full of.

#include <cstdint>
#include <string_view>

#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"

namespace gnomon {

struct OperatorProblem {
  enum class Kind {
    kElementwise,  ///< add, SiLU, GELU, a copy: every operand streamed once
    kBroadcast,    ///< elementwise with an operand that repeats along an axis
    kPermute,      ///< a copy that changes the order of the axes
    kSoftmax,      ///< over rows of `width`
    kLayerNorm,
    kRmsNorm,
    kJaggedToDense,  ///< rows moved, padding written
    kDenseToJagged,
    kSegmentReduce,  ///< rows of segments summed into `rows` results
    kIndexSelect,    ///< rows fetched from random places
    kIndexAdd,       ///< its backward: rows added at random places
    kStream,         ///< a reduction over what is read, in two kernels: split-K decoding, a dot
  };
  enum class Pass { kForward, kBackward };
  enum class Caller { kGraph, kEager };  ///< eager: the host's operator cost is part of the time

  Kind kind = Kind::kElementwise;
  Pass pass = Pass::kForward;
  Caller caller = Caller::kGraph;
  std::int64_t rows = 1, width = 1;  ///< of the output; elementwise: their product counts
  double element_bytes = 4;
  double read_tensors = 1, written_tensors = 1;  ///< elementwise: passes over rows × width values
  double flops_per_element = 0;  ///< elementwise: vector operations, an FMA counts 2
  double kernels = 1;            ///< elementwise: written as so many kernels
  double input_rows = 0;   ///< jagged moves, segments: rows that hold data; 0: as many as `rows`
  double unique_rows = 0;  ///< index select, index add: different rows touched; 0: all differ
};

std::string_view Name(OperatorProblem::Kind kind);

/// The terms add up to the time. GPUs only; sides must be positive (0 rows cost a launch).
Prediction PredictOperator(const Device& device, const OperatorProblem& problem);

}  // namespace gnomon
