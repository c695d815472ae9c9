// The nearest valid word to a mistyped one, for every "unknown X" message.
//
// Distance is the optimal string alignment distance: the least number of insertions, deletions and
// replacements of one byte and swaps of two neighbours,
//   d(i, j) = min(d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + (a[i] != b[j]), d(i-2, j-2) + 1 if
//   swapped).
// Swaps count once because they are how fingers slip: "fp23" is nearer to "fp32" than to "fp64".
// Case is ignored; words are compared as bytes, not as letters of UTF-8.

#include "gnomon/base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

namespace gnomon {
namespace {

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

size_t EditDistance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> before(width), last(width), row(width);  // rows i-2, i-1, i
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j < width; ++j) {
      const bool differ = Lower(a[i - 1]) != Lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differ});
      if (i > 1 && j > 1 && differ && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
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
