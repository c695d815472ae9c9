// gnomon cost evaluate.

#include <fmt/format.h>

#include <memory>

#include "apps/command.h"
#include "gnomon/device/device.h"
#include "gnomon/report/cost_report.h"

namespace gnomon::app {
namespace {

struct CostArguments {
  std::string measured, device;
  bool json = false, rows = false;
};

int EvaluateCommand(const CostArguments& arguments) {
  if (!arguments.device.empty()) {
    if (const auto device = FindDevice(arguments.device); !device) return Fail(device.error());
  }
  const auto file = ReadOps(arguments.measured);
  if (!file) return Fail(file.error());
  const OpsEvaluation evaluation = EvaluateOps(*file, arguments.device);
  if (evaluation.rows > 0 && evaluation.other_device == evaluation.rows)
    return Fail(BadInput(fmt::format("no row is of {}", arguments.device), arguments.measured));
  return Print(arguments.json, OpsText(evaluation, arguments.measured),
               OpsJson(evaluation, arguments.rows));
}

}  // namespace

void AddCostCommands(CLI::App& app, Chosen& chosen) {
  CLI::App* cost = app.add_subcommand("cost", "operators, collectives and steps: evaluate");
  cost->require_subcommand(1);
  auto evaluate = std::make_shared<CostArguments>();
  CLI::App* command =
      AddLeaf(*cost, "evaluate", "operator and collective predictions against measured times",
              "gnomon cost evaluate --measured ops.csv", &evaluate->json);
  command
      ->add_option("--measured", evaluate->measured,
                   "CSV of attention, embedding, memory operators, collectives or steps")
      ->required();
  command->add_option("--device", evaluate->device, "only rows of this device id");
  command->add_flag("--rows", evaluate->rows, "with --json: every row's times");
  command->callback([&chosen, evaluate] { chosen = [=] { return EvaluateCommand(*evaluate); }; });
}

}  // namespace gnomon::app
