// plan.toml: what is written reads back, and messages for wrong files.

#include "gnomon/codesign/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gnomon/base/files.h"

namespace gnomon {
namespace {

using ::testing::HasSubstr;

const std::string kModelPath = GNOMON_SOURCE_DIR "/models/dlrm_kaggle.toml";

Plan Example() {
  Plan plan;
  plan.model_path = kModelPath;
  plan.device = "host";
  plan.recipe.dtype = DType::kBf16;
  plan.recipe.batch = 2048;
  plan.recipe.learning_rate = 0.01 * 1.2345678901234567;
  plan.recipe.embedding_update = EmbeddingUpdate::kFused;
  plan.recipe.fused_tables = true;
  plan.recipe.pad_to = 16;
  plan.recipe.threads = 2;
  plan.recipe.fused_linear = plan.recipe.fused_interaction = plan.recipe.fused_optimizer = true;
  plan.recipe.gemm_backend = GemmBackend::kGnomon;
  plan.kernels = {{"bottom0.fwd", "tile mr=6 nr=2"}, {"top2.wgrad", "dot \"x\""}};
  plan.predicted_step = Microseconds(1234.5);
  plan.predicted_memory = {3e9};
  return plan;
}

std::string Written(const Plan& plan) {
  const std::string path = testing::TempDir() + "/plan.toml";
  EXPECT_TRUE(WritePlan(plan, path).ok());
  return path;
}

// The example with one text replaced, read again.
std::string MessageOfChanged(std::string_view from, std::string_view to) {
  auto text = ReadFile(Written(Example()));
  EXPECT_TRUE(text.ok());
  const size_t at = text->find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text->replace(at, from.size(), to);
  const std::string path = testing::TempDir() + "/changed_plan.toml";
  EXPECT_TRUE(WriteFile(path, *text).ok());
  const auto plan = ReadPlan(path);
  return plan.ok() ? "no error" : plan.error().Text();
}

TEST(Plan, ReadsBackWhatWasWritten) {
  const Plan plan = Example();
  const auto again = ReadPlan(Written(plan));
  ASSERT_TRUE(again.ok()) << again.error().Text();
  EXPECT_EQ(again->recipe, plan.recipe);
  EXPECT_EQ(again->kernels, plan.kernels);
  EXPECT_EQ(again->model_path, plan.model_path);
  EXPECT_EQ(again->model.id, "dlrm_kaggle");
  EXPECT_EQ(again->device, "host");
  EXPECT_NEAR(again->predicted_step.value, plan.predicted_step.value, 1e-15);
  EXPECT_EQ(again->predicted_memory, plan.predicted_memory);
  const auto first = ReadFile(Written(plan)), second = ReadFile(Written(*again));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST(Plan, TheDefaultRecipeReadsBackToo) {
  Plan plan;
  plan.model_path = kModelPath;
  plan.device = "h100";
  const auto again = ReadPlan(Written(plan));
  ASSERT_TRUE(again.ok()) << again.error().Text();
  EXPECT_EQ(again->recipe, plan.recipe);
  EXPECT_TRUE(again->kernels.empty());
}

TEST(Plan, NamesFileLineColumnAndNearestKey) {
  EXPECT_THAT(
      MessageOfChanged("pad_to", "pad_too"),
      HasSubstr("changed_plan.toml:11:1: unknown key of [recipe] 'pad_too'; nearest is 'pad_to'"));
  EXPECT_THAT(MessageOfChanged("\"fused\"", "\"fusd\""), HasSubstr("nearest is 'fused'"));
  EXPECT_THAT(MessageOfChanged("\"bf16\"", "\"bf61\""), HasSubstr("nearest is 'bf16'"));
  EXPECT_THAT(MessageOfChanged("bottom0.fwd", "bottm0.fwd"), HasSubstr("nearest is 'bottom0.fwd'"));
  EXPECT_THAT(MessageOfChanged("batch = 2048", "batch = -1"),
              HasSubstr("'recipe.batch' is -1; it must lie in"));
  EXPECT_THAT(MessageOfChanged("batch = 2048\n", ""), HasSubstr("key 'recipe.batch' is missing"));
  EXPECT_THAT(MessageOfChanged("threads = 2", "threads = true"),
              HasSubstr("must be a whole number"));
}

TEST(Plan, SaysWhichModelCannotBeRead) {
  EXPECT_THAT(MessageOfChanged("dlrm_kaggle.toml", "dlrm_kagle.toml"),
              testing::AllOf(HasSubstr("changed_plan.toml:2:9"), HasSubstr("unknown model")));
}

TEST(Plan, AnAbsentFolderIsNamed) {
  const Status written = WritePlan(Example(), testing::TempDir() + "/absent/folder/plan.toml");
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().Text(), HasSubstr("absent/folder"));
}

}  // namespace
}  // namespace gnomon
