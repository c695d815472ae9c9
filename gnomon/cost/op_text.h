#pragma once

/// Op text: words, numbers and shapes out of the free text that people write beside a measured
/// time. Private to cost/.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/dtype.h"

namespace gnomon {

std::string LowerCase(std::string_view text);

/// `word` stands in `text` with neither letter nor digit beside it; case does not count.
bool HasWord(std::string_view text, std::string_view word);
/// Any of `words`, separated by '|'.
bool HasAnyWord(std::string_view text, std::string_view words);
/// `part` stands anywhere in `text`; case does not count.
bool HasText(std::string_view text, std::string_view part);

/// The number directly behind `key` ("unique=350280"), if there is one.
std::optional<double> NumberAfter(std::string_view text, std::string_view key);
/// The whole of `text` as a number.
std::optional<double> WholeNumber(std::string_view text);

/// What stands in the last [brackets] of the text; empty if nothing does.
std::string Bracketed(std::string_view text);

struct ShapeText {
  std::vector<std::vector<double>> operands;  ///< "4096x512", "[[2,512,1024],[1]]"
  std::map<std::string, double> named;        ///< "B16 H16 N1024 D128"; "2147.5 MB": {"bytes", …}
};
/// Nothing where the text holds no shape at all.
std::optional<ShapeText> ParseShapeText(std::string_view text);

/// Storage bytes of "fp16", "float32", "int64", "bool", "fp16?"; nothing if unknown.
std::optional<double> ElementBytes(std::string_view dtype);
/// "bf16", "float16", "fp16?" as one of ours.
std::optional<DType> DTypeOf(std::string_view dtype);

}  // namespace gnomon
