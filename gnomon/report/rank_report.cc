// A ranking is shown as verdict, table, next step. Names are long and begin alike, so the table
// gives the line of the names file and shortens the name in its middle.

#include "gnomon/report/rank_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"
#include "gnomon/report/gemm_report.h"

namespace gnomon {
namespace {

/// Room for a name in an 80-column terminal beside the other columns.
constexpr size_t kHead = 20, kTail = 16;

// Printable, and no longer than a table's cell.
std::string Shortened(std::string_view name) {
  std::string text(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (text.size() <= kHead + kTail + 1) return text;
  return text.substr(0, kHead) + "…" + text.substr(text.size() - kTail);
}

// What tells a name apart begins late: behind Tensile's problem type, inside CUTLASS's wrapper.
std::string Shown(const KernelName& kernel) {
  for (const std::string_view mark : {"MT", "cutlass3x_", "cutlass_"}) {
    const bool tensile = kernel.library == KernelName::Library::kTensile;
    if ((mark == "MT") != tensile) continue;
    const size_t at = kernel.name.find(tensile ? "_MT" : mark);
    if (at == std::string::npos) continue;
    std::string_view from = std::string_view(kernel.name).substr(at + (tensile ? 1 : 0));
    return Shortened(from.substr(0, from.find_first_of("(<>:, ")));
  }
  return Shortened(kernel.name);
}

std::string TileText(const KernelName& kernel) {
  if (kernel.gemv) return "-";
  if (kernel.tile_m == 0 || kernel.tile_n == 0) return "?";
  std::string text = fmt::format("{}x{}", kernel.tile_m, kernel.tile_n);
  if (kernel.tile_k > 0) text += fmt::format("x{}", kernel.tile_k);
  return text;
}

std::string SplitText(const RankedKernel& ranked) {
  return ranked.kernel.stream_k ? "stream-K" : std::to_string(ranked.predicted.split_k);
}

std::string Percent(double share) { return fmt::format("{:.0f}%", share * 100); }

std::string WithLine(const RankedKernel& ranked) {
  return fmt::format("{} (line {})", Shown(ranked.kernel), ranked.line);
}

std::string TimeText(const Prediction& prediction) {
  return fmt::format("predicted {} ± {}, bound by {}", Show(prediction.time),
                     Percent(prediction.relative_error), Name(prediction.bound));
}

}  // namespace

std::string RankingText(const Device& device, const Problem& problem, const Ranking& ranking) {
  const size_t listed = ranking.ranked.size() + ranking.unable.size();
  std::string text;
  if (ranking.ranked.empty()) {
    text =
        fmt::format("{} on {}: none of {} kernels can do it\n", problem.Text(), device.id, listed);
  } else {
    const RankedKernel& first = ranking.ranked.front();
    text = fmt::format("{} on {}: {} is first of {}, {}\n", problem.Text(), device.id,
                       WithLine(first), listed, TimeText(first.predicted.prediction));
    const auto described =
        std::find_if(ranking.ranked.begin(), ranking.ranked.end(),
                     [](const RankedKernel& ranked) { return !ranked.predicted.generic; });
    if (first.predicted.generic && described != ranking.ranked.end())
      text += fmt::format("  that name says too little to know; of the others {} is first, {}\n",
                          WithLine(*described), TimeText(described->predicted.prediction));
    TextTable table({"rank", "predicted", "±", "tile", "split", "bound", "line", "kernel"});
    for (size_t i = 0; i < ranking.ranked.size(); ++i) {
      const RankedKernel& ranked = ranking.ranked[i];
      const Prediction& p = ranked.predicted.prediction;
      table.Row({std::to_string(i + 1), Show(p.time), Percent(p.relative_error),
                 TileText(ranked.kernel), SplitText(ranked), std::string(Name(p.bound)),
                 std::to_string(ranked.line),
                 Shown(ranked.kernel) + (ranked.predicted.generic ? " (generic)" : "")});
    }
    text += table.Text();
  }
  const bool generic = std::any_of(ranking.ranked.begin(), ranking.ranked.end(),
                                   [](const RankedKernel& r) { return r.predicted.generic; });
  if (generic)
    text += "  generic: the name says too little; ranked as its library's average kernel\n";
  if (!ranking.unable.empty()) {
    text += "\nnot able to do it:\n";
    TextTable table({"line", "kernel", "why"});
    for (const UnableKernel& unable : ranking.unable)
      table.Row({std::to_string(unable.line), Shown(unable.kernel), unable.why});
    text += table.Text();
  }
  if (ranking.ranked.empty()) {
    text += "next: list kernels of this device's library, dtype and layout\n";
  } else if (ranking.close > 1) {
    text += fmt::format("next: time the first {}: their errors overlap that of the first\n",
                        ranking.close);
  } else {
    text +=
        fmt::format("next: use line {}; {}\n", ranking.ranked.front().line,
                    ranking.ranked.size() == 1 ? "no other of the list can do it"
                                               : "the second is slower by more than the errors");
  }
  return text;
}

Json RankingJson(const Device& device, const Problem& problem, const Ranking& ranking) {
  Json kernels = Json::array();
  for (size_t i = 0; i < ranking.ranked.size(); ++i) {
    const RankedKernel& ranked = ranking.ranked[i];
    const KernelName& kernel = ranked.kernel;
    const Prediction& prediction = ranked.predicted.prediction;
    const auto side = [](int value) { return value > 0 ? Json(value) : Json(nullptr); };
    kernels.push_back(
        {{"rank", i + 1},
         {"name", kernel.name},
         {"line", ranked.line},
         {"understood", kernel.understood},
         {"family", FamilyOf(kernel.library)},
         {"tile",
          {{"m", side(kernel.tile_m)}, {"n", side(kernel.tile_n)}, {"k", side(kernel.tile_k)}}},
         {"split_k", ranked.predicted.split_k},
         {"stream_k", kernel.stream_k},
         {"predicted_us", InMicroseconds(prediction.time)},
         {"relative_error", prediction.relative_error},
         {"bound", Name(prediction.bound)},
         {"generic", ranked.predicted.generic},
         {"note", ranked.predicted.note}});
  }
  Json unable = Json::array();
  for (const UnableKernel& kernel : ranking.unable) {
    unable.push_back({{"name", kernel.kernel.name},
                      {"line", kernel.line},
                      {"family", FamilyOf(kernel.kernel.library)},
                      {"why", kernel.why}});
  }
  return {{"device", device.id}, {"units", device.units}, {"problem", ProblemJson(problem)},
          {"kernels", kernels},  {"unable", unable},      {"close", ranking.close}};
}

}  // namespace gnomon
