#pragma once

/// The Kaggle Criteo click log: label, 13 counts, 26 hexadecimal categories, tab-separated.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gnomon/train/samples.h"

namespace gnomon::train {

inline constexpr std::int64_t kCriteoCounts = 13, kCriteoCategories = 26;

struct CriteoOptions {
  std::string path;  ///< plain or gzip
  SampleShape shape;
  std::int64_t bad_line_limit = 100;
  std::int64_t held_out = 20000;  ///< every tenth good line until there are this many
};

/// Error: the file cannot be opened, is empty, or the model is not shaped like Criteo.
Result<std::unique_ptr<SampleSource>> OpenCriteo(const CriteoOptions& options);

/// One line into the last row of `samples` (which grows by one). Error: what is wrong with it.
Status ParseCriteoLine(std::string_view line, const SampleShape& shape, Samples& samples);

}  // namespace gnomon::train
