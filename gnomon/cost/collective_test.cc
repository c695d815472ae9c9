// Collectives: times worked out by hand on a GPU of round numbers, what must hold for every kind
// and size, and what a data sheet's links cannot beat.

#include "gnomon/cost/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "gnomon/cost/round_gpu.h"

namespace gnomon {
namespace {

using Kind = CollectiveProblem::Kind;
using ::testing::HasSubstr;

constexpr std::array kKinds = {Kind::kAllReduce, Kind::kAllGather, Kind::kReduceScatter,
                               Kind::kAllToAll};

CollectiveProblem Of(Kind kind, int gpus, double bytes) {
  CollectiveProblem problem;
  problem.kind = kind;
  problem.gpus = gpus;
  problem.bytes = {bytes};
  return problem;
}

Device Mesh() {
  Device device = RoundGpu();
  device.links.front() = {"xgmi", 7, {448e9}, {315e9}, {15e-6}, {}, {46e-6}};
  return device;
}

Network TwoNics() {
  Network network;
  network.name = "two adapters";
  network.nic = {25e9};
  network.nics = 2;
  network.latency = {50e-6};
  network.bulk_step = {10e-6};
  network.flagged_share = 0.25;
  network.bulk_share = 1;
  return network;
}

double Us(const Device& device, const CollectiveProblem& problem) {
  return InMicroseconds(PredictCollective(device, problem).value().time);
}

TEST(WireBytes, IsWhatARankMustSend) {
  EXPECT_DOUBLE_EQ(WireBytes(Of(Kind::kAllReduce, 8, 800)).value, 1400);
  EXPECT_DOUBLE_EQ(WireBytes(Of(Kind::kAllGather, 8, 800)).value, 700);
  EXPECT_DOUBLE_EQ(WireBytes(Of(Kind::kReduceScatter, 4, 800)).value, 600);
  EXPECT_DOUBLE_EQ(WireBytes(Of(Kind::kAllToAll, 2, 800)).value, 400);
}

TEST(PredictCollective, ASmallRingCostsItsSteps) {
  EXPECT_NEAR(Us(RoundGpu(), Of(Kind::kAllGather, 8, 0)), 5 + 6 * 1, 1e-9);
  EXPECT_NEAR(Us(RoundGpu(), Of(Kind::kAllReduce, 8, 0)), 5 + 13 * 1, 1e-9);
  EXPECT_NEAR(Us(RoundGpu(), Of(Kind::kAllToAll, 8, 0)), 5 + 1, 1e-9);
}

TEST(PredictCollective, ALargeRingCostsItsBytes) {
  // 1.75 GB at 300 GB/s, behind the bulk start.
  EXPECT_NEAR(Us(RoundGpu(), Of(Kind::kAllReduce, 8, 1e9)), 20 + 1.75e9 / 300e9 * 1e6, 1e-6);
}

TEST(PredictCollective, AMeshOfFewerGpusUsesFewerLinks) {
  const double eight = Us(Mesh(), Of(Kind::kAllGather, 8, 1e9));
  const double two = Us(Mesh(), Of(Kind::kAllGather, 2, 1e9));
  EXPECT_NEAR(eight, 46 + (0.875e9 + 0.26 * 0.125e9) / 315e9 * 1e6, 1e-6);
  EXPECT_NEAR(two, 46 + (0.5e9 + 0.26 * 0.5e9) / 45e9 * 1e6, 1e-6);
}

TEST(PredictCollective, OnePeerIsServedByALimitedNumberOfChannels) {
  Device wide = RoundGpu();
  wide.links.front().reached = {600e9};
  EXPECT_NEAR(Us(wide, Of(Kind::kAllToAll, 2, 1e9)), 0.58 * 20 + 0.5e9 / 325e9 * 1e6, 1e-6);
  // Three peers are more than the links reach: 0.82 of 600 GB/s.
  EXPECT_NEAR(Us(wide, Of(Kind::kAllToAll, 4, 1e9)), 0.58 * 20 + 0.75e9 / 492e9 * 1e6, 1e-6);
}

TEST(PredictCollective, AnEagerRankWaitsForTheLast) {
  CollectiveProblem problem = Of(Kind::kAllReduce, 4, 1024);
  problem.eager = true;
  EXPECT_NEAR(Us(RoundGpu(), problem), 42.7, 1e-9);
  const double large = Us(RoundGpu(), Of(Kind::kAllReduce, 4, 1e9));
  problem.bytes = {1e9};
  EXPECT_EQ(Us(RoundGpu(), problem), large);
}

TEST(PredictCollective, SeveralNodesAreBoundByTheirAdapters) {
  CollectiveProblem problem = Of(Kind::kAllReduce, 16, 16e9);
  problem.nodes = 2;
  problem.network = TwoNics();
  // A ring over 8 GPUs a node leaves it through two adapters: 30 GB at 50 GB/s, 16 steps of 10 us.
  EXPECT_NEAR(Us(RoundGpu(), problem), 160 + 30e9 / 50e9 * 1e6, 1e-3);
  // An all-to-all sends 8 GB of each rank to the other node: 64 GB a node at 50 GB/s.
  problem.kind = Kind::kAllToAll;
  EXPECT_NEAR(Us(RoundGpu(), problem), 0.58 * 160 + 64e9 / 50e9 * 1e6, 1e-3);
}

TEST(PredictCollective, OneGpuHasNothingToDo) {
  EXPECT_EQ(Us(RoundGpu(), Of(Kind::kAllReduce, 1, 1e9)), 0);
}

TEST(PredictCollective, RefusesWhatItCannotKnow) {
  CollectiveProblem problem = Of(Kind::kAllReduce, 16, 1e6);
  problem.nodes = 2;
  EXPECT_THAT(PredictCollective(RoundGpu(), problem).error().Text(), HasSubstr("network"));
  problem.network = TwoNics();
  problem.gpus = 15;
  EXPECT_THAT(PredictCollective(RoundGpu(), problem).error().Text(),
              HasSubstr("15 GPUs do not share out over 2 nodes"));
  EXPECT_FALSE(PredictCollective(RoundGpu(), Of(Kind::kAllReduce, 0, 1)).ok());
  Device alone = RoundGpu();
  alone.links.clear();
  EXPECT_THAT(PredictCollective(alone, Of(Kind::kAllReduce, 2, 1)).error().Text(),
              HasSubstr("no link"));
}

TEST(PredictCollective, TermsAddUpAndMoreBytesAreNeverQuicker) {
  for (const Device& device : {RoundGpu(), Mesh()}) {
    for (const Kind kind : kKinds) {
      for (const int gpus : {2, 3, 4, 8}) {
        for (const bool eager : {false, true}) {
          double before = 0;
          for (double bytes = 1; bytes < 1e11; bytes *= 3) {
            CollectiveProblem problem = Of(kind, gpus, bytes);
            problem.eager = eager;
            const Prediction prediction = PredictCollective(device, problem).value();
            Seconds sum{0};
            for (const Term& term : prediction.terms) sum += term.time;
            EXPECT_NEAR(sum / prediction.time, 1, 1e-12);
            EXPECT_GE(prediction.time.value, before) << Name(kind) << ' ' << gpus << ' ' << bytes;
            before = prediction.time.value;
          }
        }
      }
    }
  }
}

TEST(PredictCollective, MoreBandwidthIsNeverSlowerAndNeverBeatsTheDataSheet) {
  for (const Device& device : {RoundGpu(), Mesh()}) {
    Device wide = device;
    wide.links.front().bandwidth = wide.links.front().bandwidth * 2;
    wide.links.front().reached = wide.links.front().reached * 2;
    for (const Kind kind : kKinds) {
      for (double bytes = 1; bytes < 1e11; bytes *= 10) {
        const CollectiveProblem problem = Of(kind, 8, bytes);
        const double time = Us(device, problem);
        EXPECT_LE(Us(wide, problem), time);
        EXPECT_GE(time, InMicroseconds(WireBytes(problem) / device.links.front().bandwidth));
      }
    }
  }
}

TEST(PredictCollective, LinksThatWereNeverMeasuredTakeNcclsUsualShares) {
  Device device = RoundGpu();
  device.links.front().bulk = {0};
  EXPECT_NEAR(Us(device, Of(Kind::kAllReduce, 8, 1e9)), 3.7 * 5 + 1.75e9 / 300e9 * 1e6, 1e-6);
  device.links.front().reached = {0};
  EXPECT_NEAR(Us(device, Of(Kind::kAllReduce, 8, 1e9)), 3.7 * 5 + 1.75e9 / (0.68 * 450e9) * 1e6,
              1e-6);
}

}  // namespace
}  // namespace gnomon
