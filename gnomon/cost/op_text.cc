// Words, numbers and shapes in free text.
//
// A word is bounded by anything that is neither letter nor digit, so that "all_reduce" also finds
// the word "reduce" and "fwd+bwd" both passes. Shapes come in four spellings: sides joined by x,
// lists of lists as a tracer prints them, letters with numbers behind them, and a size in MB.
// Entry points: the header's.

#include "gnomon/cost/op_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace gnomon {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// A number at `place`; moves behind it.
std::optional<double> TakeNumber(std::string_view text, size_t& place) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + place, text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  place = static_cast<size_t>(end - text.data());
  return value;
}

std::optional<ShapeText> Lists(std::string_view text) {
  ShapeText shape;
  std::vector<double> sides;
  int depth = 0;
  for (size_t place = 0; place < text.size();) {
    const char c = text[place];
    if (c == '[' || c == '(') {
      ++depth;
      ++place;
    } else if (c == ']' || c == ')') {
      if (--depth < 0) return std::nullopt;
      if (!sides.empty()) shape.operands.push_back(std::exchange(sides, {}));
      ++place;
    } else if (c == ',' || c == ' ') {
      ++place;
    } else {
      const auto side = TakeNumber(text, place);
      if (!side || *side < 0) return std::nullopt;
      sides.push_back(*side);
    }
  }
  if (depth != 0 || shape.operands.empty()) return std::nullopt;
  return shape;
}

std::optional<ShapeText> Sides(std::string_view text) {
  std::vector<double> sides;
  for (size_t place = 0; place < text.size();) {
    const auto side = IsDigit(text[place]) ? TakeNumber(text, place) : std::nullopt;
    if (!side) return std::nullopt;
    sides.push_back(*side);
    if (place == text.size()) break;
    if (text[place] != 'x' && text[place] != 'X' && text[place] != '*') return std::nullopt;
    if (++place == text.size()) return std::nullopt;
  }
  if (sides.empty()) return std::nullopt;
  return ShapeText{{sides}, {}};
}

constexpr double kMegabyte = 1e6;

std::optional<ShapeText> Named(std::string_view text) {
  ShapeText shape;
  for (size_t place = 0; place < text.size();) {
    if (text[place] == ' ') {
      ++place;
      continue;
    }
    const size_t end = std::min(text.find(' ', place), text.size());
    const std::string_view word = text.substr(place, end - place);
    size_t letters = 0;
    while (letters < word.size() && IsLetter(word[letters])) ++letters;
    size_t number = letters;
    if (number < word.size() && IsDigit(word[number])) {
      const auto value = TakeNumber(word, number);
      const std::string_view unit = text.substr(end, std::min<size_t>(3, text.size() - end));
      if (value && letters == 0 && unit == " MB") shape.named["bytes"] = *value * kMegabyte;
      if (value && letters > 0) shape.named[LowerCase(word.substr(0, letters))] = *value;
    }
    place = end;
  }
  if (shape.named.empty()) return std::nullopt;
  return shape;
}

}  // namespace

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

bool HasWord(std::string_view text, std::string_view word) {
  const std::string lower = LowerCase(text), wanted = LowerCase(word);
  const auto bound = [&](size_t place) {
    return place >= lower.size() || !(IsDigit(lower[place]) || IsLetter(lower[place]));
  };
  for (size_t at = lower.find(wanted); at != std::string::npos; at = lower.find(wanted, at + 1)) {
    if ((at == 0 || bound(at - 1)) && bound(at + wanted.size())) return true;
  }
  return false;
}

bool HasAnyWord(std::string_view text, std::string_view words) {
  while (!words.empty()) {
    const size_t end = std::min(words.find('|'), words.size());
    if (HasWord(text, words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

bool HasText(std::string_view text, std::string_view part) {
  return LowerCase(text).find(LowerCase(part)) != std::string::npos;
}

std::optional<double> NumberAfter(std::string_view text, std::string_view key) {
  size_t place = text.find(key);
  if (place == std::string_view::npos) return std::nullopt;
  place += key.size();
  if (place >= text.size()) return std::nullopt;
  return TakeNumber(text, place);
}

std::optional<double> WholeNumber(std::string_view text) {
  size_t place = 0;
  const auto value = TakeNumber(text, place);
  return value && place == text.size() ? value : std::nullopt;
}

std::string Bracketed(std::string_view text) {
  const size_t end = text.rfind(']');
  const size_t start = end == std::string_view::npos ? end : text.rfind('[', end);
  if (start == std::string_view::npos) return {};
  return std::string(text.substr(start + 1, end - start - 1));
}

std::optional<ShapeText> ParseShapeText(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.front() == '[' || text.front() == '(') return Lists(text);
  if (auto sides = Sides(text)) return sides;
  return Named(text);
}

std::optional<DType> DTypeOf(std::string_view dtype) {
  std::string name = LowerCase(dtype);
  while (!name.empty() && name.back() == '?') name.pop_back();
  constexpr std::array<std::pair<std::string_view, DType>, 9> kOther = {{
      {"float64", DType::kFp64},
      {"float32", DType::kFp32},
      {"float16", DType::kFp16},
      {"half", DType::kFp16},
      {"bfloat16", DType::kBf16},
      {"fp8", DType::kFp8E4m3},
      {"float8", DType::kFp8E4m3},
      {"fp4", DType::kMxFp4},
      {"float", DType::kFp32},
  }};
  for (const auto& [other, ours] : kOther)
    if (name == other) return ours;
  const Result<DType> parsed = ParseDType(name);
  return parsed.ok() ? std::optional(*parsed) : std::nullopt;
}

std::optional<double> ElementBytes(std::string_view dtype) {
  std::string name = LowerCase(dtype);
  while (!name.empty() && name.back() == '?') name.pop_back();
  if (name == "int64" || name == "long") return sizeof(std::int64_t);
  if (name == "int32" || name == "int") return sizeof(std::int32_t);
  if (name == "bool" || name == "uint8") return 1;
  const auto ours = DTypeOf(name);
  return ours ? std::optional(SizeOf(*ours)) : std::nullopt;
}

}  // namespace gnomon
