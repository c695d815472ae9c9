// A device by id: its file along the search folders, or the present machine.
//
// Folders, the first one that has the id wins: $GNOMON_DEVICES (several apart by ':'), ./devices,
// the folder of an installed copy beside the program, the install data folder, the source folder. A
// name that ends in
// ".toml" is a file itself.
// `host` is host-x86-64-avx2 under the overlay at HostOverlayPath() where that was measured on this
// CPU, and in any case with as many units as this process may use; without an overlay it is a plain
// fallback.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "gnomon/base/nearest.h"
#include "gnomon/device/calibrate.h"
#include "gnomon/device/device.h"
#include "gnomon/device/host.h"
#include "gnomon/device/read.h"

namespace gnomon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHost = "host";
constexpr std::string_view kHostBase = "host-x86-64-avx2";
constexpr std::string_view kExtension = ".toml";

std::vector<fs::path> SearchFolders() {
  std::vector<fs::path> folders;
  if (const char* set = std::getenv("GNOMON_DEVICES")) {
    std::string_view rest = set;
    while (!rest.empty()) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) folders.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  folders.emplace_back("devices");
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) folders.push_back(program.parent_path() / "../share/gnomon/devices");
  folders.emplace_back(GNOMON_DATA_DIR "/devices");
  folders.emplace_back(GNOMON_SOURCE_DATA_DIR "/devices");
  return folders;
}

Result<Device> PresentHost() {
  GNOMON_ASSIGN(const std::string base, device_schema::FindDeviceFile(kHostBase));
  const std::string overlay = HostOverlayPath();
  std::error_code ignored;
  bool calibrated = false;
  if (fs::is_regular_file(overlay, ignored)) {
    GNOMON_ASSIGN(const device_schema::OverlayHeader header,
                  device_schema::ReadOverlayHeader(overlay));
    calibrated = header.overlay_of == kHostBase && header.cpu == CpuSignature();
  }
  GNOMON_ASSIGN(const Device full, ReadDevice(base, calibrated ? overlay : std::string()));
  Device device = WithUnits(full, UsableCores());
  device.id = kHost;
  device.name = CpuName();
  device.calibrated = calibrated;
  return device;
}

}  // namespace

namespace device_schema {

Result<std::string> FindDeviceFile(std::string_view id) {
  std::error_code ignored;
  for (const fs::path& folder : SearchFolders()) {
    const fs::path path = folder / (std::string(id) + std::string(kExtension));
    if (fs::is_regular_file(path, ignored)) return path.string();
  }
  const std::vector<std::string> ids = DeviceIds();
  const std::vector<std::string_view> names(ids.begin(), ids.end());
  return BadInput(UnknownName("device", id, names));
}

}  // namespace device_schema

Result<Device> FindDevice(std::string_view id) {
  if (id.ends_with(kExtension)) return ReadDevice(std::string(id));
  if (id == kHost) return PresentHost();
  GNOMON_ASSIGN(const std::string path, device_schema::FindDeviceFile(id));
  GNOMON_ASSIGN(Device device, ReadDevice(path));
  if (device.id == id) return device;
  GNOMON_ASSIGN(const device_schema::OverlayHeader header, device_schema::ReadOverlayHeader(path));
  if (header.overlay_of.empty())
    return BadInput(fmt::format("the file states id '{}', not '{}'", device.id, id), path);
  device.id = id;  // an overlay is a device of its own beside its base
  return device;
}

std::vector<std::string> DeviceIds() {
  std::set<std::string> ids = {std::string(kHost)};
  std::error_code ignored;
  for (const fs::path& folder : SearchFolders()) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == kExtension) ids.insert(entry.path().stem().string());
    }
  }
  return {ids.begin(), ids.end()};
}

}  // namespace gnomon
