#pragma once

/// TomlTable: one table of a TOML file, read key by key. Every error says file:line:column, the key
/// and the nearest valid one. Models and plans are read with it.

#ifndef TOML_EXCEPTIONS
#define TOML_EXCEPTIONS 0
#endif
#ifndef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#endif
#include <toml++/toml.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/device/device.h"

namespace gnomon {

/// Bounds of a number, both included.
template <class T>
struct Range {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
};

class TomlTable {
 public:
  /// The root of a file (plain or gzip). Error: unreadable, empty, or no TOML.
  static Result<TomlTable> Read(const std::string& path);

  /// Error: a key that is not one of `keys`.
  Status AllowKeys(std::span<const std::string_view> keys) const;
  bool Has(std::string_view key) const { return table_->contains(key); }
  /// "path:line:column" of a key's value, or of the table where the key is absent.
  std::string Where(std::string_view key = {}) const;

  /// A required value. Error: absent, of another type, or out of range.
  Result<std::string> String(std::string_view key) const;
  Result<bool> Boolean(std::string_view key) const;
  Result<std::int64_t> Integer(std::string_view key, Range<std::int64_t> range) const;
  Result<double> Number(std::string_view key, Range<double> range) const;
  Result<std::vector<std::int64_t>> Integers(std::string_view key, Range<std::int64_t> range) const;
  Result<std::vector<double>> Numbers(std::string_view key, Range<double> range) const;
  Result<std::vector<std::string>> Strings(std::string_view key) const;
  /// { value, kind, source, read }: a number with where it comes from.
  Result<Fact> SourcedNumber(std::string_view key, Range<double> range) const;
  /// One of `names`; gives its position.
  Result<size_t> Choice(std::string_view key, std::span<const std::string_view> names) const;

  Result<TomlTable> Table(std::string_view key) const;
  /// [[key]], in order; at least one.
  Result<std::vector<TomlTable>> Tables(std::string_view key) const;
  /// Keys of this table, sorted.
  std::vector<std::string> Keys() const;

 private:
  TomlTable(std::shared_ptr<const toml::table> root, const toml::table* table, std::string path,
            std::string name)
      : root_(std::move(root)), table_(table), path_(std::move(path)), name_(std::move(name)) {}

  std::string Place(const toml::source_region& region) const;
  std::string Full(std::string_view key) const;
  Result<const toml::node*> Find(std::string_view key) const;
  Error WrongType(const toml::node& node, std::string_view key, std::string_view expected) const;
  Result<double> AsNumber(const toml::node& node, std::string_view key, Range<double> range) const;
  Result<std::int64_t> AsInteger(const toml::node& node, std::string_view key,
                                 Range<std::int64_t> range) const;

  std::shared_ptr<const toml::table> root_;  ///< keeps the file's nodes alive
  const toml::table* table_;
  std::string path_, name_;
};

}  // namespace gnomon
