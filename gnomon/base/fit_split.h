#pragma once

/// The split between rows that constants are fitted on and rows that accuracy is reported on, the
/// same everywhere: FNV-1a over the text of a row's shape, even: fit, odd: held out.

#include <cstdint>
#include <string_view>

namespace gnomon {

/// `shape` is the row's shape columns as the file writes them, joined by commas: "2048,512,13".
constexpr bool IsFitRow(std::string_view shape) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : shape) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash % 2 == 0;
}

}  // namespace gnomon
