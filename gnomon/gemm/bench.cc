// The selected kernel and each vendor library in turn on the same operands.
//
//   ratio = median time of the fastest library / median time of the pick
//
// Rounds interleave the contestants, so that a slow spell hits all; each contestant's result is
// checked once; all are timed alike (the workbench's Sample). Selection itself is not in the pick's
// time: it is done once a shape and costs microseconds (families/*/select_bench.cc); where a call
// only launches the work, what the call and the selection cost the host is measured beside it.

#include "gnomon/gemm/bench.h"

#include <fmt/format.h>

#include <cmath>

namespace gnomon {
namespace {

using Ending = Outcome::Ending;

struct Entrant {
  std::string name;
  Contestant contestant;
  Samples samples = {};
};

class Bencher {
 public:
  Bencher(const Device& device, Workbench& bench, const BenchOptions& options)
      : bench_(bench),
        options_(options),
        family_(&bench.family()),
        selector_(device, std::span(&family_, 1), options.units) {
    result_.vendors = bench.Vendors();
  }

  BenchResult& result() { return result_; }

  // Adds a row; or, where a contestant fails and the bench keeps going, to result().failed.
  Status Shape(const gnomon::Shape& shape) {
    const Problem& problem = shape.problem;
    const Result<Pick> selected = selector_.Select(problem);
    if (!selected.ok()) return PassOver(problem, selected.error());
    if (const Status ready = bench_.Prepare(problem); !ready.ok())
      return PassOver(problem, ready.error());
    const Pick& pick = *selected;
    std::vector<Entrant> entrants = {
        {fmt::format("config {}", family_->Print(pick.config)), {pick.config}}};
    for (size_t i = 0; i < result_.vendors.size(); ++i)
      entrants.push_back({result_.vendors[i], {.vendor = static_cast<int>(i)}});
    GNOMON_ASSIGN(const bool done, Run(problem, entrants));
    if (!done) return Done{};

    BenchRow row;
    row.shape = shape;
    row.config = family_->Print(pick.config);
    row.predicted = pick.predicted;
    row.pick = entrants[0].samples.Time();
    for (size_t i = 1; i < entrants.size(); ++i) {
      const Seconds time = entrants[i].samples.Time();
      if (i > 1 && time >= row.vendor) continue;
      row.vendor = time;
      row.vendor_name = entrants[i].name;
    }
    row.host = bench_.CostOfCalls(selector_);
    result_.conditions = bench_.Conditions();
    result_.rows.push_back(std::move(row));
    return Done{};
  }

 private:
  // A shape that cannot be done ends the bench, or is passed over; a fault of the machine ends it.
  Status PassOver(const Problem& problem, const Error& error) {
    if (!options_.keep_going || error.code != Error::Code::kBadInput) return error;
    result_.passed_over.push_back(fmt::format("{}: {}", problem.Text(), error.Text()));
    return Done{};
  }

  // False: a contestant failed and is in result().failed.
  Result<bool> Run(const Problem& problem, std::vector<Entrant>& entrants) {
    for (Entrant& entrant : entrants) {
      const Outcome outcome = bench_.Verify(entrant.contestant);
      if (!outcome.right()) return Judge(problem, entrant, outcome);
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (Entrant& entrant : entrants) {
        const Outcome outcome = bench_.Sample(entrant.contestant, entrant.samples);
        if (!outcome.right()) return Judge(problem, entrant, outcome);
      }
    }
    return true;
  }

  Result<bool> Judge(const Problem& problem, const Entrant& entrant, const Outcome& outcome) {
    const bool wrong = outcome.ending == Ending::kWrong;
    std::string text =
        wrong ? fmt::format("{} computes {} wrongly: {}", entrant.name, problem.Text(), outcome.why)
              : fmt::format("{} fails on {}: {}", entrant.name, problem.Text(), outcome.why);
    if (!options_.keep_going || outcome.ending == Ending::kLost) return Fault(std::move(text));
    result_.failed.push_back(std::move(text));
    return false;
  }

  Workbench& bench_;
  const BenchOptions& options_;
  const Family* family_;
  Selector selector_;
  BenchResult result_;
};

}  // namespace

BenchOptions GpuBenchOptions() {
  BenchOptions options;
  options.rounds = 7;
  options.keep_going = true;
  return options;
}

Result<BenchResult> BenchAgainstVendor(const Device& device, Workbench& bench,
                                       const std::vector<Shape>& shapes,
                                       const BenchOptions& options) {
  constexpr double kGflop = 1e9;
  Bencher bencher(device, bench, options);
  BenchResult& result = bencher.result();
  GNOMON_CHECK(!result.vendors.empty());
  int done = 0;
  for (const Shape& shape : shapes) {
    ++done;
    if (options.max_gflop > 0 && shape.problem.flops().value > options.max_gflop * kGflop) continue;
    if (options.progress)
      options.progress(done - 1, static_cast<int>(shapes.size()),
                       fmt::format("{} {}", shape.name, shape.problem.Text()));
    GNOMON_TRY(bencher.Shape(shape));
  }
  if (result.rows.empty() && result.failed.empty() && !result.passed_over.empty())
    return BadInput("no shape can be benched: " + result.passed_over.front());
  if (result.rows.empty() && result.failed.empty())
    return BadInput("no shape is within the size limit", "--max-gflop");
  double log_sum = 0;
  for (const BenchRow& row : result.rows) log_sum += std::log(row.ratio());
  if (!result.rows.empty())
    result.geomean_ratio = std::exp(log_sum / static_cast<double>(result.rows.size()));
  return std::move(result);
}

}  // namespace gnomon
