// Rows of collectives → CollectiveProblem.
//
// The kind is the first that the text names; a text that calls its own kind inferred or noisy
// stands apart. Bus bandwidth is wire bytes over time, algorithm bandwidth bytes over time
// (nccl-tests). Rows of a profiler's trace are of eager ranks. Rows over several nodes need the
// cluster's network, told by what op or source name; a cluster whose network is not in the table
// stands apart, as one network's figures say nothing of another's. Entry point: MapCollective.

#include <fmt/format.h>

#include <array>

#include "gnomon/cost/collective.h"
#include "gnomon/cost/map_ops.h"
#include "gnomon/cost/op_text.h"

namespace gnomon {
namespace {

using Kind = CollectiveProblem::Kind;

struct KindWords {
  Kind kind;
  std::string_view words;
};
constexpr std::array<KindWords, 4> kKinds = {{
    {Kind::kAllReduce, "all_reduce|allreduce|all-reduce|all reduce"},
    {Kind::kAllGather, "all_gather|allgather|all-gather|all gather"},
    {Kind::kReduceScatter, "reduce_scatter|reducescatter|reduce-scatter|reduce scatter"},
    {Kind::kAllToAll, "alltoall|all_to_all|all-to-all|all to all|alltoallv|all2all"},
}};

// A cluster whose network is known. Adapter rates by data sheet or, where marked, as its own
// two-GPU rows show; latencies and shares fitted on the even-hash rows of the cluster itself.
struct KnownNetwork {
  std::string_view device, op, source;  ///< must stand in the row's cells; empty: any
  Network network;
};

const std::array<KnownNetwork, 5>& KnownNetworks() {
  constexpr double kGb400 = 50e9;      // 400 Gb/s adapters, one a GPU
  constexpr double kMeasured = 5.9e9;  // a ring of one GPU a node, microsoft/vidur a100_dgx
  static const std::array<KnownNetwork, 5> kNetworks = {{
      {"",
       "",
       "prasad-nair-amd/alibaba",
       {"8 x 400 Gb/s (Pollara)", {kGb400}, 8, {45e-6}, {7.4e-6}, 0.327, 0.98}},
      {"MI355X",
       "",
       "hisohara/ai-scripts",
       {"8 x 400 Gb/s (Pollara, ANP)", {kGb400}, 8, {55e-6}, {16e-6}, 0.214, 0.93}},
      {"MI355X",
       "",
       "MI355X-Pollara",
       {"8 x 400 Gb/s (Pollara, OCI)", {kGb400}, 8, {55e-6}, {16e-6}, 0.214, 0.93}},
      {"MI3",
       "",
       "hisohara/ai-scripts",
       {"8 x 400 Gb/s", {kGb400}, 8, {238e-6}, {27e-6}, 0.227, 0.82}},
      {"A100",
       "",
       "microsoft/vidur",
       {"4 adapters of 5.9 GB/s", {kMeasured}, 4, {58e-6}, {36e-6}, 0.133, 0.935}},
  }};
  return kNetworks;
}

std::optional<Network> NetworkOf(const OpsRow& row) {
  for (const KnownNetwork& known : KnownNetworks()) {
    if (HasText(row.Text("device"), known.device) && HasText(row.Text("op"), known.op) &&
        HasText(row.Text("source"), known.source))
      return known.network;
  }
  return std::nullopt;
}

std::optional<Kind> KindOf(std::string_view op) {
  for (const KindWords& kind : kKinds)
    if (HasAnyWord(op, kind.words)) return kind.kind;
  return std::nullopt;
}

constexpr double kGiga = 1e9;

}  // namespace

Mapping MapCollective(const Device& device, const OpsRow& row) {
  const std::string_view op = row.Text("op");
  if (HasText(op, "inferred")) return "its source leaves the kind of collective to be inferred";
  if (HasText(op, "noisy")) return "its source calls the row noisy";
  const auto kind = KindOf(op);
  if (!kind) return "names none of the collectives that are modelled";
  const auto gpus = row.Number("gpus"), nodes = row.Number("nodes"), bytes = row.Number("bytes");
  if (!gpus || *gpus < 1) return "number of GPUs is not stated";
  if (!bytes || *bytes <= 0) return "size is not stated";
  CollectiveProblem problem;
  problem.kind = *kind;
  problem.gpus = static_cast<int>(*gpus);
  problem.nodes = static_cast<int>(nodes.value_or(1));
  problem.bytes = {*bytes};
  problem.eager = HasText(row.Text("source"), "profiling");
  if (problem.gpus < 2) return "one GPU has nobody to talk to";
  std::string name(Name(*kind));
  if (problem.nodes > 1) {
    problem.network = NetworkOf(row);
    if (!problem.network) return "several nodes, and their network is not known";
    name += fmt::format(", {} nodes, {}", problem.nodes, problem.network->name);
  }
  if (problem.eager) name += ", eager ranks";

  MappedOp mapped;
  const auto us = row.Number("us"), gbps = row.Number("gbps");
  if (us && *us > 0) {
    mapped.measured = Microseconds(*us);
  } else if (gbps && *gbps > 0) {
    const std::string_view bandwidth = row.Text("bandwidth_kind");
    if (HasText(bandwidth, "link")) return "the bandwidth of one link, not of a collective";
    const Bytes counted = HasText(bandwidth, "alg") ? problem.bytes : WireBytes(problem);
    mapped.measured = counted / BytesPerSecond{*gbps * kGiga};
  } else {
    return "neither time nor bandwidth is stated";
  }
  const auto prediction = PredictCollective(device, problem);
  if (!prediction) return prediction.error().message;
  mapped.prediction = *prediction;
  mapped.op = std::move(name);
  mapped.shape = fmt::format("{},{},{},{:.0f}", Name(*kind), problem.gpus, problem.nodes, *bytes);
  return mapped;
}

}  // namespace gnomon
