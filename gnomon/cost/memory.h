#pragma once

/// Memory: what a training step keeps on the device, by what for.

#include "gnomon/device/device.h"
#include "gnomon/workload/workload.h"

namespace gnomon {

struct MemoryCost {
  Bytes tables;
  Bytes table_state;     ///< row-wise Adagrad: one fp32 a row
  Bytes table_gradient;  ///< dense: whole tables; sparse: one row a lookup and the coalesced rows
  Bytes dense;           ///< weights, gradients, optimiser state, 16-bit copies
  Bytes activations;     ///< kept for the backward, inputs included
  Bytes workspace;       ///< the largest temporary, and the allocator's slack
  Bytes total() const {
    return tables + table_state + table_gradient + dense + activations + workspace;
  }
};

/// `unique_rows`: different rows that one batch looks up.
MemoryCost CostMemory(const Model& model, const Recipe& recipe, const Workload& workload,
                      double unique_rows);

/// Error: the total is over the capacity of the device's main memory; says what is needed and what
/// there is.
Status CheckCapacity(const MemoryCost& memory, const Device& device);

}  // namespace gnomon
