// The device that a row means.
//
// Names are matched whole, without maker, case and the difference between blank and dash: what does
// not say which device it was ("Blackwell", "gfx950", "MI350", "H100 (not named in excerpt)",
// "8xH100") must not become one. Entry point: DeviceIdOf.

#include <algorithm>
#include <array>
#include <utility>

#include "gnomon/cost/map_ops.h"
#include "gnomon/cost/op_text.h"

namespace gnomon {
namespace {

constexpr std::array<std::string_view, 4> kMakers = {"nvidia-", "amd-", "instinct-", "meta-"};

// Names as drivers and vendors print them, and the id of their file.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kOtherNames = {{
    {"a100-sxm4-80gb", "a100"},
    {"a100-80gb-sxm", "a100"},
    {"a100-80gb", "a100"},
    {"a100-80gb-pcie", "a100-pcie"},
    {"a100-pcie-80gb", "a100-pcie"},
    {"a100-pcie-40gb", "a100-40gb"},
    {"a100-sxm4-40gb", "a100-40gb"},
    {"h100-80gb-hbm3", "h100"},
    {"h100-sxm", "h100"},
    {"h100-sxm5", "h100"},
    {"h200-sxm", "h200"},
    {"b200-sxm", "b200"},
    {"mtia-2i", "mtia2i"},
}};

}  // namespace

std::optional<std::string> DeviceIdOf(std::string_view name) {
  std::string text = LowerCase(name);
  std::ranges::replace(text, ' ', '-');
  for (const std::string_view maker : kMakers)
    if (text.starts_with(maker)) text.erase(0, maker.size());
  for (const auto& [other, id] : kOtherNames)
    if (text == other) return std::string(id);
  const std::vector<std::string> ids = DeviceIds();
  if (text == "host" || std::ranges::find(ids, text) == ids.end()) return std::nullopt;
  return text;
}

}  // namespace gnomon
