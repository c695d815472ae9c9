#pragma once

/// Devices of round numbers for tests: predictions on them do not change when a device file does.

#include "gnomon/device/device.h"

namespace gnomon {

/// Two cores at 3 GHz with two FMA ports; `vector_bits` 256 (16 registers) or 512 (32 registers).
inline Device FixedCpu(int vector_bits = 512) {
  constexpr double kKib = 1024, kGb = 1e9;
  Device d;
  d.id = vector_bits == 512 ? "fixed-avx512" : "fixed-avx2";
  d.name = "two cores of round numbers";
  d.unit_kind = "core";
  d.kind = Device::Kind::kCpu;
  d.units = 2;
  d.boost_clock = d.sustained_clock = {3e9};
  const double flops = 2.0 * 2 * vector_bits / 32;  // two ports of FMAs
  d.vector = {{DType::kFp32, flops, {2 * flops * 3e9}, ""}};
  if (vector_bits == 512) d.matrix = {{DType::kBf16, 2048, {2 * 2048 * 3e9}, "16x16x32"}};
  d.vector_bits = vector_bits;
  d.vector_registers = vector_bits == 512 ? 32 : 16;
  d.fma_latency_cycles = 4;
  using Scope = MemoryLevel::Scope;
  const auto level = [](std::string name, Scope scope, double capacity, double unit_rate,
                        double ns) {
    MemoryLevel out;
    out.name = std::move(name);
    out.scope = scope;
    out.capacity = {capacity};
    out.unit_bandwidth = {unit_rate * kGb};
    out.bandwidth = {2 * unit_rate * kGb};
    out.latency = {ns * 1e-9};
    return out;
  };
  d.memory = {level("l1", Scope::kUnit, 48 * kKib, 250, 2),
              level("l2", Scope::kUnit, 2048 * kKib, 100, 5),
              level("llc", Scope::kDevice, 32 * 1024 * kKib, 20, 30),
              level("dram", Scope::kDevice, 16 * 1024 * 1024 * kKib, 10, 100)};
  d.memory.back().bandwidth = {15 * kGb};
  d.launch = {1e-7};
  d.fork_join = {1.5e-6};
  return d;
}

/// 100 units, 1 PFLOP/s bf16, 4 TB/s.
inline Device FixedGpu() {
  Device d;
  d.id = "fixed-gpu";
  d.name = "a GPU of round numbers";
  d.unit_kind = "SM";
  d.units = 100;
  d.boost_clock = d.sustained_clock = {2e9};
  d.matrix = {{DType::kBf16, 5000, {100 * 5000 * 2e9}, "64x256x16"}};
  d.vector = {{DType::kFp32, 256, {100 * 256 * 2e9}, ""}};
  MemoryLevel hbm;
  hbm.name = "hbm";
  hbm.capacity = {80e9};
  hbm.bandwidth = {4e12};
  d.memory = {hbm};
  d.launch = {4e-6};
  return d;
}

}  // namespace gnomon
