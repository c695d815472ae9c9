#pragma once

/// Calibrate: measures the present host in under a minute, one instrument a fact, and gives the
/// overlay that devices/host-x86-64-avx2.toml is read under.

#include <functional>
#include <string>

#include "gnomon/device/device.h"

namespace gnomon {

struct CalibrateOptions {
  int threads = 0;           ///< 0: all cores this process may use
  int rounds = 7;            ///< times that every instrument runs; a fact is taken over all of them
  Seconds probe_time{0.04};  ///< of one run of one instrument
  Bytes most_memory{1 << 30};  ///< mapped to measure main memory; less on machines that have little
  /// Called before each measurement with done, total and what is measured next.
  std::function<void(int, int, const std::string&)> progress;
};

/// Per-core and all-core peak by dtype, every cache's and memory's bandwidth (read, write, random)
/// and latency, call cost and fork-join cost. Facts are `measured` with today's date.
Result<Device> CalibrateHost(const CalibrateOptions& options);

/// Writes the measured facts as an overlay file that names the CPU it was taken on.
Status WriteOverlay(const Device& device, const std::string& path);

/// The same for a device file that `measured` was made from: writes the facts that differ.
Status WriteOverlay(const Device& measured, const Device& base, const std::string& path);

/// Where `host` looks for its overlay: $GNOMON_HOST, else $XDG_CACHE_HOME or ~/.cache +
/// /gnomon/host.toml.
std::string HostOverlayPath();

}  // namespace gnomon
