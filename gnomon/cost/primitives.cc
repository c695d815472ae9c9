// Times per item of operators that neither bytes nor FLOPs explain.
//
// The defaults were measured with LibTorch 1.13 (OpenBLAS, oneDNN 2.6) on two cores of a
// Sapphire-Rapids class server at batch 2048 of models/dlrm_kaggle.toml, median of seven runs; they
// stand in where a device was not calibrated. GPUs do not use them: there these operators are
// bandwidth and launches.

#include "gnomon/cost/primitives.h"

#include <algorithm>

namespace gnomon {

Seconds PrimitiveTime(const Device& device, std::string_view name, int units) {
  const auto known = std::find_if(kPrimitives.begin(), kPrimitives.end(),
                                  [&](const Primitive& p) { return p.name == name; });
  GNOMON_CHECK(known != kPrimitives.end(), "primitive {}", name);
  const auto measured = device.framework.primitives.find(std::string(name));
  constexpr double kSecondsPerNanosecond = 1e-9;
  const Seconds all = measured != device.framework.primitives.end()
                          ? measured->second
                          : Seconds{known->default_ns * kSecondsPerNanosecond};
  return known->parallel ? all * (static_cast<double>(device.units) / units) : all;
}

}  // namespace gnomon
