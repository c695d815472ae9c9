#pragma once

/// A co-design answer as text, JSON and one-file HTML: `gnomon codesign`.

#include <optional>
#include <string>
#include <vector>

#include "gnomon/codesign/search.h"
#include "gnomon/report/json.h"
#include "gnomon/train/engine.h"

namespace gnomon {

/// Ratio of two arms' samples/s, block by block in the order they ran.
struct MeasuredRatio {
  double median = 0;
  double spread = 0;  ///< median absolute deviation of the blocks' ratios
  int blocks = 0;
};

/// How many times the samples/s of `base` the arm reaches: seconds a sample of base over those of
/// arm.
MeasuredRatio RatioOverBlocks(const train::ArmResult& arm, const train::ArmResult& base);

/// One recipe of a report: as predicted, and as measured if it ran.
struct ReportedArm {
  std::string_view name;
  const ArmPrediction* prediction;
  const train::ArmResult* measured;  ///< null without --run
};

/// A prediction and, after --run, the measurement beside it.
struct CodesignReport {
  CodesignResult prediction;
  std::optional<train::CompareResult> measured;  ///< arms "direct port", ["native dtype",] "plan"

  const train::ArmResult* Measured(std::string_view arm) const;
  /// Direct port, native-dtype port where it is another recipe, plan; points into this report.
  std::vector<ReportedArm> Arms() const;
  std::optional<MeasuredRatio> MeasuredSpeedup() const;            ///< plan over direct port
  std::optional<MeasuredRatio> MeasuredSpeedupOverNative() const;  ///< plan over native-dtype port
  /// The direct port's dtype is already the target's fastest: there is no third arm.
  bool native_is_direct() const {
    return prediction.native_dtype.recipe == prediction.direct_port.recipe;
  }
};

inline constexpr std::string_view kDirectPort = "direct port";
inline constexpr std::string_view kNativeDtype = "native dtype";
inline constexpr std::string_view kPlan = "plan";

/// Verdict, arms, levers, where the plan's step goes, what would be tried next.
std::string CodesignText(const CodesignReport& report);
/// DESIGN.md "codesign", with the third arm and the terms of both steps beside the contract's keys.
Json CodesignJson(const CodesignReport& report);
/// One file, no scripts, nothing loaded from elsewhere.
std::string CodesignHtml(const CodesignReport& report);

/// "bf16, batch 8192, sparse update, merged tables, pad 8, library GEMM".
std::string RecipeText(const Recipe& recipe);

}  // namespace gnomon
