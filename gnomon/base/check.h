#pragma once

/// GNOMON_CHECK: a broken invariant of ours ends the process with the values that broke it.
/// Bad input never comes here: it is a Result with an Error (base/result.h).

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace gnomon::internal {

inline std::string CheckDetail() { return {}; }
template <class... Args>
std::string CheckDetail(fmt::format_string<Args...> format, Args&&... args) {
  return ": " + fmt::format(format, std::forward<Args>(args)...);
}

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition,
                                     const std::string& detail) {
  fmt::print(stderr, "{}:{}: internal fault: {} does not hold{}\n", file, line, condition, detail);
  std::abort();
}

}  // namespace gnomon::internal

#define GNOMON_CHECK(condition, ...)                                                 \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::gnomon::internal::CheckFailed(__FILE__, __LINE__, #condition,                \
                                      ::gnomon::internal::CheckDetail(__VA_ARGS__)); \
  } while (false)
