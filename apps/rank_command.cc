// gnomon gemm rank: vendor kernels by name, no benchmark.

#include <memory>

#include "apps/command.h"
#include "apps/problem_arguments.h"
#include "gnomon/report/rank_report.h"

namespace gnomon::app {
namespace {

struct RankArguments : ProblemArguments {
  std::string kernels;
  bool json = false;
};

int RankCommand(const RankArguments& arguments) {
  const auto question = Resolve(arguments);
  if (!question) return Fail(question.error());
  const Device& device = question->device;
  const Problem& problem = question->problem;
  const auto kernels = ReadKernelList(arguments.kernels);
  if (!kernels) return Fail(kernels.error());
  const auto ranking = RankKernels(device, problem, *kernels);
  if (!ranking) return Fail(ranking.error());
  const int printed = Print(arguments.json, RankingText(device, problem, *ranking),
                            RankingJson(device, problem, *ranking));
  if (printed != kFine) return printed;
  return ranking->ranked.empty() ? kNegativeVerdict : kFine;
}

}  // namespace

void AddRankCommand(CLI::App& gemm, Chosen& chosen) {
  auto rank = std::make_shared<RankArguments>();
  rank->dtype = "bf16";
  CLI::App* command = AddLeaf(
      gemm, "rank", "vendor kernels by name, in the order of predicted time",
      "gnomon gemm rank --device mi300x --dtype bf16 -m 8192 -n 2880 -k 4096 --kernels names.txt",
      &rank->json);
  AddProblemOptions(*command, *rank);
  command->add_option("--kernels", rank->kernels, "file of kernel names, one a line")->required();
  command->callback([&chosen, rank] { chosen = [=] { return RankCommand(*rank); }; });
}

}  // namespace gnomon::app
