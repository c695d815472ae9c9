// The predicted-fastest configs of a problem over several families.
//
//   Select = the `top` least times over every family's Fastest
//   sure   = Φ(log(second / first) / pair error)      errors of two predictions for one shape are
//            alike where they come from the shape; what is left of their difference is taken as
//            normal, with the deviation that the family states
//
// Families enumerate only what is legal, so there is nothing to reject here. Equal times keep the
// order of enumeration, and of the families: the same call gives the same pick on every machine. A
// family that has no kernel for the problem is passed over; only when none has one is it an error,
// and then every family's reason is given.

#include "gnomon/gemm/select.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gnomon {

Status CheckUnits(const Device& device, int units) {
  if (units < 0 || units > device.units)
    return BadInput(fmt::format("{} has {} {}s, not {} (0 means all)", device.id, device.units,
                                device.unit_kind.empty() ? "unit" : device.unit_kind, units),
                    "units");
  return Done{};
}

std::optional<double> Sureness(Seconds first, Seconds second, std::optional<double> first_error,
                               std::optional<double> second_error) {
  if (!first_error || !second_error) return std::nullopt;
  const double deviations =
      std::log(second.value / first.value) / std::max(*first_error, *second_error);
  return std::erfc(-deviations / std::numbers::sqrt2) / 2;
}

Result<std::vector<Pick>> Select(const Device& device, const Problem& problem,
                                 std::span<const Family* const> families, int units, int top) {
  GNOMON_TRY(CheckProblem(problem));
  if (top < 1) return BadInput("the number of picks must be 1 or more", "top");
  GNOMON_TRY(CheckUnits(device, units));

  const size_t wanted = static_cast<size_t>(top) + 1;  // the last one's rival
  std::vector<Pick> picks;
  std::string reasons;
  std::vector<TimedConfig> fastest(wanted);
  for (const Family* family : families) {
    const Result<size_t> found = family->Fastest(device, problem, units, fastest);
    if (!found.ok()) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", family->name(),
                             found.error().Text());
      continue;
    }
    if (*found == 0)
      reasons += fmt::format("{}{}: no config's grid can be launched", reasons.empty() ? "" : "; ",
                             family->name());
    for (size_t i = 0; i < *found; ++i)
      picks.push_back({family, fastest[i].config, fastest[i].time, std::nullopt});
  }
  if (picks.empty())
    return BadInput(fmt::format("no family can do {} on {}{}{}", problem.Text(), device.id,
                                reasons.empty() ? "" : ": ", reasons));
  std::stable_sort(picks.begin(), picks.end(),
                   [](const Pick& a, const Pick& b) { return a.predicted < b.predicted; });
  for (size_t i = 0; i + 1 < picks.size(); ++i)
    picks[i].sure =
        Sureness(picks[i].predicted, picks[i + 1].predicted, picks[i].family->PairError(device),
                 picks[i + 1].family->PairError(device));
  picks.resize(std::min(picks.size(), static_cast<size_t>(top)));
  return picks;
}

}  // namespace gnomon
