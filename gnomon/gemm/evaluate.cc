// Sets predictions against measurements, row by row and shape by shape.
//
//   error = |predicted / measured − 1|          per timing: median and 90th percentile
//   rank  = Spearman's correlation of predicted and measured times (ties share their mean rank)
//
// A timing is a config, shape and source; where the file repeats it, the least time stands for it
// (what disturbs a timing, a late launch or a clock that fell, only makes it longer). All figures
// are given twice: over all timings, and over those held out of every fit (base/fit_split.h). The
// roofline beside them is fitted on the others.
//
// Choices between configs and between families: evaluate_choice.cc. Entry point: Evaluate.

#include "gnomon/gemm/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "gnomon/base/fit_split.h"
#include "gnomon/base/statistics.h"
#include "gnomon/gemm/evaluate_parts.h"
#include "gnomon/gemm/roofline.h"

namespace gnomon {
namespace {

bool HeldOut(const Measurement& row) {
  return !IsFitRow(fmt::format("{},{},{}", row.problem.m, row.problem.n, row.problem.k));
}

// What makes a timing the same one, timed again.
std::string RepeatKey(const Measurement& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", row.device, row.family, row.dtype_text,
                     row.problem.Text(), row.layout_stated, row.tile_m, row.tile_n, row.tile_k,
                     row.split_k, row.config, row.source);
}

ErrorFigures ErrorsOf(const std::vector<const Timing*>& timings, double Timing::*predicted) {
  ErrorFigures out;
  out.timings = static_cast<std::int64_t>(timings.size());
  std::vector<double> errors, ours, theirs;
  for (const Timing* timing : timings) {
    errors.push_back(std::abs(timing->*predicted / timing->measured - 1));
    ours.push_back(timing->*predicted);
    theirs.push_back(timing->measured);
  }
  constexpr double kNinety = 0.90;
  out.median = Median(errors);
  out.p90 = Quantile(std::move(errors), kNinety);
  out.spearman = Spearman(ours, theirs);
  return out;
}

template <class Key>
std::vector<GroupFigures> GroupBy(std::span<const Timing> timings, Key key) {
  std::map<decltype(key(timings.front())), std::vector<const Timing*>> groups;
  for (const Timing& timing : timings) groups[key(timing)].push_back(&timing);
  std::vector<GroupFigures> out;
  for (const auto& [name, members] : groups)
    out.push_back({fmt::format("{}", name), ErrorsOf(members, &Timing::predicted),
                   ErrorsOf(members, &Timing::roofline)});
  return out;
}

// "1 to 10 GFLOP": the decade with the unit that keeps its number short.
std::string DecadeName(int decade) {
  constexpr int kThousand = 3;  // decades
  constexpr std::array<std::string_view, 6> kUnits = {"FLOP",  "KFLOP", "MFLOP",
                                                      "GFLOP", "TFLOP", "PFLOP"};
  const int unit = std::clamp(decade / kThousand, 0, static_cast<int>(kUnits.size()) - 1);
  const double low = std::pow(10.0, decade - unit * kThousand);
  return fmt::format("{:.0f} to {:.0f} {}", low, 10 * low, kUnits[static_cast<size_t>(unit)]);
}

int DecadeOf(const Timing& timing) {
  return static_cast<int>(std::floor(std::log10(timing.row->problem.flops().value)));
}

EvaluationFigures FiguresOf(std::span<const Timing> timings, const Menus& menus,
                            std::span<const Family* const> families) {
  EvaluationFigures out;
  out.timings = static_cast<std::int64_t>(timings.size());
  if (timings.empty()) return out;
  std::vector<const Timing*> all;
  for (const Timing& timing : timings) all.push_back(&timing);
  const ErrorFigures errors = ErrorsOf(all, &Timing::predicted);
  out.median_abs_error = errors.median;
  out.p90_abs_error = errors.p90;
  out.spearman = errors.spearman;
  out.roofline = ErrorsOf(all, &Timing::roofline);
  out.decades = GroupBy(timings, DecadeOf);
  for (GroupFigures& group : out.decades) group.name = DecadeName(std::stoi(group.name));
  out.dtypes =
      GroupBy(timings, [](const Timing& t) { return t.row->device + " " + t.row->dtype_text; });
  out.families =
      GroupBy(timings, [](const Timing& t) { return t.row->device + " " + t.row->family; });
  const Contests contests = ContestsOf(timings);
  EvaluateConfigs(contests, timings, menus, families, out);
  EvaluateFamilyChoice(contests, out);
  return out;
}

}  // namespace

std::vector<std::string> DevicesOf(std::span<const Measurement> rows) {
  std::vector<std::string> out;
  for (const Measurement& row : rows)
    if (std::find(out.begin(), out.end(), row.device) == out.end()) out.push_back(row.device);
  return out;
}

Result<std::vector<Device>> FindDevicesOf(std::span<const Measurement> rows,
                                          const std::string& path) {
  std::vector<Device> out;
  for (const std::string& id : DevicesOf(rows)) {
    Result<Device> device = FindDevice(id);
    if (device.ok()) {
      out.push_back(std::move(*device));
      continue;
    }
    for (const Measurement& row : rows)
      if (row.device == id)
        return BadInput(device.error().message,
                        fmt::format("{}:{}:{}", path, row.line, row.device_column));
  }
  return out;
}

Result<Evaluation> Evaluate(std::span<const Device> devices, std::span<const Measurement> rows,
                            std::span<const Family* const> families) {
  Evaluation out;
  for (const Device& device : devices) out.devices.push_back(device.id);
  std::vector<Timing> timings;
  std::map<std::string, size_t> seen;
  std::set<std::string> unknown;
  for (const Measurement& row : rows) {
    ++out.rows;
    const auto device = std::find_if(devices.begin(), devices.end(),
                                     [&](const Device& d) { return d.id == row.device; });
    if (device == devices.end()) {
      ++out.other_device;
      continue;
    }
    const double measured = Microseconds(row.us).value;
    const auto [entry, fresh] = seen.try_emplace(RepeatKey(row), timings.size());
    if (!fresh) {
      ++out.repeats;
      Timing& first = timings[entry->second];
      first.measured = std::min(first.measured, measured);
      continue;
    }
    const auto predicted = PredictMeasured(*device, row, families);
    if (!predicted) {
      ++out.not_modelled;
      seen.erase(entry);
      continue;
    }
    ++out.predicted;
    out.kin_dtype += !row.dtype_modelled;
    if (predicted->by == MeasuredPrediction::By::kGeneric) {
      ++out.generic;
      unknown.insert(row.family);
    }
    timings.push_back({&*device, &row, measured, predicted->time.value, 0, predicted->by});
  }
  if (out.other_device == out.rows) {
    const auto join = [](const std::vector<std::string>& names) {
      std::string text;
      for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
      return text;
    };
    return BadInput(fmt::format("no row is of device '{}'; the file has {}", join(out.devices),
                                rows.empty() ? "no rows" : join(DevicesOf(rows))),
                    "--device");
  }
  out.generic_families.assign(unknown.begin(), unknown.end());

  std::vector<RooflineTiming> roofline;
  for (const Timing& timing : timings) {
    const Measurement& row = *timing.row;
    roofline.push_back({timing.device, &row.problem,
                        row.device + "|" + row.family + "|" + row.dtype_text, timing.measured,
                        !HeldOut(row)});
  }
  const std::vector<double> baseline = FitRooflines(roofline);
  std::vector<Timing> held_out;
  for (size_t i = 0; i < timings.size(); ++i) {
    timings[i].roofline = baseline[i];
    if (HeldOut(*timings[i].row)) held_out.push_back(timings[i]);
  }
  const Menus menus = MenusOf(timings);
  static_cast<EvaluationFigures&>(out) = FiguresOf(timings, menus, families);
  out.held_out = FiguresOf(held_out, menus, families);
  return out;
}

Result<Evaluation> Evaluate(const Device& device, std::span<const Measurement> rows,
                            std::span<const Family* const> families) {
  return Evaluate(std::span(&device, 1), rows, families);
}

}  // namespace gnomon
