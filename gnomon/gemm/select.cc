// The predicted-fastest configs of a problem over several families.
//
//   Select = the `top` least PredictTime over every family's Enumerate
//
// Families enumerate only what is legal, so there is nothing to reject here. Equal times keep the
// order of enumeration: the same call gives the same pick on every machine. A family that has no
// kernel for the problem is passed over; only when none has one is it an error, and then every
// family's reason is given. No cache: a call costs what its pricing costs
// (gnomon/families/cpu/select_bench.cc measures it).

#include "gnomon/gemm/select.h"

#include <algorithm>

namespace gnomon {

Status Family::Price(const Device& device, const Problem& problem, int units,
                     std::vector<Config>& configs, std::vector<double>& seconds) const {
  const size_t first = configs.size();
  GNOMON_TRY(Enumerate(device, problem, units, configs));
  for (size_t i = first; i < configs.size(); ++i)
    seconds.push_back(PredictTime(device, problem, configs[i]).value);
  return Done{};
}

Result<std::vector<Pick>> Select(const Device& device, const Problem& problem,
                                 std::span<const Family* const> families, int units, int top) {
  GNOMON_TRY(CheckProblem(problem));
  if (top < 1) return BadInput("the number of picks must be 1 or more", "top");
  if (units < 0 || units > device.units)
    return BadInput(fmt::format("{} has {} {}s, not {} (0 means all)", device.id, device.units,
                                device.unit_kind.empty() ? "unit" : device.unit_kind, units),
                    "units");

  std::vector<Pick> picks;
  std::string reasons;
  std::vector<Config> configs;
  std::vector<double> seconds;
  const size_t wanted = static_cast<size_t>(top);
  for (const Family* family : families) {
    configs.clear();
    seconds.clear();
    const Status status = family->Price(device, problem, units, configs, seconds);
    if (!status.ok()) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", family->name(),
                             status.error().Text());
      continue;
    }
    // An insertion into a short sorted list: `top` is small beside the number of configs.
    for (size_t i = 0; i < configs.size(); ++i) {
      if (picks.size() == wanted && seconds[i] >= picks.back().predicted.value) continue;
      const auto after = std::upper_bound(
          picks.begin(), picks.end(), seconds[i],
          [](double value, const Pick& pick) { return value < pick.predicted.value; });
      picks.insert(after, Pick{family, configs[i], {seconds[i]}});
      if (picks.size() > wanted) picks.pop_back();
    }
  }
  if (picks.empty())
    return BadInput(fmt::format("no family can do {} on {}{}{}", problem.Text(), device.id,
                                reasons.empty() ? "" : ": ", reasons));
  return picks;
}

}  // namespace gnomon
