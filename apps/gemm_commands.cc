// gnomon gemm select | explain | sweep | evaluate | bench.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/command.h"
#include "apps/families.h"
#include "gnomon/base/nearest.h"
#include "gnomon/base/progress.h"
#include "gnomon/families/cpu/runner.h"
#include "gnomon/report/evaluation_report.h"
#include "gnomon/report/gemm_report.h"

namespace gnomon::app {
namespace {

/// A problem as the arguments spell it.
struct ProblemArguments {
  std::string device, partition, dtype = "fp32", dtype_out, layout = "nt", family, config;
  Problem problem;
  int units = 0, top = 1;
  bool json = false;
};

struct Question {
  Device device;
  std::string limits;  ///< the flags that name the device and cut it down
  Problem problem;
  std::vector<const Family*> families;
};

/// The device, or what a partition and a budget of units leave of it.
Status CutDown(const ProblemArguments& arguments, Question& question) {
  if (!arguments.partition.empty()) {
    GNOMON_ASSIGN(question.device, Partition(question.device, arguments.partition));
    question.limits += " --partition " + arguments.partition;
  }
  if (arguments.units == 0) return Done{};
  if (const Status status = CheckUnits(question.device, arguments.units); !status.ok())
    return BadInput(status.error().message, "--units");
  question.device = WithUnits(question.device, arguments.units);
  question.limits += fmt::format(" --units {}", arguments.units);
  return Done{};
}

Result<Question> Resolve(const ProblemArguments& arguments) {
  Question question;
  GNOMON_ASSIGN(question.device, FindDevice(arguments.device));
  question.limits = "--device " + arguments.device;
  GNOMON_TRY(CutDown(arguments, question));
  Problem& problem = question.problem = arguments.problem;
  GNOMON_ASSIGN(problem.dtype, ParseDType(arguments.dtype));
  problem.dtype_out = UsualOutput(problem.dtype);
  if (!arguments.dtype_out.empty()) {
    GNOMON_ASSIGN(problem.dtype_out, ParseDType(arguments.dtype_out));
  }
  GNOMON_ASSIGN(problem.layout, ParseLayout(arguments.layout));
  if (problem.grouped()) {
    if (problem.m != 0) return BadInput("the groups' rows are M: give one or the other", "-m");
    for (const std::int64_t rows : problem.group_m)
      if (__builtin_add_overflow(problem.m, rows, &problem.m))
        return BadInput("the groups have too many rows together", "--group");
  } else if (problem.m == 0) {
    return BadInput("M is missing (or the rows of each group: --group)", "-m");
  }
  GNOMON_TRY(CheckProblem(problem));
  GNOMON_ASSIGN(question.families, Families(arguments.family, &question.device));
  if (problem.grouped()) {
    std::erase_if(question.families, [](const Family* family) { return !TakesGroups(*family); });
    if (question.families.empty())
      return BadInput(fmt::format("no grouped kernels for {}{}", question.device.id,
                                  arguments.family.empty() ? "" : " in family " + arguments.family),
                      "--group");
  }
  return question;
}

ExplainedPick Explained(const Question& question, const Pick& pick) {
  return {std::string(pick.family->name()), pick.family->Print(pick.config),
          pick.family->Predict(question.device, question.problem, pick.config), pick.sure,
          pick.family->PairError(question.device).has_value()};
}

int SelectCommand(const ProblemArguments& arguments) {
  const Result<Question> question = Resolve(arguments);
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
Result<Pick> NamedPick(const Question& question, const std::string& config) {
  std::string reasons;
  for (const Family* family : question.families) {
    const Result<Config> parsed = family->Parse(config);
    if (parsed.ok()) return Pick{family, *parsed, {}, {}};
    reasons += (reasons.empty() ? "" : "; ") + parsed.error().message;
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
  // A family's time of what it cannot launch is longer than any that can.
  constexpr Seconds kLongest = {1e20};
  if (out.pick.prediction.terms.empty() ||
      chosen.family->PredictTime(question.device, question.problem, chosen.config) > kLongest)
    return BadInput(fmt::format("{} cannot run {} on {}: registers, shared memory or grid do not "
                                "suffice",
                                out.pick.config, question.problem.Text(), question.device.id),
                    "--config");
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

int ExplainCommand(const ProblemArguments& arguments) {
  const Result<Question> question = Resolve(arguments);
  if (!question) return Fail(question.error());
  const auto explanation = Explain(*question, arguments.config);
  if (!explanation) return Fail(explanation.error());
  return Print(arguments.json,
               ExplainText(question->device, question->problem, *explanation, question->limits),
               ExplainJson(question->device, question->problem, *explanation));
}

void AddProblemOptions(CLI::App& command, ProblemArguments& arguments) {
  command.add_option("--device", arguments.device, "device id or TOML file")->required();
  command.add_option("--dtype", arguments.dtype, "of A and B")->capture_default_str();
  command.add_option("--dtype-out", arguments.dtype_out,
                     "of C (default: that of A and B, bf16 where these have 8 bits or fewer)");
  command.add_option("-m", arguments.problem.m, "rows of C (or --group)")->check(Decimal());
  command.add_option("-n", arguments.problem.n, "columns of C")->required()->check(Decimal());
  command.add_option("-k", arguments.problem.k, "inner side")->required()->check(Decimal());
  command.add_option("--batch", arguments.problem.batch, "independent products")
      ->capture_default_str()
      ->check(Decimal());
  command
      .add_option("--group", arguments.problem.group_m,
                  "rows of each product of a grouped GEMM, each with its own B: m1,m2,…")
      ->delimiter(',');
  command.add_option("--layout", arguments.layout, "nn, nt, tn or tt (t: stored transposed)")
      ->capture_default_str();
  command
      .add_option("--lda", arguments.problem.lda, "elements between stored rows of A (0: dense)")
      ->check(Decimal());
  command
      .add_option("--ldb", arguments.problem.ldb, "elements between stored rows of B (0: dense)")
      ->check(Decimal());
  command
      .add_option("--ldc", arguments.problem.ldc, "elements between stored rows of C (0: dense)")
      ->check(Decimal());
  command.add_option("--family", arguments.family, "kernels to choose from (default: all)");
  command.add_option("--units", arguments.units, "cores, CUs or SMs to use (0: all)")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--partition", arguments.partition,
                     "work on one partition of the device: spx, dpx, tpx, qpx or cpx");
}

/// A measuring command: where, what shapes, where to.
struct MeasureArguments {
  std::string on, family, dtype = "fp32", shapes, output, device, measured;
  double max_gflop = 0, minutes = 0;
  int threads = 0;
  bool json = false, held_out = false;
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
  if (const auto families = Families(arguments.family, nullptr); !families)
    return Fail(families.error());
  const std::string_view measurable[] = {cpu::GemmRunner().family().name()};
  if (arguments.family != measurable[0])
    return Fail(BadInput(
        UnknownName("family to time on this machine", arguments.family, measurable), "--family"));
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

/// The devices of an evaluation: the one asked for, or each that the file names.
Result<std::vector<Device>> EvaluatedDevices(const MeasureArguments& arguments,
                                             const std::vector<Measurement>& rows) {
  if (arguments.device.empty()) return FindDevicesOf(rows, arguments.measured);
  GNOMON_ASSIGN(Device device, FindDevice(arguments.device));
  return std::vector<Device>{std::move(device)};
}

int EvaluateCommand(const MeasureArguments& arguments) {
  const auto measured = ReadMeasuredTable(arguments.measured);
  if (!measured) return Fail(measured.error());
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
  command = AddLeaf(*gemm, "explain", "every term of one prediction, and what its rivals lose by",
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
  command->add_option("--device", evaluate->device,
                      "only rows of this device (default: each row's own)");
  command->add_option("--measured", evaluate->measured, "CSV of measured times")->required();
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
