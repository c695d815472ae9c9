#pragma once

/// Prediction: a time, its terms, its bound and its error bar. The terms add up to the time.

#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/units.h"

namespace gnomon {

enum class Bound { kCompute, kMemory, kCache, kLatency, kLaunch };
std::string_view Name(Bound bound);

struct Term {
  std::string name;
  Seconds time;
  std::string why;  ///< one line: the formula in words with its numbers
};

struct Prediction {
  Seconds time;
  Bound bound = Bound::kCompute;
  double relative_error =
      0;  ///< expected |predicted/measured − 1|, from `gemm evaluate` of the family
  std::vector<Term> terms;
};

}  // namespace gnomon
