#pragma once

/// Where sweep and bench measure: the host, or a CUDA device of this machine.

#include <memory>
#include <string>

#include "gnomon/device/device.h"
#include "gnomon/gemm/workbench.h"

namespace gnomon::app {

struct PlaceArguments {
  std::string on;           ///< "host", "cuda:0"
  std::string family = {};  ///< empty: the place's own
  int threads = 0;          ///< of the host; 0: all
  bool against_vendor = false;
};

struct Place {
  Device device;
  std::unique_ptr<Workbench> bench;
  bool host = true;
};

/// Error: no such place, a build or a machine without CUDA, a family that cannot run there, no
/// vendor library where one is asked for.
Result<Place> OpenPlace(const PlaceArguments& arguments);

}  // namespace gnomon::app
