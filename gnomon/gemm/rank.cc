// Vendor kernels by name, in the order of their predicted times.
//
//   rank = sort by PredictNamed of every name that WhyItCannot does not rule out
//
// The list is what an algorithm query returned or what stands in a profile, so a name may be of a
// kernel that cannot do this problem, or be no GEMM at all: those are told apart with the reason. A
// name that says too little is ranked by its library's average kernel and marked. Two kernels whose
// times differ by less than the error of the prediction are not told apart; `close` says how many
// of the first that is.

#include "gnomon/gemm/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "gnomon/base/files.h"

namespace gnomon {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kAround = " \t\r\"'";
  const size_t first = text.find_first_not_of(kAround);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kAround) - first + 1);
}

}  // namespace

Result<std::vector<ListedKernel>> ParseKernelList(std::string_view text, std::string_view path) {
  std::vector<ListedKernel> kernels;
  std::unordered_set<std::string_view> seen;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view name = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (name.empty() || name.starts_with('#') || !seen.insert(name).second) continue;
    kernels.push_back({std::string(name), line});
  }
  if (kernels.empty())
    return BadInput("no kernel name in it; it must hold one a line ('#' starts a comment)",
                    std::string(path));
  return kernels;
}

Result<std::vector<ListedKernel>> ReadKernelList(const std::string& path) {
  GNOMON_ASSIGN(const std::string text, ReadFile(path));
  return ParseKernelList(text, path);
}

Result<Ranking> RankKernels(const Device& device, const Problem& problem,
                            const std::vector<ListedKernel>& kernels, int units) {
  GNOMON_TRY(CheckProblem(problem));
  if (device.kind != Device::Kind::kGpu)
    return BadInput(fmt::format("{} is a CPU; kernel names are those of GPU libraries", device.id),
                    "--device");
  if (units < 0 || units > device.units)
    return BadInput(fmt::format("{} has {} {}s, not {} (0 means all)", device.id, device.units,
                                device.unit_kind.empty() ? "unit" : device.unit_kind, units),
                    "units");
  if (!device.FindRate(problem.dtype))
    return BadInput(fmt::format("{} has no native {}", device.id, Name(problem.dtype)), "--dtype");

  Ranking ranking;
  for (const ListedKernel& listed : kernels) {
    KernelName kernel = ParseKernelName(listed.name);
    std::string why = WhyItCannot(device, problem, kernel);
    if (!why.empty()) {
      ranking.unable.push_back({std::move(kernel), listed.line, std::move(why)});
      continue;
    }
    NamedPrediction predicted = PredictNamed(device, problem, kernel, units);
    ranking.ranked.push_back({std::move(kernel), listed.line, std::move(predicted)});
  }
  std::stable_sort(ranking.ranked.begin(), ranking.ranked.end(),
                   [](const RankedKernel& a, const RankedKernel& b) {
                     return a.predicted.prediction.time < b.predicted.prediction.time;
                   });
  if (!ranking.ranked.empty()) {
    const Prediction& first = ranking.ranked.front().predicted.prediction;
    const double limit = first.time.value * (1 + first.relative_error);
    for (const RankedKernel& ranked : ranking.ranked) {
      const Prediction& p = ranked.predicted.prediction;
      if (p.time.value * (1 - p.relative_error) > limit) break;
      ++ranking.close;
    }
  }
  return ranking;
}

}  // namespace gnomon
