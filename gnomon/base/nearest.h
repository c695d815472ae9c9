#pragma once

/// "Did you mean": the nearest valid word to a mistyped one.

#include <span>
#include <string>
#include <string_view>

namespace gnomon {

/// The candidate with the least edit distance to `word` (a swap of neighbours counts once; ties:
/// the first); empty if none.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);

/// "unknown KIND 'WORD'; nearest is 'X' (valid: a, b, c)".
std::string UnknownName(std::string_view kind, std::string_view word,
                        std::span<const std::string_view> candidates);

}  // namespace gnomon
