// gnomon gemm select | explain | sweep | evaluate | bench.

#include <fmt/format.h>

#include <memory>

#include "apps/command.h"
#include "gnomon/base/nearest.h"
#include "gnomon/base/progress.h"
#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/families/cpu/runner.h"
#include "gnomon/report/gemm_report.h"

namespace gnomon::app {
namespace {

/// A problem as the arguments spell it.
struct ProblemArguments {
  std::string device, dtype = "fp32", layout = "nt", family, config;
  Problem problem;
  int units = 0, top = 1;
  bool json = false;
};

struct Question {
  Device device;
  Problem problem;
  std::vector<const Family*> families;
};

/// Every family there is; `name` empty: all of them.
Result<std::vector<const Family*>> Families(const std::string& name) {
  const Family* all[] = {&cpu::GemmFamily()};
  std::vector<const Family*> chosen;
  std::vector<std::string_view> names;
  for (const Family* family : all) {
    names.push_back(family->name());
    if (name.empty() || family->name() == name) chosen.push_back(family);
  }
  if (chosen.empty()) return BadInput(UnknownName("family", name, names), "--family");
  return chosen;
}

Result<Question> Resolve(const ProblemArguments& arguments) {
  Question question;
  GNOMON_ASSIGN(question.device, FindDevice(arguments.device));
  question.problem = arguments.problem;
  GNOMON_ASSIGN(question.problem.dtype, ParseDType(arguments.dtype));
  question.problem.dtype_out = question.problem.dtype;
  GNOMON_ASSIGN(question.problem.layout, ParseLayout(arguments.layout));
  GNOMON_TRY(CheckProblem(question.problem));
  GNOMON_ASSIGN(question.families, Families(arguments.family));
  return question;
}

int SelectCommand(const ProblemArguments& arguments) {
  const Result<Question> question = Resolve(arguments);
  if (!question) return Fail(question.error());
  const auto picks = Select(question->device, question->problem, question->families,
                            arguments.units, arguments.top);
  if (!picks) return Fail(picks.error());
  std::vector<ExplainedPick> explained;
  for (const Pick& pick : *picks) {
    explained.push_back({std::string(pick.family->name()), pick.family->Print(pick.config),
                         pick.family->Predict(question->device, question->problem, pick.config)});
  }
  return Print(arguments.json, PicksText(question->device, question->problem, explained),
               PicksJson(question->device, question->problem, explained));
}

int ExplainCommand(const ProblemArguments& arguments) {
  const Result<Question> question = Resolve(arguments);
  if (!question) return Fail(question.error());
  const Family* family = question->families.front();
  Config config;
  if (arguments.config.empty()) {
    const auto picks =
        Select(question->device, question->problem, question->families, arguments.units);
    if (!picks) return Fail(picks.error());
    family = picks->front().family;
    config = picks->front().config;
  } else {
    const Result<Config> parsed = family->Parse(arguments.config);
    if (!parsed) return Fail(parsed.error());
    config = *parsed;
  }
  const ExplainedPick pick{std::string(family->name()), family->Print(config),
                           family->Predict(question->device, question->problem, config)};
  return Print(arguments.json, ExplainText(question->device, question->problem, pick),
               PicksJson(question->device, question->problem, {&pick, 1}));
}

void AddProblemOptions(CLI::App& command, ProblemArguments& arguments) {
  command.add_option("--device", arguments.device, "device id or TOML file")->required();
  command.add_option("--dtype", arguments.dtype, "of A and B")->capture_default_str();
  command.add_option("-m", arguments.problem.m, "rows of C")->required();
  command.add_option("-n", arguments.problem.n, "columns of C")->required();
  command.add_option("-k", arguments.problem.k, "inner side")->required();
  command.add_option("--batch", arguments.problem.batch, "independent products")
      ->capture_default_str();
  command.add_option("--layout", arguments.layout, "nn, nt, tn or tt (t: stored transposed)")
      ->capture_default_str();
  command.add_option("--lda", arguments.problem.lda,
                     "elements between stored rows of A (0: dense)");
  command.add_option("--ldb", arguments.problem.ldb,
                     "elements between stored rows of B (0: dense)");
  command.add_option("--ldc", arguments.problem.ldc,
                     "elements between stored rows of C (0: dense)");
  command.add_option("--family", arguments.family, "kernels to choose from (default: all)");
  command.add_option("--units", arguments.units, "cores, CUs or SMs to use (0: all)")
      ->check(CLI::Range(0, 1 << 20));
}

/// A measuring command: where, what shapes, where to.
struct MeasureArguments {
  std::string on, family, dtype = "fp32", shapes, output, device, measured;
  double max_gflop = 0, minutes = 0;
  int threads = 0;
  bool json = false;
};

/// The present machine, which is all that can be measured on here.
Result<Device> MeasuredDevice(const std::string& on) {
  constexpr std::string_view kPlaces[] = {"host"};
  if (on != "host") return BadInput(UnknownName("place", on, kPlaces), "--on");
  return FindDevice("host");
}

Result<std::vector<Shape>> MeasuredShapes(const MeasureArguments& arguments) {
  GNOMON_ASSIGN(const DType dtype, ParseDType(arguments.dtype));
  return ReadShapes(arguments.shapes, dtype);
}

int SweepCommand(const MeasureArguments& arguments) {
  const Result<Device> device = MeasuredDevice(arguments.on);
  if (!device) return Fail(device.error());
  if (const auto families = Families(arguments.family); !families) return Fail(families.error());
  const auto shapes = MeasuredShapes(arguments);
  if (!shapes) return Fail(shapes.error());
  SweepOptions options;
  options.units = arguments.threads;
  options.max_gflop = arguments.max_gflop;
  options.time_limit = Seconds{60 * arguments.minutes};
  options.source = fmt::format("{}, gnomon gemm sweep", device->name);
  const auto result = [&] {
    Progress progress("sweeping", 0);
    options.progress = [&](int done, int total, const std::string& what) {
      progress.SetTotal(total);
      progress.Update(done, what);
    };
    return Sweep(*device, cpu::GemmRunner(), *shapes, arguments.output, options);
  }();
  if (!result) return Fail(result.error());
  return Print(arguments.json, SweepText(*result, arguments.output),
               SweepJson(*result, arguments.output));
}

int EvaluateCommand(const MeasureArguments& arguments) {
  const Result<Device> device = FindDevice(arguments.device);
  if (!device) return Fail(device.error());
  const auto rows = ReadMeasurements(arguments.measured);
  if (!rows) return Fail(rows.error());
  const auto families = Families("");
  const auto evaluation = Evaluate(*device, *rows, *families);
  if (!evaluation) return Fail(evaluation.error());
  return Print(arguments.json, EvaluationText(*evaluation, *device, arguments.measured),
               EvaluationJson(*evaluation));
}

int BenchCommand(const MeasureArguments& arguments) {
  const Result<Device> device = MeasuredDevice(arguments.on);
  if (!device) return Fail(device.error());
  const auto shapes = MeasuredShapes(arguments);
  if (!shapes) return Fail(shapes.error());
  BenchOptions options;
  options.units = arguments.threads;
  options.max_gflop = arguments.max_gflop;
  const auto result = [&] {
    Progress progress("benchmarking", 0);
    options.progress = [&](int done, int total, const std::string& what) {
      progress.SetTotal(total);
      progress.Update(done, what);
    };
    return BenchAgainstVendor(*device, cpu::GemmRunner(), *shapes, options);
  }();
  if (!result) return Fail(result.error());
  return Print(arguments.json, BenchText(*result), BenchJson(*result));
}

void AddMeasureOptions(CLI::App& command, MeasureArguments& arguments) {
  command.add_option("--on", arguments.on, "where to measure: host")->required();
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

  auto select = std::make_shared<ProblemArguments>();
  CLI::App* command =
      AddLeaf(*gemm, "select", "the predicted-fastest kernel configurations, no warm-up",
              "gnomon gemm select --device host --dtype fp32 -m 2048 -n 512 -k 13", &select->json);
  AddProblemOptions(*command, *select);
  command->add_option("--top", select->top, "how many")->check(CLI::Range(1, 1000));
  command->callback([&chosen, select] { chosen = [=] { return SelectCommand(*select); }; });

  auto explain = std::make_shared<ProblemArguments>();
  command = AddLeaf(*gemm, "explain", "every term of one prediction",
                    "gnomon gemm explain --device host --dtype fp32 -m 2048 -n 512 -k 13",
                    &explain->json);
  AddProblemOptions(*command, *explain);
  command->add_option("--config", explain->config, "as select prints it (default: the pick)");
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
  command->add_option("--device", evaluate->device, "device id or TOML file")->required();
  command->add_option("--measured", evaluate->measured, "CSV of measured times")->required();
  command->callback([&chosen, evaluate] { chosen = [=] { return EvaluateCommand(*evaluate); }; });

  auto bench = std::make_shared<MeasureArguments>();
  command = AddLeaf(*gemm, "bench", "the pick against the vendor's library, interleaved",
                    "gnomon gemm bench --on host --shapes shapes.csv --max-gflop 2", &bench->json);
  AddMeasureOptions(*command, *bench);
  command->callback([&chosen, bench] { chosen = [=] { return BenchCommand(*bench); }; });
}

}  // namespace gnomon::app
