#pragma once

/// Collective: the time of one collective between GPUs of a device, inside a node or across nodes.

#include <optional>
#include <string>

#include "gnomon/device/device.h"
#include "gnomon/gemm/prediction.h"

namespace gnomon {

/// What joins nodes: a figure of the cluster, not of the GPU. Never take one cluster's for another.
struct Network {
  std::string name;
  BytesPerSecond nic;        ///< one adapter, one direction, by data sheet
  int nics = 1;              ///< adapters of a node
  Seconds latency;           ///< the smallest collective over the nodes
  Seconds bulk_step;         ///< with whole buffers: each rank of the ring waits for one
  double flagged_share = 0;  ///< of the adapters' rate while small messages carry their own flags
  double bulk_share = 0;     ///< of the adapters' rate with whole buffers
};

struct CollectiveProblem {
  enum class Kind { kAllReduce, kAllGather, kReduceScatter, kAllToAll };
  Kind kind = Kind::kAllReduce;
  int gpus = 1;
  int nodes = 1;
  Bytes bytes;  ///< as nccl-tests count: gathered total, reduced buffer, a rank's send buffer
  bool eager = false;  ///< each rank launches by itself: the kernel also waits for the last rank
  std::optional<Network> network;  ///< needed where nodes > 1
};

std::string_view Name(CollectiveProblem::Kind kind);

/// Bytes that a rank must send to others, whatever the algorithm.
Bytes WireBytes(const CollectiveProblem& problem);

/// Error: fewer than one GPU a node, GPUs that do not share out evenly, no link, several nodes and
/// no network.
Result<Prediction> PredictCollective(const Device& device, const CollectiveProblem& problem);

}  // namespace gnomon
