#pragma once

/// A GPU of round numbers, so that tests can state times worked out by hand.

#include "gnomon/device/device.h"

namespace gnomon {

/// 100 units; L1 100 kB a unit, L2 10 MB at 4 TB/s, memory at 1 TB/s (random 0.5 TB/s), latency
/// 0.5 us; a kernel 2 us, an eager operator 8 us; 18 links of together 450 GB/s to a switch, of
/// which collectives reach 300.
inline Device RoundGpu() {
  Device device;
  device.id = "round";
  device.units = 100;
  device.boost_clock = device.sustained_clock = {1e9};
  device.vector = {{DType::kFp32, 100, {1e13}, ""}};
  MemoryLevel l1, l2, hbm;
  l1.name = "l1";
  l1.scope = MemoryLevel::Scope::kUnit;
  l1.capacity = {100e3};
  l2.name = "l2";
  l2.capacity = {10e6};
  l2.bandwidth = {4e12};
  hbm.name = "hbm";
  hbm.capacity = {80e9};
  hbm.bandwidth = {1e12};
  hbm.random_bandwidth = {0.5e12};
  hbm.latency = {0.5e-6};
  device.memory = {l1, l2, hbm};
  device.links = {{"nvlink", 18, {450e9}, {300e9}, {5e-6}, {1e-6}, {20e-6}}};
  device.host_link = Link{"pcie", 1, {50e9}, {}, {1e-6}, {}, {}};
  device.kernel = {2e-6};
  device.framework.op = {8e-6};
  return device;
}

}  // namespace gnomon
