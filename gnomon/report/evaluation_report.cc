// An evaluation as a performance engineer reads it: is it good enough to trust (verdict), where is
// it good and where not (by size, family, dtype), and what went wrong most (worst picks).
//
// Entry points: EvaluationText, EvaluationJson. docs/accuracy.md: accuracy_markdown.cc.

#include "gnomon/report/evaluation_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

std::string Percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string PercentOrDash(const std::optional<double>& share) {
  return share ? Percent(*share) : "-";
}

std::string OrDash(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

/// The shapes that cost the geometric mean most, worst first.
constexpr size_t kWorstShown = 8;

std::string WorstPicksText(std::vector<PickOnShape> shapes) {
  std::stable_sort(shapes.begin(), shapes.end(), [](const PickOnShape& a, const PickOnShape& b) {
    return a.ratio() < b.ratio();
  });
  TextTable table({"problem", "best/pick", "pick", "measured", "predicted", "best", "measured"});
  for (size_t i = 0; i < std::min(kWorstShown, shapes.size()); ++i) {
    const PickOnShape& shape = shapes[i];
    table.Row({shape.problem.Text(), fmt::format("{:.3f}", shape.ratio()), shape.pick,
               Show(shape.pick_time), Show(shape.pick_predicted), shape.best,
               Show(shape.best_time)});
  }
  return "\n" + table.Text();
}

std::string GroupsText(const std::string& what, const std::vector<GroupFigures>& groups) {
  if (groups.size() < 2) return {};
  TextTable table({what, "timings", "median", "p90", "rank", "roofline's", "p90", "rank"});
  for (const GroupFigures& group : groups)
    table.Row({group.name, fmt::to_string(group.model.timings), Percent(group.model.median),
               Percent(group.model.p90), OrDash(group.model.spearman),
               Percent(group.roofline.median), Percent(group.roofline.p90),
               OrDash(group.roofline.spearman)});
  return "\n" + table.Text();
}

std::string Join(const std::vector<std::string>& names, std::string_view between) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : std::string(between)) + name;
  return text;
}

std::string ChoiceText(const FamilyChoice& choice) {
  constexpr size_t kNamed = 6;
  const std::string among = choice.among.size() > kNamed
                                ? fmt::format("choosing among {} families", choice.among.size())
                                : Join(choice.among, " or ");
  std::string text =
      fmt::format("\n{} on {} shapes: the fastest picked on {:.0f}%, best/picked {:.3f}\n", among,
                  choice.shapes, 100 * choice.picked_fastest, choice.picked_best);
  if (choice.singles.empty()) return text + "  (no family is on all of them)\n";
  TextTable table({"always", "best/it", "headroom recovered"});
  for (const SingleFamily& single : choice.singles)
    table.Row({single.family, fmt::format("{:.3f}", single.always),
               fmt::format("{:.0f}%", 100 * single.headroom_recovered)});
  return text + table.Text();
}

std::string RowsText(const Evaluation& evaluation, std::int64_t failed) {
  std::string text = fmt::format("{} ({} timings predicted", evaluation.rows, evaluation.predicted);
  const auto add = [&](std::int64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(evaluation.repeats, "repeats");
  add(evaluation.other_device, "of other devices");
  add(evaluation.not_modelled, "not modelled");
  add(failed, "more failed when timed");
  return text + ")";
}

std::string Verdict(const Evaluation& evaluation, const EvaluationFigures& figures,
                    const std::string& path, bool held_out_only) {
  std::string text = fmt::format("{} on {}{}: ", path, Join(evaluation.devices, ", "),
                                 held_out_only ? ", rows that nothing was fitted on" : "");
  if (figures.regret)
    return text + fmt::format("best/pick {:.3f} (geometric mean over {} shapes, 1 is perfect)\n",
                              figures.regret->geomean, figures.shapes.size());
  if (figures.median_abs_error)
    return text + fmt::format("median error {}; no shape has its losers timed, so no regret\n",
                              Percent(*figures.median_abs_error));
  return text + "no row can be predicted\n";
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json ErrorsJson(const ErrorFigures& errors) {
  return {{"timings", errors.timings},
          {"median_abs_error", errors.median},
          {"p90_abs_error", errors.p90},
          {"spearman", OrNull(errors.spearman)}};
}

Json GroupsJson(const std::vector<GroupFigures>& groups) {
  Json list = Json::array();
  for (const GroupFigures& group : groups) {
    Json json = {{"name", group.name}};
    json.update(ErrorsJson(group.model));
    json["roofline"] = ErrorsJson(group.roofline);
    list.push_back(std::move(json));
  }
  return list;
}

Json ChoiceJson(const FamilyChoice& choice) {
  Json singles = Json::array();
  for (const SingleFamily& single : choice.singles)
    singles.push_back({{"family", single.family},
                       {"always", single.always},
                       {"headroom_recovered", single.headroom_recovered}});
  const bool any = !choice.singles.empty();
  return {{"shapes", choice.shapes},
          {"best_single", any ? Json(choice.best_single) : Json(nullptr)},
          {"picked_best", choice.picked_best},
          {"headroom_recovered", any ? Json(choice.headroom_recovered) : Json(nullptr)},
          {"among", choice.among},
          {"picked_fastest", choice.picked_fastest},
          {"best_single_family", any ? Json(choice.best_single_family) : Json(nullptr)},
          {"singles", singles}};
}

Json FiguresJson(const EvaluationFigures& figures) {
  Json regret = {{"geomean", nullptr},
                 {"p10", nullptr},
                 {"p5", nullptr},
                 {"min", nullptr},
                 {"top4_geomean", nullptr}};
  if (const auto& r = figures.regret) {
    regret = {{"geomean", r->geomean},
              {"p10", r->p10},
              {"p5", r->p5},
              {"min", r->min},
              {"top4_geomean", r->top4_geomean}};
  }
  Json pairs = Json::array();
  for (const FamilyChoice& pair : figures.family_pairs) pairs.push_back(ChoiceJson(pair));
  Json rank = nullptr;
  if (const auto& t = figures.tile_rank) {
    rank = {{"winners", t->winners},    {"median_candidates", t->median_candidates},
            {"median", t->median_rank}, {"first", t->first},
            {"top4", t->top4},          {"top8", t->top8}};
  }
  return {
      {"median_abs_error", OrNull(figures.median_abs_error)},
      {"p90_abs_error", OrNull(figures.p90_abs_error)},
      {"spearman", OrNull(figures.spearman)},
      {"spearman_within_shape", OrNull(figures.spearman_within_shape)},
      {"regret", regret},
      {"family_choice", figures.family_choice ? ChoiceJson(*figures.family_choice) : Json(nullptr)},
      {"family_pairs", pairs},
      {"tile_rank", rank},
      {"roofline", figures.roofline ? ErrorsJson(*figures.roofline) : Json(nullptr)},
      {"decades", GroupsJson(figures.decades)},
      {"dtypes", GroupsJson(figures.dtypes)},
      {"families", GroupsJson(figures.families)}};
}

}  // namespace

std::string EvaluationText(const Evaluation& evaluation, const std::string& path,
                           std::int64_t failed, bool held_out_only) {
  const EvaluationFigures& figures = held_out_only ? evaluation.held_out : evaluation;
  std::string text = Verdict(evaluation, figures, path, held_out_only);
  TextTable table(
      held_out_only ? std::vector<std::string>{"figure", "held out"}
                    : std::vector<std::string>{"figure", "all rows", "held out", "roofline there"});
  const auto row = [&](const std::string& name, const auto& show) {
    if (held_out_only)
      table.Row({name, show(evaluation.held_out)});
    else
      table.Row({name, show(evaluation), show(evaluation.held_out)});
  };
  const auto error = [&](const std::string& name, const auto& show, const auto& baseline) {
    std::vector<std::string> cells = {name};
    if (!held_out_only) cells.push_back(show(static_cast<const EvaluationFigures&>(evaluation)));
    cells.push_back(show(evaluation.held_out));
    const auto& roofline = evaluation.held_out.roofline;
    if (!held_out_only) cells.push_back(roofline ? baseline(*roofline) : "-");
    table.Row(std::move(cells));
  };
  using Figures = EvaluationFigures;
  row("timings", [](const Figures& f) { return fmt::to_string(f.timings); });
  error(
      "median |predicted/measured - 1|",
      [](const Figures& f) { return PercentOrDash(f.median_abs_error); },
      [](const ErrorFigures& e) { return Percent(e.median); });
  error(
      "90th percentile of it", [](const Figures& f) { return PercentOrDash(f.p90_abs_error); },
      [](const ErrorFigures& e) { return Percent(e.p90); });
  error(
      "rank correlation, all", [](const Figures& f) { return OrDash(f.spearman); },
      [](const ErrorFigures& e) { return OrDash(e.spearman); });
  if (figures.spearman_within_shape)
    row("rank correlation within a shape",
        [](const Figures& f) { return OrDash(f.spearman_within_shape); });
  if (figures.regret) {
    row("best/pick: geometric mean",
        [](const Figures& f) { return f.regret ? fmt::format("{:.3f}", f.regret->geomean) : "-"; });
    row("best/pick: p10, p5, least", [](const Figures& f) {
      return f.regret
                 ? fmt::format("{:.3f}, {:.3f}, {:.3f}", f.regret->p10, f.regret->p5, f.regret->min)
                 : "-";
    });
    row("best/best of four picks", [](const Figures& f) {
      return f.regret ? fmt::format("{:.3f}", f.regret->top4_geomean) : "-";
    });
  }
  if (figures.tile_rank) {
    row("place of the winner, median", [](const Figures& f) {
      return f.tile_rank ? fmt::format("{:.0f} of {:.0f}", f.tile_rank->median_rank,
                                       f.tile_rank->median_candidates)
                         : "-";
    });
    row("winner first, in 4, in 8", [](const Figures& f) {
      return f.tile_rank ? fmt::format("{:.0f}%, {:.0f}%, {:.0f}%", 100 * f.tile_rank->first,
                                       100 * f.tile_rank->top4, 100 * f.tile_rank->top8)
                         : "-";
    });
  }
  text += fmt::format("rows: {}\n", RowsText(evaluation, failed));
  if (evaluation.generic > 0)
    text +=
        fmt::format("{} timings are of families not known here, predicted by generic kernels: {}\n",
                    evaluation.generic, Join(evaluation.generic_families, ", "));
  if (evaluation.kin_dtype > 0)
    text += fmt::format(
        "{} timings are of a format not known here, predicted as the MX format of as many bits\n",
        evaluation.kin_dtype);
  text += table.Text();
  text += GroupsText("size", figures.decades);
  text += GroupsText("family", figures.families);
  text += GroupsText("dtype", figures.dtypes);
  if (figures.family_choice) text += ChoiceText(*figures.family_choice);
  if (figures.regret) text += WorstPicksText(figures.shapes);
  return text;
}

Json EvaluationJson(const Evaluation& evaluation, std::int64_t failed) {
  Json json = {{"rows", evaluation.rows}};
  json.update(FiguresJson(evaluation));
  json["predicted"] = evaluation.predicted;
  json["repeats"] = evaluation.repeats;
  json["other_device"] = evaluation.other_device;
  json["not_modelled"] = evaluation.not_modelled;
  json["failed"] = failed;
  json["generic"] = {{"timings", evaluation.generic}, {"families", evaluation.generic_families}};
  json["kin_dtype"] = evaluation.kin_dtype;
  json["devices"] = evaluation.devices;
  json["held_out"] = {{"timings", evaluation.held_out.timings}};
  json["held_out"].update(FiguresJson(evaluation.held_out));
  return json;
}

}  // namespace gnomon
