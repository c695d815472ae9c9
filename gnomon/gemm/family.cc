// What a family need not write itself: prices one by one, the fastest of all prices, and a ready
// family that asks the family every time.

#include "gnomon/gemm/family.h"

#include <algorithm>

namespace gnomon {
namespace {

class PlainReadyFamily : public ReadyFamily {
 public:
  PlainReadyFamily(const Family& family, const Device& device, int units)
      : family_(family), device_(device), units_(units) {}

  Result<size_t> Fastest(const Problem& problem, std::span<TimedConfig> fastest) const override {
    return family_.Fastest(device_, problem, units_, fastest);
  }
  Seconds TimeOf(const Problem& problem, const Config& config) const override {
    return family_.PredictTime(device_, problem, config);
  }

 private:
  const Family& family_;
  const Device device_;
  const int units_;
};

}  // namespace

std::string Family::Refusal(const Device& device, const Problem& problem,
                            const Config& config) const {
  constexpr Seconds kLongest = {1e20};  // a family's time of what it cannot launch is longer
  return PredictTime(device, problem, config) < kLongest
             ? std::string()
             : "registers, shared memory, grid or workspace do not suffice";
}

Status Family::Price(const Device& device, const Problem& problem, int units,
                     std::vector<Config>& configs, std::vector<double>& seconds) const {
  const size_t first = configs.size();
  GNOMON_TRY(Enumerate(device, problem, units, configs));
  for (size_t i = first; i < configs.size(); ++i)
    seconds.push_back(PredictTime(device, problem, configs[i]).value);
  return Done{};
}

Result<size_t> Family::Fastest(const Device& device, const Problem& problem, int units,
                               std::span<TimedConfig> fastest) const {
  thread_local std::vector<Config> configs;
  thread_local std::vector<double> seconds;
  configs.clear();
  seconds.clear();
  GNOMON_TRY(Price(device, problem, units, configs, seconds));
  // An insertion into a short sorted list: `fastest` is small beside the number of configs.
  size_t found = 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    if (found == fastest.size() && (found == 0 || seconds[i] >= fastest[found - 1].time.value))
      continue;
    size_t at = found < fastest.size() ? found++ : found - 1;
    for (; at > 0 && seconds[i] < fastest[at - 1].time.value; --at) fastest[at] = fastest[at - 1];
    fastest[at] = {configs[i], {seconds[i]}};
  }
  return found;
}

std::unique_ptr<ReadyFamily> Family::Ready(const Device& device, int units) const {
  return std::make_unique<PlainReadyFamily>(*this, device, units);
}

std::optional<double> Family::PairError(const Device&) const { return std::nullopt; }

}  // namespace gnomon
