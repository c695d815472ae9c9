// The file under a sweep. Each shape's rows are appended with one write and an fsync; the header
// comes with the first of them. A kill can therefore leave only a torn last line (no newline at its
// end): Open cuts it off. Anything else that does not parse is the user's file, and is refused with
// its place, not mended.

#include "gnomon/gemm/measured_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "gnomon/base/files.h"

namespace gnomon {
namespace {

std::string Key(const Measurement& row) {
  const Problem& p = row.problem;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", row.device, row.family, Name(p.dtype),
                     Name(p.dtype_out), Name(p.layout), p.m, p.n, p.k, p.batch, row.config);
}

Error SystemFault(const std::string& what, const std::string& path) {
  return Fault(fmt::format("{}: {}", what, std::strerror(errno)), path);
}

bool OnlyHeader(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text == kMeasuredHeader;
}

}  // namespace

Result<MeasuredFile> MeasuredFile::Open(const std::string& path) {
  MeasuredFile file(path);
  file.descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file.descriptor_ < 0) return SystemFault("cannot open for writing", path);
  struct stat status;
  if (fstat(file.descriptor_, &status) != 0) return SystemFault("cannot be read", path);
  if (!S_ISREG(status.st_mode)) return BadInput("is not a plain file", path);
  if (status.st_size == 0) return file;

  GNOMON_ASSIGN(std::string text, ReadFile(path));
  const size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end + 1);
  if (text.empty()) {
    if (std::string_view(kMeasuredHeader).substr(0, static_cast<size_t>(status.st_size)).size() !=
        static_cast<size_t>(status.st_size))
      return BadInput("has no line that ends; it is not a measured CSV", path);
  } else if (text.compare(0, kMeasuredHeader.size(), kMeasuredHeader) != 0) {
    return BadInput(fmt::format("the header must be '{}'", kMeasuredHeader), path + ":1:1");
  } else if (!OnlyHeader(text)) {
    GNOMON_ASSIGN(const MeasuredTable table, ParseUnfinishedTable(text, path));
    for (const Measurement& row : table.rows) file.Remember(row);
    for (const Measurement& row : table.failures) file.Remember(row);
  }
  file.size_ = static_cast<std::int64_t>(text.size());
  if (file.size_ != status.st_size && ftruncate(file.descriptor_, file.size_) != 0)
    return SystemFault("cannot cut off the torn last line", path);
  return file;
}

MeasuredFile::MeasuredFile(MeasuredFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      rows_(std::move(other.rows_)) {}

MeasuredFile::~MeasuredFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool MeasuredFile::Has(const Measurement& row) const { return rows_.contains(Key(row)); }

const std::string* MeasuredFile::FailureOf(const Measurement& row) const {
  const auto found = rows_.find(Key(row));
  return found != rows_.end() && found->second.failed ? &found->second.source : nullptr;
}

void MeasuredFile::Remember(const Measurement& row) {
  const bool failed = std::isnan(row.us);
  rows_.insert_or_assign(Key(row), Row{failed, failed ? row.source : std::string()});
}

Status MeasuredFile::Append(const std::vector<Measurement>& rows) {
  if (rows.empty()) return Done{};
  std::string text;
  if (size_ == 0) text.append(kMeasuredHeader).append("\n");
  for (const Measurement& row : rows) text += MeasurementLine(row);
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t step = write(descriptor_, text.data() + written, text.size() - written);
    if (step < 0 && errno == EINTR) continue;
    if (step <= 0) {
      const Error fault = SystemFault("cannot append", path_);
      if (ftruncate(descriptor_, size_) != 0)
        return SystemFault("cannot undo a part-written row", path_);
      return fault;
    }
    written += static_cast<size_t>(step);
  }
  if (fsync(descriptor_) != 0) return SystemFault("cannot reach the disk", path_);
  size_ += static_cast<std::int64_t>(text.size());
  for (const Measurement& row : rows) Remember(row);
  return Done{};
}

}  // namespace gnomon
