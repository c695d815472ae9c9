#pragma once

/// Checkpoints: a folder with one whole file, replaced by the next whole one.

#include <cstdint>
#include <string>
#include <vector>

#include "gnomon/codesign/plan.h"
#include "gnomon/train/network.h"
#include "gnomon/train/table_storage.h"

namespace gnomon::train {

struct TrainState {
  std::int64_t step = 0;         ///< steps done
  std::int64_t next_sample = 0;  ///< position in the training stream
  std::uint64_t seed = 0;
  std::vector<double> losses;
};

/// What a checkpoint belongs to: another model, recipe, seed, data or table cap cannot continue it.
std::string CheckpointIdentity(const Plan& plan, const SampleShape& shape, std::uint64_t seed,
                               const std::string& data);

/// Writes step_N.ckpt aside, syncs, renames, then removes older ones. Fault: no space, no
/// permission; the older checkpoint is whole then.
Status WriteCheckpoint(const std::string& folder, const std::string& identity,
                       const TrainState& state, const TableStorage& tables,
                       const std::vector<NamedBuffer>& buffers);

/// The newest checkpoint of the folder, into `tables` (after Reset with the same seed) and
/// `buffers`. Error: none there, truncated or corrupt, or of another run (says what differs);
/// memory is untouched then.
Result<TrainState> ReadCheckpoint(const std::string& folder, const std::string& identity,
                                  TableStorage& tables, const std::vector<NamedBuffer>& buffers);

}  // namespace gnomon::train
