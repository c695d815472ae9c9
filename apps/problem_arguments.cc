// From flags to a problem on a device. A flag that says nothing ("") or a list with a hole ("1,,2")
// is a slip of a script that built it: refused, never taken for the default.

#include "apps/problem_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "apps/command.h"
#include "gnomon/gemm/select.h"

namespace gnomon::app {
namespace {

// A whole number of 64 bits and nothing else; -1 where it is none.
std::int64_t WholeNumber(std::string_view text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

// The rows of each group, and in m their sum.
Status ReadGroups(std::string_view text, Problem& problem) {
  for (size_t begin = 0, place = 1; begin <= text.size(); ++place) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::int64_t rows = WholeNumber(word);
    if (rows < 0)
      return BadInput(
          fmt::format("'{}' in place {} is no number of rows; groups are whole numbers such as "
                      "512,0,768",
                      word, place),
          "--group");
    problem.group_m.push_back(rows);
    if (__builtin_add_overflow(problem.m, rows, &problem.m))
      return BadInput("the groups have too many rows together", "--group");
    begin = end + 1;
  }
  if (problem.m == 0) return BadInput("no group has a row", "--group");
  return Done{};
}

Status CutDown(const ProblemArguments& arguments, ProblemOnDevice& on) {
  if (!arguments.partition.empty()) {
    GNOMON_ASSIGN(on.device, Partition(on.device, arguments.partition));
    on.limits += " --partition " + arguments.partition;
  }
  if (arguments.units == 0) return Done{};
  if (const Status status = CheckUnits(on.device, arguments.units); !status.ok())
    return BadInput(status.error().message, "--units");
  on.device = WithUnits(on.device, arguments.units);
  on.limits += fmt::format(" --units {}", arguments.units);
  return Done{};
}

}  // namespace

Result<ProblemOnDevice> Resolve(const ProblemArguments& arguments) {
  ProblemOnDevice on;
  GNOMON_ASSIGN(on.device, FindDevice(arguments.device));
  on.limits = "--device " + arguments.device;
  GNOMON_TRY(CutDown(arguments, on));
  Problem& problem = on.problem = arguments.problem;
  GNOMON_ASSIGN(problem.dtype, ParseDType(arguments.dtype));
  problem.dtype_out = UsualOutput(problem.dtype);
  if (!arguments.dtype_out.empty()) {
    GNOMON_ASSIGN(problem.dtype_out, ParseDType(arguments.dtype_out));
  }
  GNOMON_ASSIGN(problem.layout, ParseLayout(arguments.layout));
  GNOMON_ASSIGN(problem.workspace, ParseWorkspace(arguments.workspace));
  if (!arguments.group.empty()) {
    if (problem.m != 0) return BadInput("the groups' rows are M: give one or the other", "-m");
    GNOMON_TRY(ReadGroups(arguments.group, problem));
  } else if (problem.m == 0) {
    return BadInput("M is missing (or the rows of each group: --group)", "-m");
  }
  GNOMON_TRY(CheckProblem(problem));
  return on;
}

Result<std::optional<Bytes>> ParseWorkspace(const std::string& text) {
  if (text.empty()) return std::optional<Bytes>{};
  constexpr double kStep = 1024;
  constexpr std::string_view kSuffixes = "kmg";
  double unit = 1;
  std::string_view digits = text;
  const char last = digits.back() >= 'A' && digits.back() <= 'Z'
                        ? static_cast<char>(digits.back() - 'A' + 'a')
                        : digits.back();
  if (const size_t at = kSuffixes.find(last); at != std::string_view::npos) {
    for (size_t i = 0; i <= at; ++i) unit *= kStep;
    digits.remove_suffix(1);
  }
  const std::int64_t count = WholeNumber(digits);
  if (count < 0)
    return BadInput(fmt::format("'{}' is no size; it is a whole number of bytes, or with k, M or G "
                                "of KiB, MiB or GiB, such as 64M",
                                text),
                    "--workspace");
  return std::optional(Bytes{static_cast<double>(count) * unit});
}

const CLI::Validator& NotEmpty() {
  static const CLI::Validator check(
      [](std::string& text) { return text.empty() ? std::string("the value is empty") : ""; }, "");
  return check;
}

void AddProblemOptions(CLI::App& command, ProblemArguments& arguments) {
  Problem& problem = arguments.problem;
  command.add_option("--device", arguments.device, "device id or TOML file")->required();
  command.add_option("--dtype", arguments.dtype, "of A and B")->capture_default_str();
  command
      .add_option("--dtype-out", arguments.dtype_out,
                  "of C (default: that of A and B, bf16 where these have 8 bits or fewer)")
      ->check(NotEmpty());
  command.add_option("-m", problem.m, "rows of C (or --group)")->check(Decimal());
  command.add_option("-n", problem.n, "columns of C")->required()->check(Decimal());
  command.add_option("-k", problem.k, "inner side")->required()->check(Decimal());
  command.add_option("--batch", problem.batch, "independent products")
      ->capture_default_str()
      ->check(Decimal());
  command
      .add_option("--group", arguments.group,
                  "rows of each product of a grouped GEMM, each with its own B: m1,m2,…")
      ->check(NotEmpty());
  command.add_option("--layout", arguments.layout, "nn, nt, tn or tt (t: stored transposed)")
      ->capture_default_str();
  for (const auto& [operand, leading] :
       {std::pair{"a", &problem.lda}, {"b", &problem.ldb}, {"c", &problem.ldc}})
    command
        .add_option(
            fmt::format("--ld{}", operand), *leading,
            fmt::format("elements between stored rows of {:c} (0: dense)", *operand - 'a' + 'A'))
        ->check(Decimal());
  command
      .add_option("--workspace", arguments.workspace,
                  "bytes for partial sums of a split of K: 0, 64M, … (default: the family's)")
      ->check(NotEmpty());
  command.add_option("--units", arguments.units, "cores, CUs or SMs to use (0: all)")
      ->check(Decimal())
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option("--partition", arguments.partition,
                  "work on one partition of the device: spx, dpx, tpx, qpx or cpx")
      ->check(NotEmpty());
}

}  // namespace gnomon::app
