// Family cublaslt without a GPU: what ids mean, strings, prices of hand-made candidates, refusals.

#include "gnomon/families/cuda/cublaslt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gnomon/families/cuda/present_gpu.h"
#include "gnomon/gemm/select.h"

namespace gnomon::cuda {
namespace {

using testing::HasSubstr;

const Device& H200() {
  static const Device device = FindDevice("h200").value();
  return device;
}

Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::kBf16,
             Layout layout = Layout::kNT) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.dtype = dtype;
  p.dtype_out = UsualOutput(dtype);
  p.layout = layout;
  return p;
}

double TimeOf(const Problem& problem, const char* text) {
  const auto config = CublasLtFamily().Parse(text);
  EXPECT_TRUE(config.ok()) << config.error().Text();
  return CublasLtFamily().PredictTime(H200(), problem, *config).value;
}

TEST(CublasLtIds, TilesAreThoseOfTheLibrarysHeaderTurned) {
  // cublasLtMatmulTile_t of cuBLASLt 13.1; its M lies along our N.
  const std::pair<int, LtSides> kKnown[] = {
      {0, {0, 0}},       {1, {8, 8}},       {20, {128, 128}},   {23, {256, 128}},
      {24, {128, 256}},  {35, {32, 256}},   {36, {128, 8}},     {116, {192, 64}},
      {133, {640, 72}},  {163, {448, 104}}, {232, {192, 256}},  {311, {64, 768}},
      {312, {16, 64}},   {392, {760, 64}},  {393, {8, 128}},    {447, {512, 128}},
      {485, {336, 192}}, {513, {256, 256}}, {587, {128, 512}},  {611, {96, 640}},
      {630, {80, 768}},  {631, {512, 256}}, {634, {1024, 512}}, {635, {0, 0}},
      {-1, {0, 0}}};
  for (const auto& [id, sides] : kKnown) EXPECT_EQ(TileOfId(id), sides) << id;
  std::set<std::pair<int, int>> all;
  for (int id = 1; id <= 634; ++id) all.emplace(TileOfId(id).m, TileOfId(id).n);
  EXPECT_EQ(all.size(), 634U);
}

TEST(CublasLtIds, ClustersAndStagesHaveTheirGaps) {
  EXPECT_EQ(ClusterOfId(0), LtSides{});
  EXPECT_EQ(ClusterOfId(2), (LtSides{1, 1}));
  EXPECT_EQ(ClusterOfId(3), (LtSides{1, 2}));
  EXPECT_EQ(ClusterOfId(28), (LtSides{2, 3}));
  EXPECT_EQ(ClusterOfId(51), (LtSides{15, 1}));
  EXPECT_EQ(ClusterOfId(52), LtSides{});
  EXPECT_EQ(StagesOfId(16), (LtStages{64, 4}));
  EXPECT_EQ(StagesOfId(25), (LtStages{32, 10}));
  EXPECT_EQ(StagesOfId(29), LtStages{});
  EXPECT_EQ(StagesOfId(31), (LtStages{8, 3}));
  EXPECT_EQ(StagesOfId(36), (LtStages{128, 0}));
  EXPECT_EQ(StagesOfId(39), LtStages{});
}

TEST(CublasLtText, SpellsWhatTheIdsSayAndReadsItBack) {
  const LtConfig config = {.algorithm = 66, .tile = 23, .stages = 35, .cluster = 3};
  EXPECT_EQ(Text(config), "256x128.c1x2.s64xauto.k1.a66");
  const LtConfig full = {.algorithm = 21,
                         .tile = 700,
                         .stages = 10,
                         .cluster = 0,
                         .split_k = 4,
                         .reduction = 2,
                         .swizzle = 1,
                         .option = 3,
                         .inner = 4,
                         .twin = 1};
  EXPECT_EQ(Text(full), "t700.c#0.s32x4.k4.a21.r2.w1.o3.i4.n1");
  for (const LtConfig& one : {config, full, LtConfig{}, LtConfig{.stages = 99, .cluster = 77}}) {
    const auto read = ParseLtConfig(Text(one));
    ASSERT_TRUE(read.ok()) << read.error().Text();
    EXPECT_EQ(*read, one) << Text(one);
    EXPECT_EQ(LtConfigFrom(ToConfig(one)), one);
  }
}

TEST(CublasLtText, EveryTileClusterAndStageReadsBack) {
  for (int id = 0; id < 640; ++id) {
    const LtConfig config = {.tile = id, .stages = id % 40, .cluster = id % 53};
    const auto read = ParseLtConfig(Text(config));
    ASSERT_TRUE(read.ok()) << read.error().Text();
    EXPECT_EQ(*read, config) << Text(config);
  }
}

TEST(CublasLtText, RefusesWhatItDoesNotWrite) {
  const std::pair<const char*, const char*> kBad[] = {
      {"", "position 1: expected a whole number"},
      {"129x128.c1x1.s64xauto.k1.a66", "position 1: expected a tile of cuBLASLt"},
      {"t20.c1x1.s64xauto.k1.a66",
       "position 2: expected an id that cuBLASLt 13.1 does not explain"},
      {"128x128.c9x9.s64xauto.k1.a66", "position 10: expected a cluster of cuBLASLt"},
      {"128x128.c1x1.s64x9.k1.a66", "position 15: expected depth and stages of cuBLASLt"},
      {"128x128.c1x1.s64xauto.k0.a66", "expected a whole number from 1"},
      {"128x128.c1x1.s64xauto.k1.a66.r0", "expected a whole number from 1"},
      {"128x128.c1x1.s64xauto.k1.a66.o1.w1", "expected the end"},
  };
  for (const auto& [text, why] : kBad) {
    const auto read = ParseLtConfig(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.error().Text(), HasSubstr(why));
    EXPECT_THAT(read.error().Text(), HasSubstr("family cublaslt reads like 128x256"));
  }
}

TEST(CublasLtPrice, OrdersCandidatesAsTheirKernelsDo) {
  const Problem square = Gemm(8192, 8192, 8192);
  EXPECT_LT(TimeOf(square, "128x256.c2x1.s64xauto.k1.a66"),
            TimeOf(square, "64x64.c1x1.s64xauto.k1.a66"));
  const Problem skinny = Gemm(16, 4096, 4096);
  EXPECT_LT(TimeOf(skinny, "16x64.c1x1.s64xauto.k1.a66"),
            TimeOf(skinny, "256x128.c1x1.s64xauto.k1.a66"));
  const Problem wgrad = Gemm(256, 512, 65536, DType::kBf16, Layout::kTN);
  EXPECT_LT(TimeOf(wgrad, "128x128.c1x1.s64xauto.k16.a66.r2"),
            TimeOf(wgrad, "128x128.c1x1.s64xauto.k1.a66"));
}

TEST(CublasLtPrice, EqualPricesKeepTheLibrarysOrder) {
  const Problem problem = Gemm(2048, 512, 1024);
  std::vector<Config> configs;
  for (const std::int32_t option : {7, 3, 5})
    configs.push_back(
        ToConfig({.algorithm = 66, .tile = 20, .stages = 35, .cluster = 2, .option = option}));
  const std::vector<double> seconds = PriceLtConfigs(H200(), problem, 0, configs);
  ASSERT_EQ(seconds.size(), 3U);
  EXPECT_GT(seconds[0], 0);
  EXPECT_EQ(seconds[0], seconds[1]);
  EXPECT_EQ(seconds[1], seconds[2]);
}

TEST(CublasLtPrice, ATileThatIsNotToldHasTheLibrarysPriceAndSaysSo) {
  const auto config = CublasLtFamily().Parse("t0.c#0.s#0.k1.a70");
  ASSERT_TRUE(config.ok());
  const Problem problem = Gemm(4096, 1024, 512);
  const Prediction p = CublasLtFamily().Predict(H200(), problem, *config);
  ASSERT_FALSE(p.terms.empty());
  EXPECT_THAT(p.terms.front().why, HasSubstr("library's average kernel"));
  EXPECT_THAT(p.terms.front().why, HasSubstr("cuBLASLt does not tell the tile"));
  double sum = 0;
  for (const Term& term : p.terms) sum += term.time.value;
  EXPECT_NEAR(sum, p.time.value, 1e-9 * p.time.value);
}

TEST(CublasLtPrice, UnalignedRowsAreKernelsOfTheGenerationBefore) {
  const LtConfig config = {.algorithm = 66, .tile = 20, .stages = 35, .cluster = 2};
  EXPECT_EQ(KernelNameOf(Gemm(1024, 512, 1024), config).library, KernelName::Library::kNvjet);
  EXPECT_EQ(KernelNameOf(Gemm(1024, 512, 13), config).library, KernelName::Library::kXmma);
  LtConfig counted = config;
  counted.stages = 16;
  EXPECT_EQ(KernelNameOf(Gemm(1024, 512, 1024), counted).library, KernelName::Library::kXmma);
}

TEST(CublasLtFamily, SaysWhyItCannot) {
  const Family& family = CublasLtFamily();
  EXPECT_EQ(family.name(), "cublaslt");
  const Config config = *family.Parse("128x256.c2x1.s64xauto.k1.a66");
  const Device amd = FindDevice("mi300x").value();
  EXPECT_EQ(family.Refusal(amd, Gemm(64, 64, 64), config), "a kernel of NVIDIA GPUs");
  EXPECT_GT(family.PredictTime(amd, Gemm(64, 64, 64), config).value, 1e20);
  Problem grouped = Gemm(64, 64, 64);
  grouped.group_m = {32, 32};
  EXPECT_EQ(family.Refusal(H200(), grouped, config), "cuBLASLt has no grouped products");
  EXPECT_EQ(family.Refusal(H200(), Gemm(64, 64, 64), config), "");
  Problem little = Gemm(256, 512, 65536);
  little.workspace = Bytes{1024};
  EXPECT_THAT(family.Refusal(H200(), little, *family.Parse("128x128.c1x1.s64xauto.k4.a66")),
              HasSubstr("the workspace has"));
}

TEST(CublasLtFamily, WithoutLibraryOrGpuEnumerateSaysWhatIsMissing) {
  std::vector<Config> configs;
  const Status amd =
      CublasLtFamily().Enumerate(FindDevice("mi300x").value(), Gemm(64, 64, 64), 0, configs);
  ASSERT_FALSE(amd.ok());
  EXPECT_EQ(amd.error().message, "mi300x is no NVIDIA GPU; cuBLASLt runs on those alone");
  const Status status = CublasLtFamily().Enumerate(H200(), Gemm(64, 64, 64), 0, configs);
  if (status.ok()) GTEST_SKIP() << "this machine is an H200";
  EXPECT_EQ(status.error().code, Error::Code::kBadInput);
  EXPECT_THAT(status.error().message, HasSubstr("CUDA"));
  EXPECT_TRUE(configs.empty());
  EXPECT_FALSE(
      Select(H200(), Gemm(64, 64, 64), std::array<const Family*, 1>{&CublasLtFamily()}).ok());
}

TEST(PresentGpu, NamesBelongToDeviceFiles) {
  EXPECT_EQ(GpuIdOf("NVIDIA H200").value(), "h200");
  EXPECT_EQ(GpuIdOf("NVIDIA H100 80GB HBM3").value(), "h100");
  EXPECT_EQ(GpuIdOf("NVIDIA A100-SXM4-80GB").value(), "a100");
  EXPECT_EQ(GpuIdOf("NVIDIA B200").value(), "b200");
  for (const char* slice : {"NVIDIA H200 NVL", "NVIDIA H200 MIG 1g.18gb", "NVIDIA T4", ""}) {
    const auto id = GpuIdOf(slice);
    ASSERT_FALSE(id.ok()) << slice;
    EXPECT_THAT(id.error().message, HasSubstr("NVIDIA H200"));
  }
}

TEST(PresentGpu, PlacesAreNumbered) {
  EXPECT_EQ(ParseCudaPlace("cuda").value(), 0);
  EXPECT_EQ(ParseCudaPlace("cuda:3").value(), 3);
  for (const char* bad : {"", "cuda:", "cuda:-1", "cuda:1x", "cuda0", "cuda:99999999999", "hip:0"})
    EXPECT_THAT(ParseCudaPlace(bad).error().message, HasSubstr("cuda:0")) << bad;
}

}  // namespace
}  // namespace gnomon::cuda
