// Time of one collective: the quicker of the two protocols that NCCL and RCCL have.
//
//   flagged  latency + (steps − 1) · hop + moved / (flagged share · reached)    small: data with
//   flags bulk     bulk start                  + moved / reached                      large: whole
//   buffers moved    wire + own copy, wire = 2·bytes·(n−1)/n for an all-reduce, bytes·(n−1)/n for
//   the others steps    ring: 2(n−1) for an all-reduce, n−1 for a gather or scatter        (NVLink
//   switch)
//            1 exchange with all peers at once                                  (XGMI mesh,
//            all-to-all)
//
// Latency, hop, bulk start and the rate that large collectives reach are facts of the device's link
// as measured with its vendor's library. A gather or scatter also copies the rank's own part.
// Messages to single peers (all-to-all) go over one channel while they are small, and over a
// limited number of channels a peer at most. On a mesh a rank reaches each peer over one link:
// fewer GPUs use fewer links. Several nodes: the ring passes the adapters, which bound it, and its
// whole buffers cost a step a rank; the figures are the cluster's (Network). An eager collective
// waits for the last rank. Left out: in-switch reduction (NVLS), trees, the library's choices where
// they are not the quickest, contention with kernels, placement of ranks, more than one collective
// at a time.

#include "gnomon/cost/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

// NCCL's were fitted on the even-hash rows of public nccl-tests timings, RCCL's share, kOneCrossing
// and kRankSkew were read off all rows (docs/model.md, Collectives). A flag beside the data costs
// room and a poll a line.
constexpr double kSwitchFlaggedShare = 0.36;  // NCCL 2.23 to 2.29, NVLink
constexpr double kMeshFlaggedShare = 0.69;    // RCCL, XGMI
// What a rank's own part costs beside a part that comes over the links: it is copied by the same
// thread blocks, but from its own memory.
constexpr double kOwnCopy = 0.26;
// A small message to one peer goes over one channel (one thread block) of the 32 that a link's full
// rate takes.
constexpr double kChannels = 32;
// Most that NCCL moves to one peer: the channels a peer may use, each one block's copy rate
// (all-to-all between two GPUs ends at 300 GB/s on H100 and 320 GB/s on B200 alike).
constexpr BytesPerSecond kPeerRate{325e9};
// Send and receive: whole buffers start in 0.58 of the time of a ring, as no reduction waits for
// them, and reach 0.82 of its rate, as every peer has a staging buffer of its own.
constexpr double kPeerBulkShare = 0.58, kPeerShare = 0.82;
// An exchange between peers crosses the network once, an all-reduce twice (reduce, then gather);
// the rest of its smallest time is launch and completion, the same for both.
constexpr double kOneCrossing = 0.8;
// Links of which no collective was measured: NCCL's bulk start is 3.7 times its latency on A100,
// H100 and B200, and its rings reach 0.65, 0.75 and 0.67 of the data sheet's rate.
constexpr double kBulkOverLatency = 3.7, kReachedShare = 0.68;
// How far the last rank's launch lies behind the median rank's in an eager process group: small
// all-reduces of an inference server take 30 to 65 us in a profiler's trace on A100 and H100,
// 10 to 25 us in nccl-tests (microsoft/vidur profiles).
constexpr Seconds kRankSkew{42.7e-6};
// Reported by `cost evaluate` on rows that were not fitted: medians of 4 to 12% by device and kind.
constexpr double kNodeError = 0.10, kNetworkError = 0.20;

double Steps(const CollectiveProblem& problem) {
  const double peers = problem.gpus - 1;
  return problem.kind == CollectiveProblem::Kind::kAllReduce ? 2 * peers : peers;
}

struct Line {
  Seconds start;
  BytesPerSecond rate;
  std::string start_why, protocol;
  Seconds Time(Bytes moved) const { return start + moved / rate; }
};

bool OverPeers(const CollectiveProblem& problem) {
  return problem.kind == CollectiveProblem::Kind::kAllToAll;
}

Seconds BulkStart(const Link& link, const CollectiveProblem& problem) {
  const Seconds ring = link.bulk.value > 0 ? link.bulk : link.latency * kBulkOverLatency;
  return std::max(link.latency, ring * (OverPeers(problem) ? kPeerBulkShare : 1));
}

BytesPerSecond Reached(const Link& link, const CollectiveProblem& problem) {
  const BytesPerSecond ring =
      link.reached.value > 0 ? link.reached : link.bandwidth * kReachedShare;
  return ring * (OverPeers(problem) ? kPeerShare : 1);
}

std::array<Line, 2> MeshLines(const Link& link, const CollectiveProblem& problem) {
  const double used = std::min(1.0, static_cast<double>(problem.gpus - 1) / link.count);
  const BytesPerSecond links = Reached(link, problem) * used;
  return {Line{link.latency, links * kMeshFlaggedShare, "one exchange with all peers", "flagged"},
          Line{BulkStart(link, problem), links, "whole buffers to all peers", "bulk"}};
}

std::array<Line, 2> RingLines(const Link& link, const CollectiveProblem& problem) {
  const double further = Steps(problem) - 1;
  const BytesPerSecond links = Reached(link, problem);
  return {Line{link.latency + further * link.hop, links * kSwitchFlaggedShare,
               fmt::format("{:.0f} steps of a ring", further + 1), "flagged"},
          Line{BulkStart(link, problem), links, "whole buffers round a ring", "bulk"}};
}

std::array<Line, 2> PeerLines(const Link& link, const CollectiveProblem& problem) {
  const BytesPerSecond peers = kPeerRate * static_cast<double>(problem.gpus - 1);
  return {
      Line{link.latency + link.hop, link.bandwidth / kChannels, "one channel a peer", "flagged"},
      Line{BulkStart(link, problem), std::min(Reached(link, problem), peers),
           "whole buffers to peers", "bulk"}};
}

std::array<Line, 2> NodeLines(const Link& link, const CollectiveProblem& problem) {
  if (link.name == "xgmi") return MeshLines(link, problem);
  return OverPeers(problem) ? PeerLines(link, problem) : RingLines(link, problem);
}

// The rate at which a rank's wire bytes pass the adapters of its node. A ring of an all-reduce
// leaves a node once for all its ranks; an all-to-all sends each rank's share for other nodes.
BytesPerSecond AdapterRate(const CollectiveProblem& problem, const Network& network) {
  const int local = problem.gpus / problem.nodes;
  const BytesPerSecond node = network.nic * std::min(local, network.nics);
  if (!OverPeers(problem)) return node;
  const double outside = static_cast<double>(problem.gpus - local) / (problem.gpus - 1);
  return node / (local * outside);
}

std::array<Line, 2> NetworkLines(const CollectiveProblem& problem) {
  const Network& network = *problem.network;
  const BytesPerSecond rate = AdapterRate(problem, network);
  const bool peers = OverPeers(problem);
  const Seconds bulk = network.bulk_step * problem.gpus;
  return {
      Line{network.latency * (peers ? kOneCrossing : 1), rate * network.flagged_share, network.name,
           "flagged"},
      Line{bulk * (peers ? kPeerBulkShare : 1), rate * network.bulk_share, network.name, "bulk"}};
}

Bytes MovedBytes(const CollectiveProblem& problem) {
  using Kind = CollectiveProblem::Kind;
  const bool copies = problem.kind == Kind::kAllGather || problem.kind == Kind::kReduceScatter;
  const Bytes own = problem.bytes / static_cast<double>(problem.gpus);
  return WireBytes(problem) + own * (copies && problem.nodes == 1 ? kOwnCopy : 0);
}

Status Check(const Device& device, const CollectiveProblem& problem) {
  if (problem.gpus < 1 || problem.nodes < 1 || problem.bytes.value < 0)
    return BadInput("GPUs and nodes must be positive, bytes not negative", "collective");
  if (problem.gpus % problem.nodes != 0)
    return BadInput(
        fmt::format("{} GPUs do not share out over {} nodes", problem.gpus, problem.nodes),
        "collective");
  if (problem.nodes > 1 && (!problem.network || problem.network->nic.value <= 0))
    return BadInput("several nodes need a network", "collective");
  if (problem.nodes == 1 && problem.gpus > 1 && device.links.empty())
    return BadInput(fmt::format("{} has no link to other GPUs", device.id), "collective");
  return Done{};
}

}  // namespace

std::string_view Name(CollectiveProblem::Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"all_reduce", "all_gather", "reduce_scatter",
                                                      "alltoall"};
  return kNames[static_cast<size_t>(kind)];
}

Bytes WireBytes(const CollectiveProblem& problem) {
  const double away = static_cast<double>(problem.gpus - 1) / problem.gpus;
  const bool twice = problem.kind == CollectiveProblem::Kind::kAllReduce;
  return problem.bytes * (twice ? 2 * away : away);
}

Result<Prediction> PredictCollective(const Device& device, const CollectiveProblem& problem) {
  GNOMON_TRY(Check(device, problem));
  Prediction prediction;
  prediction.relative_error = problem.nodes > 1 ? kNetworkError : kNodeError;
  prediction.bound = Bound::kLatency;
  if (problem.gpus == 1) return prediction;
  const std::array<Line, 2> lines =
      problem.nodes > 1 ? NetworkLines(problem) : NodeLines(device.links.front(), problem);
  const Bytes moved = MovedBytes(problem);
  const Line& line = lines[1].Time(moved) < lines[0].Time(moved) ? lines[1] : lines[0];
  const Seconds moving = moved / line.rate;
  prediction.terms = {
      {"start", line.start, line.start_why},
      {"wire", moving,
       fmt::format("{} a rank at {}, {} protocol", Show(moved), Show(line.rate), line.protocol)}};
  prediction.time = line.start + moving;
  if (moving > line.start) prediction.bound = Bound::kMemory;
  if (problem.eager && prediction.time < kRankSkew) {
    prediction.terms.push_back(
        {"last rank", kRankSkew - prediction.time, "ranks launch by themselves"});
    prediction.time = kRankSkew;
    prediction.bound = Bound::kLaunch;
  }
  return prediction;
}

}  // namespace gnomon
