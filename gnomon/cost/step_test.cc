// Step cost on devices built here: totals that are published, and properties that must hold.

#include "gnomon/cost/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "gnomon/cost/bandwidth.h"
#include "gnomon/cost/primitives.h"
#include "gnomon/gemm/fixed_devices.h"

namespace gnomon {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

Model Shipped(const std::string& id) {
  auto model = ReadModel(GNOMON_SOURCE_DIR "/models/" + id + ".toml");
  EXPECT_TRUE(model.ok()) << model.error().Text();
  return std::move(model).value();
}

StepCost Cost(const Device& device, const Recipe& recipe,
              const std::string& model = "dlrm_kaggle") {
  auto cost = CostStep(Shipped(model), device, recipe);
  EXPECT_TRUE(cost.ok()) << cost.error().Text();
  return std::move(cost).value();
}

Recipe Ours(std::int64_t batch) {
  Recipe recipe;
  recipe.batch = batch;
  recipe.embedding_update = EmbeddingUpdate::kFused;
  recipe.fused_tables = recipe.fused_linear = recipe.fused_interaction = recipe.fused_optimizer =
      true;
  recipe.gemm_backend = GemmBackend::kGnomon;
  return recipe;
}

Seconds TimeOf(const StepCost& cost, std::string_view prefix) {
  Seconds total{0};
  for (const OpCost& op : cost.ops)
    if (op.name.starts_with(prefix)) total += op.device;
  return total;
}

TEST(CostStep, TermsOfOpsAndOfTheStepAddUp) {
  for (const Device& device : {FixedCpu(), FixedGpu()}) {
    for (const auto update : {EmbeddingUpdate::kSparse, EmbeddingUpdate::kDense}) {
      Recipe recipe;
      recipe.batch = 2048;
      recipe.embedding_update = update;
      const StepCost cost = Cost(device, recipe);
      double terms = 0;
      for (const Term& term : cost.terms) terms += term.time.value;
      EXPECT_NEAR(terms, cost.time.value, 1e-9 * cost.time.value);
      for (const OpCost& op : cost.ops) {
        double sum = 0;
        for (const Term& term : op.terms) sum += term.time.value;
        EXPECT_NEAR(sum, op.device.value, 1e-9 * op.device.value + 1e-15) << op.name;
      }
      EXPECT_DOUBLE_EQ(cost.samples_per_second, 2048 / cost.time.value);
    }
  }
}

TEST(CostStep, IsTheSameForTheSameInput) {
  const StepCost a = Cost(FixedCpu(), Ours(512)), b = Cost(FixedCpu(), Ours(512));
  EXPECT_EQ(a.time, b.time);
  StepModel model(Shipped("dlrm_kaggle"), FixedCpu());
  const auto first = model.Cost(Ours(512)), again = model.Cost(Ours(512));
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->time, a.time);
  EXPECT_EQ(again->time, a.time) << "remembered GEMM times change nothing";
}

TEST(CostStep, MoreOfAnythingIsNeverSlower) {
  for (const Recipe& recipe : {Recipe{.batch = 2048}, Ours(2048)}) {
    Device slow = FixedCpu(), fast = FixedCpu();
    const StepCost before = Cost(slow, recipe);
    for (MemoryLevel& level : fast.memory) {
      level.bandwidth = level.bandwidth * 2;
      level.unit_bandwidth = level.unit_bandwidth * 2;
    }
    EXPECT_LE(Cost(fast, recipe).time, before.time);
    fast = FixedCpu();
    fast.memory[2].capacity = fast.memory[2].capacity * 8;
    EXPECT_LE(Cost(fast, recipe).time, before.time);
    fast = FixedCpu();
    fast.framework.op = fast.framework.backward_op = {2e-6};
    slow.framework.op = slow.framework.backward_op = {4e-6};
    EXPECT_LT(Cost(fast, recipe).time, Cost(slow, recipe).time);
  }
}

TEST(CostStep, TimeGrowsWithTheBatchAndThroughputDoesTooWhileOverheadLasts) {
  for (const Device& device : {FixedCpu(), FixedGpu()}) {
    Seconds last{0};
    for (std::int64_t batch = 64; batch <= 65536; batch *= 4) {
      const StepCost cost = Cost(device, Recipe{.batch = batch});
      EXPECT_GE(cost.time, last) << batch;
      last = cost.time;
    }
    EXPECT_GT(Cost(device, Recipe{.batch = 1024}).samples_per_second,
              Cost(device, Recipe{.batch = 64}).samples_per_second);
  }
}

TEST(CostStep, ASmallBatchOnAGpuIsLaunches) {
  Device gpu = FixedGpu();
  const StepCost small = Cost(gpu, Recipe{.batch = 64});
  EXPECT_EQ(small.time, small.host_total);
  EXPECT_LT(small.device_total, small.host_total);
  gpu.launch = {1e-9};
  EXPECT_EQ(Cost(gpu, Recipe{.batch = 64}).time, Cost(gpu, Recipe{.batch = 64}).device_total);
}

TEST(CostStep, EachOfOurFusionsRemovesWork) {
  Device cpu = FixedCpu();
  cpu.framework.op = {1e-6};
  cpu.framework.backward_op = {2e-6};
  const Recipe stock{.batch = 2048};
  const StepCost before = Cost(cpu, stock);
  Recipe recipe = stock;
  recipe.embedding_update = EmbeddingUpdate::kFused;
  EXPECT_LT(TimeOf(Cost(cpu, recipe), "embedding"), 0.7 * TimeOf(before, "embedding"));
  recipe = stock;
  recipe.fused_interaction = true;
  EXPECT_LT(TimeOf(Cost(cpu, recipe), "interaction"), 0.5 * TimeOf(before, "interaction"));
  recipe = stock;
  recipe.fused_optimizer = true;
  EXPECT_LT(TimeOf(Cost(cpu, recipe), "dense.adagrad"), TimeOf(before, "dense.adagrad"));
  recipe = stock;
  recipe.fused_tables = true;
  EXPECT_LT(Cost(cpu, recipe).host_total, before.host_total);
}

TEST(CostStep, FewerThreadsAreSlower) {
  Recipe one = Ours(4096), all = Ours(4096);
  one.threads = 1;
  const double ratio = Cost(FixedCpu(), one).time / Cost(FixedCpu(), all).time;
  EXPECT_GT(ratio, 1.3);
  EXPECT_LE(ratio, 2.1);
}

TEST(CostStep, ADenseUpdateStreamsTheWholeTables) {
  Recipe recipe{.batch = 128};
  recipe.embedding_update = EmbeddingUpdate::kDense;
  const Device cpu = FixedCpu();
  const StepCost cost = Cost(cpu, recipe);
  const Bytes table{33762577.0 * 16 * 4};
  // Zeros, square, mean, update: seven passes over 2 GiB.
  EXPECT_GT(cost.time, 6 * table / cpu.MainMemory().bandwidth);
}

TEST(CostStep, SkewMakesLookupsCheaper) {
  Model uniform = Shipped("dlrm_kaggle"), skewed = uniform;
  uniform.zipf_exponent = 0;
  const Device cpu = FixedCpu();
  const auto flat = CostStep(uniform, cpu, Ours(2048)), steep = CostStep(skewed, cpu, Ours(2048));
  ASSERT_TRUE(flat.ok() && steep.ok());
  EXPECT_LT(TimeOf(*steep, "embedding"), 0.8 * TimeOf(*flat, "embedding"));
}

TEST(CostStep, UsesTheDevicesOwnPrimitiveWhereItWasMeasured) {
  Device cpu = FixedCpu();
  const Recipe recipe{.batch = 2048};
  const Seconds before = TimeOf(Cost(cpu, recipe), "interaction.triangle");
  cpu.framework.primitives["index_element"] = 2 * PrimitiveTime(cpu, "index_element", 2);
  const Seconds items = TimeOf(Cost(cpu, recipe), "interaction.triangle") - before;
  EXPECT_NEAR(items / (2048.0 * 351 * PrimitiveTime(FixedCpu(), "index_element", 2)), 1, 1e-9);
}

// A two-core Sapphire-Rapids class server as `gnomon device calibrate` measured it, rounded.
Device MeasuredServer() {
  Device d = FixedCpu();
  d.boost_clock = d.sustained_clock = {3.74e9};
  d.matrix = {{DType::kBf16, 960, {2 * 960 * 3.74e9}, "16x16x32"}};
  struct Level {
    double capacity_mib, all, one, write, random, latency_ns;
  };
  constexpr Level kLevels[] = {{48.0 / 1024, 574, 293, 458, 294, 1.5},
                               {2, 362, 180, 127, 243, 5.4},
                               {128, 56.6, 28.7, 55.8, 19.4, 51},
                               {23.5 * 1024, 29.8, 14.8, 19.0, 5.0, 235}};
  for (size_t i = 0; i < d.memory.size(); ++i) {
    const Level& level = kLevels[i];
    d.memory[i].capacity = {level.capacity_mib * 1024 * 1024};
    d.memory[i].bandwidth = {level.all * 1e9};
    d.memory[i].unit_bandwidth = {level.one * 1e9};
    d.memory[i].write_bandwidth = {level.write * 1e9};
    d.memory[i].random_bandwidth = {level.random * 1e9};
    d.memory[i].latency = {level.latency_ns * 1e-9};
  }
  d.launch = {4e-9};
  d.fork_join = {7e-7};
  d.framework.op = {0.85e-6};
  d.framework.backward_op = {1.5e-6};
  d.framework.gemm_efficiency = {{DType::kFp32, 0.81}, {DType::kBf16, 0.20}};
  return d;
}

// Steps of stock LibTorch 1.13 (OpenBLAS with OpenMP, oneDNN 2.6) measured on that server by
// train_bench.
TEST(CostStep, PredictsMeasuredStepsOfStockLibTorch) {
  struct Step {
    std::int64_t batch;
    DType dtype;
    bool merged;
    double milliseconds;
  };
  constexpr Step kSteps[] = {{512, DType::kFp32, false, 13.31}, {512, DType::kBf16, false, 7.26},
                             {512, DType::kFp32, true, 11.75},  {512, DType::kBf16, true, 6.34},
                             {2048, DType::kFp32, false, 44.3}, {2048, DType::kBf16, false, 20.9},
                             {2048, DType::kFp32, true, 46.3},  {2048, DType::kBf16, true, 21.0},
                             {16384, DType::kFp32, false, 383}, {16384, DType::kBf16, false, 177},
                             {16384, DType::kFp32, true, 365},  {16384, DType::kBf16, true, 170}};
  constexpr double kTolerance = 0.15;
  const Device server = MeasuredServer();
  for (const Step& step : kSteps) {
    Recipe recipe{.dtype = step.dtype, .batch = step.batch, .fused_tables = step.merged};
    const double predicted = 1e3 * Cost(server, recipe).time.value;
    EXPECT_NEAR(predicted / step.milliseconds, 1, kTolerance)
        << Name(step.dtype) << " batch " << step.batch << (step.merged ? " merged: " : ": ")
        << predicted << " ms";
  }
}

TEST(CostMemory, TablesAreThePublishedSizes) {
  const StepCost kaggle = Cost(FixedCpu(), Recipe{.batch = 128});
  EXPECT_NEAR(kaggle.memory.tables.value / kGib, 2.01, 0.01);
  EXPECT_EQ(kaggle.memory.table_state.value, 33762577.0 * 4);
  const StepCost dcnv2 = Cost(FixedCpu(), Recipe{.batch = 128}, "dlrm_dcnv2");
  EXPECT_NEAR(dcnv2.memory.tables.value / kGib, 97.4, 0.1);
}

TEST(CostMemory, GradientsFollowTheUpdate) {
  Recipe recipe{.batch = 128};
  recipe.embedding_update = EmbeddingUpdate::kDense;
  const MemoryCost dense = Cost(FixedCpu(), recipe).memory;
  recipe.embedding_update = EmbeddingUpdate::kSparse;
  const MemoryCost sparse = Cost(FixedCpu(), recipe).memory;
  const MemoryCost fused = Cost(FixedCpu(), Ours(128)).memory;
  EXPECT_EQ(dense.table_gradient, dense.tables);
  EXPECT_LT(sparse.table_gradient, 0.01 * dense.tables);
  EXPECT_EQ(fused.table_gradient.value, 0);
  EXPECT_GT(dense.total(), sparse.total() + 1.4 * dense.tables);
}

TEST(CostMemory, OverCapacityIsRefusedWithBothFigures) {
  const StepCost cost = Cost(FixedCpu(), Recipe{.batch = 128}, "dlrm_dcnv2");
  const Status fits = CheckCapacity(cost.memory, FixedCpu());
  ASSERT_FALSE(fits.ok());
  EXPECT_EQ(fits.error().code, Error::Code::kBadInput);
  EXPECT_THAT(fits.error().message, testing::HasSubstr("has 16.0 GiB"));
  EXPECT_THAT(fits.error().message, testing::HasSubstr("needs 98"));
  EXPECT_TRUE(CheckCapacity(Cost(FixedCpu(), Recipe{.batch = 128}).memory, FixedCpu()).ok());
}

TEST(CostMemory, ActivationsGrowInStepWithTheBatch) {
  const Bytes small = Cost(FixedCpu(), Ours(1024)).memory.activations;
  const Bytes large = Cost(FixedCpu(), Ours(4096)).memory.activations;
  EXPECT_NEAR(large / small, 4, 0.05);
}

TEST(Bandwidth, PicksTheNearestLevelThatHoldsTheWorkingSet) {
  const Device cpu = FixedCpu();
  EXPECT_EQ(LevelOf(cpu, Bytes{40.0 * 1024}, 2).name, "l1");
  EXPECT_EQ(LevelOf(cpu, Bytes{40.0 * 1024}, 1).name, "l2") << "one core has one L1";
  EXPECT_EQ(LevelOf(cpu, Bytes{8.0 * 1024 * 1024}, 2).name, "llc");
  EXPECT_EQ(LevelOf(cpu, Bytes{1e12}, 2).name, "dram") << "capacity is CheckCapacity's matter";
}

TEST(Bandwidth, LongRowsStreamAfterTheirFirstLine) {
  Device cpu = FixedCpu();
  MemoryLevel& dram = cpu.memory.back();
  dram.random_bandwidth = {2e9};
  const double line = RandomRowTime(cpu, dram, Bytes{64}, 2).value;
  EXPECT_DOUBLE_EQ(line, 64 / 2e9);
  EXPECT_DOUBLE_EQ(RandomRowTime(cpu, dram, Bytes{512}, 2).value, line + 448 / 15e9);
}

}  // namespace
}  // namespace gnomon
