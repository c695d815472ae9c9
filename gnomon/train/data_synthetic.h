#pragma once

/// Synthetic samples with a hidden teacher, so that learning is visible without a download.

#include <cstdint>
#include <memory>

#include "gnomon/train/samples.h"

namespace gnomon::train {

/// Zipf-distributed rows, count-like dense features, labels from the teacher that `seed` draws.
std::unique_ptr<SampleSource> MakeSyntheticSource(const SampleShape& shape, double zipf_exponent,
                                                  std::uint64_t seed, int threads);

}  // namespace gnomon::train
