#pragma once

/// The flags that say which product on what device: the same for `gemm select`, `explain` and
/// `rank`.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "gnomon/device/device.h"
#include "gnomon/gemm/problem.h"

namespace gnomon::app {

/// A problem as the arguments spell it.
struct ProblemArguments {
  std::string device, partition, dtype = "fp32", dtype_out, layout = "nt", group, workspace;
  Problem problem;
  int units = 0;
};
void AddProblemOptions(CLI::App& command, ProblemArguments& arguments);

/// A problem on a device, or on what a partition and a budget of units leave of it.
struct ProblemOnDevice {
  Device device;
  std::string limits;  ///< the flags that name the device and cut it down
  Problem problem;     ///< checked
};
Result<ProblemOnDevice> Resolve(const ProblemArguments& arguments);

/// "64M": bytes, or with k, M or G as many KiB, MiB or GiB; empty: nothing is said. Error: no size.
Result<std::optional<Bytes>> ParseWorkspace(const std::string& text);

/// A check for words that must say something: CLI11 takes "" for an option that is absent.
const CLI::Validator& NotEmpty();

}  // namespace gnomon::app
