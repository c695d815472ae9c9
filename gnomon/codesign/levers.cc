// Which changes of a recipe can be chosen on a device, with what is known of each.
//
// Everywhere a stock framework offers: any dtype the device multiplies natively, any batch, dense
// or sparse gradients of tables, tables apart or in one, padded inputs. Where a family of ours
// exists (CPUs) its kernels come on top: fused embedding update, linear, interaction, optimiser,
// and the GEMMs that select picks; and the number of cores is free. fp16 is not offered: it needs
// loss scaling, which no recipe here has.

#include "gnomon/codesign/levers.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace gnomon {
namespace {

constexpr std::int64_t kFirstBatch = 128, kLastBatch = 262144;
constexpr std::array<DType, 3> kTrainingTypes = {DType::kFp32, DType::kTf32, DType::kBf16};
// Multiples of vector widths and matrix-instruction sides.
constexpr std::array<std::int64_t, 4> kPads = {1, 8, 16, 64};

template <class Field, class Show>
Lever MakeLever(std::string name, std::string risk, std::string source, Field Recipe::*field,
                Show show, const std::vector<Field>& values) {
  Lever lever;
  lever.name = std::move(name);
  lever.risk = std::move(risk);
  lever.source = std::move(source);
  lever.copy = [field](const Recipe& from, Recipe& to) { to.*field = from.*field; };
  lever.show = [field, show](const Recipe& recipe) { return show(recipe.*field); };
  for (const Field& value : values) {
    Recipe recipe;
    recipe.*field = value;
    lever.choices.push_back(recipe);
  }
  return lever;
}

std::string ShowUpdate(EmbeddingUpdate update) {
  constexpr std::array<std::string_view, 3> kNames = {"dense", "sparse", "fused"};
  return std::string(kNames[static_cast<size_t>(update)]);
}
std::string ShowBatch(std::int64_t batch) { return fmt::format("{}", batch); }
std::string ShowPad(std::int64_t pad) { return pad == 1 ? "none" : fmt::format("to {}", pad); }
std::string ShowThreads(int threads) { return threads == 0 ? "all" : fmt::format("{}", threads); }

std::function<std::string(bool)> YesNo(std::string yes, std::string no) {
  return [yes = std::move(yes), no = std::move(no)](bool value) { return value ? yes : no; };
}

std::vector<int> ThreadCounts(const Device& device) {
  std::vector<int> counts = {0};
  for (int threads = device.units / 2; threads >= 1; threads /= 2) counts.push_back(threads);
  return counts;
}

std::vector<Lever> StockLevers(const Device& device, bool ours, const LeverOptions& options) {
  std::vector<DType> dtypes;
  for (const DType dtype : kTrainingTypes)
    if (device.FindRate(dtype) != nullptr) dtypes.push_back(dtype);
  std::vector<std::int64_t> batches = options.batches;
  if (batches.empty())
    for (std::int64_t batch = kFirstBatch; batch <= kLastBatch; batch *= 2)
      batches.push_back(batch);
  std::vector<EmbeddingUpdate> updates = {EmbeddingUpdate::kSparse, EmbeddingUpdate::kDense};
  if (ours) updates.push_back(EmbeddingUpdate::kFused);

  std::vector<Lever> levers;
  levers.push_back(MakeLever<DType>(
      "dtype",
      "16-bit products keep fp32's range but 8 bits of precision; master weights stay fp32",
      "HSTU on 8 MI350X: 190 to 93 ms a step with bf16 and fused attention (chriscai-amd/training, "
      "training_recipe.md)",
      &Recipe::dtype, [](DType dtype) { return std::string(Name(dtype)); }, dtypes));
  levers.push_back(MakeLever<std::int64_t>(
      "batch", "a larger batch needs more samples to the same quality: 1 + batch / critical batch",
      "arXiv 1812.06162; MLPerf reference points of DLRM-DCNv2: +35% samples from 32768 to 160000",
      &Recipe::batch, ShowBatch, batches));
  levers.push_back(MakeLever<EmbeddingUpdate>(
      "embedding update", "fused: gradients of tables cannot be inspected or clipped",
      "row-wise Adagrad inside the backward is what production tables use (FBGEMM table-batched "
      "embeddings)",
      &Recipe::embedding_update, ShowUpdate, updates));
  levers.push_back(MakeLever<bool>(
      "tables in one lookup", "row numbers are shifted: checkpoints need the offsets",
      "one operator instead of one a table; lookups of a fused update are always in one",
      &Recipe::fused_tables, YesNo("merged", "apart"), {false, true}));
  levers.push_back(MakeLever<std::int64_t>(
      "padded inputs", "",
      "aligned sides: up to 39% on GPUs (arXiv 2401.14489); 367 inputs are no multiple of 16",
      &Recipe::pad_to, ShowPad, {kPads.begin(), kPads.end()}));
  return levers;
}

}  // namespace

std::vector<Lever> Levers(const Device& device, Stack stack, const LeverOptions& options) {
  const bool ours = stack == Stack::kGnomon && device.kind == Device::Kind::kCpu;
  std::vector<Lever> levers = StockLevers(device, ours, options);
  if (!ours) return levers;
  levers.push_back(MakeLever<GemmBackend>(
      "GEMM kernels", "sums run in another order",
      "family cpu: each GEMM runs the config that select picks", &Recipe::gemm_backend,
      [](GemmBackend backend) {
        return std::string(backend == GemmBackend::kGnomon ? "ours" : "library");
      },
      {GemmBackend::kLibrary, GemmBackend::kGnomon}));
  levers.push_back(MakeLever<bool>("fused linear", "",
                                   "bias and ReLU in the GEMM, their gradients in one pass",
                                   &Recipe::fused_linear, YesNo("fused", "apart"), {false, true}));
  levers.push_back(MakeLever<bool>("fused interaction", "sums run in another order",
                                   "pairwise dots, triangle and concat in one kernel each way",
                                   &Recipe::fused_interaction, YesNo("fused", "stock"),
                                   {false, true}));
  levers.push_back(MakeLever<bool>("fused optimiser", "", "one pass over all dense parameters",
                                   &Recipe::fused_optimizer, YesNo("fused", "stock"),
                                   {false, true}));
  levers.push_back(MakeLever<int>("threads", "",
                                  "fewer cores where a step is too small to share out",
                                  &Recipe::threads, ShowThreads, ThreadCounts(device)));
  return levers;
}

}  // namespace gnomon
