#pragma once

/// A library of an AMD GPU as a black box: the time of a problem in a kernel family, given its tile
/// or not (rows of measured files; a baseline to beat).

#include <string_view>

#include "gnomon/gemm/cdna_model.h"

namespace gnomon {

/// What a measurement says of the kernel; 0: not stated. And of the state it started in.
struct StatedTile {
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0, split_k = 0;
  bool dirty_cache = false;  ///< the bench wrote a buffer as large as the caches before each run
};

struct LibraryPrediction {
  Prediction prediction;
  CdnaKernel kernel;     ///< the one predicted: where nothing is stated, the fastest of the menu
  bool generic = false;  ///< the family is not known: the generic entry stood in
};

/// Error: no AMD GPU, or no matrix instruction for the dtype.
Result<LibraryPrediction> PredictCdnaFamily(const Device& device, const Problem& problem,
                                            std::string_view family, const StatedTile& stated = {},
                                            int units = 0);

}  // namespace gnomon
