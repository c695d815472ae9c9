// Times every config that a family enumerates, shape by shape.
//
//   us(config) = median over interleaved rounds of (time of back-to-back calls / calls)
//
// Each config runs once over a poisoned C and its whole result is checked before it is timed.
// Rounds go through the configs in turn, so that a slow spell of the machine falls on all of them
// alike. A config far behind the best after three rounds keeps what it has: its exact time decides
// nothing. The few fastest get more rounds, since the regret of a pick rests on them. Cache policy:
// warm (gemm/timing.h). A shape's rows are appended together; a rerun skips what is there.

#include "gnomon/gemm/sweep.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "gnomon/gemm/measured_file.h"
#include "gnomon/gemm/operands.h"
#include "gnomon/gemm/timing.h"

namespace gnomon {
namespace {

constexpr int kFirstRounds = 3;      // of every config
constexpr double kFarBehind = 1.5;   // times the best: no further rounds
constexpr double kContender = 1.12;  // times the best: re-measured in the final rounds
constexpr size_t kMaxContenders = 12;

struct Candidate {
  Config config;
  Samples samples;
  double Time() const { return samples.Time().value; }
};

Status Sample(const KernelRunner& runner, const Problem& problem, Operands& operands,
              Seconds at_least, Candidate& candidate) {
  const TimedCall call = [&] {
    return runner.Run(problem, candidate.config, operands.a(), operands.b(), operands.c());
  };
  return candidate.samples.Take(call, at_least);
}

Status Verify(const KernelRunner& runner, const Problem& problem, Operands& operands,
              const Config& config) {
  operands.Poison();
  GNOMON_TRY(runner.Run(problem, config, operands.a(), operands.b(), operands.c()));
  const Status correct = operands.Check();
  if (!correct.ok())
    return Fault(fmt::format("config {} computes {} wrongly: {}", runner.family().Print(config),
                             problem.Text(), correct.error().message));
  return Done{};
}

// Runs `rounds` more interleaved rounds over the candidates.
Status Rounds(const KernelRunner& runner, const Problem& problem, Operands& operands,
              std::vector<Candidate*>& candidates, int rounds, Seconds at_least) {
  for (int round = 0; round < rounds; ++round)
    for (Candidate* candidate : candidates)
      GNOMON_TRY(Sample(runner, problem, operands, at_least, *candidate));
  return Done{};
}

std::vector<Candidate*> Within(std::vector<Candidate>& all, double factor, size_t most) {
  std::vector<Candidate*> sorted;
  for (Candidate& candidate : all) sorted.push_back(&candidate);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Candidate* a, const Candidate* b) { return a->Time() < b->Time(); });
  const double limit = sorted.front()->Time() * factor;
  size_t kept = 0;
  while (kept < sorted.size() && kept < most && sorted[kept]->Time() <= limit) ++kept;
  sorted.resize(kept);
  return sorted;
}

Status TimeShape(const KernelRunner& runner, const Problem& problem, const SweepOptions& options,
                 std::vector<Candidate>& candidates) {
  GNOMON_ASSIGN(Operands operands, Operands::Make(problem));
  const Seconds at_least = Microseconds(options.min_sample_us);
  for (Candidate& candidate : candidates) {
    GNOMON_TRY(Verify(runner, problem, operands, candidate.config));
    GNOMON_TRY(Sample(runner, problem, operands, at_least, candidate));
  }
  std::vector<Candidate*> all;
  for (Candidate& candidate : candidates) all.push_back(&candidate);
  const int first = std::min(options.rounds, kFirstRounds) - 1;
  GNOMON_TRY(Rounds(runner, problem, operands, all, first, at_least));
  std::vector<Candidate*> near = Within(candidates, kFarBehind, candidates.size());
  GNOMON_TRY(Rounds(runner, problem, operands, near, options.rounds - 1 - first, at_least));
  std::vector<Candidate*> best = Within(candidates, kContender, kMaxContenders);
  GNOMON_TRY(Rounds(runner, problem, operands, best, options.final_rounds, at_least));
  std::vector<Candidate*> never_clean;
  for (Candidate& candidate : candidates)
    if (!candidate.samples.clean()) never_clean.push_back(&candidate);
  return Rounds(runner, problem, operands, never_clean, kFirstRounds, at_least);
}

// The configs of a shape that have no row yet.
Result<std::vector<Candidate>> Missing(const Device& device, const KernelRunner& runner,
                                       const Problem& problem, int units,
                                       const MeasuredFile& file) {
  std::vector<Config> configs;
  GNOMON_TRY(runner.family().Enumerate(device, problem, units, configs));
  std::vector<Candidate> missing;
  Measurement row;
  row.device = device.id;
  row.family = runner.family().name();
  row.problem = problem;
  for (const Config& config : configs) {
    row.config = runner.family().Print(config);
    if (!file.Has(row)) missing.push_back({config, {}});
  }
  return missing;
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<SweepResult> Sweep(const Device& device, const KernelRunner& runner,
                          const std::vector<Shape>& shapes, const std::string& output_path,
                          const SweepOptions& options) {
  constexpr double kGflop = 1e9;
  std::vector<const Shape*> wanted;
  for (const Shape& shape : shapes)
    if (options.max_gflop <= 0 || shape.problem.flops().value <= options.max_gflop * kGflop)
      wanted.push_back(&shape);
  GNOMON_ASSIGN(MeasuredFile file, MeasuredFile::Open(output_path));

  const auto start = std::chrono::steady_clock::now();
  SweepResult result;
  result.shapes = static_cast<int>(wanted.size());
  for (const Shape* shape : wanted) {
    GNOMON_ASSIGN(std::vector<Candidate> candidates,
                  Missing(device, runner, shape->problem, options.units, file));
    const bool in_time =
        options.time_limit.value <= 0 || SecondsSince(start) < options.time_limit.value;
    if (!candidates.empty() && !in_time) continue;
    if (!candidates.empty()) {
      if (options.progress)
        options.progress(result.complete, result.shapes,
                         fmt::format("{} {}, {} configs", shape->name, shape->problem.Text(),
                                     candidates.size()));
      GNOMON_TRY(TimeShape(runner, shape->problem, options, candidates));
      std::vector<Measurement> rows;
      for (const Candidate& candidate : candidates) {
        Measurement row;
        row.device = device.id;
        row.family = runner.family().name();
        row.problem = shape->problem;
        row.us = InMicroseconds({candidate.Time()});
        row.source = options.source;
        row.config = runner.family().Print(candidate.config);
        runner.Describe(candidate.config, row);
        rows.push_back(std::move(row));
      }
      GNOMON_TRY(file.Append(rows));
      result.rows_written += static_cast<std::int64_t>(rows.size());
    }
    ++result.complete;
  }
  return result;
}

}  // namespace gnomon
