#pragma once

/// ConfigText: a cursor over a family's config string ("128x256x64.w8.s3.k1"), read from left to
/// right. Every refusal names the position, what was expected and a well-formed example.

#include <cstdint>
#include <limits>
#include <string_view>

#include "gnomon/base/result.h"

namespace gnomon {

class ConfigText {
 public:
  /// `family` and `example` are what refusals show; both must outlive the cursor.
  ConfigText(std::string_view text, std::string_view family, std::string_view example)
      : text_(text), family_(family), example_(example) {}

  /// Passes `word` over if it stands here.
  bool Take(std::string_view word);
  Status Literal(std::string_view word);
  /// A whole number in decimal without leading zeros.
  Status Number(std::int32_t& value, std::int32_t least = 1,
                std::int32_t most = std::numeric_limits<std::int32_t>::max());
  Status PowerOfTwo(std::int32_t& value, std::int32_t most);
  Status Multiple(std::int32_t& value, std::int32_t step, std::int32_t most);
  /// `name`, then the number; `name`, then 0 or 1.
  Status Field(std::string_view name, std::int32_t& value, std::int32_t least = 1,
               std::int32_t most = std::numeric_limits<std::int32_t>::max());
  Status Flag(std::string_view name, bool& value);
  /// One character of `letters`, as its index.
  Status Letter(std::string_view letters, size_t& index, std::string_view expected);
  Status End();

  /// The refusal at the cursor.
  Error Wrong(std::string_view expected) const;
  std::string_view text() const { return text_; }

 private:
  std::string_view text_, family_, example_;
  size_t at_ = 0;
};

}  // namespace gnomon
