// The progress line: "\r", the line cut to the terminal's width, "erase to the end of line".
//
// "calibrating  7/24  29%  11 s left  L2 bandwidth". The time left is the mean time of what is done
// so far times what is left; it is shown after the first second, as before that it is noise. Where
// standard error is not a terminal, or the terminal is a dumb one, nothing is written at all.

#include "gnomon/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gnomon {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kEstimateAfterSeconds = 1;
constexpr size_t kUsualWidth = 80;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

size_t TerminalWidth() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return size.ws_col;
}

bool StandardErrorIsTerminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::string what, std::int64_t total)
    : what_(std::move(what)), total_(total), terminal_(StandardErrorIsTerminal()), start_(Now()) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::Update(std::int64_t done, const std::string& note) {
  if (!terminal_) return;
  const double now = Now();
  if (drawn_ && now - last_ < kRedrawSeconds) return;
  last_ = now;
  drawn_ = true;
  std::string line = what_;
  if (total_ > 0) {
    line += fmt::format("  {}/{}  {}%", done, total_, done * 100 / total_);
    const double elapsed = now - start_;
    if (done > 0 && done < total_ && elapsed > kEstimateAfterSeconds) {
      const double left = elapsed * static_cast<double>(total_ - done) / static_cast<double>(done);
      line += fmt::format("  {:.0f} s left", left);
    }
  } else {
    line += fmt::format("  {}", done);
  }
  if (!note.empty()) line += "  " + note;
  line.resize(std::min(line.size(), TerminalWidth() - 1));
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
}

}  // namespace gnomon
