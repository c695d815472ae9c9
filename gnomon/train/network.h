#pragma once

/// Network: a plan's model ready to train, the way the plan's recipe says. No LibTorch type is seen
/// here.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gnomon/codesign/plan.h"
#include "gnomon/train/samples.h"
#include "gnomon/train/table_storage.h"

namespace gnomon::train {

/// Memory that a checkpoint keeps.
struct NamedBuffer {
  std::string name;
  std::span<float> values;
};

class Network {
 public:
  virtual ~Network() = default;

  virtual BatchLayout layout() const = 0;
  /// Forward, backward and optimiser on one batch of the recipe's size; the mean loss before the
  /// update.
  virtual double Step(const Batch& batch) = 0;
  /// Logits of one batch of the recipe's size.
  virtual void Predict(const Batch& batch, std::span<float> logits) = 0;
  /// Dense weights, biases and their optimiser state.
  virtual std::vector<NamedBuffer> Buffers() = 0;
  /// After the buffers were written from outside: what is derived from them follows.
  virtual void Refresh() = 0;
  /// Makes this network's thread count the process's; before steps if another network ran in
  /// between.
  virtual void Activate() = 0;
};

/// `tables` must outlive the network; several networks may share them in turn. Error: a recipe the
/// model cannot take, a kernel string the family does not know.
Result<std::unique_ptr<Network>> BuildNetwork(const Plan& plan, const SampleShape& shape,
                                              TableStorage& tables, std::uint64_t seed);

/// The recipe's threads, or all cores this process may use.
int ThreadsOf(const Recipe& recipe);

}  // namespace gnomon::train
