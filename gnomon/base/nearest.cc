// The nearest valid word to a mistyped one, for every "unknown X" message.
//
// Distance is Levenshtein's: the least number of insertions, deletions and replacements of one
// byte,
//   d(i, j) = min(d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + (a[i] != b[j])),
// kept one row at a time. Case is ignored, so that "H100" finds "h100" before "h200".
// Swapped neighbours cost two; words are compared as bytes, not as letters of UTF-8.

#include "gnomon/base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace gnomon {
namespace {

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (Lower(a[i - 1]) != Lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (best.data() == nullptr || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string UnknownName(std::string_view kind, std::string_view word,
                        std::span<const std::string_view> candidates) {
  if (candidates.empty())
    return fmt::format("unknown {} '{}'; there is none to choose", kind, word);
  return fmt::format("unknown {} '{}'; nearest is '{}' (valid: {})", kind, word,
                     Nearest(word, candidates), fmt::join(candidates, ", "));
}

}  // namespace gnomon
