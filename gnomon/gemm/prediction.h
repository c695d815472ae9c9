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

/// A number behind a time that is no time itself: a hit rate, an occupancy, bytes moved.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;  ///< "share" (0 to 1), "bytes", "hertz", or empty for a count
  std::string why;   ///< one line: of what, and what it means
};

struct Prediction {
  Seconds time;
  Bound bound = Bound::kCompute;
  double relative_error =
      0;  ///< expected |predicted/measured − 1|, from `gemm evaluate` of the family
  std::vector<Term> terms;
  std::vector<Figure> figures;  ///< those that the family's model knows
};

}  // namespace gnomon
