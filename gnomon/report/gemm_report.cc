// A pick is shown as verdict, table, next step; an explanation as the terms that add up to the
// time. Entry points: the header's.

#include "gnomon/report/gemm_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

FlopsPerSecond Speed(const Problem& problem, Seconds time) { return problem.flops() / time; }

std::string SideFlags(const Problem& problem) {
  std::string flags = fmt::format("-m {} -n {} -k {} --layout {} --dtype {}", problem.m, problem.n,
                                  problem.k, Name(problem.layout), Name(problem.dtype));
  if (problem.batch != 1) flags += fmt::format(" --batch {}", problem.batch);
  return flags;
}

}  // namespace

std::string PicksText(const Device& device, const Problem& problem,
                      std::span<const ExplainedPick> picks) {
  const ExplainedPick& best = picks.front();
  std::string text =
      fmt::format("{} on {}: {} {}, predicted {} ± {:.0f}%, bound by {}\n", problem.Text(),
                  device.id, best.family, best.config, Show(best.prediction.time),
                  best.prediction.relative_error * 100, Name(best.prediction.bound));
  TextTable table({"family", "config", "predicted", "rate", "bound"});
  for (const ExplainedPick& pick : picks) {
    table.Row({pick.family, pick.config, Show(pick.prediction.time),
               Show(Speed(problem, pick.prediction.time)),
               std::string(Name(pick.prediction.bound))});
  }
  text += table.Text();
  text += fmt::format("next: gnomon gemm explain --device {} {} --config {}\n", device.id,
                      SideFlags(problem), best.config);
  return text;
}

Json PicksJson(const Device& device, const Problem& problem, std::span<const ExplainedPick> picks) {
  Json list = Json::array();
  for (const ExplainedPick& pick : picks) {
    Json terms = Json::array();
    for (const Term& term : pick.prediction.terms)
      terms.push_back({{"name", term.name}, {"us", InMicroseconds(term.time)}, {"why", term.why}});
    list.push_back({{"family", pick.family},
                    {"config", pick.config},
                    {"predicted_us", InMicroseconds(pick.prediction.time)},
                    {"relative_error", pick.prediction.relative_error},
                    {"bound", Name(pick.prediction.bound)},
                    {"terms", terms}});
  }
  return {{"device", device.id},
          {"problem",
           {{"m", problem.m},
            {"n", problem.n},
            {"k", problem.k},
            {"batch", problem.batch},
            {"layout", Name(problem.layout)},
            {"dtype", Name(problem.dtype)}}},
          {"picks", list}};
}

std::string ExplainText(const Device& device, const Problem& problem, const ExplainedPick& pick) {
  std::string text =
      fmt::format("{} on {}: {} {} takes predicted {} ({}), bound by {}\n", problem.Text(),
                  device.id, pick.family, pick.config, Show(pick.prediction.time),
                  Show(Speed(problem, pick.prediction.time)), Name(pick.prediction.bound));
  TextTable table({"term", "predicted", "share", "why"});
  for (const Term& term : pick.prediction.terms) {
    table.Row({term.name, Show(term.time),
               fmt::format("{:.1f}%", 100 * (term.time / pick.prediction.time)), term.why});
  }
  text += table.Text();
  text += fmt::format("next: gnomon gemm select --device {} {} --top 5\n", device.id,
                      SideFlags(problem));
  return text;
}

std::string SweepText(const SweepResult& result, const std::string& path) {
  return fmt::format(
      "{} of {} shapes are complete in {} ({} rows written now)\n"
      "next: gnomon gemm evaluate --device host --measured {}\n",
      result.complete, result.shapes, path, result.rows_written, path);
}

Json SweepJson(const SweepResult& result, const std::string& path) {
  return {{"output", path},
          {"shapes", result.shapes},
          {"complete", result.complete},
          {"rows_written", result.rows_written}};
}

namespace {

std::string PercentOrDash(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : "-";
}

std::string OrDash(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

/// The shapes that cost the geometric mean most, worst first.
constexpr size_t kWorstShown = 8;

std::string WorstPicksText(std::vector<PickOnShape> shapes) {
  std::sort(shapes.begin(), shapes.end(),
            [](const PickOnShape& a, const PickOnShape& b) { return a.ratio() < b.ratio(); });
  TextTable table({"problem", "best/pick", "pick", "measured", "predicted", "best", "measured"});
  for (size_t i = 0; i < std::min(kWorstShown, shapes.size()); ++i) {
    const PickOnShape& shape = shapes[i];
    table.Row({shape.problem.Text(), fmt::format("{:.3f}", shape.ratio()), shape.pick,
               Show(shape.pick_time), Show(shape.pick_predicted), shape.best,
               Show(shape.best_time)});
  }
  return table.Text();
}

}  // namespace

std::string EvaluationText(const Evaluation& evaluation, const Device& device,
                           const std::string& path) {
  std::string text =
      evaluation.regret
          ? fmt::format(
                "{} on {}: best/pick {:.3f} (geometric mean over {} shapes, 1 is perfect)\n", path,
                device.id, evaluation.regret->geomean, evaluation.shapes.size())
          : fmt::format("{} on {}: no shape has its losers timed, so no regret\n", path, device.id);
  TextTable table({"figure", "value"});
  table.Row({"rows",
             fmt::format("{} ({} predicted, {} of other devices, {} not modelled)", evaluation.rows,
                         evaluation.predicted, evaluation.other_device, evaluation.not_modelled)});
  table.Row({"median |predicted/measured - 1|", PercentOrDash(evaluation.median_abs_error)});
  table.Row({"90th percentile of it", PercentOrDash(evaluation.p90_abs_error)});
  table.Row({"rank correlation, all rows", OrDash(evaluation.spearman)});
  table.Row({"rank correlation within a shape", OrDash(evaluation.spearman_within_shape)});
  if (const auto& regret = evaluation.regret) {
    table.Row({"best/pick: p10, p5, least",
               fmt::format("{:.3f}, {:.3f}, {:.3f}", regret->p10, regret->p5, regret->min)});
    table.Row({"best/best of four picks", fmt::format("{:.3f}", regret->top4_geomean)});
  }
  text += table.Text();
  if (evaluation.regret) text += WorstPicksText(evaluation.shapes);
  return text;
}

Json EvaluationJson(const Evaluation& evaluation) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json regret = {{"geomean", nullptr},
                 {"p10", nullptr},
                 {"p5", nullptr},
                 {"min", nullptr},
                 {"top4_geomean", nullptr}};
  if (const auto& r = evaluation.regret) {
    regret = {{"geomean", r->geomean},
              {"p10", r->p10},
              {"p5", r->p5},
              {"min", r->min},
              {"top4_geomean", r->top4_geomean}};
  }
  Json choice = nullptr;
  if (const auto& c = evaluation.family_choice) {
    choice = {{"shapes", c->shapes},
              {"best_single", c->best_single},
              {"picked_best", c->picked_best},
              {"headroom_recovered", c->headroom_recovered}};
  }
  return {{"rows", evaluation.rows},
          {"predicted", evaluation.predicted},
          {"median_abs_error", or_null(evaluation.median_abs_error)},
          {"p90_abs_error", or_null(evaluation.p90_abs_error)},
          {"spearman", or_null(evaluation.spearman)},
          {"spearman_within_shape", or_null(evaluation.spearman_within_shape)},
          {"regret", regret},
          {"family_choice", choice}};
}

std::string BenchText(const BenchResult& result) {
  std::string vendors;
  for (const std::string& vendor : result.vendors)
    vendors += (vendors.empty() ? "" : " and ") + vendor;
  std::string text = fmt::format(
      "pick against the better of {}: {:.3f} times as fast (geometric mean, {} shapes)\n", vendors,
      result.geomean_ratio, result.rows.size());
  TextTable table(
      {"shape", "problem", "pick", "predicted", "measured", "vendor", "measured", "ratio"});
  for (const BenchRow& row : result.rows) {
    table.Row({row.shape.name, row.shape.problem.Text(), row.config, Show(row.predicted),
               Show(row.pick), row.vendor_name, Show(row.vendor),
               fmt::format("{:.3f}", row.ratio())});
  }
  return text + table.Text();
}

Json BenchJson(const BenchResult& result) {
  Json rows = Json::array();
  for (const BenchRow& row : result.rows) {
    const Problem& problem = row.shape.problem;
    rows.push_back({{"name", row.shape.name},
                    {"m", problem.m},
                    {"n", problem.n},
                    {"k", problem.k},
                    {"layout", Name(problem.layout)},
                    {"config", row.config},
                    {"predicted_us", InMicroseconds(row.predicted)},
                    {"pick_us", InMicroseconds(row.pick)},
                    {"vendor", row.vendor_name},
                    {"vendor_us", InMicroseconds(row.vendor)},
                    {"ratio", row.ratio()}});
  }
  return {{"rows", rows}, {"vendors", result.vendors}, {"geomean_ratio", result.geomean_ratio}};
}

}  // namespace gnomon
