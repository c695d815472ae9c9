// Files read whole and written whole.
//
// Reading: plain bytes, or gzip by its magic number, with as many members as follow each other; the
// checksum and length at each member's end must be right, so a truncated file is told from a short
// one. Writing: into PATH.PID.aside in the same folder, fsync, rename over PATH, fsync of the
// folder. Whatever fails, the aside file goes and the old file stays. A link is followed to the
// file it names; a device or a pipe (/dev/stdout) is written directly, as renaming over it would
// replace it. A missing or wrong path is bad input; no permission and no space are faults with the
// system's reason.

#include "gnomon/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace gnomon {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunkBytes = 1 << 18;
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip framing only

Error SystemError(std::string_view action, int code, const std::string& path) {
  const std::string message = fmt::format("cannot {}: {}", action, std::strerror(code));
  const bool wrong_path = code == ENOENT || code == ENOTDIR || code == EISDIR ||
                          code == ENAMETOOLONG || code == EACCES || code == EPERM || code == ELOOP;
  return wrong_path ? BadInput(message, path) : Fault(message, path);
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool Close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 || close(fd) == 0;
  }

 private:
  int fd_;
};

Result<std::string> Inflate(const std::string& packed, const std::string& path) {
  z_stream stream{};
  GNOMON_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK);
  std::string text;
  std::string chunk(kChunkBytes, '\0');
  size_t fed = 0;
  int state = Z_OK;
  while (fed < packed.size() || stream.avail_in > 0 || state == Z_OK) {
    if (stream.avail_in == 0 && fed < packed.size()) {
      const size_t part = std::min(kChunkBytes, packed.size() - fed);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + fed));
      stream.avail_in = static_cast<uInt>(part);
      fed += part;
    }
    if (state == Z_STREAM_END) inflateReset(&stream);  // another member follows
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(chunk.data(), chunk.size() - stream.avail_out);
    if (state == Z_BUF_ERROR && fed < packed.size()) state = Z_OK;
    if (state != Z_OK && state != Z_STREAM_END) break;
  }
  inflateEnd(&stream);
  if (state == Z_BUF_ERROR) return BadInput("the gzip file is truncated", path);
  if (state != Z_STREAM_END) return BadInput("the gzip file is corrupt", path);
  return text;
}

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t wrote = write(fd, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return SystemError("write", errno, path);
    content.remove_prefix(static_cast<size_t>(wrote));
  }
  return Done{};
}

Status WriteDirectly(const std::string& path, std::string_view content) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError("open for writing", errno, path);
  GNOMON_TRY(WriteAll(file.get(), content, path));
  if (!file.Close()) return SystemError("write", errno, path);
  return Done{};
}

Status FillAside(const std::string& aside, mode_t mode, std::string_view content,
                 const std::string& path) {
  Descriptor file(open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (file.get() < 0) return SystemError("create a file in its folder", errno, path);
  GNOMON_TRY(WriteAll(file.get(), content, path));
  if (fsync(file.get()) != 0 || !file.Close()) return SystemError("write", errno, path);
  return Done{};
}

}  // namespace

Result<std::string> ReadFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError("read", errno, path);
  std::string text;
  std::string chunk(kChunkBytes, '\0');
  while (true) {
    const ssize_t got = read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("read", errno, path);
    if (got == 0) break;
    text.append(chunk.data(), static_cast<size_t>(got));
  }
  if (text.starts_with("\x1f\x8b")) return Inflate(text, path);
  return text;
}

Status WriteFile(const std::string& path, std::string_view content) {
  std::error_code ignored;
  const fs::path resolved =
      fs::is_symlink(path, ignored) ? fs::canonical(path, ignored) : fs::path(path);
  const std::string target = resolved.empty() ? path : resolved.string();
  struct stat old {};
  const bool exists = stat(target.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) return SystemError("write", EISDIR, path);
  if (exists && !S_ISREG(old.st_mode)) return WriteDirectly(target, content);
  if (exists && access(target.c_str(), W_OK) != 0) return SystemError("write", errno, path);

  constexpr mode_t kNewFile = 0666;  // less the umask
  const std::string aside = fmt::format("{}.{}.aside", target, getpid());
  Status status = FillAside(aside, exists ? old.st_mode & kNewFile : kNewFile, content, path);
  if (status.ok() && rename(aside.c_str(), target.c_str()) != 0) {
    status = SystemError("put in place", errno, path);
  }
  if (!status.ok()) {
    unlink(aside.c_str());
    return status;
  }
  // The new name outlives a power cut once its folder is on disk; some file systems refuse,
  // harmlessly.
  const fs::path folder = fs::path(target).parent_path();
  Descriptor directory(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) fsync(directory.get());
  return Done{};
}

}  // namespace gnomon
