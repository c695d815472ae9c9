// The overlay file: what was measured on this machine, in the form ReadDevice takes.
//
// Every fact of kind `measured` is written under its table, with its source and date, at full
// precision, so that it reads back to the same value. An overlay of a GPU holds what differs from
// its base alone: base files cite measurements of others.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "gnomon/base/files.h"
#include "gnomon/device/calibrate.h"
#include "gnomon/device/host.h"
#include "gnomon/device/schema.h"

namespace gnomon {
namespace {

namespace schema = device_schema;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

std::string FactText(std::string_view key, const Fact& fact) {
  return fmt::format("{} = {{ value = {}, kind = \"measured\", source = {}, read = {} }}\n", key,
                     fact.value, Quoted(fact.source), fact.read);
}

bool Measured(const Fact& fact) { return fact.kind == FactKind::kMeasured; }

// Entries of a section in the device's own order; one empty entry for a plain table.
std::vector<std::string> Entries(const Device& device, const schema::Section& section) {
  std::vector<std::string> entries;
  if (section.name == "matrix" || section.name == "vector") {
    for (const Rate& rate : section.name == "matrix" ? device.matrix : device.vector) {
      entries.emplace_back(Name(rate.dtype));
    }
  } else if (section.name == "memory") {
    for (const MemoryLevel& level : device.memory) entries.push_back(level.name);
  } else if (section.name == "link") {
    for (const Link& link : device.links) entries.push_back(link.name);
  } else {
    entries.emplace_back();
  }
  return entries;
}

using Chosen = bool(const std::string& path, const Fact& fact);

std::string EntryText(const Device& device, const schema::Section& section,
                      const std::string& entry, const std::function<Chosen>& chosen) {
  std::string numbers;
  for (const schema::Key& key : section.keys) {
    const auto fact = device.facts.find(schema::JoinPath(section, entry, key.name));
    if (fact != device.facts.end() && Measured(fact->second) && chosen(fact->first, fact->second))
      numbers += FactText(key.name, fact->second);
  }
  if (numbers.empty()) return {};
  if (section.shape == schema::Shape::kTable)
    return fmt::format("\n[{}]\n{}", section.name, numbers);
  std::string text =
      fmt::format("\n[[{}]]\n{} = {}\n", section.name, section.entry_key, Quoted(entry));
  if (section.name == "matrix") {
    for (const Rate& rate : device.matrix) {
      if (Name(rate.dtype) == entry && !rate.shape.empty())
        text += fmt::format("shape = {}\n", Quoted(rate.shape));
    }
  }
  return text + numbers;
}

Status Write(const Device& device, std::string text, const std::string& path,
             const std::function<Chosen>& chosen) {
  for (const schema::Section& section : schema::Sections()) {
    for (const std::string& entry : Entries(device, section))
      text += EntryText(device, section, entry, chosen);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (failed) return Fault("cannot create the folder: " + failed.message(), folder.string());
  return WriteFile(path, text);
}

}  // namespace

Status WriteOverlay(const Device& device, const std::string& path) {
  std::string head = fmt::format(
      "# Measured by `gnomon device calibrate`; good for this CPU only.\n"
      "overlay_of = \"host-x86-64-avx2\"\ncpu = {}\n",
      Quoted(CpuSignature()));
  return Write(device, std::move(head), path, [](const std::string&, const Fact&) { return true; });
}

Status WriteOverlay(const Device& measured, const Device& base, const std::string& path) {
  std::string head = fmt::format(
      "# Measured by `gnomon device calibrate` on one {}; the sources name the part and its "
      "driver.\noverlay_of = {}\n",
      base.name, Quoted(base.id));
  return Write(measured, std::move(head), path,
               [&](const std::string& fact_path, const Fact& fact) {
                 const auto known = base.facts.find(fact_path);
                 return known == base.facts.end() || known->second.source != fact.source ||
                        known->second.value != fact.value;
               });
}

std::string HostOverlayPath() {
  if (const char* set = std::getenv("GNOMON_HOST")) return set;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/gnomon/host.toml";
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.cache/gnomon/host.toml";
}

}  // namespace gnomon
