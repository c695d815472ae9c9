#pragma once

/// One progress line on standard error: overprinted on a terminal, silent otherwise.

#include <cstdint>
#include <string>

namespace gnomon {

class Progress {
 public:
  /// `what` names the work ("calibrating"); total 0 means unknown.
  Progress(std::string what, std::int64_t total);
  ~Progress();  ///< clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `done` of total and a note ("L2 bandwidth"); redraws at most ten times a second.
  void Update(std::int64_t done, const std::string& note = {});
  void SetTotal(std::int64_t total) { total_ = total; }

 private:
  std::string what_;
  std::int64_t total_ = 0;
  bool terminal_ = false;
  bool drawn_ = false;
  double start_ = 0, last_ = 0;
};

}  // namespace gnomon
