// A device file in TOML into a Device, and an overlay over it. Entry point: ReadDevice.
//
// Walk: the file's tables are matched with the schema (schema.h); every number must be an inline
// table { value, kind, source, read } and goes through SetFact; every place is kept by its path. At
// the end the base and the overlay together must pass CheckDevice, and what does not hold is
// reported where the contradicting value stands. An overlay states any subset, all `measured`, and
// no new memories or links.
//
// Everything wrong is BadInput with file:line:column: TOML syntax, unknown and missing keys (with
// the nearest known one, and a word about a missing unit), wrong types, values that are not
// positive and finite.

#include "gnomon/device/read.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "gnomon/base/files.h"
#include "gnomon/base/nearest.h"
#include "gnomon/device/check.h"
#include "gnomon/device/device.h"
#include "gnomon/device/schema.h"

namespace gnomon {
namespace device_schema {
namespace {

constexpr std::string_view kTextKeys[] = {"id", "name", "vendor", "arch", "unit_kind", "kind"};
constexpr std::string_view kOverlayKeys[] = {"overlay_of", "cpu"};
constexpr std::string_view kFactKeys[] = {"value", "kind", "source", "read"};

Result<toml::table> ParseToml(const std::string& path) {
  GNOMON_ASSIGN(const std::string text, ReadFile(path));
  if (text.empty()) return BadInput("the file is empty", path + ":1:1");
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return BadInput(std::string(error.description()),
                    fmt::format("{}:{}:{}", path, at.line, at.column));
  }
}

bool IsDate(std::string_view text) {
  if (text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  }
  return true;
}

bool IsInstructionShape(std::string_view text) {
  const bool letters_right =
      std::ranges::all_of(text, [](char c) { return c == 'x' || (c >= '0' && c <= '9'); });
  return letters_right && std::ranges::count(text, 'x') == 2 && text.front() != 'x' &&
         text.back() != 'x' && text.find("xx") == std::string_view::npos;
}

// Fills a Device from one file at a time and remembers where each number stands.
class Reader {
 public:
  explicit Reader(Device& device) : device_(device) {}

  Status Base(const std::string& path, const toml::table& file) {
    path_ = path;
    GNOMON_TRY(CheckTopKeys(file, kTextKeys));
    GNOMON_TRY(Identity(file));
    for (const Section& section : Sections()) {
      const toml::node* node = file.get(section.name);
      if (node == nullptr) {
        if (Needed(section.need)) return AtStart(fmt::format("missing table [{}]", section.name));
        continue;
      }
      GNOMON_TRY(ReadSection(section, *node));
    }
    return Done{};
  }

  Status Overlay(const std::string& path, const toml::table& file) {
    path_ = path;
    overlay_ = true;
    GNOMON_TRY(CheckTopKeys(file, kOverlayKeys));
    GNOMON_ASSIGN(const std::string base, Text(file, "overlay_of"));
    if (base != device_.id) {
      return At(*file.get("overlay_of"),
                fmt::format("this overlay is for '{}', not for '{}'", base, device_.id));
    }
    for (const Section& section : Sections()) {
      if (const toml::node* node = file.get(section.name)) GNOMON_TRY(ReadSection(section, *node));
    }
    return Done{};
  }

  Status CheckAgreement() const {
    for (const DeviceCheck& check : CheckDevice(device_)) {
      if (check.holds) continue;
      const auto place = places_.find(check.key);
      return BadInput(
          fmt::format("{}: stated {:.6g}, against {:.6g}", check.what, check.stated, check.derived),
          place == places_.end() ? path_ : place->second);
    }
    return Done{};
  }

 private:
  std::string Where(toml::source_position at) const {
    return fmt::format("{}:{}:{}", path_, at.line, at.column);
  }
  Error At(const toml::node& node, std::string message) const {
    return BadInput(std::move(message), Where(node.source().begin));
  }
  Error At(const toml::key& key, std::string message) const {
    return BadInput(std::move(message), Where(key.source().begin));
  }
  Error AtStart(std::string message) const { return BadInput(std::move(message), path_ + ":1:1"); }

  bool Needed(Need need) const {
    if (overlay_) return false;
    return need == Need::kAlways || (need == Need::kGpu && device_.kind == Device::Kind::kGpu) ||
           (need == Need::kCpu && device_.kind == Device::Kind::kCpu);
  }

  Error Unknown(const toml::key& key, std::span<const std::string_view> known) const {
    const std::string_view name = key.str();
    for (const std::string_view candidate : known) {
      if (candidate.starts_with(std::string(name) + "_")) {
        return At(key, fmt::format("'{}' lacks its unit; write '{}'", name, candidate));
      }
    }
    return At(key, fmt::format("unknown key '{}'; nearest is '{}'", name, Nearest(name, known)));
  }

  Status CheckTopKeys(const toml::table& file, std::span<const std::string_view> text_keys) const {
    std::vector<std::string_view> known(text_keys.begin(), text_keys.end());
    for (const Section& section : Sections()) known.push_back(section.name);
    for (const auto& [key, node] : file) {
      if (std::ranges::find(known, key.str()) == known.end()) return Unknown(key, known);
    }
    return Done{};
  }

  Result<std::string> Text(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      const std::string message = fmt::format("missing key '{}'", key);
      return table.source().begin.line == 0 ? AtStart(message) : At(table, message);
    }
    const auto text = node->value_exact<std::string>();
    if (!text) return At(*node, fmt::format("'{}' must be a text in quotes", key));
    if (text->empty()) return At(*node, fmt::format("'{}' is empty", key));
    return *text;
  }

  Status Identity(const toml::table& file) {
    GNOMON_ASSIGN(device_.id, Text(file, "id"));
    GNOMON_ASSIGN(device_.name, Text(file, "name"));
    GNOMON_ASSIGN(device_.vendor, Text(file, "vendor"));
    GNOMON_ASSIGN(device_.arch, Text(file, "arch"));
    GNOMON_ASSIGN(device_.unit_kind, Text(file, "unit_kind"));
    GNOMON_ASSIGN(const std::string kind, Text(file, "kind"));
    const auto* found = std::ranges::find(kDeviceKindNames, kind);
    if (found == std::end(kDeviceKindNames)) {
      return At(*file.get("kind"), UnknownName("kind of device", kind, kDeviceKindNames));
    }
    device_.kind = static_cast<Device::Kind>(found - std::begin(kDeviceKindNames));
    return Done{};
  }

  Status ReadSection(const Section& section, const toml::node& node) {
    if (section.shape == Shape::kTable) {
      const toml::table* table = node.as_table();
      if (table == nullptr)
        return At(node, fmt::format("'{0}' must be a table [{0}]", section.name));
      return ReadEntry(section, *table, "");
    }
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty()) {
      return At(node, fmt::format("'{0}' must be a list of tables [[{0}]]", section.name));
    }
    std::set<std::string> seen;
    for (const toml::node& element : *array) {
      const toml::table* table = element.as_table();
      if (table == nullptr)
        return At(element, fmt::format("'{0}' must be a list of tables [[{0}]]", section.name));
      GNOMON_ASSIGN(const std::string name, Text(*table, section.entry_key));
      const toml::node& place = *table->get(section.entry_key);
      if (!seen.insert(name).second)
        return At(place, fmt::format("{} '{}' stands twice", section.name, name));
      GNOMON_TRY(OpenEntry(section, name, place));
      GNOMON_TRY(ReadEntry(section, *table, name));
    }
    return Done{};
  }

  // Makes the member that an entry's numbers go into. Rates are made by SetFact.
  Status OpenEntry(const Section& section, const std::string& name, const toml::node& place) {
    if (section.entry_key == "dtype") {
      const Result<DType> dtype = ParseDType(name);
      if (!dtype) return At(place, dtype.error().message);
      return Done{};
    }
    if (name.find('.') != std::string::npos) return At(place, "a name must not contain a dot");
    if (!overlay_ && section.name == "memory") device_.memory.emplace_back().name = name;
    if (!overlay_ && section.name == "link") device_.links.emplace_back().name = name;
    if (overlay_ && section.name == "memory" && device_.FindMemory(name) == nullptr) {
      std::vector<std::string_view> names;
      for (const MemoryLevel& level : device_.memory) names.push_back(level.name);
      return At(place, UnknownName("memory", name, names));
    }
    return Done{};
  }

  Status ReadEntry(const Section& section, const toml::table& table, const std::string& entry) {
    std::vector<std::string_view> known;
    if (section.shape == Shape::kArray) known.push_back(section.entry_key);
    known.insert(known.end(), section.text_keys.begin(), section.text_keys.end());
    for (const Key& key : section.keys) known.push_back(key.name);
    for (const auto& [name, node] : table) {
      const Key* key = FindKey(section, name.str());
      if (key != nullptr) {
        GNOMON_TRY(ReadNumber(section, entry, *key, node));
      } else if (std::ranges::find(known, name.str()) == known.end()) {
        return Unknown(name, known);
      }
    }
    GNOMON_TRY(CheckNeededKeys(section, table));
    for (const std::string_view key : section.text_keys) GNOMON_TRY(ReadText(table, entry, key));
    return Done{};
  }

  Status CheckNeededKeys(const Section& section, const toml::table& table) const {
    for (const Key& key : section.keys) {
      if (key.instead_of.empty()) {
        if (Needed(key.need) && !table.contains(key.name))
          return At(table, fmt::format("missing key '{}'", key.name));
        continue;
      }
      const auto stated = std::ranges::count_if(section.keys, [&](const Key& other) {
        return other.instead_of == key.instead_of && table.contains(other.name);
      });
      if (stated > 1) return At(table, fmt::format("'{}' is stated in two units", key.instead_of));
      if (stated == 0 && Needed(key.need))
        return At(table, fmt::format("missing key '{}'", key.name));
    }
    return Done{};
  }

  Status ReadNumber(const Section& section, const std::string& entry, const Key& key,
                    const toml::node& node) {
    GNOMON_ASSIGN(const Fact fact, ReadFact(key.name, node));
    const toml::node& place = *node.as_table()->get("value");
    const std::string path = JoinPath(section, entry, key.name);
    const Status set = SetFact(device_, path, fact);
    if (!set.ok()) return At(place, set.error().message);
    places_[path] = Where(place.source().begin);
    return Done{};
  }

  Result<Fact> ReadFact(std::string_view key, const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      return At(node, fmt::format(
                          "'{}' must be {{ value, kind, source, read }}: a number needs its source",
                          key));
    }
    for (const auto& [name, unused] : *table) {
      if (std::ranges::find(kFactKeys, name.str()) == std::end(kFactKeys))
        return Unknown(name, kFactKeys);
    }
    for (const std::string_view needed : kFactKeys) {
      if (!table->contains(needed)) return At(node, fmt::format("'{}' lacks '{}'", key, needed));
    }
    Fact fact;
    const toml::node& value = *table->get("value");
    if (!value.is_number())
      return At(value, fmt::format("the value of '{}' must be a number", key));
    fact.value = *value.value<double>();
    GNOMON_ASSIGN(const std::string kind, Text(*table, "kind"));
    const auto parsed = ParseFactKind(kind);
    if (!parsed) return At(*table->get("kind"), UnknownName("kind", kind, kFactKindNames));
    fact.kind = *parsed;
    if (overlay_ && fact.kind != FactKind::kMeasured) {
      return At(*table->get("kind"), fmt::format("'{}' in an overlay must be \"measured\"", key));
    }
    GNOMON_ASSIGN(fact.source, Text(*table, "source"));
    GNOMON_ASSIGN(fact.read, Date(*table->get("read")));
    return fact;
  }

  Result<std::string> Date(const toml::node& node) const {
    if (const auto date = node.value<toml::date>()) {
      return fmt::format("{:04}-{:02}-{:02}", date->year, date->month, date->day);
    }
    const auto text = node.value<std::string>();
    if (!text || !IsDate(*text)) return At(node, "'read' must be a date YYYY-MM-DD");
    return *text;
  }

  Status ReadText(const toml::table& table, const std::string& entry, std::string_view key) {
    if (overlay_ && !table.contains(key)) return Done{};
    GNOMON_ASSIGN(const std::string text, Text(table, key));
    const toml::node& place = *table.get(key);
    if (key == "scope") {
      const auto scope = ParseScope(text);
      if (!scope) return At(place, UnknownName("scope", text, kScopeNames));
      std::ranges::find(device_.memory, entry, &MemoryLevel::name)->scope = *scope;
    } else if (key == "shape") {
      if (!IsInstructionShape(text))
        return At(place, fmt::format("shape '{}' must be MxNxK", text));
      for (Rate& rate : device_.matrix) {
        if (Name(rate.dtype) == entry) rate.shape = text;
      }
    } else if (device_.host_link) {
      device_.host_link->name = text;
    } else {
      return At(place, "the base device has no host link");
    }
    return Done{};
  }

  Device& device_;
  std::string path_;
  bool overlay_ = false;
  std::map<std::string, std::string> places_;  // TOML path of a number -> file:line:column
};

// The base an overlay names: beside it, else along the search folders.
Result<std::string> BaseOf(const std::string& overlay_path, const std::string& id) {
  const auto beside = std::filesystem::path(overlay_path).parent_path() / (id + ".toml");
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) return beside.string();
  return FindDeviceFile(id);
}

}  // namespace

Result<OverlayHeader> ReadOverlayHeader(const std::string& path) {
  GNOMON_ASSIGN(const toml::table file, ParseToml(path));
  return OverlayHeader{file["overlay_of"].value_or(std::string()),
                       file["cpu"].value_or(std::string())};
}

}  // namespace device_schema

Result<Device> ReadDevice(const std::string& path, const std::string& overlay_path) {
  namespace schema = device_schema;
  GNOMON_ASSIGN(const toml::table file, schema::ParseToml(path));
  if (overlay_path.empty() && file.contains("overlay_of")) {
    GNOMON_ASSIGN(const schema::OverlayHeader header, schema::ReadOverlayHeader(path));
    GNOMON_ASSIGN(const std::string base, schema::BaseOf(path, header.overlay_of));
    return ReadDevice(base, path);
  }
  Device device;
  schema::Reader reader(device);
  GNOMON_TRY(reader.Base(path, file));
  if (!overlay_path.empty()) {
    GNOMON_ASSIGN(const toml::table overlay, schema::ParseToml(overlay_path));
    GNOMON_TRY(reader.Overlay(overlay_path, overlay));
  }
  GNOMON_TRY(reader.CheckAgreement());
  return device;
}

}  // namespace gnomon
