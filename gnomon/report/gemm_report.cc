// A pick is shown as verdict, table, next step; an explanation as the terms that add up to the
// time. Entry points: the header's.

#include "gnomon/report/gemm_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <utility>

#include "gnomon/base/statistics.h"
#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

FlopsPerSecond Speed(const Problem& problem, Seconds time) { return problem.flops() / time; }

std::string SideFlags(const Problem& problem) {
  std::string flags = fmt::format("-m {} -n {} -k {} --layout {} --dtype {}", problem.m, problem.n,
                                  problem.k, Name(problem.layout), Name(problem.dtype));
  if (problem.grouped())
    flags = fmt::format("--group {} -n {} -k {} --layout {} --dtype {}",
                        fmt::join(problem.group_m, ","), problem.n, problem.k, Name(problem.layout),
                        Name(problem.dtype));
  if (problem.dtype_out != problem.dtype)
    flags += fmt::format(" --dtype-out {}", Name(problem.dtype_out));
  if (problem.batch != 1) flags += fmt::format(" --batch {}", problem.batch);
  for (const auto& [flag, value] :
       {std::pair{"--lda", problem.lda}, {"--ldb", problem.ldb}, {"--ldc", problem.ldc}})
    if (value != 0) flags += fmt::format(" {} {}", flag, value);
  if (problem.workspace) flags += fmt::format(" --workspace {:.0f}", problem.workspace->value);
  return flags;
}

/// "670 TFLOP/s, 68% of the matrix units' sustained peak".
std::string SpeedText(const Device& device, const Problem& problem, Seconds time) {
  const FlopsPerSecond speed = Speed(problem, time), peak = device.SustainedPeak(problem.dtype);
  if (peak.value <= 0) return Show(speed);
  return fmt::format("{}, {:.0f}% of the sustained peak", Show(speed), 100 * (speed / peak));
}

// How sure the order of the first two is.
std::string SureText(const Device& device, std::span<const ExplainedPick> picks) {
  const ExplainedPick& best = picks.front();
  if (best.sure)
    return fmt::format("sure to {:.0f}% that the first beats the second\n", 100 * *best.sure);
  // Of the two, the one that nothing is known of; the second may not be shown.
  const std::string family = !best.calibrated                           ? best.family
                             : picks.size() > 1 && !picks[1].calibrated ? picks[1].family
                                                                        : "the second";
  return fmt::format(
      "not calibrated: predictions of {} were never held against rivals timed on {}, so how sure "
      "the first beats the second is not known\n",
      family, device.id);
}

// A figure as the terminal shows it.
std::string FigureText(const Figure& figure) {
  if (figure.unit == "share") return fmt::format("{:.0f}%", 100 * figure.value);
  if (figure.unit == "bytes") return Show(Bytes{figure.value});
  constexpr double kGiga = 1e9;
  if (figure.unit == "hertz") return fmt::format("{:.2f} GHz", figure.value / kGiga);
  return Significant(figure.value);
}

std::string FiguresText(const Prediction& prediction) {
  if (prediction.figures.empty()) return {};
  TextTable table({"figure", "value", "of what"});
  for (const Figure& figure : prediction.figures)
    table.Row({figure.name, FigureText(figure), figure.why});
  return "\n" + table.Text();
}

std::string RivalsText(const Explanation& explanation) {
  if (explanation.rivals.empty()) return {};
  const Prediction& pick = explanation.pick.prediction;
  TextTable table({"nearest rival", "predicted", "longer by", "differs most in"});
  for (const ExplainedPick& rival : explanation.rivals) {
    const Separation apart = SeparationOf(pick, rival.prediction);
    table.Row({rival.family + " " + rival.config, Show(rival.prediction.time),
               fmt::format("{:+.1f}%", 100 * (rival.prediction.time / pick.time - 1)),
               apart.longer.value == 0
                   ? "nothing"
                   : fmt::format("{} {}{}", apart.term, apart.longer.value > 0 ? "+" : "-",
                                 Show(Seconds{std::abs(apart.longer.value)}))});
  }
  std::string text = "\n" + table.Text();
  if (explanation.twins > 0)
    text += fmt::format("  ({} more configs are predicted the same in every term)\n",
                        explanation.twins);
  return text;
}

Json PickJson(const ExplainedPick& pick) {
  Json terms = Json::array();
  for (const Term& term : pick.prediction.terms)
    terms.push_back({{"name", term.name}, {"us", InMicroseconds(term.time)}, {"why", term.why}});
  return {{"family", pick.family},
          {"config", pick.config},
          {"predicted_us", InMicroseconds(pick.prediction.time)},
          {"relative_error", pick.prediction.relative_error},
          {"bound", Name(pick.prediction.bound)},
          {"sure", pick.sure ? Json(*pick.sure) : Json(nullptr)},
          {"calibrated", pick.calibrated},
          {"terms", terms}};
}

std::string DeviceFlags(const Device& device, std::string_view flags) {
  return flags.empty() ? "--device " + device.id : std::string(flags);
}

}  // namespace

Json ProblemJson(const Problem& problem) {
  Json json = {{"m", problem.m},
               {"n", problem.n},
               {"k", problem.k},
               {"batch", problem.batch},
               {"layout", Name(problem.layout)},
               {"dtype", Name(problem.dtype)},
               {"dtype_out", Name(problem.dtype_out)}};
  if (problem.grouped()) json["group_m"] = problem.group_m;
  for (const auto& [name, value] :
       {std::pair{"lda", problem.lda}, {"ldb", problem.ldb}, {"ldc", problem.ldc}})
    if (value != 0) json[name] = value;
  if (problem.workspace) json["workspace_bytes"] = problem.workspace->value;
  return json;
}

std::string PicksText(const Device& device, const Problem& problem,
                      std::span<const ExplainedPick> picks, std::string_view device_flags) {
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
  text += SureText(device, picks);
  text += fmt::format("next: gnomon gemm explain {} {} --config {}\n",
                      DeviceFlags(device, device_flags), SideFlags(problem), best.config);
  return text;
}

Json PicksJson(const Device& device, const Problem& problem, std::span<const ExplainedPick> picks) {
  Json list = Json::array();
  for (const ExplainedPick& pick : picks) list.push_back(PickJson(pick));
  return {{"device", device.id},
          {"units", device.units},
          {"problem", ProblemJson(problem)},
          {"picks", list}};
}

Separation SeparationOf(const Prediction& pick, const Prediction& other) {
  std::map<std::string, double> longer;
  for (const Term& term : other.terms) longer[term.name] += term.time.value;
  for (const Term& term : pick.terms) longer[term.name] -= term.time.value;
  Separation out;
  constexpr double kRounding = 1e-9;  // of the time: sums of the same terms in another order
  for (const auto& [name, seconds] : longer)
    if (std::abs(seconds) > kRounding * pick.time.value &&
        std::abs(seconds) > std::abs(out.longer.value))
      out = {name, {seconds}};
  return out;
}

std::string ExplainText(const Device& device, const Problem& problem,
                        const Explanation& explanation, std::string_view device_flags) {
  const ExplainedPick& pick = explanation.pick;
  const Prediction& prediction = pick.prediction;
  std::string text = fmt::format(
      "{} on {}: {} {}\npredicted {} ± {:.0f}%, bound by {}, {}\n", problem.Text(), device.id,
      pick.family, pick.config, Show(prediction.time), 100 * prediction.relative_error,
      Name(prediction.bound), SpeedText(device, problem, prediction.time));
  if (!explanation.in_space)
    text += fmt::format("select does not offer this config of {} for this problem\n", pick.family);
  TextTable table({"term", "predicted", "share", "why"});
  for (const Term& term : prediction.terms) {
    table.Row({term.name, Show(term.time),
               fmt::format("{:.1f}%", 100 * (term.time / prediction.time)), term.why});
  }
  table.Row({"total", Show(prediction.time), "100.0%", ""});
  text += table.Text();
  text += FiguresText(prediction);
  text += RivalsText(explanation);
  text += fmt::format("next: gnomon gemm select {} {} --top 5\n", DeviceFlags(device, device_flags),
                      SideFlags(problem));
  return text;
}

Json ExplainJson(const Device& device, const Problem& problem, const Explanation& explanation) {
  Json json = PicksJson(device, problem, {&explanation.pick, 1});
  Json figures = Json::array(), rivals = Json::array();
  const Prediction& pick = explanation.pick.prediction;
  for (const Figure& figure : pick.figures)
    figures.push_back({{"name", figure.name},
                       {"value", figure.value},
                       {"unit", figure.unit},
                       {"why", figure.why}});
  json["picks"][0]["figures"] = figures;
  json["picks"][0]["in_space"] = explanation.in_space;
  for (const ExplainedPick& rival : explanation.rivals) {
    const Separation apart = SeparationOf(pick, rival.prediction);
    rivals.push_back({{"family", rival.family},
                      {"config", rival.config},
                      {"predicted_us", InMicroseconds(rival.prediction.time)},
                      {"slower", rival.prediction.time / pick.time - 1},
                      {"term", apart.term},
                      {"term_longer_us", InMicroseconds(apart.longer)}});
  }
  json["rivals"] = rivals;
  json["twins"] = explanation.twins;
  return json;
}

std::string SweepText(const SweepResult& result, const std::string& path) {
  std::string text = fmt::format("{} of {} shapes are complete in {} ({} rows written now)\n",
                                 result.complete, result.shapes, path, result.rows_written);
  if (result.failed > 0)
    text +=
        fmt::format("{} configs have no time: {} are wrong, {} cannot run (their rows say why)\n",
                    result.failed, result.wrong.size(),
                    result.failed - static_cast<std::int64_t>(result.wrong.size()));
  for (const std::string& shape : result.passed_over) text += "passed over: " + shape + "\n";
  for (const std::string& wrong : result.wrong) text += "wrong: " + wrong + "\n";
  return text +
         fmt::format("next: gnomon gemm evaluate --device {} --measured {}\n", result.device, path);
}

Json SweepJson(const SweepResult& result, const std::string& path) {
  return {{"output", path},
          {"shapes", result.shapes},
          {"complete", result.complete},
          {"rows_written", result.rows_written},
          {"failed", result.failed},
          {"passed_over", result.passed_over},
          {"wrong", result.wrong}};
}

namespace {

std::string Nanoseconds(Seconds time) {
  constexpr double kNanosecond = 1e-9;
  return fmt::format("{:.0f} ns", time.value / kNanosecond);
}

// Medians over the shapes: what calls cost is a matter of the host, not of the shape.
std::string HostCostText(std::span<const BenchRow> rows) {
  std::vector<double> call, cold, bare;
  for (const BenchRow& row : rows) {
    if (!row.host) continue;
    call.push_back(row.host->call.value);
    cold.push_back(row.host->cold_select.value);
    bare.push_back(row.host->bare_launch.value);
  }
  if (call.empty()) return {};
  const Seconds added{Median(call) - Median(bare)};
  return fmt::format(
      "measured on the host, a call: {} with its selection, {} more than a bare launch ({}); "
      "selection of a problem never seen: {} (medians over the shapes)\n",
      Nanoseconds({Median(call)}), Nanoseconds(added), Nanoseconds({Median(bare)}),
      Nanoseconds({Median(cold)}));
}

}  // namespace

std::string BenchText(const BenchResult& result) {
  std::string vendors;
  for (const std::string& vendor : result.vendors)
    vendors += (vendors.empty() ? "" : " and ") + vendor;
  std::string text =
      fmt::format("pick against {}{}: {:.3f} times as fast (geometric mean, {} shapes)\n",
                  result.vendors.size() > 1 ? "the better of " : "", vendors, result.geomean_ratio,
                  result.rows.size());
  for (const std::string& shape : result.passed_over) text += "passed over: " + shape + "\n";
  for (const std::string& failed : result.failed) text += "failed: " + failed + "\n";
  text += HostCostText(result.rows);
  if (!result.conditions.empty()) text += "conditions: " + result.conditions + "\n";
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
    if (row.host) {
      rows.back()["host_call_us"] = InMicroseconds(row.host->call);
      rows.back()["host_cold_select_us"] = InMicroseconds(row.host->cold_select);
      rows.back()["host_bare_launch_us"] = InMicroseconds(row.host->bare_launch);
    }
  }
  return {{"rows", rows},
          {"vendors", result.vendors},
          {"geomean_ratio", result.geomean_ratio},
          {"failed", result.failed},
          {"passed_over", result.passed_over},
          {"conditions", result.conditions}};
}

}  // namespace gnomon
