// Lowering: a golden list of ops, the shapes of the open shape file, FLOPs of published models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "gnomon/base/csv.h"
#include "gnomon/workload/workload.h"

namespace gnomon {
namespace {

Model Shipped(const std::string& id) {
  auto model = ReadModel(GNOMON_SOURCE_DIR "/models/" + id + ".toml");
  EXPECT_TRUE(model.ok()) << model.error().Text();
  return std::move(model).value();
}

// Three tables of dim 8; bottom 4 → 8, dot, top 14 → 1.
Model Tiny() {
  Model model;
  model.id = "tiny";
  model.dense_features = 4;
  model.embedding_dim = 8;
  model.tables = {{10, 1}, {20, 2}, {30, 1}};
  Block bottom{"bottom", Block::Type::kMlp, {"dense"}, {8}, true, 0, 0, 4, 8};
  Block dot{
      "interaction", Block::Type::kDotInteraction, {"bottom", "embedding"}, {}, true, 0, 0, 32, 14};
  Block top{"top", Block::Type::kMlp, {"interaction"}, {1}, false, 0, 0, 14, 1};
  model.blocks = {bottom, dot, top};
  return model;
}

std::vector<std::string> Names(const Workload& workload) {
  std::vector<std::string> names;
  for (const Op& op : workload.ops)
    names.push_back(op.kind == Op::Kind::kGemm ? op.name + " " + op.problem.Text() : op.name);
  return names;
}

TEST(Lower, StockStepOfATinyModel) {
  Recipe recipe;
  recipe.batch = 2;
  const auto workload = Lower(Tiny(), recipe);
  ASSERT_TRUE(workload.ok()) << workload.error().Text();
  EXPECT_THAT(Names(*workload),
              testing::ElementsAre(
                  "input.copy", "embedding.fwd", "bottom0.bias", "bottom0.fwd 2x8x4 nt fp32",
                  "bottom0.relu", "interaction.cat", "interaction.bmm 4x4x8 nt fp32 batch 2",
                  "interaction.triangle", "interaction.concat", "top0.bias",
                  "top0.fwd 2x1x14 nt fp32", "loss.fwd", "loss.bwd", "top0.bias_grad",
                  "top0.dgrad 2x14x1 nn fp32", "top0.wgrad 1x14x2 tn fp32", "interaction.scatter",
                  "interaction.bmm_dleft 4x8x4 nn fp32 batch 2",
                  "interaction.bmm_dright 8x4x4 tn fp32 batch 2", "interaction.bmm_sum",
                  "interaction.slices", "interaction.dense_sum", "bottom0.relu_bwd",
                  "bottom0.bias_grad", "bottom0.wgrad 8x4x2 tn fp32", "embedding.grad",
                  "embedding.coalesce", "embedding.adagrad", "dense.adagrad"));
}

TEST(Lower, FusedStepOfATinyModel) {
  Recipe recipe;
  recipe.batch = 2;
  recipe.dtype = DType::kBf16;
  recipe.embedding_update = EmbeddingUpdate::kFused;
  recipe.pad_to = 16;
  recipe.fused_linear = recipe.fused_interaction = recipe.fused_optimizer = true;
  recipe.gemm_backend = GemmBackend::kGnomon;
  const auto workload = Lower(Tiny(), recipe);
  ASSERT_TRUE(workload.ok()) << workload.error().Text();
  EXPECT_THAT(Names(*workload),
              testing::ElementsAre(
                  "input.copy", "embedding.fwd", "bottom0.cast_x", "bottom0.fwd 2x8x16 nt bf16",
                  "interaction.fwd", "top0.fwd 2x1x16 nt bf16 to fp32", "loss.fwd", "loss.bwd",
                  "top0.act_bwd", "top0.dgrad 2x16x1 nn bf16", "top0.wgrad 1x16x2 tn bf16 to fp32",
                  "interaction.bwd", "bottom0.act_bwd", "bottom0.wgrad 8x16x2 tn bf16 to fp32",
                  "embedding.update", "dense.adagrad"));
  EXPECT_EQ(workload->ops[3].problem.epilogue, Epilogue::kBiasRelu);
  EXPECT_EQ(workload->ops[5].problem.epilogue, Epilogue::kBias);
}

TEST(Lower, StockBf16CastsActivationsWeightsAndGradients) {
  Recipe recipe;
  recipe.dtype = DType::kBf16;
  recipe.pad_to = 16;
  const auto workload = Lower(Tiny(), recipe);
  ASSERT_TRUE(workload.ok());
  const std::vector<std::string> names = Names(*workload);
  for (const char* pass : {"bottom0.cast_x", "bottom0.cast_w", "bottom0.cast_dw",
                           "interaction.cast_x", "interaction.cast_dx", "top.pad"})
    EXPECT_THAT(names, testing::Contains(pass));
  EXPECT_THAT(names, testing::Not(testing::Contains("bottom.pad")))
      << "the reader of the data pads the counts";
}

TEST(Lower, TablesApartAreAnOperatorEach) {
  Recipe recipe;
  const auto apart = Lower(Tiny(), recipe);
  recipe.fused_tables = true;
  const auto merged = Lower(Tiny(), recipe);
  ASSERT_TRUE(apart.ok() && merged.ok());
  EXPECT_EQ(apart->ops[1].framework_ops, 3 * merged->ops[1].framework_ops);
  EXPECT_EQ(apart->ops[1].lookups, 128 * 4);
}

TEST(Lower, EveryOpWaitsForEarlierOnesOnly) {
  for (const char* id : {"dlrm_kaggle", "dlrm_dcnv2"}) {
    const auto workload = Lower(Shipped(id), Recipe{});
    ASSERT_TRUE(workload.ok());
    for (size_t i = 0; i < workload->ops.size(); ++i)
      for (const int input : workload->ops[i].inputs) EXPECT_LT(input, static_cast<int>(i));
  }
}

// Every GEMM of the workload by name, against the rows "prefix.NAME" of the open shape file.
void ExpectShapesOfFile(const std::string& id, const std::string& prefix, std::int64_t batch) {
  const std::string path = GNOMON_SOURCE_DIR "/../shared/shapes/recsys_open.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const auto csv = ReadCsv(path);
  ASSERT_TRUE(csv.ok()) << csv.error().Text();
  std::map<std::string, std::string> expected;
  for (const auto& row : csv->rows) {
    const std::string& name = row.cells[0];
    if (!name.starts_with(prefix + ".")) continue;
    expected[name.substr(prefix.size() + 1)] = row.cells[1] + " " + row.cells[2] + " " +
                                               row.cells[3] + " " + row.cells[4] + " " +
                                               row.cells[5];
  }
  ASSERT_FALSE(expected.empty());
  Recipe recipe;
  recipe.batch = batch;
  const auto workload = Lower(Shipped(id), recipe);
  ASSERT_TRUE(workload.ok());
  std::map<std::string, std::string> lowered;
  for (const Op& op : workload->ops) {
    if (op.kind != Op::Kind::kGemm || op.problem.batch != 1) continue;
    const Problem& p = op.problem;
    lowered[op.name] = std::string(Name(p.layout)) + " " + std::to_string(p.m) + " " +
                       std::to_string(p.n) + " " + std::to_string(p.k) + " 1";
  }
  EXPECT_EQ(lowered, expected);
}

TEST(Lower, ShapesOfDlrmKaggleAreThoseOfTheShapeFile) {
  ExpectShapesOfFile("dlrm_kaggle", "dlrm_kaggle.b128", 128);
}
TEST(Lower, ShapesOfDcnV2AreThoseOfTheShapeFile) {
  ExpectShapesOfFile("dlrm_dcnv2", "dcnv2.b2048", 2048);
}

double ForwardMegaflopsPerSample(const std::string& id) {
  Recipe recipe;
  recipe.batch = 1;
  const auto workload = Lower(Shipped(id), recipe);
  EXPECT_TRUE(workload.ok());
  double flops = 0;
  for (const Op& op : workload->ops)
    if (op.kind == Op::Kind::kGemm && op.pass == Op::Pass::kForward && op.problem.batch == 1 &&
        op.name != "interaction.bmm")
      flops += op.problem.flops().value;
  return flops / 1e6;
}

TEST(Lower, ForwardFlopsAreThePublishedOnes) {
  // 2·(153,344 + 319,232) MACs of bottom and top, and the dot products on top: 0.97 MFLOP a sample.
  EXPECT_NEAR(ForwardMegaflopsPerSample("dlrm_kaggle") + 2 * 27 * 27 * 16 / 1e6, 0.97, 0.015);
  EXPECT_NEAR(ForwardMegaflopsPerSample("dlrm_dcnv2"), 32.06, 0.01);
}

TEST(Lower, RefusesWhatNoTrainingRecipeMeans) {
  const auto message = [](const Recipe& recipe) {
    const auto workload = Lower(Tiny(), recipe);
    return workload.ok() ? std::string("no error") : workload.error().Text();
  };
  Recipe recipe;
  recipe.batch = 0;
  EXPECT_THAT(message(recipe), testing::HasSubstr("recipe.batch: batch is 0"));
  recipe = {};
  recipe.dtype = DType::kMxFp4;
  EXPECT_THAT(message(recipe), testing::HasSubstr("recipe.dtype"));
  recipe = {};
  recipe.pad_to = 0;
  EXPECT_THAT(message(recipe), testing::HasSubstr("recipe.pad_to"));
}

}  // namespace
}  // namespace gnomon
