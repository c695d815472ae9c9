#include "gnomon/report/rank_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gnomon {
namespace {

using testing::HasSubstr;
using testing::Not;

Ranking Some(std::vector<std::string> names, const Device& device, const Problem& problem) {
  std::vector<ListedKernel> list;
  for (std::string& name : names)
    list.push_back({std::move(name), static_cast<int>(list.size()) + 1});
  return RankKernels(device, problem, list).value();
}

Problem Square(std::int64_t side) {
  Problem p;
  p.m = p.n = p.k = side;
  p.dtype = p.dtype_out = DType::kBf16;
  return p;
}

Device Mi300x() { return ReadDevice(GNOMON_SOURCE_DIR "/devices/mi300x.toml").value(); }

const char kTensile[] =
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x160x64_MI16x16x1_SN_GSU1_ISA942_PGR2_WS64_"
    "WG32_8_1";

TEST(RankReport, GivesVerdictTableAndNextStep) {
  const Problem problem = Square(4096);
  const Device device = Mi300x();
  const std::string text = RankingText(device, problem,
                                       Some({"nvjet_tst_64x8_64x16_4x1_v_bz_TNT", kTensile,
                                             "my\x01"
                                             "gemm"},
                                            device, problem));
  EXPECT_THAT(text, HasSubstr("4096x4096x4096 nt bf16 on mi300x: "));
  EXPECT_THAT(text, HasSubstr(" of 3, predicted "));
  EXPECT_THAT(text, HasSubstr("160x256x64"));
  EXPECT_THAT(text, HasSubstr("a kernel of NVIDIA GPUs"));
  EXPECT_THAT(text, HasSubstr("(generic)"));
  EXPECT_THAT(text, HasSubstr("next: "));
  EXPECT_THAT(text, Not(HasSubstr("\x01")));
}

TEST(RankReport, SaysWhenNoKernelCanDoIt) {
  const Problem problem = Square(64);
  const Device device = Mi300x();
  const std::string text =
      RankingText(device, problem, Some({"nvjet_tst_64x8_64x16_4x1_v_bz_TNT"}, device, problem));
  EXPECT_THAT(text, HasSubstr("none of 1 kernels can do it"));
  EXPECT_THAT(text, HasSubstr("next: "));
}

TEST(RankReport, JsonHasWhatTheTableHas) {
  const Problem problem = Square(4096);
  const Device device = Mi300x();
  const Json json = RankingJson(
      device, problem, Some({kTensile, "my_gemm", "triton_poi_fused_add_0"}, device, problem));
  EXPECT_EQ(json["device"], "mi300x");
  EXPECT_EQ(json["problem"]["layout"], "nt");
  ASSERT_EQ(json["kernels"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(json["kernels"][i]["rank"], i + 1);
  const Json& named = json["kernels"][json["kernels"][0]["name"] == kTensile ? 0 : 1];
  EXPECT_EQ(named["line"], 1);
  EXPECT_EQ(named["understood"], true);
  EXPECT_EQ(named["family"], "hipblaslt");
  EXPECT_EQ(named["tile"]["m"], 160);
  EXPECT_EQ(named["tile"]["n"], 256);
  EXPECT_EQ(named["split_k"], 1);
  EXPECT_GT(named["predicted_us"].get<double>(), 100);
  const Json& unknown = json["kernels"][json["kernels"][0]["name"] == kTensile ? 1 : 0];
  EXPECT_EQ(unknown["understood"], false);
  EXPECT_EQ(unknown["generic"], true);
  EXPECT_TRUE(unknown["tile"]["m"].is_null());
  EXPECT_EQ(json["unable"][0]["why"], "no matrix product");
}

}  // namespace
}  // namespace gnomon
