// Codesign on devices of round numbers: what the plan must be better than, and when it is refused.

#include "gnomon/codesign/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnomon/gemm/fixed_devices.h"

namespace gnomon {
namespace {

Model Shipped(const std::string& id) {
  auto model = ReadModel(GNOMON_SOURCE_DIR "/models/" + id + ".toml");
  EXPECT_TRUE(model.ok()) << model.error().Text();
  return std::move(model).value();
}

Device Gpu() {
  Device gpu = FixedGpu();
  gpu.matrix.push_back({DType::kTf32, 2500, {100 * 2500 * 2e9}, "64x256x8"});
  gpu.host_link.emplace();
  gpu.host_link->name = "pcie";
  gpu.host_link->bandwidth = {50e9};
  gpu.host_link->latency = {1e-6};
  return gpu;
}

Device Cpu() {
  Device cpu = FixedCpu();
  cpu.framework.op = {1e-6};
  cpu.framework.backward_op = {2e-6};
  return cpu;
}

CodesignResult Designed(const CodesignOptions& options = {}) {
  auto result = Codesign(Shipped("dlrm_kaggle"), Gpu(), Cpu(), options);
  EXPECT_TRUE(result.ok()) << result.error().Text();
  return std::move(result).value();
}

TEST(Codesign, PlanIsNeverWorseThanEitherPort) {
  const CodesignResult result = Designed();
  EXPECT_GE(result.plan.QualityRate(), result.direct_port.QualityRate());
  EXPECT_GE(result.plan.QualityRate(), result.native_dtype.QualityRate());
  EXPECT_GT(result.speedup_predicted, 1.2);
  EXPECT_EQ(result.plan.recipe.embedding_update, EmbeddingUpdate::kFused);
  EXPECT_TRUE(result.plan.recipe.fused_interaction);
}

TEST(Codesign, NoSingleChangeOfThePlanIsBetter) {
  const CodesignResult result = Designed();
  const Model model = Shipped("dlrm_kaggle");
  for (const Lever& lever : Levers(Cpu(), Stack::kGnomon, {})) {
    for (const Recipe& choice : lever.choices) {
      Recipe recipe = result.plan.recipe;
      lever.copy(choice, recipe);
      const auto cost = CostStep(model, Cpu(), recipe);
      ASSERT_TRUE(cost.ok());
      EXPECT_LE(cost->samples_per_second / model.SamplesFactor(recipe.batch),
                result.plan.QualityRate() * (1 + 1e-6))
          << lever.name << ' ' << lever.show(recipe);
    }
  }
}

TEST(Codesign, DirectPortIsTheSourcesRecipeUnchanged) {
  const CodesignResult result = Designed();
  Recipe ported = result.on_source.recipe;
  if (ported.dtype == DType::kTf32) ported.dtype = DType::kFp32;
  EXPECT_EQ(result.direct_port.recipe, ported);
  EXPECT_EQ(ported.gemm_backend, GemmBackend::kLibrary);
  EXPECT_EQ(ported.threads, 0);
  EXPECT_NE(ported.embedding_update, EmbeddingUpdate::kFused)
      << "no kernel of ours runs on the source";
  Recipe native = result.native_dtype.recipe;
  native.dtype = ported.dtype;
  EXPECT_EQ(native, ported) << "only the dtype differs";
}

TEST(Codesign, GainsOfLeversAddUpToTheSpeedup) {
  const CodesignResult result = Designed();
  ASSERT_FALSE(result.levers.empty());
  EXPECT_NEAR(result.levers.back().cumulative, result.speedup_predicted,
              1e-9 * result.speedup_predicted);
  EXPECT_NEAR(result.levers.back().cumulative_to_quality, result.speedup_to_quality_predicted,
              1e-9);
  for (const LeverGain& lever : result.levers) {
    EXPECT_NE(lever.from, lever.to) << lever.name;
    EXPECT_FALSE(lever.source.empty()) << lever.name;
    EXPECT_GT(lever.gain, 0);
  }
}

TEST(Codesign, TheLearningRateIsTheModelsAtEveryBatch) {
  CodesignOptions options;
  options.batch = 128 * 16;
  const CodesignResult result = Designed(options);
  EXPECT_EQ(result.plan.recipe.batch, 2048);
  EXPECT_EQ(result.direct_port.recipe.batch, 2048);
  EXPECT_EQ(result.plan.recipe.learning_rate, Shipped("dlrm_kaggle").learning_rate);
  EXPECT_EQ(result.direct_port.recipe.learning_rate, result.plan.recipe.learning_rate);
}

TEST(Codesign, ACriticalBatchKeepsTheBatchSmall) {
  Model model = Shipped("dlrm_kaggle");
  const auto bounded = Codesign(model, Gpu(), Cpu(), {});
  model.critical_batch = 0;
  const auto free = Codesign(model, Gpu(), Cpu(), {});
  ASSERT_TRUE(bounded.ok() && free.ok());
  EXPECT_LT(bounded->plan.recipe.batch, free->plan.recipe.batch);
}

TEST(Codesign, FixedFieldsStayFixed) {
  CodesignOptions options;
  options.dtype = DType::kFp32;
  options.embedding_update = EmbeddingUpdate::kSparse;
  options.pad_to = 64;
  const CodesignResult result = Designed(options);
  EXPECT_EQ(result.plan.recipe.dtype, DType::kFp32);
  EXPECT_EQ(result.plan.recipe.embedding_update, EmbeddingUpdate::kSparse);
  EXPECT_EQ(result.plan.recipe.pad_to, 64);
}

TEST(Codesign, ANotNativeDtypeIsRefusedWithWhatThereIs) {
  CodesignOptions options;
  options.dtype = DType::kTf32;
  const auto result = Codesign(Shipped("dlrm_kaggle"), Gpu(), Cpu(), options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(
      result.error().message,
      testing::HasSubstr("dtype 'tf32' is not offered on fixed-avx512 (there is: fp32, bf16)"));
}

TEST(Codesign, ADirectPortInAForeignDtypeSaysSo) {
  Device old_cpu = FixedCpu(256);
  Device gpu = Gpu();
  gpu.matrix.pop_back();                   // no tf32 …
  gpu.vector[0].flops_per_unit_clock = 1;  // … and hardly any fp32: the source trains in bf16
  const auto result = Codesign(Shipped("dlrm_kaggle"), gpu, old_cpu, {});
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result->direct_port.recipe.dtype, DType::kBf16);
  ASSERT_FALSE(result->direct_port.notes.empty());
  EXPECT_THAT(result->direct_port.notes[0], testing::HasSubstr("bf16 is not native"));
  EXPECT_EQ(result->native_dtype.recipe.dtype, DType::kFp32);
  EXPECT_GT(result->native_dtype.cost.samples_per_second,
            result->direct_port.cost.samples_per_second);
}

TEST(Codesign, RefusesAModelOverTheMemoryWithTheFigure) {
  const auto result = Codesign(Shipped("dlrm_dcnv2"), Gpu(), Cpu(), {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Error::Code::kBadInput);
  EXPECT_THAT(result.error().Text(), testing::HasSubstr("fixed-gpu: needs 98"));
  EXPECT_THAT(result.error().Text(), testing::HasSubstr("has 74.5 GiB"));
  Device large = Gpu();
  large.memory.back().capacity = {1e12};
  const auto target = Codesign(Shipped("dlrm_dcnv2"), large, Cpu(), {});
  ASSERT_FALSE(target.ok());
  EXPECT_THAT(target.error().Text(), testing::HasSubstr("fixed-avx512: needs 98"));
}

TEST(Codesign, AGpuTargetOffersNoKernelOfOurs) {
  const auto result = Codesign(Shipped("dlrm_kaggle"), Gpu(), Gpu(), {});
  ASSERT_TRUE(result.ok()) << result.error().Text();
  EXPECT_EQ(result->plan.recipe.gemm_backend, GemmBackend::kLibrary);
  EXPECT_NEAR(result->speedup_predicted, 1, 1e-9) << "the source's best recipe is the target's";
  EXPECT_TRUE(result->levers.empty());
}

TEST(Codesign, IsDeterministic) {
  const CodesignResult a = Designed(), b = Designed();
  EXPECT_EQ(a.plan.recipe, b.plan.recipe);
  EXPECT_EQ(a.plan.cost.time, b.plan.cost.time);
  EXPECT_EQ(a.recipes_costed, b.recipes_costed);
}

TEST(Codesign, NamesWhatWouldBeTriedNextLargestFirst) {
  const CodesignResult result = Designed();
  ASSERT_FALSE(result.next.empty());
  for (size_t i = 1; i < result.next.size(); ++i)
    EXPECT_GE(result.next[i - 1].gain, result.next[i].gain);
  EXPECT_GE(result.next.back().gain, 1.01);
}

TEST(MakePlan, NamesAKernelForEveryGemmOfOurs) {
  const Model model = Shipped("dlrm_kaggle");
  ArmPrediction arm;
  arm.recipe.batch = 512;
  arm.recipe.embedding_update = EmbeddingUpdate::kFused;
  arm.recipe.fused_linear = arm.recipe.fused_interaction = true;
  arm.recipe.gemm_backend = GemmBackend::kGnomon;
  auto cost = CostStep(model, Cpu(), arm.recipe);
  ASSERT_TRUE(cost.ok()) << cost.error().Text();
  arm.cost = std::move(cost).value();
  const Plan plan = MakePlan(model, "models/dlrm_kaggle.toml", Cpu(), arm);
  const auto workload = Lower(model, arm.recipe);
  ASSERT_TRUE(workload.ok());
  for (const Op& op : workload->ops) {
    if (op.kind == Op::Kind::kGemm) {
      EXPECT_EQ(plan.kernels.count(op.name), 1u) << op.name;
    }
  }
  EXPECT_EQ(plan.predicted_step, arm.cost.time);
  EXPECT_EQ(plan.predicted_memory, arm.cost.memory.total());
  arm.recipe.gemm_backend = GemmBackend::kLibrary;
  EXPECT_TRUE(MakePlan(model, "", Cpu(), arm).kernels.empty());
}

}  // namespace
}  // namespace gnomon
