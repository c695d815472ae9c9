// An evaluation of operators is shown as one verdict over all rows, a table by device and operator
// with the errors of all rows and of those that no constant was fitted on, and what stands apart.
// Entry points: the header's.

#include "gnomon/report/cost_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "gnomon/base/statistics.h"
#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

constexpr double kPercent = 100;

std::string Percent(double share) { return fmt::format("{:.1f}%", share * kPercent); }

std::string Ratio(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "-";
}

// Reasons in the order of their first rows, with the rows' lines.
std::vector<std::pair<std::string, std::vector<int>>> Reasons(const OpsEvaluation& evaluation) {
  std::vector<std::pair<std::string, std::vector<int>>> reasons;
  for (const OpsApart& apart : evaluation.apart) {
    auto found =
        std::ranges::find(reasons, apart.reason, &std::pair<std::string, std::vector<int>>::first);
    if (found == reasons.end()) found = reasons.insert(found, {apart.reason, {}});
    found->second.push_back(apart.line);
  }
  return reasons;
}

std::string Verdict(const OpsEvaluation& evaluation, const std::string& path) {
  std::vector<double> errors;
  for (const OpsTiming& timing : evaluation.timings)
    errors.push_back(std::abs(timing.predicted / timing.measured - 1));
  const std::string counts = fmt::format(
      "{} of {} rows predicted, {} apart{}", evaluation.timings.size(), evaluation.rows,
      evaluation.apart.size(),
      evaluation.other_device > 0 ? fmt::format(", {} of other devices", evaluation.other_device)
                                  : "");
  if (errors.empty()) return fmt::format("{} ({}): {}\n", path, Name(evaluation.kind), counts);
  return fmt::format("{} ({}): predicted within {} of measured by median; {}\n", path,
                     Name(evaluation.kind), Percent(Median(errors)), counts);
}

}  // namespace

std::string OpsText(const OpsEvaluation& evaluation, const std::string& path) {
  std::string text = Verdict(evaluation, path);
  if (!evaluation.groups.empty()) {
    TextTable table(
        {"device", "operator", "rows", "median", "p90", "rank", "not fitted", "median", "p90"});
    for (const OpsGroup& group : evaluation.groups) {
      const bool held = group.held_out.rows > 0;
      table.Row({group.device, group.op, fmt::format("{}", group.all.rows),
                 Percent(group.all.median), Percent(group.all.p90), Ratio(group.all.spearman),
                 fmt::format("{}", group.held_out.rows),
                 held ? Percent(group.held_out.median) : "-",
                 held ? Percent(group.held_out.p90) : "-"});
    }
    text += table.Text();
  }
  if (!evaluation.apart.empty()) {
    TextTable table({"apart because", "rows", "first line"});
    for (const auto& [reason, lines] : Reasons(evaluation))
      table.Row({reason, fmt::format("{}", lines.size()), fmt::format("{}", lines.front())});
    text += table.Text();
  }
  return text + fmt::format("next: gnomon cost evaluate --measured {} --json --rows\n", path);
}

Json OpsJson(const OpsEvaluation& evaluation, bool every_row) {
  const auto errors = [](const OpsError& error) {
    const bool any = error.rows > 0;
    return Json{{"rows", error.rows},
                {"median_abs_error", any ? Json(error.median) : Json(nullptr)},
                {"p90_abs_error", any ? Json(error.p90) : Json(nullptr)},
                {"spearman", error.spearman ? Json(*error.spearman) : Json(nullptr)}};
  };
  Json groups = Json::array();
  for (const OpsGroup& group : evaluation.groups) {
    Json entry = {{"device", group.device}, {"op", group.op}};
    entry.update(errors(group.all));
    entry["held_out"] = errors(group.held_out);
    groups.push_back(std::move(entry));
  }
  Json apart = Json::array();
  for (const auto& [reason, lines] : Reasons(evaluation))
    apart.push_back({{"reason", reason}, {"rows", lines.size()}, {"lines", lines}});
  Json json = {{"kind", Name(evaluation.kind)},
               {"rows", evaluation.rows},
               {"predicted", evaluation.timings.size()},
               {"other_device", evaluation.other_device},
               {"groups", groups},
               {"apart", apart}};
  if (!every_row) return json;
  json["timings"] = Json::array();
  for (const OpsTiming& timing : evaluation.timings)
    json["timings"].push_back({{"line", timing.line},
                               {"device", timing.device},
                               {"op", timing.op},
                               {"measured_us", InMicroseconds(timing.measured)},
                               {"predicted_us", InMicroseconds(timing.predicted)},
                               {"fitted", timing.fitted}});
  return json;
}

}  // namespace gnomon
