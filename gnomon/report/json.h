#pragma once

/// The JSON that `--json` prints: keys in the order they are written, numbers as they are.

#include <nlohmann/json.hpp>
#include <string>

namespace gnomon {

using Json = nlohmann::ordered_json;

/// Two-space indent and a newline; NaN and infinity become null.
std::string JsonText(const Json& json);

}  // namespace gnomon
