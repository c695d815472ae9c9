// The cursor that families read their config strings with. Entry points: the header's.

#include "gnomon/gemm/config_text.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

namespace gnomon {

Error ConfigText::Wrong(std::string_view expected) const {
  constexpr size_t kShown = 8;
  const std::string_view rest = text_.substr(at_);
  return BadInput(fmt::format(
      "config '{}', position {}: expected {}, found {} (a config of family {} reads like {})",
      text_, at_ + 1, expected,
      rest.empty() ? "the end" : fmt::format("'{}'", rest.substr(0, kShown)), family_, example_));
}

bool ConfigText::Take(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

Status ConfigText::Literal(std::string_view word) {
  if (!Take(word)) return Wrong(fmt::format("'{}'", word));
  return Done{};
}

Status ConfigText::Number(std::int32_t& value, std::int32_t least, std::int32_t most) {
  const char* begin = text_.data() + at_;
  const char* end_of_text = text_.data() + text_.size();
  const auto [end, error] = std::from_chars(begin, end_of_text, value);
  if (error != std::errc() || value < least || value > most || *begin == '-' ||
      (*begin == '0' && end - begin > 1))
    return Wrong(fmt::format("a whole number from {} to {}", least, most));
  at_ += static_cast<size_t>(end - begin);
  return Done{};
}

Status ConfigText::PowerOfTwo(std::int32_t& value, std::int32_t most) {
  const size_t begin = at_;
  if (Number(value, 1, most).ok() && std::has_single_bit(static_cast<std::uint32_t>(value)))
    return Done{};
  at_ = begin;
  return Wrong(fmt::format("a power of two up to {}", most));
}

Status ConfigText::Multiple(std::int32_t& value, std::int32_t step, std::int32_t most) {
  const size_t begin = at_;
  if (Number(value, 1, most).ok() && value % step == 0) return Done{};
  at_ = begin;
  return Wrong(fmt::format("a multiple of {} up to {}", step, most));
}

Status ConfigText::Field(std::string_view name, std::int32_t& value, std::int32_t least,
                         std::int32_t most) {
  GNOMON_TRY(Literal(name));
  return Number(value, least, most);
}

Status ConfigText::Flag(std::string_view name, bool& value) {
  GNOMON_TRY(Literal(name));
  size_t digit = 0;
  GNOMON_TRY(Letter("01", digit, "0 or 1"));
  value = digit == 1;
  return Done{};
}

Status ConfigText::Letter(std::string_view letters, size_t& index, std::string_view expected) {
  index = at_ < text_.size() ? letters.find(text_[at_]) : std::string_view::npos;
  if (index == std::string_view::npos) return Wrong(expected);
  ++at_;
  return Done{};
}

Status ConfigText::End() {
  if (at_ != text_.size()) return Wrong("the end");
  return Done{};
}

}  // namespace gnomon
