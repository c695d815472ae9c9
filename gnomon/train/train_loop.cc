// Trains one plan: read a batch, step, now and then a checkpoint; at the end, quality on held-out
// samples.
//
// The timed part of a step is forward, backward and optimisers; reading or drawing the batch stands
// outside it (a data loader runs beside training), and samples per second are over the timed part.
// The first steps are warm-up and enter no figure.

#include "gnomon/train/train_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gnomon/base/statistics.h"
#include "gnomon/train/checkpoint.h"
#include "gnomon/train/metrics.h"
#include "gnomon/train/network.h"
#include "gnomon/train/samples.h"
#include "gnomon/train/session.h"
#include "gnomon/train/table_storage.h"

namespace gnomon::train {
namespace {

constexpr std::size_t kWarmUpSteps = 3;

Status CheckOptions(const TrainOptions& options) {
  if (options.steps < 1) return BadInput("steps must be positive", "--steps");
  if (options.checkpoint_every < 1) return BadInput("must be positive", "--checkpoint-every");
  if (options.eval_samples < 1) return BadInput("must be positive", "--eval-samples");
  if (options.resume && options.checkpoint_folder.empty())
    return BadInput("resuming needs the checkpoint folder", "--resume");
  return Done{};
}

void FillTimes(std::vector<double> times, std::int64_t batch, TrainResult& result) {
  if (times.empty()) return;  // resumed at the last step
  if (times.size() > 2 * kWarmUpSteps)
    times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(kWarmUpSteps));
  result.step_time = {Median(times)};
  result.step_spread = {MedianAbsoluteDeviation(times)};
  if (result.step_time.value > 0)
    result.samples_per_second = static_cast<double>(batch) / result.step_time.value;
}

}  // namespace

Result<TrainResult> TrainPlan(const Plan& plan, const TrainOptions& options) {
  GNOMON_TRY(CheckOptions(options));
  const int threads = ThreadsOf(plan.recipe);
  const std::int64_t batch_size = plan.recipe.batch;
  GNOMON_ASSIGN(const SampleShape shape, MakeSampleShape(plan.model, options.max_table_rows));
  GNOMON_ASSIGN(const auto source, OpenSource(plan.model, shape,
                                              {options.data, options.seed, options.bad_line_limit,
                                               options.eval_samples},
                                              threads));
  GNOMON_ASSIGN(const auto tables, TableStorage::Allocate(shape, plan.model.embedding_dim));
  GNOMON_ASSIGN(const auto network, BuildNetwork(plan, shape, *tables, options.seed));
  // After what can refuse the plan: filling tables of gigabytes takes seconds.
  tables->Reset(options.seed, threads);

  TrainState state;
  state.seed = options.seed;
  const std::string identity = CheckpointIdentity(plan, shape, options.seed, options.data);
  if (options.resume) {
    GNOMON_ASSIGN(state,
                  ReadCheckpoint(options.checkpoint_folder, identity, *tables, network->Buffers()));
    network->Refresh();
  }

  const auto report = [&](const std::string& note) {
    if (options.progress) options.progress(state.step, std::max(options.steps, state.step), note);
  };
  std::vector<double> times;
  Samples samples;
  Batch batch;
  while (state.step < options.steps) {
    GNOMON_TRY(source->Read(state.next_sample, batch_size, samples));
    MakeBatch(shape, samples, 0, batch_size, network->layout(), batch);
    const double begin = Now();
    const double loss = network->Step(batch);
    times.push_back(Now() - begin);
    if (!std::isfinite(loss))
      return BadInput(fmt::format("the loss became {} in step {}; a lower learning rate may help",
                                  loss, state.step + 1),
                      "recipe.learning_rate");
    state.losses.push_back(loss);
    state.next_sample += batch_size;
    ++state.step;
    if (!options.checkpoint_folder.empty() &&
        (state.step % options.checkpoint_every == 0 || state.step == options.steps)) {
      report("writing a checkpoint");
      GNOMON_TRY(
          WriteCheckpoint(options.checkpoint_folder, identity, state, *tables, network->Buffers()));
    }
    report(fmt::format("loss {:.4f}", loss));
  }

  TrainResult result;
  report("held-out samples");
  GNOMON_TRY(source->ReadHeldOut(options.eval_samples, samples));
  const std::vector<float> logits = PredictAll(*network, shape, samples, batch_size);
  result.normalized_entropy = NormalizedEntropy(logits, samples.labels);
  result.auc = AreaUnderCurve(logits, samples.labels);
  result.steps = state.step;
  FillTimes(std::move(times), batch_size, result);
  result.peak_memory = PeakMemory();
  result.losses = std::move(state.losses);
  result.bad_lines = source->bad_lines();
  return result;
}

}  // namespace gnomon::train
