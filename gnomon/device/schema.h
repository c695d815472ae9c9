#pragma once

/// Schema: which keys a device file has, what each means in SI units, and where its value goes. The
/// reader, the overlay writer and docs/device-schema.md follow this one table. Private to device/.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/device/device.h"

namespace gnomon::device_schema {

enum class Need { kAlways, kGpu, kCpu, kOptional };  ///< which kinds of device must state the key

/// What a section holds: one table, or an array of tables told apart by a word ("l2", "bf16").
enum class Shape { kTable, kArray };

struct Key {
  std::string_view name;
  Need need = Need::kOptional;
  bool whole = false;  ///< counts: no fraction
  std::string_view instead_of =
      {};  ///< this key or any other of the same word here: exactly one is needed
};

struct Section {
  std::string_view name;
  Shape shape = Shape::kTable;
  Need need = Need::kOptional;
  std::string_view entry_key = {};  ///< array: the text key that names an entry
  std::span<const std::string_view> text_keys =
      {};  ///< further text keys, all needed but for `shape` of vectors
  std::span<const Key> keys = {};
};

std::span<const Section> Sections();
const Section* FindSection(std::string_view name);
const Key* FindKey(const Section& section, std::string_view name);

/// SI units in one unit of the key's suffix: "latency_ns" 1e-9, "capacity_kib" 1024, "count" 1.
double UnitOf(std::string_view key);

/// "memory.l2.latency_ns" taken apart; the entry is empty for plain tables.
struct Path {
  const Section* section = nullptr;
  std::string entry;
  const Key* key = nullptr;
};
std::optional<Path> ParsePath(std::string_view path);
std::string JoinPath(const Section& section, std::string_view entry, std::string_view key);

std::optional<FactKind> ParseFactKind(std::string_view text);
std::optional<MemoryLevel::Scope> ParseScope(std::string_view text);

inline constexpr std::string_view kFactKindNames[] = {"datasheet", "measured", "derived",
                                                      "assumed"};
inline constexpr std::string_view kScopeNames[] = {"unit", "die", "device"};
inline constexpr std::string_view kDeviceKindNames[] = {"gpu", "cpu"};

}  // namespace gnomon::device_schema
