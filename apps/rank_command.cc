// gnomon gemm rank: vendor kernels by name, no benchmark.

#include <memory>

#include "apps/command.h"
#include "gnomon/report/rank_report.h"

namespace gnomon::app {
namespace {

struct RankArguments {
  std::string device, dtype = "bf16", layout = "nt", kernels;
  Problem problem;
  int units = 0;
  bool json = false;
};

int RankCommand(const RankArguments& arguments) {
  const Result<Device> device = FindDevice(arguments.device);
  if (!device) return Fail(device.error());
  Problem problem = arguments.problem;
  const Result<DType> dtype = ParseDType(arguments.dtype);
  if (!dtype) return Fail(dtype.error());
  problem.dtype = *dtype;
  problem.dtype_out = UsualOutput(*dtype);
  const Result<Layout> layout = ParseLayout(arguments.layout);
  if (!layout) return Fail(layout.error());
  problem.layout = *layout;
  const auto kernels = ReadKernelList(arguments.kernels);
  if (!kernels) return Fail(kernels.error());
  const auto ranking = RankKernels(*device, problem, *kernels, arguments.units);
  if (!ranking) return Fail(ranking.error());
  const int printed = Print(arguments.json, RankingText(*device, problem, *ranking),
                            RankingJson(*device, problem, *ranking));
  if (printed != kFine) return printed;
  return ranking->ranked.empty() ? kNegativeVerdict : kFine;
}

}  // namespace

void AddRankCommand(CLI::App& gemm, Chosen& chosen) {
  auto rank = std::make_shared<RankArguments>();
  CLI::App* command = AddLeaf(
      gemm, "rank", "vendor kernels by name, in the order of predicted time",
      "gnomon gemm rank --device mi300x --dtype bf16 -m 8192 -n 2880 -k 4096 --kernels names.txt",
      &rank->json);
  command->add_option("--device", rank->device, "device id or TOML file")->required();
  command->add_option("--dtype", rank->dtype, "of A and B")->capture_default_str();
  command->add_option("-m", rank->problem.m, "rows of C")->required()->check(Decimal());
  command->add_option("-n", rank->problem.n, "columns of C")->required()->check(Decimal());
  command->add_option("-k", rank->problem.k, "inner side")->required()->check(Decimal());
  command->add_option("--batch", rank->problem.batch, "independent products")
      ->capture_default_str()
      ->check(Decimal());
  command->add_option("--layout", rank->layout, "nn, nt, tn or tt (t: stored transposed)")
      ->capture_default_str();
  command->add_option("--kernels", rank->kernels, "file of kernel names, one a line")->required();
  command->add_option("--units", rank->units, "CUs or SMs to use (0: all)")
      ->check(CLI::Range(0, 1 << 20));
  command->callback([&chosen, rank] { chosen = [=] { return RankCommand(*rank); }; });
}

}  // namespace gnomon::app
