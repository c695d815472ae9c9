// The three-parameter roofline of a kernel family, fitted.
//
//   time = fixed + max(flops / (compute efficiency · peak), bytes / (bandwidth efficiency · rate))
//
// peak: units × rate × boost clock; rate: the main memory's; bytes: each operand once. The three
// numbers minimise the mean of |log(predicted / measured)| over the group's fit rows, one after the
// other by a search over ever narrower factors: no gradient, no random start, the same answer on
// every machine. It knows neither tiles nor waves nor caches: that is what it is for.
//
// Entry point: FitRooflines.

#include "gnomon/gemm/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace gnomon {
namespace {

struct Point {
  double compute = 0, memory = 0, measured = 0;  // s, at full efficiency
};

// Slowness of compute and of memory (1 / efficiency), fixed cost in s.
using Parameters = std::array<double, 3>;

double TimeOf(const Point& point, const Parameters& parameters) {
  return parameters[2] + std::max(point.compute * parameters[0], point.memory * parameters[1]);
}

double Loss(const std::vector<Point>& points, const Parameters& parameters) {
  double sum = 0;
  for (const Point& point : points)
    sum += std::abs(std::log(TimeOf(point, parameters) / point.measured));
  return sum;
}

Parameters Fit(const std::vector<Point>& points) {
  constexpr double kStartFixed = 3e-6;  // s: about an empty kernel
  constexpr double kWidest = 4;         // first factors tried: 1/4 to 4
  constexpr double kNarrowest = 1.001;
  constexpr int kSide = 8;  // factors tried on either side of the present value
  Parameters best = {2, 2, kStartFixed};
  double least = Loss(points, best);
  for (double width = std::log(kWidest); width > std::log(kNarrowest);) {
    bool better = false;
    for (double& parameter : best) {
      const double present = parameter;
      double chosen = present;
      for (int step = -kSide; step <= kSide; ++step) {
        parameter = present * std::exp(width * step / kSide);
        const double loss = Loss(points, best);
        if (loss >= least) continue;
        least = loss;
        chosen = parameter;
        better = true;
      }
      parameter = chosen;
    }
    if (!better) width /= 2;
  }
  return best;
}

Point PointOf(const RooflineTiming& timing) {
  const Device& device = *timing.device;
  const Rate* rate = device.FindRate(timing.problem->dtype);
  if (!rate) rate = device.FindRate(DType::kFp32);
  Point point;
  if (rate && rate->peak.value > 0) point.compute = (timing.problem->flops() / rate->peak).value;
  point.memory = (timing.problem->bytes() / device.MainMemory().bandwidth).value;
  point.measured = timing.measured;
  return point;
}

}  // namespace

std::vector<double> FitRooflines(std::span<const RooflineTiming> timings) {
  std::map<std::string, std::vector<Point>> fit;
  for (const RooflineTiming& timing : timings)
    if (timing.fit) fit[timing.group].push_back(PointOf(timing));
  std::map<std::string, Parameters> fitted;
  for (const auto& [group, points] : fit) fitted[group] = Fit(points);
  constexpr Parameters kIdeal = {1, 1, 0};
  std::vector<double> out;
  out.reserve(timings.size());
  for (const RooflineTiming& timing : timings) {
    const auto found = fitted.find(timing.group);
    out.push_back(TimeOf(PointOf(timing), found == fitted.end() ? kIdeal : found->second));
  }
  return out;
}

}  // namespace gnomon
