// Reads and writes plan.toml: what `codesign` found and `train` runs.
//
// The model is named by path (or id) and read from its own file; a relative path that is not found
// from the working directory is taken from the plan's folder. Numbers are written in the shortest
// form that reads back to the same value, keys in a fixed order, so that the same plan gives the
// same bytes.

#include "gnomon/codesign/plan.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "gnomon/base/files.h"
#include "gnomon/workload/toml_reader.h"
#include "gnomon/workload/workload.h"

namespace gnomon {
namespace {

constexpr std::array<std::string_view, 3> kUpdates = {"dense", "sparse", "fused"};
constexpr std::array<std::string_view, 2> kBackends = {"library", "gnomon"};
constexpr std::int64_t kMaxBatch = 1LL << 32, kMaxPad = 4096, kMaxThreads = 65536;

Result<Recipe> ReadRecipe(const TomlTable& root) {
  GNOMON_ASSIGN(const TomlTable table, root.Table("recipe"));
  constexpr std::array<std::string_view, 11> kKeys = {
      "dtype",   "batch",        "learning_rate",     "embedding_update", "fused_tables", "pad_to",
      "threads", "fused_linear", "fused_interaction", "fused_optimizer",  "gemm_backend"};
  GNOMON_TRY(table.AllowKeys(kKeys));
  Recipe recipe;
  GNOMON_ASSIGN(const size_t dtype, table.Choice("dtype", kDTypeNames));
  recipe.dtype = static_cast<DType>(dtype);
  GNOMON_ASSIGN(recipe.batch, table.Integer("batch", {1, kMaxBatch}));
  GNOMON_ASSIGN(recipe.learning_rate, table.Number("learning_rate", {0, 1e6}));
  GNOMON_ASSIGN(const size_t update, table.Choice("embedding_update", kUpdates));
  recipe.embedding_update = static_cast<EmbeddingUpdate>(update);
  GNOMON_ASSIGN(recipe.fused_tables, table.Boolean("fused_tables"));
  GNOMON_ASSIGN(recipe.pad_to, table.Integer("pad_to", {1, kMaxPad}));
  GNOMON_ASSIGN(const std::int64_t threads, table.Integer("threads", {0, kMaxThreads}));
  recipe.threads = static_cast<int>(threads);
  GNOMON_ASSIGN(recipe.fused_linear, table.Boolean("fused_linear"));
  GNOMON_ASSIGN(recipe.fused_interaction, table.Boolean("fused_interaction"));
  GNOMON_ASSIGN(recipe.fused_optimizer, table.Boolean("fused_optimizer"));
  GNOMON_ASSIGN(const size_t backend, table.Choice("gemm_backend", kBackends));
  recipe.gemm_backend = static_cast<GemmBackend>(backend);
  return recipe;
}

// Every kernel must name a GEMM of the model under this recipe.
Status ReadKernels(const TomlTable& root, Plan& plan) {
  if (!root.Has("kernels")) return Done{};
  GNOMON_ASSIGN(const TomlTable table, root.Table("kernels"));
  GNOMON_ASSIGN(const Workload workload, Lower(plan.model, plan.recipe));
  std::vector<std::string_view> names;
  for (const Op& op : workload.ops)
    if (op.kind == Op::Kind::kGemm && op.layer == 0) names.push_back(op.name);
  GNOMON_TRY(table.AllowKeys(names));
  for (const std::string& name : table.Keys()) {
    GNOMON_ASSIGN(plan.kernels[name], table.String(name));
  }
  return Done{};
}

Status ReadPredicted(const TomlTable& root, Plan& plan) {
  if (!root.Has("predicted")) return Done{};
  GNOMON_ASSIGN(const TomlTable table, root.Table("predicted"));
  constexpr std::array<std::string_view, 2> kKeys = {"step_us", "memory_bytes"};
  GNOMON_TRY(table.AllowKeys(kKeys));
  GNOMON_ASSIGN(const double step, table.Number("step_us", {0, 1e15}));
  GNOMON_ASSIGN(plan.predicted_memory.value, table.Number("memory_bytes", {0, 1e18}));
  plan.predicted_step = Microseconds(step);
  return Done{};
}

Result<Model> ReadModelOf(const std::string& plan_path, const std::string& model) {
  const std::filesystem::path beside = std::filesystem::path(plan_path).parent_path() / model;
  std::error_code ignored;
  if (!std::filesystem::exists(model, ignored) && std::filesystem::is_regular_file(beside, ignored))
    return ReadModel(beside.string());
  return FindModel(model);
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

Result<Plan> ReadPlan(const std::string& path) {
  GNOMON_ASSIGN(const TomlTable root, TomlTable::Read(path));
  constexpr std::array<std::string_view, 5> kKeys = {"model", "device", "recipe", "kernels",
                                                     "predicted"};
  GNOMON_TRY(root.AllowKeys(kKeys));
  Plan plan;
  GNOMON_ASSIGN(plan.model_path, root.String("model"));
  GNOMON_ASSIGN(plan.device, root.String("device"));
  auto model = ReadModelOf(path, plan.model_path);
  if (!model.ok()) {
    const Error& error = model.error();
    return Error{error.code, error.Text(), root.Where("model")};
  }
  plan.model = std::move(model).value();
  GNOMON_ASSIGN(plan.recipe, ReadRecipe(root));
  GNOMON_TRY(ReadKernels(root, plan));
  GNOMON_TRY(ReadPredicted(root, plan));
  return plan;
}

Status WritePlan(const Plan& plan, const std::string& path) {
  const Recipe& r = plan.recipe;
  std::string text =
      fmt::format("# Written by gnomon codesign; gnomon train runs it.\nmodel = {}\ndevice = {}\n",
                  Quoted(plan.model_path), Quoted(plan.device));
  text += fmt::format(
      "\n[recipe]\ndtype = \"{}\"\nbatch = {}\nlearning_rate = {}\nembedding_update = "
      "\"{}\"\nfused_tables = {}\n"
      "pad_to = {}\nthreads = {}\nfused_linear = {}\nfused_interaction = {}\nfused_optimizer = {}\n"
      "gemm_backend = \"{}\"\n",
      Name(r.dtype), r.batch, r.learning_rate, kUpdates[static_cast<size_t>(r.embedding_update)],
      r.fused_tables, r.pad_to, r.threads, r.fused_linear, r.fused_interaction, r.fused_optimizer,
      kBackends[static_cast<size_t>(r.gemm_backend)]);
  if (!plan.kernels.empty()) {
    text += "\n[kernels]\n";
    for (const auto& [op, config] : plan.kernels)
      text += fmt::format("{} = {}\n", Quoted(op), Quoted(config));
  }
  text += fmt::format("\n[predicted]\nstep_us = {}\nmemory_bytes = {:.0f}\n",
                      InMicroseconds(plan.predicted_step), plan.predicted_memory.value);
  return WriteFile(path, text);
}

}  // namespace gnomon
