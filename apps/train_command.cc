// gnomon train PLAN.toml: runs a plan with LibTorch on data or on synthetic samples.

#include <memory>

#include "apps/command.h"
#include "gnomon/base/progress.h"
#include "gnomon/codesign/plan.h"
#include "gnomon/report/train_report.h"
#include "gnomon/train/load_engine.h"

namespace gnomon::app {
namespace {

struct TrainArguments {
  std::string plan, data, resume, checkpoint;
  train::TrainOptions options;
  bool json = false;
};

int Train(const TrainArguments& arguments) {
  const Result<Plan> plan = ReadPlan(arguments.plan);
  if (!plan) return Fail(plan.error());
  const auto engine = train::LoadEngine();
  if (!engine) return Fail(engine.error());

  train::TrainOptions options = arguments.options;
  options.data = arguments.data;
  options.resume = !arguments.resume.empty();
  options.checkpoint_folder = options.resume ? arguments.resume : arguments.checkpoint;
  const auto result = [&] {
    Progress progress("training", options.steps);
    options.progress = [&](std::int64_t done, std::int64_t total, const std::string& note) {
      progress.SetTotal(total);
      progress.Update(done, note);
    };
    return (*engine)->Train(*plan, options);
  }();
  if (!result) return Fail(result.error());
  Plan shown = *plan;
  if (options.max_table_rows > 0) {  // another model than the one that was predicted
    shown.predicted_step = {};
    shown.predicted_memory = {};
  }
  return Print(arguments.json, TrainText(shown, *result), TrainJson(shown, *result));
}

}  // namespace

void AddTrainCommand(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<TrainArguments>();
  train::TrainOptions& options = arguments->options;
  CLI::App* command = AddLeaf(app, "train", "run a plan for real",
                              "gnomon train plan.toml --synthetic 1 --steps 200", &arguments->json);
  command->add_option("plan", arguments->plan, "plan.toml, as codesign -o writes it")->required();
  command->add_option("--steps", options.steps, "optimiser steps in all")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  CLI::Option* data =
      command->add_option("--data", arguments->data, "Criteo Kaggle TSV, plain or gzip");
  command->add_option("--synthetic", options.seed, "samples from a hidden teacher with this seed")
      ->capture_default_str()
      ->excludes(data);
  command->add_option("--eval-samples", options.eval_samples, "held-out samples")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option("--max-table-rows", options.max_table_rows,
                   "cap every embedding table (0: as the model says)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command
      ->add_option("--bad-lines", options.bad_line_limit, "bad data lines to skip before giving up")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  CLI::Option* checkpoint =
      command->add_option("--checkpoint", arguments->checkpoint, "folder to write checkpoints to");
  command->add_option("--checkpoint-every", options.checkpoint_every, "steps between checkpoints")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--resume", arguments->resume, "checkpoint folder to continue from")
      ->excludes(checkpoint);
  command->callback([&chosen, arguments] { chosen = [=] { return Train(*arguments); }; });
}

}  // namespace gnomon::app
