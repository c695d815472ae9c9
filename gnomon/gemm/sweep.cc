// Times every config that a family enumerates, shape by shape.
//
//   us(config) = median over its samples in interleaved rounds
//
// Each config runs once over a poisoned C and its whole result is checked before it is timed.
// Rounds go through the configs in turn, so that a slow spell of the machine falls on all of them
// alike. A config far behind the best after the first rounds keeps what it has: its exact time
// decides nothing. The few fastest get more rounds, since the regret of a pick rests on them. What
// a sample is, and whether caches are warm, is the workbench's. A shape's rows are appended
// together; a rerun skips what is there. A config that fails becomes a row with the time "nan" and
// the reason in its source; one that takes the device with it is written down before the sweep
// ends, so that a rerun passes it over.

#include "gnomon/gemm/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "gnomon/gemm/measured_file.h"

namespace gnomon {
namespace {

using Ending = Outcome::Ending;

constexpr double kFarBehind = 1.5;   // times the best: no further rounds
constexpr double kContender = 1.12;  // times the best: re-measured in the final rounds
constexpr size_t kMaxContenders = 12;

// Before the reason in the source of a row without a time.
constexpr std::string_view kWrong = "; wrong: ", kFailed = "; failed: ";

struct Candidate {
  Contestant contestant;
  Samples samples = {};
  Outcome outcome = {};
  double Time() const { return samples.Time().value; }
};

std::string WrongText(const Family& family, const Config& config, const Problem& problem,
                      std::string_view why) {
  return fmt::format("config {} computes {} wrongly: {}", family.Print(config), problem.Text(),
                     why);
}

// One shape, prepared on the bench.
class ShapeTimer {
 public:
  ShapeTimer(Workbench& bench, const Problem& problem, const SweepOptions& options,
             std::vector<Candidate>& candidates)
      : bench_(bench), problem_(problem), options_(options), all_(candidates) {}

  // Error: a failure, unless the sweep keeps going; the device is lost. The candidate has the
  // outcome then.
  Status Time() {
    for (Candidate& candidate : all_) {
      GNOMON_TRY(Judge(candidate, bench_.Verify(candidate.contestant)));
      GNOMON_TRY(Sample(candidate));
    }
    GNOMON_TRY(Rounds(Timed(), options_.first_rounds - 1));
    GNOMON_TRY(Rounds(Within(kFarBehind, all_.size()), options_.rounds - options_.first_rounds));
    GNOMON_TRY(Rounds(Within(kContender, kMaxContenders), options_.final_rounds));
    std::vector<Candidate*> never_clean = Timed();
    std::erase_if(never_clean, [](const Candidate* c) { return c->samples.clean(); });
    return Rounds(never_clean, options_.first_rounds);
  }

 private:
  Status Judge(Candidate& candidate, Outcome outcome) {
    candidate.outcome = std::move(outcome);
    const auto& [ending, why] = candidate.outcome;
    if (ending == Ending::kRight || (options_.keep_going && ending != Ending::kLost)) return Done{};
    const Config& config = candidate.contestant.config;
    if (ending == Ending::kWrong) return Fault(WrongText(bench_.family(), config, problem_, why));
    return Fault(fmt::format("config {} fails on {}: {}", bench_.family().Print(config),
                             problem_.Text(), why));
  }

  Status Sample(Candidate& candidate) {
    if (!candidate.outcome.right()) return Done{};
    return Judge(candidate, bench_.Sample(candidate.contestant, candidate.samples));
  }

  Status Rounds(const std::vector<Candidate*>& candidates, int rounds) {
    for (int round = 0; round < rounds; ++round)
      for (Candidate* candidate : candidates) GNOMON_TRY(Sample(*candidate));
    return Done{};
  }

  std::vector<Candidate*> Timed() {
    std::vector<Candidate*> timed;
    for (Candidate& candidate : all_)
      if (candidate.outcome.right()) timed.push_back(&candidate);
    return timed;
  }

  // The fastest, at most `most`, up to `factor` times the best.
  std::vector<Candidate*> Within(double factor, size_t most) {
    std::vector<Candidate*> sorted = Timed();
    if (sorted.empty()) return sorted;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Candidate* a, const Candidate* b) { return a->Time() < b->Time(); });
    const double limit = sorted.front()->Time() * factor;
    size_t kept = 0;
    while (kept < sorted.size() && kept < most && sorted[kept]->Time() <= limit) ++kept;
    sorted.resize(kept);
    return sorted;
  }

  Workbench& bench_;
  const Problem& problem_;
  const SweepOptions& options_;
  std::vector<Candidate>& all_;
};

class Sweeper {
 public:
  Sweeper(const Device& device, Workbench& bench, const SweepOptions& options, MeasuredFile file)
      : device_(device), bench_(bench), options_(options), file_(std::move(file)) {}

  SweepResult& result() { return result_; }

  // The configs of a shape that have no row yet; rows without a time are counted.
  Result<std::vector<Candidate>> Missing(const Problem& problem) {
    std::vector<Config> configs;
    GNOMON_TRY(bench_.family().Enumerate(device_, problem, options_.units, configs));
    std::vector<Candidate> missing;
    for (const Config& config : configs) {
      const Measurement row = RowOf(problem, config);
      if (!file_.Has(row))
        missing.push_back({{config}});
      else if (const std::string* source = file_.FailureOf(row))
        Count(problem, config, *source);
    }
    return missing;
  }

  // A shape that cannot be done ends the sweep, or is passed over; a fault of the machine ends it.
  Status PassOver(const Problem& problem, const Error& error) {
    if (!options_.keep_going || error.code != Error::Code::kBadInput) return error;
    result_.passed_over.push_back(fmt::format("{}: {}", problem.Text(), error.Text()));
    return Done{};
  }

  Status TimeAndWrite(const Problem& problem, std::vector<Candidate>& candidates) {
    Status timed = ShapeTimer(bench_, problem, options_, candidates).Time();
    if (!timed.ok()) {
      std::erase_if(candidates,
                    [](const Candidate& c) { return c.outcome.ending != Ending::kLost; });
      GNOMON_TRY(Write(problem, candidates));
      return timed;
    }
    return Write(problem, candidates);
  }

 private:
  Measurement RowOf(const Problem& problem, const Config& config) const {
    Measurement row;
    row.device = device_.id;
    row.family = bench_.family().name();
    row.problem = problem;
    row.config = bench_.family().Print(config);
    return row;
  }

  Status Write(const Problem& problem, const std::vector<Candidate>& candidates) {
    const std::string conditions = bench_.Conditions();
    std::vector<Measurement> rows;
    for (const Candidate& candidate : candidates) {
      const Config& config = candidate.contestant.config;
      Measurement row = RowOf(problem, config);
      row.source = conditions;
      if (candidate.outcome.right()) {
        row.us = InMicroseconds({candidate.Time()});
        row.source += candidate.samples.Text();
      } else {
        row.us = std::numeric_limits<double>::quiet_NaN();
        row.source += candidate.outcome.ending == Ending::kWrong ? kWrong : kFailed;
        row.source += candidate.outcome.why;
        Count(problem, config, row.source);
      }
      bench_.Describe(config, row);
      rows.push_back(std::move(row));
    }
    GNOMON_TRY(file_.Append(rows));
    result_.rows_written += static_cast<std::int64_t>(rows.size());
    return Done{};
  }

  void Count(const Problem& problem, const Config& config, std::string_view source) {
    ++result_.failed;
    const size_t at = source.find(kWrong);
    if (at != std::string_view::npos)
      result_.wrong.push_back(
          WrongText(bench_.family(), config, problem, source.substr(at + kWrong.size())));
  }

  const Device& device_;
  Workbench& bench_;
  const SweepOptions& options_;
  MeasuredFile file_;
  SweepResult result_;
};

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

SweepOptions GpuSweepOptions() {
  SweepOptions options;
  options.first_rounds = 1;
  options.rounds = 2;
  options.final_rounds = 3;
  options.keep_going = true;
  return options;
}

Result<SweepResult> Sweep(const Device& device, Workbench& bench, const std::vector<Shape>& shapes,
                          const std::string& output_path, const SweepOptions& options) {
  constexpr double kGflop = 1e9;
  std::vector<const Shape*> wanted;
  for (const Shape& shape : shapes)
    if (options.max_gflop <= 0 || shape.problem.flops().value <= options.max_gflop * kGflop)
      wanted.push_back(&shape);
  GNOMON_ASSIGN(MeasuredFile file, MeasuredFile::Open(output_path));
  Sweeper sweeper(device, bench, options, std::move(file));

  const auto start = std::chrono::steady_clock::now();
  SweepResult& result = sweeper.result();
  result.device = device.id;
  result.shapes = static_cast<int>(wanted.size());
  for (const Shape* shape : wanted) {
    auto candidates = sweeper.Missing(shape->problem);
    if (!candidates.ok()) {
      GNOMON_TRY(sweeper.PassOver(shape->problem, candidates.error()));
      continue;
    }
    const bool in_time =
        options.time_limit.value <= 0 || SecondsSince(start) < options.time_limit.value;
    if (!candidates->empty() && !in_time) continue;
    if (!candidates->empty()) {
      if (options.progress)
        options.progress(result.complete, result.shapes,
                         fmt::format("{} {}, {} configs", shape->name, shape->problem.Text(),
                                     candidates->size()));
      if (const Status ready = bench.Prepare(shape->problem); !ready.ok()) {
        GNOMON_TRY(sweeper.PassOver(shape->problem, ready.error()));
        continue;
      }
      GNOMON_TRY(sweeper.TimeAndWrite(shape->problem, *candidates));
    }
    ++result.complete;
  }
  const bool none = result.complete == 0 && !result.passed_over.empty();
  if (none && std::ssize(result.passed_over) == result.shapes)
    return BadInput("no shape can be swept: " + result.passed_over.front());
  return result;
}

}  // namespace gnomon
