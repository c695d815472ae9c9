// A run is reported with its measured step time beside the plan's predicted one, and what it
// learned on samples it never trained on. Entry points: the header's.

#include "gnomon/report/train_report.h"

#include <fmt/format.h>

#include "gnomon/base/text_table.h"

namespace gnomon {

std::string TrainText(const Plan& plan, const train::TrainResult& result) {
  std::string text = fmt::format(
      "{}: {} steps of {} samples, normalized entropy {:.4f}, AUC {:.4f} on held-out samples\n",
      plan.model.id, result.steps, plan.recipe.batch, result.normalized_entropy, result.auc);
  TextTable table({"figure", "value", "kind"});
  table.Row({"step", Show(result.step_time) + " ± " + Show(result.step_spread), "measured"});
  if (plan.predicted_step.value > 0) table.Row({"step", Show(plan.predicted_step), "predicted"});
  table.Row({"samples/s", Significant(result.samples_per_second), "measured"});
  table.Row({"peak memory", Show(result.peak_memory), "measured"});
  if (plan.predicted_memory.value > 0)
    table.Row({"peak memory", Show(plan.predicted_memory), "predicted"});
  if (!result.losses.empty())
    table.Row({"loss, first and last step",
               fmt::format("{:.4f}, {:.4f}", result.losses.front(), result.losses.back()),
               "measured"});
  return text + table.Text();
}

Json TrainJson(const Plan& plan, const train::TrainResult& result) {
  return {
      {"steps", result.steps},
      {"step_us", InMicroseconds(result.step_time)},
      {"predicted_step_us",
       plan.predicted_step.value > 0 ? Json(InMicroseconds(plan.predicted_step)) : Json(nullptr)},
      {"samples_per_s", result.samples_per_second},
      {"normalized_entropy", result.normalized_entropy},
      {"auc", result.auc},
      {"peak_memory_bytes", result.peak_memory.value},
      {"losses", result.losses}};
}

}  // namespace gnomon
