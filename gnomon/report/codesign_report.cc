// The same answer three ways. Text: verdict, arms side by side with predicted and measured step
// time, levers one at a time and together, next step. JSON: the contract's keys. HTML:
// report/codesign_html.cc. A measured speed-up is the median over interleaved blocks of the ratio
// of seconds a sample, so that a machine that drifts moves both sides of each ratio.

#include "gnomon/report/codesign_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "gnomon/base/statistics.h"
#include "gnomon/base/text_table.h"

namespace gnomon {

MeasuredRatio RatioOverBlocks(const train::ArmResult& arm, const train::ArmResult& base) {
  const size_t blocks =
      std::min(arm.block_seconds_per_sample.size(), base.block_seconds_per_sample.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < blocks; ++i)
    ratios.push_back(base.block_seconds_per_sample[i] / arm.block_seconds_per_sample[i]);
  if (ratios.empty()) return {};
  return {Median(ratios), MedianAbsoluteDeviation(ratios), static_cast<int>(blocks)};
}

const train::ArmResult* CodesignReport::Measured(std::string_view arm) const {
  if (!measured) return nullptr;
  for (const train::ArmResult& result : measured->arms)
    if (result.name == arm) return &result;
  return nullptr;
}

std::vector<ReportedArm> CodesignReport::Arms() const {
  std::vector<ReportedArm> arms = {{kDirectPort, &prediction.direct_port, Measured(kDirectPort)}};
  if (!native_is_direct())
    arms.push_back({kNativeDtype, &prediction.native_dtype, Measured(kNativeDtype)});
  arms.push_back({kPlan, &prediction.plan, Measured(kPlan)});
  return arms;
}

std::optional<MeasuredRatio> CodesignReport::MeasuredSpeedup() const {
  const auto *plan = Measured(kPlan), *base = Measured(kDirectPort);
  if (plan == nullptr || base == nullptr) return std::nullopt;
  return RatioOverBlocks(*plan, *base);
}

std::optional<MeasuredRatio> CodesignReport::MeasuredSpeedupOverNative() const {
  const auto *plan = Measured(kPlan),
             *base = Measured(native_is_direct() ? kDirectPort : kNativeDtype);
  if (plan == nullptr || base == nullptr) return std::nullopt;
  return RatioOverBlocks(*plan, *base);
}

std::string RecipeText(const Recipe& recipe) {
  std::string text = fmt::format("{}, batch {}", Name(recipe.dtype), recipe.batch);
  switch (recipe.embedding_update) {
    case EmbeddingUpdate::kDense:
      text += ", dense update";
      break;
    case EmbeddingUpdate::kSparse:
      text += ", sparse update";
      break;
    case EmbeddingUpdate::kFused:
      text += ", fused update";
      break;
  }
  if (recipe.fused_tables) text += ", merged tables";
  if (recipe.pad_to > 1) text += fmt::format(", pad {}", recipe.pad_to);
  if (recipe.fused_linear) text += ", fused linear";
  if (recipe.fused_interaction) text += ", fused interaction";
  if (recipe.fused_optimizer) text += ", fused optimiser";
  text += recipe.gemm_backend == GemmBackend::kGnomon ? ", picked GEMM" : ", library GEMM";
  if (recipe.threads > 0) text += fmt::format(", {} threads", recipe.threads);
  return text;
}

namespace {

std::string EntropyText(const std::vector<double>& entropies) {
  if (entropies.empty()) return "-";
  return fmt::format("{:.4f} ± {:.4f}", Mean(entropies), StandardDeviation(entropies));
}

std::string Verdict(const CodesignReport& report) {
  const CodesignResult& p = report.prediction;
  std::string text = fmt::format("{}, {} to {}: ", p.model, p.source, p.target);
  if (const auto speedup = report.MeasuredSpeedup()) {
    text += fmt::format(
        "the plan reaches {:.2f} ± {:.2f} times the direct port's samples/s, measured "
        "(predicted {:.2f})\n",
        speedup->median, speedup->spread, p.speedup_predicted);
    if (const auto native = report.MeasuredSpeedupOverNative();
        native && !report.native_is_direct())
      text += fmt::format(
          "and {:.2f} ± {:.2f} times those of the direct port with only its dtype made "
          "native, measured (predicted {:.2f})\n",
          native->median, native->spread, p.speedup_over_native_dtype);
  } else {
    text += fmt::format("the plan reaches {:.2f} times the direct port's samples/s, predicted\n",
                        p.speedup_predicted);
  }
  text += fmt::format(
      "to the same quality it is predicted {:.1f} times as fast, since samples to quality grow "
      "with the batch (critical batch: the model file)\n",
      p.speedup_to_quality_predicted);
  if (report.native_is_direct())
    text += fmt::format("{} is {}'s fastest native dtype already: no gain comes from changing it\n",
                        Name(p.direct_port.recipe.dtype), p.target);
  return text;
}

std::string ArmsText(const CodesignReport& report) {
  const bool ran = report.measured.has_value();
  TextTable table({"arm", "step predicted", "step measured", "error",
                   ran ? "samples/s measured" : "samples/s predicted", "normalized entropy",
                   "memory predicted"});
  std::string recipes;
  for (const auto& [name, arm, measured] : report.Arms()) {
    table.Row(
        {std::string(name), Show(arm->cost.time),
         measured ? Show(measured->step_time) + " ± " + Show(measured->step_spread) : "-",
         measured ? fmt::format("{:+.1f}%", 100 * (arm->cost.time / measured->step_time - 1)) : "-",
         Significant(measured ? measured->samples_per_second : arm->cost.samples_per_second),
         measured ? EntropyText(measured->normalized_entropy) : "-",
         Show(arm->cost.memory.total()) + (arm->refused ? " (does not fit)" : "")});
    recipes += fmt::format("  {:<13} {}\n", name, RecipeText(arm->recipe));
    for (const std::string& note : arm->notes) recipes += fmt::format("  {:<13} ({})\n", "", note);
  }
  return table.Text() + recipes;
}

std::string LeversText(const CodesignResult& result) {
  if (result.levers.empty()) return "no lever changes anything: the direct port is the plan\n";
  std::string text =
      "levers, predicted samples/s over the direct port's (risks and sources: --json or "
      "--report):\n";
  TextTable table({"lever", "from", "to", "alone", "together so far"});
  for (const LeverGain& lever : result.levers)
    table.Row({lever.name, lever.from, lever.to, fmt::format("{:.2f}x", lever.gain),
               fmt::format("{:.2f}x", lever.cumulative)});
  return text + table.Text();
}

/// One row a term, one column an arm.
std::string TermsText(const CodesignReport& report) {
  const std::vector<ReportedArm> arms = report.Arms();
  std::vector<std::string> header = {"term"}, names;
  for (const ReportedArm& arm : arms) {
    header.emplace_back(arm.name);
    for (const Term& term : arm.prediction->cost.terms)
      if (std::find(names.begin(), names.end(), term.name) == names.end())
        names.push_back(term.name);
  }
  TextTable table(header);
  for (const std::string& term_name : names) {
    std::vector<std::string> row = {term_name};
    for (const ReportedArm& arm : arms) {
      const auto& terms = arm.prediction->cost.terms;
      const auto term = std::find_if(terms.begin(), terms.end(),
                                     [&](const Term& t) { return t.name == term_name; });
      row.push_back(term == terms.end()
                        ? "-"
                        : fmt::format("{} ({:.0f}%)", Show(term->time),
                                      100 * (term->time / arm.prediction->cost.time)));
    }
    table.Row(std::move(row));
  }
  return "where the step goes, predicted:\n" + table.Text();
}

/// More than these the reader does not act on at once; JSON has them all.
constexpr size_t kNextShown = 3;

std::string NextText(const CodesignReport& report) {
  std::string text;
  const std::vector<NextStep>& next = report.prediction.next;
  for (const NextStep& step : std::span(next).first(std::min(kNextShown, next.size())))
    text +=
        fmt::format("next: {} (at most {:.2f}x, predicted): {}\n", step.what, step.gain, step.why);
  if (!report.measured)
    text += fmt::format(
        "next: add --run to train both and measure, or -o plan.toml for gnomon train\n");
  return text;
}

Json RecipeJson(const Recipe& recipe) {
  constexpr std::string_view kUpdate[] = {"dense", "sparse", "fused"};
  return {{"dtype", Name(recipe.dtype)},
          {"batch", recipe.batch},
          {"learning_rate", recipe.learning_rate},
          {"embedding_update", kUpdate[static_cast<size_t>(recipe.embedding_update)]},
          {"fused_tables", recipe.fused_tables},
          {"pad_to", recipe.pad_to},
          {"threads", recipe.threads},
          {"fused_linear", recipe.fused_linear},
          {"fused_interaction", recipe.fused_interaction},
          {"fused_optimizer", recipe.fused_optimizer},
          {"gemm_backend", recipe.gemm_backend == GemmBackend::kGnomon ? "gnomon" : "library"}};
}

Json ArmJson(const ArmPrediction& arm, const train::ArmResult* measured) {
  Json terms = Json::array();
  for (const Term& term : arm.cost.terms)
    terms.push_back({{"name", term.name}, {"us", InMicroseconds(term.time)}, {"why", term.why}});
  Json json = {
      {"predicted_us", InMicroseconds(arm.cost.time)},
      {"measured_us", measured ? Json(InMicroseconds(measured->step_time)) : Json(nullptr)},
      {"memory_bytes", arm.cost.memory.total().value},
      {"predicted_samples_per_s", arm.cost.samples_per_second},
      {"samples_per_s", measured ? Json(measured->samples_per_second) : Json(nullptr)},
      {"recipe", RecipeJson(arm.recipe)},
      {"terms", terms}};
  if (measured) {
    json["measured_spread_us"] = InMicroseconds(measured->step_spread);
    json["measured_memory_bytes"] = measured->peak_memory.value;
  }
  if (arm.refused) json["refused"] = arm.refused->Text();
  return json;
}

Json EntropyJson(const train::ArmResult* arm) {
  return arm == nullptr || arm->normalized_entropy.empty() ? Json(nullptr)
                                                           : Json(Mean(arm->normalized_entropy));
}

Json RatioJson(const std::optional<MeasuredRatio>& ratio) {
  return ratio ? Json(ratio->median) : Json(nullptr);
}

}  // namespace

std::string CodesignText(const CodesignReport& report) {
  return Verdict(report) + ArmsText(report) + LeversText(report.prediction) + TermsText(report) +
         NextText(report);
}

Json CodesignJson(const CodesignReport& report) {
  const CodesignResult& p = report.prediction;
  Json levers = Json::array();
  for (const LeverGain& lever : p.levers)
    levers.push_back({{"name", lever.name},
                      {"from", lever.from},
                      {"to", lever.to},
                      {"risk", lever.risk},
                      {"gain", lever.gain},
                      {"gain_together", lever.cumulative},
                      {"gain_to_quality", lever.gain_to_quality},
                      {"source", lever.source}});
  Json next = Json::array();
  for (const NextStep& step : p.next)
    next.push_back({{"what", step.what}, {"gain", step.gain}, {"why", step.why}});
  const auto speedup = report.MeasuredSpeedup();
  Json entropy = {{"direct_port", EntropyJson(report.Measured(kDirectPort))},
                  {"plan", EntropyJson(report.Measured(kPlan))}};
  if (!report.native_is_direct())
    entropy["native_dtype"] = EntropyJson(report.Measured(kNativeDtype));
  return {
      {"model", p.model},
      {"source", p.source},
      {"target", p.target},
      {"devices", 1},
      {"direct_port", ArmJson(p.direct_port, report.Measured(kDirectPort))},
      {"native_dtype",
       ArmJson(p.native_dtype, report.native_is_direct() ? report.Measured(kDirectPort)
                                                         : report.Measured(kNativeDtype))},
      {"plan", ArmJson(p.plan, report.Measured(kPlan))},
      {"speedup_predicted", p.speedup_predicted},
      {"speedup_measured", RatioJson(speedup)},
      {"speedup_measured_spread", speedup ? Json(speedup->spread) : Json(nullptr)},
      {"speedup_over_native_dtype_predicted", p.speedup_over_native_dtype},
      {"speedup_over_native_dtype_measured", RatioJson(report.MeasuredSpeedupOverNative())},
      {"speedup_to_quality_predicted", p.speedup_to_quality_predicted},
      {"levers", levers},
      {"normalized_entropy", entropy},
      {"quality_samples", report.measured ? Json(report.measured->quality_samples) : Json(nullptr)},
      {"next", next}};
}

}  // namespace gnomon
