// Sets predictions against measurements, row by row and shape by shape.
//
//   error  = |predicted / measured − 1|          per row: median and 90th percentile
//   regret = best measured / measured of the pick, the pick being the least predicted of the
//   configs timed rank   = Spearman's correlation of predicted and measured times (ties share their
//   mean rank)
//
// A regret needs losers: shapes with one timed config of a family give none. The pick is made among
// the timed configs only, as nothing else could be looked up. Percentiles of regret are the low
// ones (bad picks). Rows of families that we do not model leave their figures empty rather than
// zero.

#include "gnomon/gemm/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "gnomon/base/statistics.h"
#include "gnomon/gemm/library.h"

namespace gnomon {
namespace {

struct Pair {
  const Measurement* row = nullptr;
  double measured = 0, predicted = 0;  // seconds
};

double GeometricMean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

// Mean rank of equals, from 0.
std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j)
      ranks[order[j]] = (static_cast<double>(i) + static_cast<double>(end - 1)) / 2;
    i = end;
  }
  return ranks;
}

// Nothing where one side does not vary.
std::optional<double> Spearman(const std::vector<Pair>& pairs) {
  std::vector<double> measured, predicted;
  for (const Pair& pair : pairs) {
    measured.push_back(pair.measured);
    predicted.push_back(pair.predicted);
  }
  if (pairs.size() < 2) return std::nullopt;
  const std::vector<double> a = Ranks(measured), b = Ranks(predicted);
  const double mean = static_cast<double>(pairs.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

std::string ShapeKey(const Measurement& row) {
  return row.problem.Text() + (row.layout_stated ? "" : "?");
}

const Family* FindFamily(std::span<const Family* const> families, std::string_view name) {
  for (const Family* family : families)
    if (family->name() == name) return family;
  return nullptr;
}

// The predicted time of a row, or nothing where we have no model of what ran.
std::optional<double> PredictRow(const Device& device, const Measurement& row,
                                 std::span<const Family* const> families) {
  if (!row.dtype_modelled) return std::nullopt;
  if (const Family* family = FindFamily(families, row.family)) {
    const Result<Config> config = family->Parse(row.config);
    if (!config.ok()) return std::nullopt;
    return family->PredictTime(device, row.problem, *config).value;
  }
  if (!IsVendorLibrary(row.family) || device.SustainedPeak(row.problem.dtype).value <= 0)
    return std::nullopt;
  return PredictLibrary(device, row.problem, 0).time.value;
}

using ByFamily = std::map<std::string, std::vector<Pair>>;

PickOnShape PickOf(const std::vector<Pair>& pairs, double& top4) {
  constexpr size_t kTop = 4;
  std::vector<const Pair*> order;
  for (const Pair& pair : pairs) order.push_back(&pair);
  std::stable_sort(order.begin(), order.end(),
                   [](const Pair* a, const Pair* b) { return a->predicted < b->predicted; });
  const Pair& best =
      *std::min_element(pairs.begin(), pairs.end(),
                        [](const Pair& a, const Pair& b) { return a.measured < b.measured; });
  double first_four = order[0]->measured;
  for (size_t i = 1; i < std::min(kTop, order.size()); ++i)
    first_four = std::min(first_four, order[i]->measured);
  top4 = best.measured / first_four;
  PickOnShape out;
  out.problem = best.row->problem;
  out.family = best.row->family;
  out.configs = static_cast<int>(pairs.size());
  out.best = best.row->config;
  out.pick = order[0]->row->config;
  out.best_time = {best.measured};
  out.pick_time = {order[0]->measured};
  out.pick_predicted = {order[0]->predicted};
  return out;
}

// Vendor libraries have no configs of ours to choose between: what they ran is not known.
void EvaluateRegret(const std::map<std::string, ByFamily>& shapes,
                    std::span<const Family* const> families, Evaluation& out) {
  std::vector<double> ratios, top4s, within;
  for (const auto& [key, by_family] : shapes) {
    for (const auto& [family, pairs] : by_family) {
      std::set<std::string> configs;
      for (const Pair& pair : pairs) configs.insert(pair.row->config);
      if (configs.size() < 2 || !FindFamily(families, family)) continue;
      double top4 = 1;
      out.shapes.push_back(PickOf(pairs, top4));
      ratios.push_back(out.shapes.back().ratio());
      top4s.push_back(top4);
      if (const std::optional<double> rank = Spearman(pairs)) within.push_back(*rank);
    }
  }
  if (!within.empty()) out.spearman_within_shape = Median(within);
  if (ratios.empty()) return;
  constexpr double kTenth = 0.10, kTwentieth = 0.05;
  out.regret = Regret{GeometricMean(ratios), Quantile(ratios, kTenth), Quantile(ratios, kTwentieth),
                      *std::min_element(ratios.begin(), ratios.end()), GeometricMean(top4s)};
}

// One family's time on a shape: measured of its predicted-fastest config, and that prediction.
struct FamilyTime {
  double measured = 0, predicted = 0;
};

// Only shapes where a family of ours took part: between two libraries the one model cannot choose.
void EvaluateFamilyChoice(const std::map<std::string, ByFamily>& shapes,
                          std::span<const Family* const> families, Evaluation& out) {
  std::vector<std::map<std::string, FamilyTime>> contested;
  std::map<std::string, std::vector<double>> single;
  std::vector<double> picked;
  for (const auto& [key, by_family] : shapes) {
    const bool ours = std::any_of(by_family.begin(), by_family.end(), [&](const auto& entry) {
      return FindFamily(families, entry.first) != nullptr;
    });
    if (by_family.size() < 2 || !ours) continue;
    std::map<std::string, FamilyTime> times;
    for (const auto& [family, pairs] : by_family) {
      const Pair& first =
          *std::min_element(pairs.begin(), pairs.end(),
                            [](const Pair& a, const Pair& b) { return a.predicted < b.predicted; });
      times[family] = {first.measured, first.predicted};
    }
    contested.push_back(std::move(times));
  }
  if (contested.empty()) return;
  for (const auto& times : contested) {
    const auto fastest = std::min_element(
        times.begin(), times.end(),
        [](const auto& a, const auto& b) { return a.second.measured < b.second.measured; });
    const auto chosen = std::min_element(
        times.begin(), times.end(),
        [](const auto& a, const auto& b) { return a.second.predicted < b.second.predicted; });
    picked.push_back(fastest->second.measured / chosen->second.measured);
    for (const auto& [family, time] : times)
      single[family].push_back(fastest->second.measured / time.measured);
  }
  FamilyChoice choice;
  choice.shapes = static_cast<int>(contested.size());
  choice.picked_best = GeometricMean(picked);
  for (const auto& [family, ratios] : single) {
    if (ratios.size() != contested.size()) continue;  // not timed everywhere: no single choice
    const double mean = GeometricMean(ratios);
    if (mean <= choice.best_single) continue;
    choice.best_single = mean;
    choice.best_single_family = family;
  }
  if (choice.best_single > 0 && choice.best_single < 1)
    choice.headroom_recovered = 1 - std::log(choice.picked_best) / std::log(choice.best_single);
  out.family_choice = choice;
}

}  // namespace

Result<Evaluation> Evaluate(const Device& device, std::span<const Measurement> rows,
                            std::span<const Family* const> families) {
  Evaluation out;
  std::vector<Pair> pairs;
  std::map<std::string, ByFamily> shapes;
  std::set<std::string> devices;
  for (const Measurement& row : rows) {
    ++out.rows;
    devices.insert(row.device);
    if (row.device != device.id) {
      ++out.other_device;
      continue;
    }
    const std::optional<double> predicted = PredictRow(device, row, families);
    if (!predicted) {
      ++out.not_modelled;
      continue;
    }
    ++out.predicted;
    const Pair pair{&row, Microseconds(row.us).value, *predicted};
    pairs.push_back(pair);
    shapes[ShapeKey(row)][row.family].push_back(pair);
  }
  if (out.other_device == out.rows) {
    std::string names;
    for (const std::string& name : devices) names += (names.empty() ? "" : ", ") + name;
    return BadInput(fmt::format("no row is of device '{}'; the file has {}", device.id,
                                names.empty() ? "no rows" : names),
                    "--device");
  }
  if (pairs.empty()) return out;

  constexpr double kNinety = 0.90;
  std::vector<double> errors;
  for (const Pair& pair : pairs) errors.push_back(std::abs(pair.predicted / pair.measured - 1));
  out.median_abs_error = Median(errors);
  out.p90_abs_error = Quantile(errors, kNinety);
  out.spearman = Spearman(pairs);
  EvaluateRegret(shapes, families, out);
  EvaluateFamilyChoice(shapes, families, out);
  return out;
}

}  // namespace gnomon
