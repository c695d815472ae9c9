// Runs several plans in turn on the same data and says how fast each is and how well each learns.
//
//   speed:   after warm-up, blocks of equal time A B C A B C …; a block gives seconds per sample,
//   so that a
//            disturbance of the machine falls on all arms alike
//   quality: for each seed, each arm trains from scratch on the same samples in its own batch size,
//   then
//            its normalised entropy on the same held-out samples
//
// The arms share one set of tables: while timed they train it in turn (the time of a step does not
// depend on the values), and a quality run resets it. So memory holds the tables once, whatever the
// number of arms; a dense gradient of the tables is freed with its arm. Half of the time budget
// goes to speed, half to quality.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gnomon/base/statistics.h"
#include "gnomon/train/metrics.h"
#include "gnomon/train/network.h"
#include "gnomon/train/samples.h"
#include "gnomon/train/session.h"
#include "gnomon/train/table_storage.h"
#include "gnomon/train/train_loop.h"

namespace gnomon::train {
namespace {

constexpr int kRounds = 10, kFewestRounds = 3;
constexpr double kShortestBlock = 0.25;  // seconds: some dozens of steps
constexpr int kWarmUpSteps = 3;
// Distinct samples while timing: enough that the rows of one pass do not stay in a core's cache.
constexpr std::int64_t kTimingSamples = 1 << 17;
constexpr std::int64_t kMostQualitySamples = 3 << 19;
constexpr std::uint64_t kTimingSeedOffset = 1000003;

struct Comparison {
  const std::vector<Arm>& arms;
  const CompareOptions& options;
  SampleShape shape;
  int threads = 1;
  std::unique_ptr<TableStorage> tables = {};
  CompareResult result = {};
  int done = 0, total = 0;  // parts, for the progress line

  void Report(const std::string& note) {
    if (options.progress) options.progress(done++, total, note);
  }
};

Status CheckArms(const std::vector<Arm>& arms, const SampleShape& shape,
                 std::int64_t max_table_rows) {
  for (const Arm& arm : arms) {
    GNOMON_ASSIGN(const SampleShape other, MakeSampleShape(arm.plan.model, max_table_rows));
    if (!(other == shape) || arm.plan.model.embedding_dim != arms.front().plan.model.embedding_dim)
      return BadInput(
          fmt::format("arm '{}' has other tables or features than arm '{}': they cannot train on "
                      "the same data",
                      arm.name, arms.front().name));
  }
  return Done{};
}

// ---- speed

struct TimedArm {
  std::unique_ptr<Network> network;
  std::vector<Batch> batches;
  std::size_t next = 0;

  void Step() {
    network->Step(batches[next]);
    next = (next + 1) % batches.size();
  }
};

// Steps for about `seconds` (at least one); seconds a sample.
double RunBlock(TimedArm& arm, double seconds, std::int64_t batch) {
  arm.network->Activate();
  arm.Step();  // the other arms have filled the caches
  const double begin = Now();
  double elapsed = 0;
  std::int64_t steps = 0;
  do {
    arm.Step();
    ++steps;
    elapsed = Now() - begin;
  } while (elapsed < seconds);
  return elapsed / static_cast<double>(steps * batch);
}

Status TimeArms(Comparison& comparison) {
  const std::vector<Arm>& arms = comparison.arms;
  const CompareOptions& options = comparison.options;
  const auto count = static_cast<double>(arms.size());
  const double budget = options.time_budget.value / 2;
  const int rounds =
      std::clamp(static_cast<int>(budget / (kShortestBlock * count)), kFewestRounds, kRounds);
  const double slice = budget / (count * rounds);

  std::int64_t samples_wanted = kTimingSamples;
  for (const Arm& arm : arms) samples_wanted = std::max(samples_wanted, arm.plan.recipe.batch);
  GNOMON_ASSIGN(const auto source,
                OpenSource(arms.front().plan.model, comparison.shape,
                           {.path = options.data, .seed = options.seed + kTimingSeedOffset},
                           comparison.threads));
  Samples samples;
  GNOMON_TRY(source->Read(0, samples_wanted, samples));
  comparison.tables->Reset(options.seed, comparison.threads);

  std::vector<TimedArm> timed(arms.size());
  for (std::size_t a = 0; a < arms.size(); ++a) {
    const Plan& plan = arms[a].plan;
    GNOMON_ASSIGN(timed[a].network,
                  BuildNetwork(plan, comparison.shape, *comparison.tables, options.seed));
    timed[a].batches.resize(
        static_cast<std::size_t>(std::max<std::int64_t>(1, samples_wanted / plan.recipe.batch)));
    for (std::size_t i = 0; i < timed[a].batches.size(); ++i)
      MakeBatch(comparison.shape, samples, static_cast<std::int64_t>(i) * plan.recipe.batch,
                plan.recipe.batch, timed[a].network->layout(), timed[a].batches[i]);
    comparison.Report("warming up " + arms[a].name);
    timed[a].network->Activate();
    for (int step = 0; step < kWarmUpSteps; ++step) timed[a].Step();
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t a = 0; a < arms.size(); ++a) {
      if (a == 0) comparison.Report(fmt::format("timing, round {} of {}", round + 1, rounds));
      comparison.result.arms[a].block_seconds_per_sample.push_back(
          RunBlock(timed[a], slice, arms[a].plan.recipe.batch));
    }
  }
  for (std::size_t a = 0; a < arms.size(); ++a) {
    ArmResult& arm = comparison.result.arms[a];
    const auto batch = static_cast<double>(arms[a].plan.recipe.batch);
    const double median = Median(arm.block_seconds_per_sample);
    arm.step_time = {median * batch};
    arm.step_spread = {MedianAbsoluteDeviation(arm.block_seconds_per_sample) * batch};
    arm.samples_per_second = 1 / median;
  }
  return Done{};
}

// ---- quality

// Whole batches of the largest arm; an arm with smaller batches trains on the same samples.
std::int64_t QualitySamples(const Comparison& comparison) {
  if (comparison.options.quality_samples > 0) return comparison.options.quality_samples;
  double seconds_per_sample = 0;
  std::int64_t largest = 1;
  for (std::size_t a = 0; a < comparison.arms.size(); ++a) {
    seconds_per_sample += Median(comparison.result.arms[a].block_seconds_per_sample);
    largest = std::max(largest, comparison.arms[a].plan.recipe.batch);
  }
  const double seconds = comparison.options.time_budget.value / 2 / comparison.options.seeds;
  const auto samples =
      std::min(kMostQualitySamples, static_cast<std::int64_t>(seconds / seconds_per_sample));
  return std::max<std::int64_t>(1, samples / largest) * largest;
}

Status TrainArm(Comparison& comparison, std::size_t a, std::uint64_t seed, const Samples& samples,
                const Samples& held_out) {
  const Plan& plan = comparison.arms[a].plan;
  ArmResult& arm = comparison.result.arms[a];
  ReleaseAllocations();
  ResetPeakMemory();
  comparison.tables->Reset(seed, comparison.threads);
  GNOMON_ASSIGN(const auto network, BuildNetwork(plan, comparison.shape, *comparison.tables, seed));
  Batch batch;
  const std::int64_t size = plan.recipe.batch;
  for (std::int64_t first = 0; first + size <= std::max(size, samples.count); first += size) {
    MakeBatch(comparison.shape, samples, first, size, network->layout(), batch);
    network->Step(batch);
  }
  const std::vector<float> logits = PredictAll(*network, comparison.shape, held_out, size);
  arm.normalized_entropy.push_back(NormalizedEntropy(logits, held_out.labels));
  arm.peak_memory = std::max(arm.peak_memory, PeakMemory());
  return Done{};
}

Status TrainArms(Comparison& comparison) {
  const CompareOptions& options = comparison.options;
  comparison.result.quality_samples = QualitySamples(comparison);
  for (int s = 0; s < options.seeds; ++s) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(s);
    GNOMON_ASSIGN(const auto source,
                  OpenSource(comparison.arms.front().plan.model, comparison.shape,
                             {.path = options.data, .seed = seed, .held_out = options.eval_samples},
                             comparison.threads));
    Samples samples, held_out;
    GNOMON_TRY(source->ReadHeldOut(options.eval_samples, held_out));
    GNOMON_TRY(source->Read(0, comparison.result.quality_samples, samples));
    for (std::size_t a = 0; a < comparison.arms.size(); ++a) {
      comparison.Report(fmt::format("quality of {}, seed {} of {}", comparison.arms[a].name, s + 1,
                                    options.seeds));
      GNOMON_TRY(TrainArm(comparison, a, seed, samples, held_out));
    }
  }
  return Done{};
}

}  // namespace

Result<CompareResult> ComparePlans(const std::vector<Arm>& arms, const CompareOptions& options) {
  if (arms.empty()) return BadInput("nothing to compare");
  if (options.time_budget.value <= 0) return BadInput("the time budget must be positive");
  if (options.seeds < 0) return BadInput("the number of seeds must not be negative");
  GNOMON_ASSIGN(SampleShape shape,
                MakeSampleShape(arms.front().plan.model, options.max_table_rows));
  GNOMON_TRY(CheckArms(arms, shape, options.max_table_rows));
  Comparison comparison{.arms = arms, .options = options, .shape = std::move(shape)};
  for (const Arm& arm : arms) {
    comparison.threads = std::max(comparison.threads, ThreadsOf(arm.plan.recipe));
    comparison.result.arms.emplace_back().name = arm.name;
  }
  const auto count = static_cast<int>(arms.size());
  comparison.total = count + kRounds + options.seeds * count;
  GNOMON_ASSIGN(comparison.tables,
                TableStorage::Allocate(comparison.shape, arms.front().plan.model.embedding_dim));
  GNOMON_TRY(TimeArms(comparison));
  comparison.done = count + kRounds;
  if (options.seeds > 0) GNOMON_TRY(TrainArms(comparison));
  return std::move(comparison.result);
}

}  // namespace gnomon::train
