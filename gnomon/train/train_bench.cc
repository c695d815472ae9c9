// Milliseconds a step of models/dlrm_kaggle for stock and our recipes, and the split over
// LibTorch's operators: what the cost model is held against.
//
//   gnomon_train_bench [BATCH…] [PART OF A RECIPE NAME]        default: 1024 2048 8192, all recipes
//
// Each recipe runs alone after warm-up, first untouched, then under RecordFunction, which gives
// every operator's own time (without the operators it calls); the share that no operator accounts
// for is autograd and dispatch. The medians are over steps, with the median absolute deviation.

#include <ATen/record_function.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "gnomon/base/statistics.h"
#include "gnomon/train/network.h"
#include "gnomon/train/session.h"

namespace gnomon::train {
namespace {

constexpr int kWarmUp = 5;
constexpr double kSeconds = 1.5;  // of a measurement

struct Running : at::ObserverContext {
  double begin = 0, inner = 0;
  Running* outer = nullptr;
};
Running* g_innermost = nullptr;
std::map<std::string, double> g_own;

std::unique_ptr<at::ObserverContext> Enter(const at::RecordFunction&) {
  auto running = std::make_unique<Running>();
  running->outer = g_innermost;
  g_innermost = running.get();
  running->begin = Now();
  return running;
}

void Leave(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* running = static_cast<Running*>(context);
  const double time = Now() - running->begin;
  g_own[function.name()] += time - running->inner;
  if (running->outer) running->outer->inner += time;
  g_innermost = running->outer;
}

std::vector<std::pair<std::string, Recipe>> Recipes(std::int64_t batch) {
  Recipe stock;
  stock.batch = batch;
  std::vector<std::pair<std::string, Recipe>> recipes;
  const auto add = [&](const std::string& name, Recipe recipe) {
    recipes.emplace_back(name + " fp32", recipe);
    recipe.dtype = DType::kBf16;
    recipes.emplace_back(name + " bf16", recipe);
  };
  add("stock, table by table", stock);
  stock.fused_tables = true;
  add("stock, merged tables", stock);
  Recipe ours = stock;
  ours.embedding_update = EmbeddingUpdate::kFused;
  ours.fused_linear = ours.fused_interaction = ours.fused_optimizer = true;
  ours.gemm_backend = GemmBackend::kGnomon;
  add("ours", ours);
  ours.pad_to = 16;
  add("ours, padded to 16", ours);
  return recipes;
}

void Split(Network& network, const std::vector<Batch>& batches, double step_time) {
  g_own.clear();
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(Enter, Leave));
  int steps = 0;
  for (const double begin = Now(); Now() - begin < kSeconds; ++steps)
    network.Step(batches[static_cast<std::size_t>(steps) % batches.size()]);
  at::removeCallback(handle);
  std::vector<std::pair<double, std::string>> sorted;
  double sum = 0;
  for (const auto& [name, time] : g_own) {
    sorted.emplace_back(time / steps * 1e3, name);
    sum += time / steps * 1e3;
  }
  std::sort(sorted.rbegin(), sorted.rend());
  fmt::print("    operators {:.3f} ms, outside of them {:.3f} ms\n", sum, step_time * 1e3 - sum);
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 16); ++i)
    fmt::print("    {:8.3f}  {}\n", sorted[i].first, sorted[i].second);
}

int Run(const std::vector<std::int64_t>& batch_sizes, const std::string& only) {
  KeepAllocations();
  auto model = FindModel("dlrm_kaggle");
  if (!model.ok()) return 2;
  const SampleShape shape = MakeSampleShape(*model, 0).value();
  const int threads = ThreadsOf({});
  auto tables = TableStorage::Allocate(shape, model->embedding_dim).value();
  tables->Reset(1, threads);
  Samples samples;
  const auto source = OpenSource(*model, shape, {}, threads).value();
  if (!source->Read(0, 1 << 17, samples).ok()) return 2;
  for (std::int64_t size : batch_sizes) {
    for (const auto& [name, recipe] : Recipes(size)) {
      if (name.find(only) == std::string::npos) continue;
      Plan plan;
      plan.model = *model;
      plan.device = "host";
      plan.recipe = recipe;
      auto network = BuildNetwork(plan, shape, *tables, 1);
      if (!network.ok()) {
        fmt::print("{}: {}\n", name, network.error().Text());
        continue;
      }
      std::vector<Batch> batches(
          static_cast<std::size_t>(std::max<std::int64_t>(1, samples.count / size)));
      for (std::size_t i = 0; i < batches.size(); ++i)
        MakeBatch(shape, samples, static_cast<std::int64_t>(i) * size, size, (*network)->layout(),
                  batches[i]);
      std::vector<double> times;
      double total = 0;
      for (std::size_t i = 0; i < kWarmUp || total < kSeconds; ++i) {
        const double begin = Now();
        (*network)->Step(batches[i % batches.size()]);
        if (i < kWarmUp) continue;
        times.push_back(Now() - begin);
        total += times.back();
      }
      fmt::print("batch {:5}  {:28} {:8.3f} ms ± {:.3f}\n", size, name, Median(times) * 1e3,
                 MedianAbsoluteDeviation(times) * 1e3);
      Split(**network, batches, Median(times));
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace gnomon::train

int main(int argc, char** argv) {
  std::vector<std::int64_t> sizes;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (const long long size = std::atoll(argv[i]); size > 0)
      sizes.push_back(size);
    else
      only = argv[i];
  }
  if (sizes.empty()) sizes = {1024, 2048, 8192};
  return gnomon::train::Run(sizes, only);
}
