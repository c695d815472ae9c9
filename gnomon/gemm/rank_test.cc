#include "gnomon/gemm/rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "gnomon/base/fit_split.h"
#include "gnomon/base/statistics.h"
#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::kBf16,
             Layout layout = Layout::kNT) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.dtype = p.dtype_out = dtype;
  p.layout = layout;
  return p;
}

Device DeviceOf(const std::string& id) {
  return ReadDevice(GNOMON_SOURCE_DIR "/devices/" + id + ".toml").value();
}

std::vector<ListedKernel> List(std::initializer_list<std::string_view> names) {
  std::vector<ListedKernel> list;
  for (const std::string_view name : names)
    list.push_back({std::string(name), static_cast<int>(list.size()) + 1});
  return list;
}

TEST(KernelList, KeepsOneNameALineAndPassesOverTheRest) {
  const auto list = ParseKernelList(
      "# from getAllAlgos\r\n\n  kernel_a \r\n\"void f<int, 3>(float, int)\"\n#b\nkernel_a\nc",
      "f");
  ASSERT_TRUE(list.ok());
  std::vector<std::string> names;
  std::vector<int> lines;
  for (const ListedKernel& kernel : *list) {
    names.push_back(kernel.name);
    lines.push_back(kernel.line);
  }
  EXPECT_THAT(names, ElementsAre("kernel_a", "void f<int, 3>(float, int)", "c"));
  EXPECT_THAT(lines, ElementsAre(3, 4, 7));
}

TEST(KernelList, IsAnErrorWithoutANameOrAFile) {
  for (const std::string_view text : {"", "\n\n", "# only a comment\n  \"\" \n"}) {
    const auto list = ParseKernelList(text, "names.txt");
    ASSERT_FALSE(list.ok());
    EXPECT_EQ(list.error().code, Error::Code::kBadInput);
    EXPECT_THAT(list.error().Text(), HasSubstr("names.txt: no kernel name"));
  }
  const auto missing = ReadKernelList("/nonexistent/names.txt");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Error::Code::kBadInput);
}

TEST(NamedKernel, IsRuledOutByWhatItsNameSays) {
  const Device mi300x = DeviceOf("mi300x"), h200 = DeviceOf("h200"), b200 = DeviceOf("b200");
  const Problem nt = Gemm(512, 512, 512);
  const auto why = [](const Device& device, const Problem& problem, std::string_view name) {
    return WhyItCannot(device, problem, ParseKernelName(name));
  };
  const std::string_view tensile = "Cijk_Alik_Bljk_BBS_BH_MT64x64x64_MI16x16x1_ISA942";
  const std::string_view nvjet = "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT";
  EXPECT_EQ(why(mi300x, nt, tensile), "");
  EXPECT_EQ(why(h200, nt, tensile), "a kernel of AMD GPUs");
  EXPECT_EQ(why(h200, nt, nvjet), "");
  EXPECT_EQ(why(mi300x, nt, nvjet), "a kernel of NVIDIA GPUs");
  EXPECT_EQ(why(b200, nt, nvjet), "built for sm_90, not sm_100a");
  EXPECT_EQ(why(DeviceOf("mi350x"), nt, tensile), "built for gfx942, not gfx950");
  EXPECT_EQ(why(b200, nt, "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_64x6_tn_align8"), "");
  EXPECT_EQ(why(h200, Gemm(512, 512, 508),
                "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_64x6_tn_align8"),
            "the row of A is 508; it takes multiples of 8");
  EXPECT_EQ(why(mi300x, Gemm(512, 512, 512, DType::kFp16), tensile), "multiplies bf16, not fp16");
  EXPECT_EQ(why(mi300x, Gemm(512, 512, 512, DType::kBf16, Layout::kNN), tensile),
            "takes layout nt, not nn");
  EXPECT_EQ(why(mi300x, Gemm(512, 512, 100), "Cijk_Alik_Bljk_BBS_MT64x64x64_MI16x16x1_ASEM32"),
            "k is 100; it takes multiples of 32");
  EXPECT_EQ(why(h200, nt, "internal::gemvx::kernel<int, int, __nv_bfloat16>"),
            "multiplies one vector, not 512");
  EXPECT_EQ(why(h200, Gemm(1, 512, 512), "internal::gemvx::kernel<int, int, __nv_bfloat16>"), "");
  EXPECT_EQ(why(h200, nt, "void cublasLt::splitKreduce_kernel<32, 16, int>"), "no matrix product");
  // fnuz and OCP fp8 are told apart by the chip, not by the name.
  EXPECT_EQ(why(mi300x, Gemm(512, 512, 512, DType::kFp8E4m3Fnuz),
                "Cijk_Alik_Bljk_F8BS_BH_MT64x64x128_MI16x16x1"),
            "");
}

TEST(WhyItCannot, HoldsPartialSumsAgainstTheWorkspace) {
  Problem p = Gemm(256, 512, 8192);
  const auto why = [&](const char* device, std::string_view name) {
    return WhyItCannot(DeviceOf(device), p, ParseKernelName(name));
  };
  const std::string_view split =
      "Cijk_Alik_Bljk_BBS_BH_UserArgs_MT128x128x64_MI16x16x1_SN_GSU4_ISA942_PGR2_WG32_8_1";
  const std::string_view whole =
      "Cijk_Alik_Bljk_BBS_BH_UserArgs_MT128x128x64_MI16x16x1_SN_GSU1_ISA942_PGR2_WG32_8_1";
  const std::string_view nvjet = "nvjet_tst_64x64_64x13_2x1_v_bz_splitK_TNT";
  for (const std::string_view name : {split, whole}) EXPECT_EQ(why("mi300x", name), "");
  EXPECT_EQ(why("h200", nvjet), "");
  p.workspace = Bytes{4.0 * 256 * 512 * 4};
  EXPECT_EQ(why("mi300x", split), "");
  p.workspace = Bytes{4.0 * 256 * 512 * 4 - 1};
  EXPECT_THAT(why("mi300x", split), HasSubstr("its partial sums take 2.00 MiB; the workspace has"));
  EXPECT_EQ(why("mi300x", whole), "");
  // cuBLAS chooses the split of nvjet's splitK kernels at launch: among those that are granted.
  EXPECT_EQ(why("h200", nvjet), "");
  EXPECT_LE(PredictNamed(DeviceOf("h200"), p, ParseKernelName(nvjet)).split_k, 3);
  p.workspace = Bytes{0};
  EXPECT_THAT(why("h200", nvjet), HasSubstr("its partial sums take"));
  EXPECT_EQ(why("mi300x", whole), "");
}

TEST(Rank, TellsTheUnableApartAndMarksTheUnknown) {
  const auto ranking =
      RankKernels(DeviceOf("h200"), Gemm(4096, 4096, 4096),
                  List({"Cijk_Alik_Bljk_BBS_BH_MT64x64x64_MI16x16x1", "my_gemm",
                        "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "triton_poi_fused_add_0"}));
  ASSERT_TRUE(ranking.ok());
  ASSERT_EQ(ranking->ranked.size(), 2u);
  for (const RankedKernel& ranked : ranking->ranked) {
    EXPECT_EQ(ranked.predicted.generic, ranked.kernel.name == "my_gemm");
    EXPECT_GT(ranked.predicted.prediction.time.value, 0);
  }
  ASSERT_EQ(ranking->unable.size(), 2u);
  EXPECT_EQ(ranking->unable[0].line, 1);
  EXPECT_EQ(ranking->unable[1].why, "no matrix product");
  EXPECT_GE(ranking->close, 1);
}

std::vector<std::string> Order(const Device& device, const Problem& problem,
                               std::vector<ListedKernel> list) {
  const auto ranking = RankKernels(device, problem, list);
  EXPECT_TRUE(ranking.ok());
  EXPECT_THAT(ranking->unable, IsEmpty());
  std::vector<std::string> names;
  for (const RankedKernel& ranked : ranking->ranked) names.push_back(ranked.kernel.name);
  return names;
}

TEST(Rank, TakesLargeTilesForLargeProblemsAndNarrowOnesForFewRows) {
  const Device h200 = DeviceOf("h200"), mi300x = DeviceOf("mi300x");
  const std::string_view large = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT";
  const std::string_view small = "nvjet_tst_64x64_64x13_2x1_v_bz_TNT";
  const std::string_view narrow = "nvjet_tst_64x8_64x16_4x1_v_bz_TNT";
  const std::string_view ampere =
      "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_64x3_tn_align8";
  const auto list = List({narrow, ampere, small, large});
  const auto order = Order(h200, Gemm(8192, 8192, 8192), list);
  EXPECT_EQ(order.front(), large);
  EXPECT_EQ(order.back(), narrow);
  EXPECT_EQ(Order(h200, Gemm(8, 6144, 4096), list).front(), narrow);

  const std::string_view square = "Cijk_Alik_Bljk_BBS_BH_MT256x256x64_MI16x16x1_PGR2_WS64_WG32_8_1";
  const std::string_view strip = "Cijk_Alik_Bljk_BBS_BH_MT128x16x128_MI16x16x1_PGR2_WS64_WG32_4_2";
  EXPECT_EQ(Order(mi300x, Gemm(8192, 8192, 8192), List({strip, square})).front(), square);
  EXPECT_EQ(Order(mi300x, Gemm(16, 9216, 3072), List({square, strip})).front(), strip);
}

// facebookexperimental/triton #2269: few tiles and a long K; 24 us with a split, 125 us without.
TEST(Rank, PutsASplitFirstWhereFewTilesHaveALongK) {
  const Problem tall = Gemm(2048, 256, 8192);
  const std::string whole = "Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x1_GSU1_PGR2_WS64_WG32_8_1";
  const std::string split = "Cijk_Alik_Bljk_BBS_BH_MT128x128x64_MI16x16x1_GSU8_PGR2_WS64_WG32_8_1";
  EXPECT_THAT(Order(DeviceOf("mi350x"), tall, List({whole, split})), ElementsAre(split, whole));
  // With a tile for every unit there is nothing to win.
  EXPECT_THAT(Order(DeviceOf("mi350x"), Gemm(16384, 16384, 1024), List({split, whole})),
              ElementsAre(whole, split));
}

TEST(Rank, DoesNotDependOnTheOrderOfTheList) {
  std::vector<ListedKernel> list;
  for (const int m : {64, 128, 192, 256})
    for (const int n : {16, 64, 128, 256})
      list.push_back(
          {"nvjet_tst_" + std::to_string(m) + "x" + std::to_string(n) + "_64x4_2x1_v_bz_TNT",
           static_cast<int>(list.size())});
  const Device h200 = DeviceOf("h200");
  const Problem problem = Gemm(3000, 1000, 777);
  const auto forwards = Order(h200, problem, list);
  std::reverse(list.begin(), list.end());
  EXPECT_EQ(Order(h200, problem, list), forwards);
}

TEST(Rank, TermsOfEveryPredictionAddUp) {
  const auto list = List({"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
                          "nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT", "my_gemm"});
  for (const std::int64_t m : {1, 100, 5000, 100000}) {
    const auto ranking = RankKernels(DeviceOf("h200"), Gemm(m, 512, 4096), list);
    ASSERT_TRUE(ranking.ok());
    for (const RankedKernel& ranked : ranking->ranked) {
      const Prediction& p = ranked.predicted.prediction;
      double sum = 0;
      for (const Term& term : p.terms) sum += term.time.value;
      EXPECT_NEAR(sum, p.time.value, 1e-9 * p.time.value) << ranked.kernel.name;
      EXPECT_GT(p.relative_error, 0);
    }
  }
}

TEST(Rank, StaysFiniteOnExtremeSidesAndTiles) {
  const auto list = List({"Cijk_Alik_Bljk_BBS_BH_MT8192x8192x8192_MI16x16x1",
                          "Cijk_Alik_Bljk_BBS_BH_MT1x1x1_MI1x1x1_PGR0_WS1_WG1_1_1",
                          "Cijk_Alik_Bljk_BBS_BH_MT16x16x16_MI16x16x1_GSU8192_WS64_WG1024_1_1"});
  for (const Problem& problem :
       {Gemm(1, 1, 1), Gemm(std::int64_t{1} << 31, 4096, 1), Gemm(1, 1, std::int64_t{1} << 40)}) {
    const auto ranking = RankKernels(DeviceOf("mi300x"), problem, list);
    ASSERT_TRUE(ranking.ok());
    for (const RankedKernel& ranked : ranking->ranked) {
      EXPECT_TRUE(std::isfinite(ranked.predicted.prediction.time.value)) << ranked.kernel.name;
      EXPECT_GT(ranked.predicted.prediction.time.value, 0) << ranked.kernel.name;
    }
  }
}

// Kernels that profiler traces name, on shapes that nothing was fitted on.
TEST(Rank, PredictsTheKernelsOfPublicTraces) {
  const std::string path =
      GNOMON_SOURCE_DIR "/../shared/measured/default_library_pick_in_traces.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no ../shared/measured beside the project";
  const auto rows = ReadMeasurements(path);
  ASSERT_TRUE(rows.ok());
  std::map<std::string, std::vector<double>> errors;
  for (const Measurement& row : *rows) {
    const Problem& p = row.problem;
    if (IsFitRow(std::to_string(p.m) + "," + std::to_string(p.n) + "," + std::to_string(p.k)))
      continue;
    const NamedPrediction predicted =
        PredictNamed(DeviceOf(row.device), p, ParseKernelName(row.config));
    errors[row.device].push_back(std::abs(InMicroseconds(predicted.prediction.time) / row.us - 1));
  }
  EXPECT_EQ(errors["mi300x"].size(), 31u);
  EXPECT_EQ(errors["h100"].size(), 12u);
  EXPECT_LT(Median(errors["mi300x"]), 0.12);
  EXPECT_LT(Median(errors["h100"]), 0.12);
}

TEST(Rank, RefusesWhatHasNoAnswer) {
  const auto list = List({"my_gemm"});
  EXPECT_THAT(RankKernels(FixedCpu(), Gemm(8, 8, 8), list).error().Text(), HasSubstr("is a CPU"));
  const Device h200 = DeviceOf("h200");
  EXPECT_FALSE(RankKernels(h200, Gemm(0, 8, 8), list).ok());
  EXPECT_THAT(RankKernels(h200, Gemm(8, 8, 8), list, h200.units + 1).error().Text(),
              HasSubstr("132 SMs"));
  EXPECT_THAT(RankKernels(h200, Gemm(8, 8, 8, DType::kMxFp4), list).error().Text(),
              HasSubstr("no native mxfp4"));
}

}  // namespace
}  // namespace gnomon
