#pragma once

/// A measured CSV that grows while a sweep runs: rows are on the disk before the next shape starts,
/// and a file that a kill left with a torn last line is taken up again.

#include <string>
#include <unordered_map>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/gemm/shapes.h"

namespace gnomon {

class MeasuredFile {
 public:
  /// Opens or creates. Error: no permission, or content that is no measured file (names the line).
  static Result<MeasuredFile> Open(const std::string& path);
  MeasuredFile(MeasuredFile&& other) noexcept;
  MeasuredFile& operator=(MeasuredFile&&) = delete;
  ~MeasuredFile();

  /// True where a row of the same device, family, problem and config stands in the file.
  bool Has(const Measurement& row) const;
  /// The source of such a row that has no time: why the config failed. Null: there is none.
  const std::string* FailureOf(const Measurement& row) const;
  /// Writes the rows behind one another and waits for the disk. A failed write leaves the file as
  /// before.
  Status Append(const std::vector<Measurement>& rows);

 private:
  explicit MeasuredFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  void Remember(const Measurement& row);

  struct Row {
    bool failed = false;
    std::string source;  ///< of a failed one
  };
  std::unordered_map<std::string, Row> rows_;
};

}  // namespace gnomon
