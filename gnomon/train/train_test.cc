#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "gnomon/train/checkpoint.h"
#include "gnomon/train/engine.h"
#include "gnomon/train/network.h"
#include "gnomon/train/samples.h"

extern "C" const gnomon::train::Engine* gnomon_train_engine();

namespace gnomon::train {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kRows = 2000;

Plan StockPlan(std::int64_t batch = 256) {
  Plan plan;
  auto model = ReadModel(GNOMON_SOURCE_DIR "/models/dlrm_kaggle.toml");
  GNOMON_CHECK(model.ok(), "{}", model.error().Text());
  plan.model = *model;
  plan.device = "host-x86-64-avx2";
  plan.recipe.batch = batch;
  plan.recipe.learning_rate = 0.01;
  plan.recipe.threads = 2;
  return plan;
}

Plan OurPlan(std::int64_t batch = 256) {
  Plan plan = StockPlan(batch);
  plan.recipe.embedding_update = EmbeddingUpdate::kFused;
  plan.recipe.fused_tables = plan.recipe.fused_linear = true;
  plan.recipe.fused_interaction = plan.recipe.fused_optimizer = true;
  plan.recipe.gemm_backend = GemmBackend::kGnomon;
  plan.recipe.pad_to = 16;
  return plan;
}

TrainResult MustTrain(const Plan& plan, std::int64_t steps, std::int64_t eval_samples = 256) {
  TrainOptions options;
  options.steps = steps;
  options.eval_samples = eval_samples;
  options.max_table_rows = kRows;
  const auto result = gnomon_train_engine()->Train(plan, options);
  GNOMON_CHECK(result.ok(), "{}", result.error().Text());
  return *result;
}

// LibTorch multiplies bf16 in software where the CPU has no instruction for it, so that bf16 steps
// are small ones.
constexpr std::int64_t kBf16Batch = 32;

// That every lever computes the fp32 step is network_test.cc's; bf16 rounds weights and activations
// to 8 bits, which moves a loss near 0.5 in its second digit behind the point at most.
TEST(Train, Bf16StaysCloseToFp32) {
  const auto losses = [](Plan plan, DType dtype) {
    plan.recipe.dtype = dtype;
    plan.recipe.learning_rate = 0.001;
    return MustTrain(plan, 20).losses;
  };
  const std::vector<double> reference = losses(StockPlan(kBf16Batch), DType::kFp32);
  for (const Plan& plan : {StockPlan(kBf16Batch), OurPlan(kBf16Batch)}) {
    const std::vector<double> rounded = losses(plan, DType::kBf16);
    ASSERT_EQ(rounded.size(), reference.size());
    for (std::size_t i = 0; i < rounded.size(); ++i)
      EXPECT_NEAR(rounded[i], reference[i], 0.02) << "step " << i;
  }
}

TEST(Train, GivesTheSameLossesRunAfterRun) {
  for (Plan plan : {StockPlan(kBf16Batch), OurPlan(kBf16Batch)}) {
    for (DType dtype : {DType::kFp32, DType::kBf16}) {
      plan.recipe.dtype = dtype;
      EXPECT_EQ(MustTrain(plan, 8).losses, MustTrain(plan, 8).losses);
    }
  }
}

TEST(Train, LearnsTheHiddenTeacher) {
  // One thread: in a run this long, what the threads wait for each other on a shared machine is
  // more than what they compute.
  Plan plan = OurPlan();
  plan.recipe.threads = 1;
  const TrainResult result = MustTrain(plan, 300, 20000);
  EXPECT_LT(result.normalized_entropy, 0.97);
  EXPECT_GT(result.auc, 0.6);
  EXPECT_GT(result.peak_memory.value, 0);
  EXPECT_GT(result.samples_per_second, 0);
}

TEST(Train, RunsTheKernelsThatThePlanNames) {
  Plan plan = OurPlan();
  plan.kernels["top0.wgrad"] = "no such config";
  TrainOptions options;
  options.max_table_rows = kRows;
  const auto result = gnomon_train_engine()->Train(plan, options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().Text(), HasSubstr("kernels.top0.wgrad"));
}

TEST(Train, RefusesARecipeItCannotRun) {
  Plan plan = StockPlan();
  plan.recipe.dtype = DType::kFp8E4m3;
  const auto result = gnomon_train_engine()->Train(plan, {});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().Text(), HasSubstr("fp32 and bf16, not fp8_e4m3"));
}

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override {
    options_.checkpoint_folder =
        fmt::format("{}gnomon_checkpoint_{}", testing::TempDir(), getpid());
    options_.checkpoint_every = 4;
    options_.max_table_rows = kRows;
    options_.eval_samples = 256;
    options_.steps = 10;
  }
  void TearDown() override { std::filesystem::remove_all(options_.checkpoint_folder); }

  // Trains until step `kill_at` and dies there without a word.
  void TrainUntilKilled(const Plan& plan, std::int64_t kill_at) {
    TrainOptions options = options_;
    options.progress = [=](std::int64_t done, std::int64_t, const std::string& note) {
      if (done == kill_at && note.starts_with("loss")) throw std::runtime_error("killed");
    };
    ASSERT_THAT(gnomon_train_engine()->Train(plan, options).error().Text(), HasSubstr("killed"));
  }
  Result<TrainResult> Resume(const Plan& plan) {
    TrainOptions options = options_;
    options.resume = true;
    return gnomon_train_engine()->Train(plan, options);
  }
  std::filesystem::path File(int step) const {
    return std::filesystem::path(options_.checkpoint_folder) / fmt::format("step_{}.ckpt", step);
  }
  TrainOptions options_;
};

TEST_F(Checkpoints, AKilledRunResumesToBitIdenticalLosses) {
  for (Plan plan : {StockPlan(kBf16Batch), OurPlan(kBf16Batch)}) {
    for (DType dtype : {DType::kFp32, DType::kBf16}) {
      plan.recipe.dtype = dtype;
      std::filesystem::remove_all(options_.checkpoint_folder);
      const std::vector<double> straight = MustTrain(plan, 10).losses;
      TrainUntilKilled(plan, 6);
      ASSERT_TRUE(std::filesystem::exists(File(4)));
      ASSERT_FALSE(std::filesystem::exists(File(6)));
      const auto resumed = Resume(plan);
      ASSERT_TRUE(resumed.ok()) << resumed.error().Text();
      EXPECT_EQ(resumed->losses, straight);
      EXPECT_TRUE(std::filesystem::exists(File(10)));
      EXPECT_FALSE(std::filesystem::exists(File(4)))
          << "the older one goes when the new one is whole";
    }
  }
}

TEST_F(Checkpoints, DamageIsNoticed) {
  const Plan plan = OurPlan();
  TrainUntilKilled(plan, 6);
  const auto size = std::filesystem::file_size(File(4));
  {
    std::fstream file(File(4), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file.put('!').put('?');
  }
  EXPECT_THAT(Resume(plan).error().Text(),
              HasSubstr("step_4.ckpt: the checkpoint is damaged: its checksum"));
  std::filesystem::resize_file(File(4), size / 2);
  EXPECT_THAT(Resume(plan).error().Text(), HasSubstr("cut short"));
  std::filesystem::resize_file(File(4), 3);
  EXPECT_THAT(Resume(plan).error().Text(), HasSubstr("cut short"));
}

TEST_F(Checkpoints, AnotherPlanCannotContinue) {
  TrainUntilKilled(OurPlan(), 6);
  Plan other = OurPlan();
  other.recipe.learning_rate = 0.5;
  EXPECT_THAT(Resume(other).error().Text(),
              HasSubstr("of another run: this run has \"learning rate 0.5\", the checkpoint "
                        "\"learning rate 0.01\""));
}

TEST_F(Checkpoints, NothingToResumeIsAnError) {
  EXPECT_THAT(Resume(StockPlan()).error().Text(), HasSubstr("no checkpoint to resume from"));
}

TEST_F(Checkpoints, AFullDiskLeavesTheOldOneWhole) {
  const Plan plan = OurPlan();
  TrainUntilKilled(plan, 6);
  // A file size limit stands for a full disk: writing fails half way.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{std::filesystem::file_size(File(4)) / 2, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = Resume(plan);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Error::Code::kInternal);
  EXPECT_THAT(failed.error().Text(), HasSubstr("cannot write the checkpoint: File too large"));
  EXPECT_TRUE(std::filesystem::exists(File(4)));
  EXPECT_FALSE(std::filesystem::exists(File(8).string() + ".part"));
  EXPECT_TRUE(Resume(plan).ok());
}

TEST(Compare, GivesEveryArmBlocksAndSeeds) {
  CompareOptions options;
  options.time_budget = {0.6};
  options.seeds = 2;
  options.quality_samples = 8192;
  options.eval_samples = 2000;
  options.max_table_rows = kRows;
  Plan fast = OurPlan(512);
  fast.recipe.dtype = DType::kBf16;
  const auto result =
      gnomon_train_engine()->Compare({{"direct port", StockPlan(1024)}, {"plan", fast}}, options);
  ASSERT_TRUE(result.ok()) << result.error().Text();
  ASSERT_EQ(result->arms.size(), 2u);
  EXPECT_EQ(result->quality_samples, 8192);
  for (const ArmResult& arm : result->arms) {
    EXPECT_GE(arm.block_seconds_per_sample.size(), 3u);
    EXPECT_EQ(arm.normalized_entropy.size(), 2u);
    for (double ne : arm.normalized_entropy) EXPECT_LT(ne, 1.1);
    EXPECT_GT(arm.step_time.value, 0);
    EXPECT_GT(arm.peak_memory.value, 0);
  }
  EXPECT_EQ(result->arms[0].name, "direct port");
}

TEST(Compare, RefusesArmsOfDifferentModels) {
  Plan other = OurPlan();
  other.model.tables.pop_back();
  const auto result = gnomon_train_engine()->Compare({{"a", StockPlan()}, {"b", other}}, {});
  EXPECT_THAT(result.error().Text(), HasSubstr("arm 'b' has other tables"));
}

TEST(CalibrateFramework, StatesEveryPrimitiveAsMeasured) {
  Device device = FindDevice("host-x86-64-avx2").value();
  const Status status = gnomon_train_engine()->CalibrateFramework(device);
  ASSERT_TRUE(status.ok()) << status.error().Text();
  EXPECT_GT(device.framework.op.value, 0);
  EXPECT_GT(device.framework.backward_op.value, 0);
  EXPECT_GT(device.framework.gemm_efficiency.at(DType::kFp32), 0);
  for (const char* key :
       {"embedding_row", "coalesce_key_level", "update_row", "bmm_item_fp32", "index_put_far",
        "fused_lookup_row", "fused_update_key", "fused_update_row"}) {
    const auto fact = device.facts.find(fmt::format("framework.{}_ns", key));
    ASSERT_NE(fact, device.facts.end()) << key;
    EXPECT_EQ(fact->second.kind, FactKind::kMeasured);
    EXPECT_GT(fact->second.value, 0);
  }
}

TEST(Train, TrainsOnTheRealSample) {
  const std::string sample = GNOMON_SOURCE_DIR "/../shared/data/criteo_sample.tsv";
  if (!std::filesystem::exists(sample)) GTEST_SKIP() << sample << " is absent";
  TrainOptions options;
  options.data = sample;
  options.max_table_rows = kRows;
  options.steps = 30;
  const auto result = gnomon_train_engine()->Train(OurPlan(64), options);
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_TRUE(result->bad_lines.empty());
  EXPECT_LT(result->losses.back(), result->losses.front());
}

}  // namespace
}  // namespace gnomon::train
