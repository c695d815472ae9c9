// Memory-bound operators: times worked out by hand on a GPU of round numbers, and what must hold on
// every GPU.

#include "gnomon/cost/operators.h"

#include <gtest/gtest.h>

#include <array>

#include "gnomon/cost/round_gpu.h"
#include "gnomon/cost/table_batched.h"
#include "gnomon/cost/traffic.h"

namespace gnomon {
namespace {

using Kind = OperatorProblem::Kind;

constexpr std::array kKinds = {Kind::kElementwise,   Kind::kBroadcast,     Kind::kPermute,
                               Kind::kSoftmax,       Kind::kLayerNorm,     Kind::kRmsNorm,
                               Kind::kJaggedToDense, Kind::kDenseToJagged, Kind::kSegmentReduce,
                               Kind::kIndexSelect,   Kind::kIndexAdd,      Kind::kStream};

OperatorProblem Sized(Kind kind, std::int64_t rows, std::int64_t width) {
  OperatorProblem problem;
  problem.kind = kind;
  problem.rows = rows;
  problem.width = width;
  return problem;
}

double Us(const Prediction& prediction) { return InMicroseconds(prediction.time); }
double Us(const OperatorProblem& problem) { return Us(PredictOperator(RoundGpu(), problem)); }

double TermUs(const Prediction& prediction, std::string_view name) {
  for (const Term& term : prediction.terms)
    if (term.name == name) return InMicroseconds(term.time);
  return 0;
}

TEST(Traffic, ComesFromMainMemoryOnceTheFootprintIsBeyondTheCaches) {
  EXPECT_NEAR(InMicroseconds(GpuStreamTime(RoundGpu(), Bytes{100e6}, Bytes{100e6})), 100, 1e-9);
}

TEST(Traffic, ComesFromTheCacheThatHoldsTheFootprint) {
  EXPECT_NEAR(InMicroseconds(GpuStreamTime(RoundGpu(), Bytes{4e6}, Bytes{4e6})), 1, 1e-9);
  // 1.5 − 10/10: half from the cache, half from memory.
  EXPECT_NEAR(InMicroseconds(GpuStreamTime(RoundGpu(), Bytes{10e6}, Bytes{10e6})), 1.25 + 5, 1e-9);
}

TEST(Traffic, MemorySideCachesCountAsMainMemory) {
  Device device = RoundGpu();
  MemoryLevel llc = device.memory[1];
  llc.name = "llc";
  llc.capacity = {1e9};
  device.memory.insert(device.memory.begin() + 2, llc);
  EXPECT_NEAR(InMicroseconds(GpuStreamTime(device, Bytes{100e6}, Bytes{100e6})), 100, 1e-9);
}

TEST(PredictOperator, StreamsElementwiseOperandsOnce) {
  // 400 MB read and written at 1 TB/s, one kernel of 2 us with a load and a store of 0.5 us.
  EXPECT_NEAR(Us(Sized(Kind::kElementwise, 1'000'000, 100)), 800 + 3, 1e-6);
}

TEST(PredictOperator, CountsTheHostOnlyForEagerCallers) {
  OperatorProblem problem = Sized(Kind::kElementwise, 1'000'000, 100);
  const double graph = Us(problem);
  problem.caller = OperatorProblem::Caller::kEager;
  EXPECT_NEAR(Us(problem) - graph, 8, 1e-9);
}

TEST(PredictOperator, IsBoundByVectorUnitsWhereTheyTakeLonger) {
  OperatorProblem problem = Sized(Kind::kElementwise, 1'000'000, 100);
  problem.flops_per_element = 200;  // 2e10 operations at 1e13 a second: 2000 us against 800
  const Prediction prediction = PredictOperator(RoundGpu(), problem);
  EXPECT_NEAR(Us(prediction), 2000 + 3, 1e-6);
  EXPECT_EQ(prediction.bound, Bound::kCompute);
}

TEST(PredictOperator, SoftmaxOfLongRowsReadsThemAgain) {
  // 4 blocks a unit, 76 kB of usable L1: rows of 19 kB fit, rows of 40 kB do not.
  const Prediction fits = PredictOperator(RoundGpu(), Sized(Kind::kSoftmax, 20'000, 4'700));
  const Prediction spills = PredictOperator(RoundGpu(), Sized(Kind::kSoftmax, 20'000, 10'000));
  EXPECT_EQ(TermUs(fits, "re-reads"), 0);
  EXPECT_NEAR(TermUs(spills, "re-reads"), 2 * 800, 1e-6);  // two more passes over 800 MB
}

TEST(PredictOperator, ANormsBackwardPassesOftenerThanItsForward) {
  OperatorProblem problem = Sized(Kind::kLayerNorm, 1'000'000, 256);
  const double forward = Us(problem);
  problem.pass = OperatorProblem::Pass::kBackward;
  EXPECT_GT(Us(problem), 2 * forward);
}

TEST(PredictOperator, RandomRowsMoveAtTheRandomRate) {
  // 64 MB read and 64 MB written at 0.5 TB/s, 8 B of index a row of 64 B.
  const OperatorProblem problem = Sized(Kind::kIndexSelect, 1'000'000, 16);
  EXPECT_NEAR(Us(problem), (64 + 64 + 8) / 0.5 + 3, 1e-6);
}

TEST(PredictOperator, ARowNarrowerThanASectorMovesAWholeOne) {
  OperatorProblem problem = Sized(Kind::kIndexSelect, 4'000'000, 1);
  const Prediction prediction = PredictOperator(RoundGpu(), problem);
  EXPECT_NEAR(TermUs(prediction, "re-reads"), 4e6 * (32 - 4) / 1e6, 1e-6);
}

TEST(PredictOperator, PaddingIsWrittenByJaggedToDenseOnly) {
  OperatorProblem problem = Sized(Kind::kJaggedToDense, 1'000'000, 64);
  problem.input_rows = 250'000;
  const double padded = Us(problem);
  problem.kind = Kind::kDenseToJagged;
  EXPECT_NEAR(padded, (64 + 256 + 8) + 3, 1e-6);
  EXPECT_LT(Us(problem), padded);
}

TEST(PredictOperator, TermsAddUpAndMoreWorkIsNeverQuicker) {
  for (const Kind kind : kKinds) {
    for (const auto pass : {OperatorProblem::Pass::kForward, OperatorProblem::Pass::kBackward}) {
      double before = 0;
      for (const std::int64_t width : {1, 7, 64, 1000, 1024, 1025, 4096, 20'000, 100'000}) {
        OperatorProblem problem = Sized(kind, 3000, width);
        problem.pass = pass;
        const Prediction prediction = PredictOperator(RoundGpu(), problem);
        Seconds sum{0};
        for (const Term& term : prediction.terms) sum += term.time;
        EXPECT_NEAR(sum / prediction.time, 1, 1e-12) << Name(kind) << ' ' << width;
        EXPECT_GE(prediction.time.value, before) << Name(kind) << ' ' << width;
        before = prediction.time.value;
      }
    }
  }
}

TEST(PredictOperator, MoreBandwidthIsNeverSlower) {
  Device quicker = RoundGpu();
  quicker.memory.back().bandwidth = quicker.memory.back().bandwidth * 1.5;
  quicker.memory.back().random_bandwidth = quicker.memory.back().random_bandwidth * 1.5;
  for (const Kind kind : kKinds) {
    for (const std::int64_t rows : {1, 1000, 100'000}) {
      const OperatorProblem problem = Sized(kind, rows, 2048);
      EXPECT_LE(PredictOperator(quicker, problem).time, PredictOperator(RoundGpu(), problem).time)
          << Name(kind) << ' ' << rows;
    }
  }
}

TableBatchedProblem Lookups(double lookups, double unique) {
  TableBatchedProblem problem;
  problem.lookups = problem.bags = lookups;
  problem.unique_rows = unique;
  problem.dim = 128;  // rows of 512 B
  return problem;
}

TEST(PredictTableBatched, FetchesEveryRowOnceAndRepeatsThatMissAgain) {
  // 1e5 unique rows of 512 B are 51.2 MB, of which L2 holds 10/51.2: of 9e5 repeats 0.805 miss.
  const Prediction prediction = PredictTableBatched(RoundGpu(), Lookups(1e6, 1e5));
  const double fetched = 1e5 + 9e5 * (1 - 10 / 51.2);
  EXPECT_NEAR(TermUs(prediction, "rows"), fetched * 512 / 1e6, 1e-6);
  EXPECT_NEAR(TermUs(prediction, "output"), 512, 1e-6);
}

TEST(PredictTableBatched, SkewMakesLookupsCheaper) {
  EXPECT_LT(PredictTableBatched(RoundGpu(), Lookups(1e6, 1e4)).time,
            PredictTableBatched(RoundGpu(), Lookups(1e6, 1e6)).time);
}

TEST(PredictTableBatched, TablesInHostMemoryPassTheHostLink) {
  TableBatchedProblem problem = Lookups(1e6, 1e6);
  problem.home = TableBatchedProblem::Home::kHost;
  const Prediction prediction = PredictTableBatched(RoundGpu(), problem);
  EXPECT_NEAR(TermUs(prediction, "rows"), 512e6 / 50e9 * 1e6, 1e-6);
}

TEST(PredictTableBatched, TheStateOfAnOptimiserIsMovedWithItsRows) {
  TableBatchedProblem problem = Lookups(1e6, 1e6);
  problem.pass = TableBatchedProblem::Pass::kBackward;
  const double plain = TermUs(PredictTableBatched(RoundGpu(), problem), "rows");
  problem.state_rows = 2;
  EXPECT_NEAR(TermUs(PredictTableBatched(RoundGpu(), problem), "rows"), 3 * plain, 1e-6);
  EXPECT_NEAR(plain, 2 * 512e6 / 0.5e12 * 1e6, 1e-6);
}

TEST(PredictTableBatched, ForwardAndBackwardAddUp) {
  TableBatchedProblem problem = Lookups(3e5, 2e5);
  const Seconds forward = PredictTableBatched(RoundGpu(), problem).time;
  problem.pass = TableBatchedProblem::Pass::kBackward;
  const Seconds backward = PredictTableBatched(RoundGpu(), problem).time;
  problem.pass = TableBatchedProblem::Pass::kForwardBackward;
  const Prediction both = PredictTableBatched(RoundGpu(), problem);
  EXPECT_NEAR(both.time / (forward + backward), 1, 1e-12);
  Seconds sum{0};
  for (const Term& term : both.terms) sum += term.time;
  EXPECT_NEAR(sum / both.time, 1, 1e-12);
}

}  // namespace
}  // namespace gnomon
