#pragma once

/// What training and comparing share: the process's set-up, the data, and predictions on held-out
/// samples.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gnomon/base/units.h"
#include "gnomon/train/engine.h"
#include "gnomon/train/network.h"
#include "gnomon/train/samples.h"

namespace gnomon::train {

struct DataOptions {
  std::string path;  ///< Criteo TSV; empty: synthetic
  std::uint64_t seed = 1;
  std::int64_t bad_line_limit = 100;
  std::int64_t held_out = 20000;
};

Result<std::unique_ptr<SampleSource>> OpenSource(const Model& model, const SampleShape& shape,
                                                 const DataOptions& options, int threads);

/// Logits of all samples, in batches of the recipe's size.
std::vector<float> PredictAll(Network& network, const SampleShape& shape, const Samples& samples,
                              std::int64_t batch_size);

/// The allocator keeps what it once got, for every arm alike.
void KeepAllocations();
/// Gives what is free back to the system: between arms, so that none counts another's memory.
void ReleaseAllocations();

/// Largest resident memory since the last reset (or since the process began, where the kernel
/// cannot reset it).
Bytes PeakMemory();
void ResetPeakMemory();

/// Seconds of a steady clock.
double Now();

}  // namespace gnomon::train
