// The co-design answer as one HTML file: what was gained, both steps drawn to the same scale by
// where their time goes, the levers, and what comes next. Inline styles and SVG only, so that it
// opens anywhere and can be attached to a ticket. Entry point: CodesignHtml.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gnomon/base/statistics.h"
#include "gnomon/base/text_table.h"
#include "gnomon/report/codesign_report.h"

namespace gnomon {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2330; --soft: #667085; --line: #d9dee7; --paper: #ffffff; --hero: #0b6e4f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #343b48; --paper: #14181f; --hero: #5fd3a6; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 64rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .6rem; }
.hero { font-size: 3rem; font-weight: 650; color: var(--hero); line-height: 1.1; margin: .8rem 0 0; }
.soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.tag { font-size: .75rem; color: var(--soft); border: 1px solid var(--line); border-radius: .6rem; padding: 0 .45rem; margin-left: .3rem; }
svg { width: 100%; height: auto; } svg text { fill: currentColor; font: 13px system-ui, sans-serif; }
.legend span { display: inline-block; margin-right: 1.1rem; } .legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem; margin-right: .35rem; vertical-align: -.08rem; }
)";

/// Told apart by people who see colours differently (Okabe and Ito 2008).
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                      "#56b4e9", "#d55e00", "#b3a400", "#7f7f7f"};

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Hero(const CodesignReport& report) {
  const CodesignResult& p = report.prediction;
  if (const auto speedup = report.MeasuredSpeedup()) {
    return fmt::format(
        "<p class=hero>{:.2f}×</p><p>the direct port's samples a second<span "
        "class=tag>measured</span> "
        "± {:.2f} over {} interleaved blocks; {:.2f}×<span class=tag>predicted</span></p>\n",
        speedup->median, speedup->spread, speedup->blocks, p.speedup_predicted);
  }
  return fmt::format(
      "<p class=hero>{:.2f}×</p><p>the direct port's samples a second<span "
      "class=tag>predicted</span>, "
      "not measured</p>\n",
      p.speedup_predicted);
}

std::string ArmTable(const std::vector<ReportedArm>& arms) {
  std::string html =
      "<table><tr><th>arm<th>recipe<th>step, predicted<th>step, "
      "measured<th>samples/s<th>normalized "
      "entropy<th>memory, predicted</tr>\n";
  for (const ReportedArm& arm : arms) {
    const train::ArmResult* m = arm.measured;
    html += fmt::format(
        "<tr><td><b>{}</b><td>{}<td class=number>{}<td class=number>{}<td class=number>{}<td "
        "class=number>{}<td class=number>{}</tr>\n",
        arm.name, Escape(RecipeText(arm.prediction->recipe)), Show(arm.prediction->cost.time),
        m ? fmt::format("{} ± {} ({:+.1f}% predicted)", Show(m->step_time), Show(m->step_spread),
                        100 * (arm.prediction->cost.time / m->step_time - 1))
          : "–",
        m ? Significant(m->samples_per_second) + " measured"
          : Significant(arm.prediction->cost.samples_per_second) + " predicted",
        m && !m->normalized_entropy.empty()
            ? fmt::format("{:.4f} ± {:.4f}", Mean(m->normalized_entropy),
                          StandardDeviation(m->normalized_entropy))
            : "–",
        Show(arm.prediction->cost.memory.total()));
  }
  return html + "</table>\n";
}

/// Names of all terms, those of the largest share first, so that a colour means the same in every
/// bar.
std::vector<std::string> TermNames(const std::vector<ReportedArm>& arms) {
  std::vector<std::pair<std::string, double>> shares;
  for (const ReportedArm& arm : arms) {
    for (const Term& term : arm.prediction->cost.terms) {
      const double share = term.time / arm.prediction->cost.time;
      const auto found = std::find_if(shares.begin(), shares.end(),
                                      [&](const auto& known) { return known.first == term.name; });
      if (found == shares.end())
        shares.emplace_back(term.name, share);
      else
        found->second = std::max(found->second, share);
    }
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (auto& [name, share] : shares) names.push_back(name);
  return names;
}

/// One bar an arm: time a sample, by term, all to one scale.
std::string Bars(const std::vector<ReportedArm>& arms) {
  constexpr double kLeft = 110, kWidth = 640, kBar = 30, kGap = 16;
  const std::vector<std::string> names = TermNames(arms);
  const auto per_sample = [](const ReportedArm& arm, Seconds time) {
    return InMicroseconds(time) / static_cast<double>(arm.prediction->recipe.batch);
  };
  double longest = 0;
  for (const ReportedArm& arm : arms)
    longest = std::max(longest, per_sample(arm, arm.prediction->cost.time));

  std::string bars, legend = "<p class=legend>";
  double y = 4;
  for (const ReportedArm& arm : arms) {
    bars += fmt::format("<text x=0 y={:.0f}>{}</text>", y + kBar * 0.66, arm.name);
    double x = kLeft;
    for (size_t i = 0; i < names.size(); ++i) {
      for (const Term& term : arm.prediction->cost.terms) {
        if (term.name != names[i]) continue;
        const double width = kWidth * per_sample(arm, term.time) / longest;
        bars += fmt::format(
            "<rect x={:.1f} y={:.0f} width={:.1f} height={:.0f} fill='{}'><title>{}: {} predicted, "
            "{:.0f}%</title></rect>",
            x, y, width, kBar, kColours[std::min(i, kColours.size() - 1)], Escape(term.name),
            Show(term.time), 100 * (term.time / arm.prediction->cost.time));
        x += width;
      }
    }
    bars += fmt::format("<text x={:.1f} y={:.0f}>{} µs/sample</text>", x + 8, y + kBar * 0.66,
                        Significant(per_sample(arm, arm.prediction->cost.time)));
    y += kBar + kGap;
  }
  for (size_t i = 0; i < names.size(); ++i)
    legend += fmt::format("<span><i style='background:{}'></i>{}</span>",
                          kColours[std::min(i, kColours.size() - 1)], Escape(names[i]));
  return fmt::format(
      "<svg viewBox='0 0 900 {:.0f}' role=img aria-label='predicted time a "
      "sample'>{}</svg>\n{}</p>\n",
      y, bars, legend);
}

std::string LeverTable(const CodesignResult& result) {
  std::string html =
      "<table><tr><th>lever<th>from<th>to<th>alone<th>together so far<th>risk<th>source</tr>\n";
  for (const LeverGain& lever : result.levers)
    html += fmt::format(
        "<tr><td><b>{}</b><td>{}<td>{}<td class=number>{:.2f}×<td class=number>{:.2f}×<td>{}<td "
        "class=soft>{}</tr>\n",
        Escape(lever.name), Escape(lever.from), Escape(lever.to), lever.gain, lever.cumulative,
        lever.risk.empty() ? "none" : Escape(lever.risk), Escape(lever.source));
  return html + "</table>\n";
}

}  // namespace

std::string CodesignHtml(const CodesignReport& report) {
  const CodesignResult& p = report.prediction;
  const std::vector<ReportedArm> arms = report.Arms();
  const std::string title = fmt::format("{}: {} to {}", p.model, p.source, p.target);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
      "content='width=device-width'>\n<title>{0}</title><style>{1}</style>\n<h1>{0}</h1>\n",
      Escape(title), kStyle);
  html += Hero(report);
  if (const auto native = report.MeasuredSpeedupOverNative(); native && !report.native_is_direct())
    html += fmt::format(
        "<p>{:.2f}× ± {:.2f}<span class=tag>measured</span> over the direct port with only its "
        "dtype "
        "made native.</p>\n",
        native->median, native->spread);
  html += "<h2>Arms</h2>\n" + ArmTable(arms);
  html += "<h2>Where the time goes<span class=tag>predicted</span></h2>\n" + Bars(arms);
  html += "<h2>Levers<span class=tag>predicted</span></h2>\n" + LeverTable(p);
  html += "<h2>What would be tried next</h2>\n<ul>\n";
  for (const NextStep& step : p.next)
    html += fmt::format("<li><b>{}</b>, at most {:.2f}×<span class=tag>predicted</span>: {}</li>\n",
                        Escape(step.what), step.gain, Escape(step.why));
  return html + "</ul>\n</html>\n";
}

}  // namespace gnomon
