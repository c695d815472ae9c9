// gnomon gemm select | explain | sweep | evaluate | bench.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/command.h"
#include "apps/families.h"
#include "apps/measured_place.h"
#include "apps/problem_arguments.h"
#include "gnomon/base/nearest.h"
#include "gnomon/base/progress.h"
#include "gnomon/report/evaluation_report.h"
#include "gnomon/report/gemm_report.h"

namespace gnomon::app {
namespace {

/// What select and explain ask beside the problem.
struct SelectArguments : ProblemArguments {
  std::string family, config;
  int top = 1;
  bool json = false;
};

struct Question : ProblemOnDevice {
  std::vector<const Family*> families;
};

Result<Question> ResolveQuestion(const SelectArguments& arguments) {
  Question question;
  GNOMON_ASSIGN(static_cast<ProblemOnDevice&>(question), Resolve(arguments));
  GNOMON_ASSIGN(question.families, Families(arguments.family, &question.device));
  if (question.problem.grouped()) {
    std::erase_if(question.families, [](const Family* family) { return !TakesGroups(*family); });
    if (question.families.empty())
      return BadInput(fmt::format("no grouped kernels for {}{}", question.device.id,
                                  arguments.family.empty() ? "" : " in family " + arguments.family),
                      "--group");
  }
  return question;
}

// The time shown is the one that decided the order; the terms add up to it but for rounding.
ExplainedPick Explained(const Question& question, const Pick& pick) {
  ExplainedPick out{std::string(pick.family->name()), pick.family->Print(pick.config),
                    pick.family->Predict(question.device, question.problem, pick.config), pick.sure,
                    pick.family->PairError(question.device).has_value()};
  out.prediction.time = pick.predicted;
  return out;
}

int SelectCommand(const SelectArguments& arguments) {
  const Result<Question> question = ResolveQuestion(arguments);
  if (!question) return Fail(question.error());
  const auto picks =
      Select(question->device, question->problem, question->families, 0, arguments.top);
  if (!picks) return Fail(picks.error());
  std::vector<ExplainedPick> explained;
  for (const Pick& pick : *picks) explained.push_back(Explained(*question, pick));
  return Print(arguments.json,
               PicksText(question->device, question->problem, explained, question->limits),
               PicksJson(question->device, question->problem, explained));
}

/// The config that the argument names, of the first family that can read it.
Result<Pick> NamedPick(const Question& question, const std::string& text) {
  std::string reasons;
  for (const Family* family : question.families) {
    const Result<Config> config = family->Parse(text);
    if (!config.ok()) {
      reasons += (reasons.empty() ? "" : "; ") + config.error().message;
      continue;
    }
    const std::string why = family->Refusal(question.device, question.problem, *config);
    if (!why.empty())
      return BadInput(fmt::format("{} cannot run {} on {}: {}", family->Print(*config),
                                  question.problem.Text(), question.device.id, why),
                      "--config");
    return Pick{
        family, *config, family->PredictTime(question.device, question.problem, *config), {}};
  }
  return BadInput(reasons, "--config");
}

Result<Explanation> Explain(const Question& question, const std::string& config) {
  constexpr size_t kRivals = 3;
  constexpr int kLooked = 32;  // kernels may be mirror images of each other that nothing separates
  GNOMON_ASSIGN(const std::vector<Pick> picks,
                Select(question.device, question.problem, question.families, 0, kLooked));
  Pick chosen = picks.front();
  Explanation out;
  if (!config.empty()) {
    GNOMON_ASSIGN(chosen, NamedPick(question, config));
    std::vector<Config> space;
    GNOMON_TRY(chosen.family->Enumerate(question.device, question.problem, 0, space));
    out.in_space = std::find(space.begin(), space.end(), chosen.config) != space.end();
  }
  out.pick = Explained(question, chosen);
  const auto same = [](const ExplainedPick& a, const ExplainedPick& b) {
    return SeparationOf(a.prediction, b.prediction).longer.value == 0;
  };
  for (const Pick& pick : picks) {
    if (pick.family == chosen.family && pick.config == chosen.config) continue;
    ExplainedPick rival = Explained(question, pick);
    const bool twin = same(out.pick, rival) ||
                      std::any_of(out.rivals.begin(), out.rivals.end(),
                                  [&](const ExplainedPick& other) { return same(other, rival); });
    if (twin)
      ++out.twins;
    else
      out.rivals.push_back(std::move(rival));
    if (out.rivals.size() == kRivals) break;
  }
  return out;
}

int ExplainCommand(const SelectArguments& arguments) {
  const Result<Question> question = ResolveQuestion(arguments);
  if (!question) return Fail(question.error());
  const auto explanation = Explain(*question, arguments.config);
  if (!explanation) return Fail(explanation.error());
  return Print(arguments.json,
               ExplainText(question->device, question->problem, *explanation, question->limits),
               ExplainJson(question->device, question->problem, *explanation));
}

void AddSelectOptions(CLI::App& command, SelectArguments& arguments) {
  AddProblemOptions(command, arguments);
  command.add_option("--family", arguments.family, "kernels to choose from (default: all)")
      ->check(NotEmpty());
}

/// A measuring command: where, what shapes, where to.
struct MeasureArguments {
  std::string on, family, dtype = "fp32", shapes, output, device, measured, workspace;
  double max_gflop = 0, minutes = 0;
  int threads = 0;
  bool json = false, held_out = false;
};

/// C as GPU kernels store it; the host's store what they multiply.
Result<std::vector<Shape>> MeasuredShapes(const MeasureArguments& arguments, const Place& place) {
  GNOMON_ASSIGN(const DType dtype, ParseDType(arguments.dtype));
  GNOMON_ASSIGN(std::vector<Shape> shapes, ReadShapes(arguments.shapes, dtype));
  if (!place.host)
    for (Shape& shape : shapes)
      shape.problem.dtype_out = dtype == DType::kTf32 ? DType::kFp32 : UsualOutput(dtype);
  return shapes;
}

/// The exit code of a report: a negative verdict where something in it is wrong.
int Judged(int printed, bool wrong) {
  return printed == kFine && wrong ? static_cast<int>(kNegativeVerdict) : printed;
}

int SweepCommand(const MeasureArguments& arguments) {
  const Result<Place> place =
      OpenPlace({.on = arguments.on, .family = arguments.family, .threads = arguments.threads});
  if (!place) return Fail(place.error());
  const auto shapes = MeasuredShapes(arguments, *place);
  if (!shapes) return Fail(shapes.error());
  SweepOptions options = place->host ? SweepOptions() : GpuSweepOptions();
  options.units = arguments.threads;
  options.max_gflop = arguments.max_gflop;
  options.time_limit = Seconds{60 * arguments.minutes};
  const auto result = [&] {
    Progress progress("sweeping", 0);
    options.progress = [&](int done, int total, const std::string& what) {
      progress.SetTotal(total);
      progress.Update(done, what);
    };
    return Sweep(place->device, *place->bench, *shapes, arguments.output, options);
  }();
  if (!result) return Fail(result.error());
  const int printed = Print(arguments.json, SweepText(*result, arguments.output),
                            SweepJson(*result, arguments.output));
  return Judged(printed, !result->wrong.empty());
}

/// The devices of an evaluation: the one asked for, or each that the file names.
Result<std::vector<Device>> EvaluatedDevices(const MeasureArguments& arguments,
                                             const std::vector<Measurement>& rows) {
  if (arguments.device.empty()) return FindDevicesOf(rows, arguments.measured);
  GNOMON_ASSIGN(Device device, FindDevice(arguments.device));
  return std::vector<Device>{std::move(device)};
}

int EvaluateCommand(const MeasureArguments& arguments) {
  auto measured = ReadMeasuredTable(arguments.measured);
  if (!measured) return Fail(measured.error());
  const auto workspace = ParseWorkspace(arguments.workspace);
  if (!workspace) return Fail(workspace.error());
  for (Measurement& row : measured->rows) row.problem.workspace = *workspace;
  const auto devices = EvaluatedDevices(arguments, measured->rows);
  if (!devices) return Fail(devices.error());
  const auto families = Families("", nullptr);
  if (!families) return Fail(families.error());
  const auto evaluation = Evaluate(*devices, measured->rows, *families);
  if (!evaluation) return Fail(evaluation.error());
  return Print(
      arguments.json,
      EvaluationText(*evaluation, arguments.measured, measured->failed, arguments.held_out),
      EvaluationJson(*evaluation, measured->failed));
}

int BenchCommand(const MeasureArguments& arguments) {
  const Result<Place> place =
      OpenPlace({.on = arguments.on, .threads = arguments.threads, .against_vendor = true});
  if (!place) return Fail(place.error());
  const auto shapes = MeasuredShapes(arguments, *place);
  if (!shapes) return Fail(shapes.error());
  BenchOptions options = place->host ? BenchOptions() : GpuBenchOptions();
  options.units = arguments.threads;
  options.max_gflop = arguments.max_gflop;
  const auto result = [&] {
    Progress progress("benchmarking", 0);
    options.progress = [&](int done, int total, const std::string& what) {
      progress.SetTotal(total);
      progress.Update(done, what);
    };
    return BenchAgainstVendor(place->device, *place->bench, *shapes, options);
  }();
  if (!result) return Fail(result.error());
  return Judged(Print(arguments.json, BenchText(*result), BenchJson(*result)),
                !result->failed.empty());
}

void AddMeasureOptions(CLI::App& command, MeasureArguments& arguments) {
  command.add_option("--on", arguments.on, "where to measure: host, cuda:0, …")->required();
  command.add_option("--shapes", arguments.shapes, "CSV: name,layout,m,n,k,batch")->required();
  command.add_option("--dtype", arguments.dtype, "of A and B")->capture_default_str();
  command.add_option("--threads", arguments.threads, "cores to use (0: all)")
      ->check(CLI::Range(0, 4096));
  command.add_option("--max-gflop", arguments.max_gflop, "pass larger shapes over (0: none)")
      ->check(CLI::Range(0.0, 1e12));
}

}  // namespace

void AddGemmCommands(CLI::App& app, Chosen& chosen) {
  CLI::App* gemm =
      app.add_subcommand("gemm", "matrix products: select, explain, sweep, evaluate, bench");
  gemm->require_subcommand(1);

  auto select = std::make_shared<SelectArguments>();
  CLI::App* command =
      AddLeaf(*gemm, "select", "the predicted-fastest kernel configurations, no warm-up",
              "gnomon gemm select --device host --dtype fp32 -m 2048 -n 512 -k 13", &select->json);
  AddSelectOptions(*command, *select);
  command->add_option("--top", select->top, "how many")
      ->check(Decimal())
      ->check(CLI::Range(1, 1000));
  command->callback([&chosen, select] { chosen = [=] { return SelectCommand(*select); }; });

  auto explain = std::make_shared<SelectArguments>();
  command = AddLeaf(*gemm, "explain", "every term of one prediction, and what its rivals lose by",
                    "gnomon gemm explain --device host --dtype fp32 -m 2048 -n 512 -k 13",
                    &explain->json);
  AddSelectOptions(*command, *explain);
  command->add_option("--config", explain->config, "as select prints it (default: the pick)")
      ->check(NotEmpty());
  command->callback([&chosen, explain] { chosen = [=] { return ExplainCommand(*explain); }; });

  auto sweep = std::make_shared<MeasureArguments>();
  command = AddLeaf(
      *gemm, "sweep", "time every configuration on the present machine",
      "gnomon gemm sweep --on host --family cpu --dtype fp32 --shapes shapes.csv -o measured.csv",
      &sweep->json);
  AddMeasureOptions(*command, *sweep);
  command->add_option("--family", sweep->family, "whose configurations")->required();
  command->add_option("-o,--output", sweep->output, "CSV to append to; a rerun resumes it")
      ->required();
  command->add_option("--minutes", sweep->minutes, "stop between shapes after this long (0: never)")
      ->check(CLI::Range(0.0, 1e6));
  command->callback([&chosen, sweep] { chosen = [=] { return SweepCommand(*sweep); }; });

  auto evaluate = std::make_shared<MeasureArguments>();
  command = AddLeaf(*gemm, "evaluate", "predictions and picks against measured times",
                    "gnomon gemm evaluate --device host --measured measured.csv", &evaluate->json);
  command->add_option("--device", evaluate->device,
                      "only rows of this device (default: each row's own)");
  command->add_option("--measured", evaluate->measured, "CSV of measured times")->required();
  command
      ->add_option("--workspace", evaluate->workspace,
                   "bytes for partial sums: rows whose config needs more count as not modelled "
                   "(default: the family's)")
      ->check(NotEmpty());
  command->add_flag("--held-out", evaluate->held_out,
                    "print only rows that no constant was fitted on (JSON has both)");
  command->callback([&chosen, evaluate] { chosen = [=] { return EvaluateCommand(*evaluate); }; });

  auto bench = std::make_shared<MeasureArguments>();
  command = AddLeaf(*gemm, "bench", "the pick against the vendor's library, interleaved",
                    "gnomon gemm bench --on host --shapes shapes.csv --max-gflop 2", &bench->json);
  AddMeasureOptions(*command, *bench);
  command->callback([&chosen, bench] { chosen = [=] { return BenchCommand(*bench); }; });

  AddRankCommand(*gemm, chosen);
  AddAccuracyCommand(*gemm, chosen);
}

}  // namespace gnomon::app
