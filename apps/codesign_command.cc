// gnomon codesign MODEL --from ID --to ID[,ID…]: the plan for a target against the direct port;
// with --run both are trained on this machine and measured.

#include <fmt/format.h>

#include <memory>

#include "apps/command.h"
#include "gnomon/base/files.h"
#include "gnomon/base/progress.h"
#include "gnomon/codesign/search.h"
#include "gnomon/report/codesign_report.h"
#include "gnomon/train/load_engine.h"

namespace gnomon::app {
namespace {

struct CodesignArguments {
  std::string model, from, output, html, dtype;
  std::vector<std::string> to;
  CodesignOptions options;
  std::int64_t batch = 0;
  int devices = 1;
  bool run = false, json = false;
  double budget_seconds = 45;
  train::CompareOptions compare;
};

/// Trains the arms in turn on this machine.
Result<train::CompareResult> Run(const CodesignArguments& arguments, const Model& model,
                                 const Device& target, const CodesignReport& report) {
  GNOMON_ASSIGN(const train::Engine* const engine, train::LoadEngine());
  const auto plan = [&](const ArmPrediction& arm) {
    return MakePlan(model, arguments.model, target, arm);
  };
  std::vector<train::Arm> arms = {{std::string(kDirectPort), plan(report.prediction.direct_port)}};
  if (!report.native_is_direct())
    arms.push_back({std::string(kNativeDtype), plan(report.prediction.native_dtype)});
  arms.push_back({std::string(kPlan), plan(report.prediction.plan)});

  train::CompareOptions options = arguments.compare;
  options.time_budget = Seconds{arguments.budget_seconds};
  Progress progress("training both ways", 0);
  options.progress = [&](std::int64_t done, std::int64_t total, const std::string& note) {
    progress.SetTotal(total);
    progress.Update(done, note);
  };
  return engine->Compare(arms, options);
}

/// One target. Error: bad input, or a plan that cannot be had or run.
Result<CodesignReport> Answer(const CodesignArguments& arguments, const std::string& to) {
  GNOMON_ASSIGN(const Model model, FindModel(arguments.model));
  GNOMON_ASSIGN(const Device source, FindDevice(arguments.from));
  GNOMON_ASSIGN(const Device target, FindDevice(to));
  CodesignOptions options = arguments.options;
  if (arguments.batch > 0) options.batch = arguments.batch;
  if (!arguments.dtype.empty()) {
    GNOMON_ASSIGN(options.dtype, ParseDType(arguments.dtype));
  }
  if (arguments.run && to != "host")
    return BadInput(fmt::format("'{}' is not this machine: only --to host can be run here", to),
                    "--run");
  CodesignReport report;
  GNOMON_ASSIGN(report.prediction, Codesign(model, source, target, options));
  if (report.prediction.plan.refused) return *report.prediction.plan.refused;
  if (arguments.run) {
    GNOMON_ASSIGN(report.measured, Run(arguments, model, target, report));
  }
  if (!arguments.output.empty())
    GNOMON_TRY(WritePlan(MakePlan(model, arguments.model, target, report.prediction.plan),
                         arguments.output));
  if (!arguments.html.empty()) GNOMON_TRY(WriteFile(arguments.html, CodesignHtml(report)));
  return report;
}

int CodesignCommand(const CodesignArguments& arguments) {
  if (arguments.devices != 1)
    return Fail(BadInput("plans over several devices are not modelled yet: use 1", "--devices"));
  if (arguments.to.size() > 1 && !(arguments.output.empty() && arguments.html.empty()))
    return Fail(BadInput("-o and --report take one target: give --to a single id", "--to"));
  std::string text;
  Json list = Json::array();
  int code = kFine;
  for (const std::string& to : arguments.to) {
    const Result<CodesignReport> report = Answer(arguments, to);
    if (!report) return Fail(report.error());
    text += (text.empty() ? "" : "\n") + CodesignText(*report);
    list.push_back(CodesignJson(*report));
    // The plan was tried and is no faster than what it replaces.
    if (const auto speedup = report->MeasuredSpeedup(); speedup && speedup->median < 1)
      code = kNegativeVerdict;
  }
  const int printed =
      Print(arguments.json, text, list.size() == 1 ? list.front() : Json{{"targets", list}});
  return printed == kFine ? code : printed;
}

}  // namespace

void AddCodesignCommand(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<CodesignArguments>();
  CLI::App* command = AddLeaf(app, "codesign", "redesign a model's training for another device",
                              "gnomon codesign models/dlrm_kaggle.toml --from h100 --to host --run",
                              &arguments->json);
  command->add_option("model", arguments->model, "model id or TOML file")->required();
  command->add_option("--from", arguments->from, "the device the model was tuned for")->required();
  command->add_option("--to", arguments->to, "target devices, comma between them")
      ->required()
      ->delimiter(',');
  command->add_option("--devices", arguments->devices, "how many target devices (now: 1)")
      ->capture_default_str();
  command->add_option("--batch", arguments->batch, "fix the batch on both devices")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command->add_option("--dtype", arguments->dtype, "fix the plan's dtype");
  command
      ->add_option("--units", arguments->options.units, "cores, CUs or SMs of the target (0: all)")
      ->check(CLI::Range(0, 1 << 20));
  command->add_flag("--run", arguments->run, "train both on this machine and measure");
  command->add_option("--budget", arguments->budget_seconds, "seconds of measuring under --run")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  command->add_option("--seeds", arguments->compare.seeds, "quality runs of each under --run")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command
      ->add_option("--quality-samples", arguments->compare.quality_samples,
                   "samples of a quality run (0: as the budget allows)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command->add_option("--data", arguments->compare.data, "Criteo Kaggle TSV (default: synthetic)");
  command->add_option("--synthetic", arguments->compare.seed, "seed of synthetic samples")
      ->capture_default_str();
  command
      ->add_option("--max-table-rows", arguments->compare.max_table_rows,
                   "cap every embedding table under --run (0: as the model says)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command->add_option("-o,--output", arguments->output, "write the plan, for gnomon train");
  command->add_option("--report", arguments->html, "write a one-file HTML report");
  command->callback([&chosen, arguments] { chosen = [=] { return CodesignCommand(*arguments); }; });
}

}  // namespace gnomon::app
