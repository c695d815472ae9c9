#pragma once

/// Plan: model + recipe + kernels for one device, as `codesign` writes and `train` reads it
/// (plan.toml).

#include <map>
#include <string>

#include "gnomon/base/result.h"
#include "gnomon/base/units.h"
#include "gnomon/workload/model.h"
#include "gnomon/workload/recipe.h"

namespace gnomon {

struct Plan {
  Model model;
  std::string model_path;  ///< as given; the plan file names it
  std::string device;      ///< id
  Recipe recipe;
  std::map<std::string, std::string>
      kernels;  ///< GEMM op name → config string of family cpu; empty under kLibrary
  Seconds predicted_step;
  Bytes predicted_memory;
};

/// Error: file:line:column, the key, the nearest valid key; an unreadable model.
Result<Plan> ReadPlan(const std::string& path);
Status WritePlan(const Plan& plan, const std::string& path);

}  // namespace gnomon
