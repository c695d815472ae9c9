#include "gnomon/report/gemm_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/report/evaluation_report.h"

namespace gnomon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Problem Square() {
  Problem p;
  p.m = p.n = p.k = 1000;
  p.dtype = p.dtype_out = DType::kBf16;
  return p;
}

ExplainedPick Pick(const std::string& config, double start, double loop, double reduction = 0) {
  ExplainedPick pick{"toy", config, {}, {}, false};
  pick.prediction.terms = {{"start", Microseconds(start), "a"}, {"loop", Microseconds(loop), "b"}};
  if (reduction > 0) pick.prediction.terms.push_back({"reduction", Microseconds(reduction), "c"});
  pick.prediction.time = Microseconds(start + loop + reduction);
  return pick;
}

TEST(Separation, IsTheTermThatDiffersMostEvenWhereOneSideLacksIt) {
  const Separation loop = SeparationOf(Pick("a", 2, 8).prediction, Pick("b", 3, 20).prediction);
  EXPECT_EQ(loop.term, "loop");
  EXPECT_NEAR(InMicroseconds(loop.longer), 12, 1e-9);
  const Separation split = SeparationOf(Pick("a", 2, 8).prediction, Pick("b", 2, 7, 5).prediction);
  EXPECT_EQ(split.term, "reduction");
  const Separation less = SeparationOf(Pick("a", 2, 8, 5).prediction, Pick("b", 2, 9).prediction);
  EXPECT_EQ(less.term, "reduction");
  EXPECT_NEAR(InMicroseconds(less.longer), -5, 1e-9);
  EXPECT_EQ(SeparationOf(Pick("a", 2, 8).prediction, Pick("b", 2, 8).prediction).longer.value, 0);
}

TEST(ExplainText, ShowsTermsFiguresAndRivals) {
  Explanation explanation;
  explanation.pick = Pick("a", 2, 8);
  explanation.pick.prediction.figures = {{"L2 hits", 0.875, "share", "of what is read"},
                                         {"stored", 2048, "bytes", "C"},
                                         {"clock", 1.7e9, "hertz", "under load"},
                                         {"workgroups", 512, "", "tiles"}};
  explanation.rivals = {Pick("b", 2, 9)};
  const std::string text = ExplainText(FixedGpu(), Square(), explanation, "--units 20");
  EXPECT_THAT(text, AllOf(HasSubstr("predicted 10.0 us"), HasSubstr("80.0%"), HasSubstr("total"),
                          HasSubstr("88%"), HasSubstr("2.00 KiB"), HasSubstr("1.70 GHz"),
                          HasSubstr("512"), HasSubstr("toy b"), HasSubstr("+10.0%")));
  EXPECT_THAT(text, AllOf(HasSubstr("loop +1.00 us"), HasSubstr("--units 20"),
                          Not(HasSubstr("does not offer"))));
  explanation.in_space = false;
  EXPECT_THAT(ExplainText(FixedGpu(), Square(), explanation), HasSubstr("does not offer"));
}

TEST(PicksText, SaysHowSureItIsOrWhyItCannot) {
  std::vector<ExplainedPick> picks = {Pick("a", 2, 8), Pick("b", 2, 9)};
  EXPECT_THAT(PicksText(FixedGpu(), Square(), picks),
              HasSubstr("not calibrated: predictions of toy"));
  picks[0].sure = 0.83;
  EXPECT_THAT(PicksText(FixedGpu(), Square(), picks),
              AllOf(HasSubstr("sure to 83%"), Not(HasSubstr("not calibrated"))));
  EXPECT_EQ(PicksJson(FixedGpu(), Square(), picks)["picks"][0]["sure"], 0.83);
  EXPECT_TRUE(PicksJson(FixedGpu(), Square(), picks)["picks"][1]["sure"].is_null());
}

TEST(PicksText, TheNextStepRepeatsTheWholeProblem) {
  Problem problem = Square();
  problem.group_m = {400, 0, 600};
  problem.dtype_out = DType::kFp32;
  problem.ldb = 1024;
  const std::vector<ExplainedPick> picks = {Pick("a", 2, 8)};
  EXPECT_THAT(PicksText(FixedGpu(), problem, picks, "--device fixed-gpu --partition cpx"),
              HasSubstr("explain --device fixed-gpu --partition cpx --group 400,0,600 -n 1000 -k "
                        "1000 --layout nt --dtype bf16 --dtype-out fp32 --ldb 1024 --config a"));
}

TEST(EvaluationJson, IsNullWhereTheFileCannotSay) {
  const Json json = EvaluationJson(Evaluation(), 3);
  for (const char* key : {"median_abs_error", "p90_abs_error", "spearman", "family_choice"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
    EXPECT_TRUE(json["held_out"][key].is_null()) << key;
  }
  EXPECT_TRUE(json["regret"]["geomean"].is_null());
  EXPECT_EQ(json["failed"], 3);
}

}  // namespace
}  // namespace gnomon
