#pragma once

/// Result<T>: a value, or an Error that says what is wrong, where, and what to do about it.
/// No exception crosses a module border; only apps print errors and choose exit codes.

#include <string>
#include <utility>
#include <variant>

#include "gnomon/base/check.h"

namespace gnomon {

struct Error {
  enum class Code {
    kBadInput,  ///< usage or input is wrong: exit code 2
    kInternal,  ///< a fault of ours or of the machine (no space, no permission): exit code 3
  };
  Code code = Code::kBadInput;
  std::string message;  ///< one sentence: what is wrong and the nearest valid thing
  std::string where;    ///< "file:line:column", a flag, or empty

  /// "where: message", as the command line prints it.
  std::string Text() const { return where.empty() ? message : where + ": " + message; }
};

inline Error BadInput(std::string message, std::string where = {}) {
  return {Error::Code::kBadInput, std::move(message), std::move(where)};
}
inline Error Fault(std::string message, std::string where = {}) {
  return {Error::Code::kInternal, std::move(message), std::move(where)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    GNOMON_CHECK(ok(), "{}", std::get<1>(state_).Text());
    return std::get<0>(state_);
  }
  const T& value() const& {
    GNOMON_CHECK(ok(), "{}", std::get<1>(state_).Text());
    return std::get<0>(state_);
  }
  T&& value() && {
    GNOMON_CHECK(ok(), "{}", std::get<1>(state_).Text());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    GNOMON_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace gnomon

/// Evaluates a Result; returns its error from the enclosing function, or binds its value. `target`
/// may be a declaration, so it cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define GNOMON_CONCAT_INNER(a, b) a##b
#define GNOMON_CONCAT(a, b) GNOMON_CONCAT_INNER(a, b)
#define GNOMON_ASSIGN_INNER(temporary, target, expression) \
  auto temporary = (expression);                           \
  if (!temporary.ok()) return temporary.error();           \
  target = std::move(temporary).value()
#define GNOMON_ASSIGN(target, expression) \
  GNOMON_ASSIGN_INNER(GNOMON_CONCAT(gnomon_result_, __LINE__), target, expression)
// NOLINTEND(bugprone-macro-parentheses)
#define GNOMON_TRY(expression)                             \
  do {                                                     \
    auto gnomon_status = (expression);                     \
    if (!gnomon_status.ok()) return gnomon_status.error(); \
  } while (false)
