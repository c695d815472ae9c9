// Choices that predictions make, on shapes where the alternatives were timed.
//
//   regret   = best measured / measured of the pick, the pick being the least predicted of the
//              configs timed
//   headroom = 1 − log(chosen) / log(always): what choosing by prediction gains of what a perfect
//              chooser gains over always taking one family (geometric means of best / taken)
//
// A regret needs losers: shapes with one timed config of a family give none. The pick is made among
// the timed configs only, as nothing else could be looked up. Percentiles of regret are the low
// ones (bad picks). Where a row is the winner of a search that did not keep its losers (tuned
// tables), the candidates are the tiles that the file names for that family and dtype: where does
// the winner stand among them by prediction?
//
// Entry points: evaluate_parts.h.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "gnomon/base/statistics.h"
#include "gnomon/gemm/evaluate_parts.h"

namespace gnomon {
namespace {

using By = MeasuredPrediction::By;

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

PickOnShape PickOf(const std::vector<const Timing*>& timings, double& top4) {
  constexpr size_t kTop = 4;
  std::vector<const Timing*> order = timings;
  std::stable_sort(order.begin(), order.end(),
                   [](const Timing* a, const Timing* b) { return a->predicted < b->predicted; });
  const Timing& best = **std::min_element(
      timings.begin(), timings.end(),
      [](const Timing* a, const Timing* b) { return a->measured < b->measured; });
  double first_four = order[0]->measured;
  for (size_t i = 1; i < std::min(kTop, order.size()); ++i)
    first_four = std::min(first_four, order[i]->measured);
  top4 = best.measured / first_four;
  PickOnShape out;
  out.problem = best.row->problem;
  out.family = best.row->family;
  out.configs = static_cast<int>(timings.size());
  out.best = best.row->config;
  out.pick = order[0]->row->config;
  out.best_time = {best.measured};
  out.pick_time = {order[0]->measured};
  out.pick_predicted = {order[0]->predicted};
  return out;
}

struct Place {
  double rank = 1, candidates = 1;
};

// Where the measured best stands among the timed configs by prediction.
Place PlaceOfBest(const std::vector<const Timing*>& timings) {
  const Timing& best = **std::min_element(
      timings.begin(), timings.end(),
      [](const Timing* a, const Timing* b) { return a->measured < b->measured; });
  Place place{1, static_cast<double>(timings.size())};
  for (const Timing* timing : timings) place.rank += timing->predicted < best.predicted;
  return place;
}

std::string MenuKey(const Measurement& row) {
  return row.device + "|" + row.family + "|" + row.dtype_text;
}

double LeastOf(const Timing& timing, std::span<const Family* const> families,
               std::pair<std::int64_t, std::int64_t> tile, const std::set<Depth>& depths) {
  Measurement row = *timing.row;
  std::tie(row.tile_m, row.tile_n) = tile;
  double least = 0;
  for (const Depth& depth : depths) {
    row.tile_k = depth.tile_k;
    row.split_k = depth.split_k;
    const auto predicted = PredictMeasured(*timing.device, row, families);
    if (predicted && (least == 0 || predicted->time.value < least)) least = predicted->time.value;
  }
  return least;
}

std::vector<Place> PlacesOfStatedTiles(std::span<const Timing> timings, const Menus& menus,
                                       std::span<const Family* const> families) {
  std::vector<Place> out;
  for (const Timing& timing : timings) {
    if (timing.by != By::kTile) continue;
    const Measurement& row = *timing.row;
    const Menu& menu = menus.at(MenuKey(row));
    if (menu.size() < 2) continue;
    const std::pair own{row.tile_m, row.tile_n};
    const double winner = LeastOf(timing, families, own, menu.at(own));
    Place place{1, static_cast<double>(menu.size())};
    for (const auto& [tile, depths] : menu) {
      if (tile == own) continue;
      const double time = LeastOf(timing, families, tile, depths);
      place.rank += time > 0 && time < winner;
    }
    out.push_back(place);
  }
  return out;
}

TileRank RankOf(const std::vector<Place>& places) {
  TileRank out;
  std::vector<double> ranks, candidates;
  const auto within = [&](double most) {
    return static_cast<double>(std::count_if(places.begin(), places.end(),
                                             [&](const Place& p) { return p.rank <= most; })) /
           static_cast<double>(places.size());
  };
  for (const Place& place : places) {
    ranks.push_back(place.rank);
    candidates.push_back(place.candidates);
  }
  constexpr double kFour = 4, kEight = 8;
  out.winners = static_cast<std::int64_t>(places.size());
  out.median_rank = Median(ranks);
  out.median_candidates = Median(candidates);
  out.first = within(1);
  out.top4 = within(kFour);
  out.top8 = within(kEight);
  return out;
}

// One family's time on a shape: measured of its predicted-fastest config, and that prediction.
struct FamilyTime {
  double measured = 0, predicted = 0;
};
using FamilyTimes = std::map<std::string, FamilyTime>;

FamilyTimes TimesOf(const Contest& contest) {
  FamilyTimes times;
  for (const auto& [family, timings] : contest) {
    const Timing& first = **std::min_element(
        timings.begin(), timings.end(),
        [](const Timing* a, const Timing* b) { return a->predicted < b->predicted; });
    times[family] = {first.measured, first.predicted};
  }
  return times;
}

// Two families that one generic model speaks for cannot be chosen between.
bool CanChoose(const FamilyTimes& times) {
  const double first = times.begin()->second.predicted;
  return std::any_of(times.begin(), times.end(),
                     [&](const auto& entry) { return entry.second.predicted != first; });
}

double Recovered(double picked, double always) {
  return always < 1 ? 1 - std::log(picked) / std::log(always) : 0;
}

// Nothing where no shape has two of the families.
std::optional<FamilyChoice> ChoiceAmong(const std::vector<FamilyTimes>& shapes) {
  FamilyChoice out;
  std::set<std::string> among;
  std::map<std::string, std::vector<double>> single;
  std::vector<double> picked;
  int fastest_picked = 0;
  for (const FamilyTimes& times : shapes) {
    if (times.size() < 2 || !CanChoose(times)) continue;
    const auto fastest = std::min_element(
        times.begin(), times.end(),
        [](const auto& a, const auto& b) { return a.second.measured < b.second.measured; });
    const auto chosen = std::min_element(
        times.begin(), times.end(),
        [](const auto& a, const auto& b) { return a.second.predicted < b.second.predicted; });
    ++out.shapes;
    fastest_picked += chosen->second.measured <= fastest->second.measured;
    picked.push_back(fastest->second.measured / chosen->second.measured);
    for (const auto& [family, time] : times) {
      among.insert(family);
      single[family].push_back(fastest->second.measured / time.measured);
    }
  }
  if (out.shapes == 0) return std::nullopt;
  out.among.assign(among.begin(), among.end());
  out.picked_fastest = static_cast<double>(fastest_picked) / out.shapes;
  out.picked_best = GeometricMean(picked);
  for (const auto& [family, ratios] : single) {
    if (ratios.size() != picked.size()) continue;  // not timed everywhere: no single choice
    const double always = GeometricMean(ratios);
    out.singles.push_back({family, always, Recovered(out.picked_best, always)});
    if (always <= out.best_single) continue;
    out.best_single = always;
    out.best_single_family = family;
    out.headroom_recovered = out.singles.back().headroom_recovered;
  }
  return out;
}

}  // namespace

double GeometricMean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::optional<double> Spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> rank_a = Ranks(a), rank_b = Ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (rank_a[i] - mean) * (rank_b[i] - mean);
    aa += (rank_a[i] - mean) * (rank_a[i] - mean);
    bb += (rank_b[i] - mean) * (rank_b[i] - mean);
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

Menus MenusOf(std::span<const Timing> timings) {
  Menus menus;
  for (const Timing& timing : timings) {
    const Measurement& row = *timing.row;
    if (timing.by == By::kTile)
      menus[MenuKey(row)][{row.tile_m, row.tile_n}].insert({row.tile_k, row.split_k});
  }
  return menus;
}

Contests ContestsOf(std::span<const Timing> timings) {
  Contests out;
  for (const Timing& timing : timings) {
    const Measurement& row = *timing.row;
    out[row.device + " " + row.dtype_text + " " + row.problem.Text() +
        (row.layout_stated ? "" : "?")][row.family]
        .push_back(&timing);
  }
  return out;
}

// Only families of ours have configs to choose between: what a library ran is not known.
void EvaluateConfigs(const Contests& contests, std::span<const Timing> timings, const Menus& menus,
                     std::span<const Family* const> families, EvaluationFigures& out) {
  std::vector<double> ratios, top4s, within;
  std::vector<Place> places;
  for (const auto& [key, contest] : contests) {
    for (const auto& [family, members] : contest) {
      std::vector<const Timing*> ours;
      std::set<std::string> configs;
      for (const Timing* timing : members) {
        if (timing->by != By::kConfig) continue;
        ours.push_back(timing);
        configs.insert(timing->row->config);
      }
      if (configs.size() < 2) continue;
      double top4 = 1;
      out.shapes.push_back(PickOf(ours, top4));
      ratios.push_back(out.shapes.back().ratio());
      top4s.push_back(top4);
      places.push_back(PlaceOfBest(ours));
      std::vector<double> predicted, measured;
      for (const Timing* timing : ours) {
        predicted.push_back(timing->predicted);
        measured.push_back(timing->measured);
      }
      if (const std::optional<double> rank = Spearman(predicted, measured)) within.push_back(*rank);
    }
  }
  if (!within.empty()) out.spearman_within_shape = Median(within);
  for (const Place& place : PlacesOfStatedTiles(timings, menus, families)) places.push_back(place);
  if (!places.empty()) out.tile_rank = RankOf(places);
  if (ratios.empty()) return;
  constexpr double kTenth = 0.10, kTwentieth = 0.05;
  out.regret = Regret{GeometricMean(ratios), Quantile(ratios, kTenth), Quantile(ratios, kTwentieth),
                      *std::min_element(ratios.begin(), ratios.end()), GeometricMean(top4s)};
}

void EvaluateFamilyChoice(const Contests& contests, EvaluationFigures& out) {
  std::vector<FamilyTimes> shapes;
  for (const auto& [key, contest] : contests)
    if (contest.size() > 1) shapes.push_back(TimesOf(contest));
  out.family_choice = ChoiceAmong(shapes);
  if (!out.family_choice || out.family_choice->among.size() < 3) return;
  const std::vector<std::string>& among = out.family_choice->among;
  for (size_t i = 0; i < among.size(); ++i) {
    for (size_t j = i + 1; j < among.size(); ++j) {
      std::vector<FamilyTimes> pair;
      for (const FamilyTimes& times : shapes)
        if (times.contains(among[i]) && times.contains(among[j]))
          pair.push_back({*times.find(among[i]), *times.find(among[j])});
      if (const auto choice = ChoiceAmong(pair)) out.family_pairs.push_back(*choice);
    }
  }
}

}  // namespace gnomon
