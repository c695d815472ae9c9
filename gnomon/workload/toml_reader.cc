// Typed reading of TOML with errors a person can act on.
//
// A reader first says which keys a table may have (AllowKeys: a mistyped key is found before the
// missing one it stands for), then takes the values one by one. Numbers carry the range in which
// they mean something, so that a negative width or a NaN ends here and nowhere later. A date may
// stand as a TOML date or as a string. toml++ does the parsing, without exceptions.

#include "gnomon/workload/toml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gnomon/base/files.h"
#include "gnomon/base/nearest.h"

namespace gnomon {
namespace {

constexpr std::array<std::string_view, 4> kFactKinds = {"datasheet", "measured", "derived",
                                                        "assumed"};

std::string_view TypeName(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

}  // namespace

Result<TomlTable> TomlTable::Read(const std::string& path) {
  GNOMON_ASSIGN(const std::string text, ReadFile(path));
  toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const auto& begin = parsed.error().source().begin;
    return BadInput(std::string(parsed.error().description()),
                    fmt::format("{}:{}:{}", path, begin.line, begin.column));
  }
  auto root = std::make_shared<const toml::table>(std::move(parsed).table());
  if (root->empty()) return BadInput("the file is empty", path + ":1:1");
  const toml::table* table = root.get();
  return TomlTable(std::move(root), table, path, "");
}

std::string TomlTable::Place(const toml::source_region& region) const {
  return fmt::format("{}:{}:{}", path_, std::max<toml::source_index>(region.begin.line, 1),
                     std::max<toml::source_index>(region.begin.column, 1));
}

std::string TomlTable::Full(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

std::string TomlTable::Where(std::string_view key) const {
  const toml::node* node = key.empty() ? nullptr : table_->get(key);
  return Place(node != nullptr ? node->source() : table_->source());
}

Status TomlTable::AllowKeys(std::span<const std::string_view> keys) const {
  for (const auto& [key, node] : *table_)
    if (std::find(keys.begin(), keys.end(), key.str()) == keys.end())
      return BadInput(
          UnknownName(name_.empty() ? "key" : fmt::format("key of [{}]", name_), key.str(), keys),
          Place(key.source()));
  return Done{};
}

Result<const toml::node*> TomlTable::Find(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return BadInput(fmt::format("key '{}' is missing", Full(key)), Where());
  return node;
}

Error TomlTable::WrongType(const toml::node& node, std::string_view key,
                           std::string_view expected) const {
  return BadInput(fmt::format("'{}' must be {}, not {}", Full(key), expected, TypeName(node)),
                  Place(node.source()));
}

Result<double> TomlTable::AsNumber(const toml::node& node, std::string_view key,
                                   Range<double> range) const {
  if (!node.is_number()) return WrongType(node, key, "a number");
  const double value = *node.value<double>();
  if (!std::isfinite(value) || value < range.low || value > range.high)
    return BadInput(
        fmt::format("'{}' is {}; it must lie in [{}, {}]", Full(key), value, range.low, range.high),
        Place(node.source()));
  return value;
}

Result<std::int64_t> TomlTable::AsInteger(const toml::node& node, std::string_view key,
                                          Range<std::int64_t> range) const {
  if (!node.is_integer()) return WrongType(node, key, "a whole number");
  const std::int64_t value = *node.value<std::int64_t>();
  if (value < range.low || value > range.high)
    return BadInput(
        fmt::format("'{}' is {}; it must lie in [{}, {}]", Full(key), value, range.low, range.high),
        Place(node.source()));
  return value;
}

Result<std::string> TomlTable::String(std::string_view key) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  if (!node->is_string()) return WrongType(*node, key, "a string");
  std::string value = *node->value<std::string>();
  if (value.empty())
    return BadInput(fmt::format("'{}' is empty", Full(key)), Place(node->source()));
  return value;
}

Result<bool> TomlTable::Boolean(std::string_view key) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  if (!node->is_boolean()) return WrongType(*node, key, "true or false");
  return *node->value<bool>();
}

Result<std::int64_t> TomlTable::Integer(std::string_view key, Range<std::int64_t> range) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  return AsInteger(*node, key, range);
}

Result<double> TomlTable::Number(std::string_view key, Range<double> range) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  return AsNumber(*node, key, range);
}

Result<std::vector<std::int64_t>> TomlTable::Integers(std::string_view key,
                                                      Range<std::int64_t> range) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  const toml::array* array = node->as_array();
  if (array == nullptr) return WrongType(*node, key, "an array of whole numbers");
  if (array->empty())
    return BadInput(fmt::format("'{}' is empty", Full(key)), Place(node->source()));
  std::vector<std::int64_t> values;
  for (const toml::node& element : *array) {
    GNOMON_ASSIGN(const std::int64_t value, AsInteger(element, key, range));
    values.push_back(value);
  }
  return values;
}

Result<std::vector<double>> TomlTable::Numbers(std::string_view key, Range<double> range) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  const toml::array* array = node->as_array();
  if (array == nullptr) return WrongType(*node, key, "an array of numbers");
  std::vector<double> values;
  for (const toml::node& element : *array) {
    GNOMON_ASSIGN(const double value, AsNumber(element, key, range));
    values.push_back(value);
  }
  return values;
}

Result<std::vector<std::string>> TomlTable::Strings(std::string_view key) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  const toml::array* array = node->as_array();
  if (array == nullptr) return WrongType(*node, key, "an array of strings");
  std::vector<std::string> values;
  for (const toml::node& element : *array) {
    if (!element.is_string()) return WrongType(element, key, "an array of strings");
    values.push_back(*element.value<std::string>());
  }
  return values;
}

Result<size_t> TomlTable::Choice(std::string_view key,
                                 std::span<const std::string_view> names) const {
  GNOMON_ASSIGN(const std::string word, String(key));
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == word) return i;
  return BadInput(UnknownName(Full(key), word, names), Where(key));
}

Result<Fact> TomlTable::SourcedNumber(std::string_view key, Range<double> range) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  if (!node->is_table()) return WrongType(*node, key, "a table { value, kind, source, read }");
  GNOMON_ASSIGN(const TomlTable table, Table(key));
  constexpr std::array<std::string_view, 4> kKeys = {"value", "kind", "source", "read"};
  GNOMON_TRY(table.AllowKeys(kKeys));
  Fact fact;
  GNOMON_ASSIGN(fact.value, table.Number("value", range));
  GNOMON_ASSIGN(const size_t kind, table.Choice("kind", kFactKinds));
  fact.kind = static_cast<FactKind>(kind);
  GNOMON_ASSIGN(fact.source, table.String("source"));
  GNOMON_ASSIGN(const toml::node* read, table.Find("read"));
  if (const auto date = read->value<toml::date>(); read->is_date() && date) {
    fact.read = fmt::format("{:04}-{:02}-{:02}", date->year, date->month, date->day);
  } else {
    GNOMON_ASSIGN(fact.read, table.String("read"));
  }
  return fact;
}

Result<TomlTable> TomlTable::Table(std::string_view key) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  if (!node->is_table()) return WrongType(*node, key, "a table");
  return TomlTable(root_, node->as_table(), path_, Full(key));
}

Result<std::vector<TomlTable>> TomlTable::Tables(std::string_view key) const {
  GNOMON_ASSIGN(const toml::node* node, Find(key));
  if (!node->is_array_of_tables())
    return WrongType(*node, key, fmt::format("an array of tables [[{}]]", key));
  std::vector<TomlTable> tables;
  for (const toml::node& element : *node->as_array())
    tables.push_back(TomlTable(root_, element.as_table(), path_, Full(key)));
  return tables;
}

std::vector<std::string> TomlTable::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, node] : *table_) keys.emplace_back(key.str());
  return keys;
}

}  // namespace gnomon
