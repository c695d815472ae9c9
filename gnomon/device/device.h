#pragma once

/// Device: what the model knows of one accelerator or CPU, read from devices/ID.toml, every number
/// with its source. Values are in SI units here; the TOML keys carry the units
/// (docs/device-schema.md).

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/base/dtype.h"
#include "gnomon/base/result.h"
#include "gnomon/base/units.h"

namespace gnomon {

enum class FactKind { kDatasheet, kMeasured, kDerived, kAssumed };

/// A number of a device file with where it comes from.
struct Fact {
  double value = 0;
  FactKind kind = FactKind::kAssumed;
  std::string source;
  std::string read;  ///< date on which the source was read or the measurement made, YYYY-MM-DD
};

/// A cache, a scratchpad or a memory.
struct MemoryLevel {
  enum class Scope { kUnit, kDie, kDevice };  ///< who shares one instance
  std::string name;                           ///< "l1", "l2", "llc", "hbm", "dram"
  Scope scope = Scope::kDevice;
  Bytes capacity;            ///< of one instance
  BytesPerSecond bandwidth;  ///< read, all instances together, every unit pulling: what is reached
  BytesPerSecond peak_bandwidth;   ///< what the data sheet promises; 0 where it is not stated
  BytesPerSecond unit_bandwidth;   ///< read, one unit pulling alone
  BytesPerSecond write_bandwidth;  ///< plain stores, all units; 0 where unknown: then the read rate
  BytesPerSecond
      random_bandwidth;  ///< independent reads of random lines, all units; 0 where unknown
  Seconds latency;       ///< load to use
  int line_bytes = 64;
};

/// Operations a unit (SM, CU, PE, core) does in one clock.
struct Rate {
  DType dtype = DType::kFp32;
  double flops_per_unit_clock = 0;  ///< an FMA counts 2
  FlopsPerSecond peak;  ///< units × rate × boost clock; as the file states it, checked
  std::string shape;    ///< matrix instruction "MxNxK", empty for vector units
  /// Reached by a large square product on random data: in its first milliseconds, and when the
  /// power limit has settled. For the reader, the model has clocks; 0: not measured.
  FlopsPerSecond burst{}, sustained{};
};

struct Link {
  std::string name;          ///< "nvlink", "xgmi", "pcie"
  int count = 1;             ///< links per device
  BytesPerSecond bandwidth;  ///< all links of the device together, one direction
  BytesPerSecond reached;    ///< of it by large collectives, wire bytes a rank; 0 where unknown
  Seconds latency;           ///< the smallest collective: start, one exchange, end
  Seconds hop = {};          ///< every further step of a ring; 0 where unknown
  Seconds bulk = {};         ///< start of a collective that moves whole buffers; 0 where unknown
};

struct Device {
  enum class Kind { kGpu, kCpu };

  std::string id, name, vendor, arch, unit_kind;
  Kind kind = Kind::kGpu;
  int units = 1;                       ///< SMs, CUs, PEs or cores in use
  int dies = 1;                        ///< XCDs, GCDs, chiplets that have a cache of their own
  Hertz boost_clock, sustained_clock;  ///< boost: behind the peaks; sustained: under matrix load
  Hertz max_clock;  ///< highest the part runs at with a light load; 0: not stated

  std::vector<Rate> matrix, vector;
  int vector_bits = 0;       ///< width of one vector register (CPU) or wave width × 32 (GPU)
  int vector_registers = 0;  ///< architectural, per thread
  double fma_latency_cycles = 0;
  int wave_width = 1;
  Bytes register_file, shared_memory;  ///< per unit; 0 where it does not apply

  // GPU execution. 0 where the file does not state it: a GPU family then refuses the device.
  int register_granularity = 0;       ///< registers a thread are allotted in steps of
  int schedulers = 0;                 ///< SIMDs or warp schedulers of a unit
  int max_waves = 0, max_blocks = 0;  ///< waves and workgroups resident in a unit at once
  Bytes shared_memory_block;          ///< most that one workgroup may use of shared_memory
  double shared_bytes_per_clock = 0;  ///< read from shared memory by one unit
  Bytes tensor_memory;                ///< accumulators of matrix instructions, per unit (sm_100)
  double matrix_latency_cycles = 0;   ///< listed bf16 instruction to a dependent one

  std::vector<MemoryLevel> memory;  ///< nearest first; the last one holds the model
  std::vector<Link> links;
  std::optional<Link> host_link;

  Seconds launch;     ///< host cost of one kernel launch (GPU) or one kernel call (CPU)
  Seconds kernel;     ///< device time of a kernel that does almost nothing; 0: not stated
  Seconds fork_join;  ///< CPU: entering and leaving a parallel region with all units
  double tdp_watts = 0;

  /// Costs of the training framework on this device (eager LibTorch): absent on devices where it
  /// was never measured; the cost model then uses `launch`.
  struct Framework {
    Seconds op;           ///< one eager operator, forward, with its allocation
    Seconds backward_op;  ///< one autograd node
    std::map<DType, double>
        gemm_efficiency;  ///< vendor GEMM library: share of peak on large squares
    /// Time per item of stock operators that bytes and rates do not explain ("coalesce_key_level");
    /// gnomon/cost/primitives.h lists them and says what stands in where one is absent.
    std::map<std::string, Seconds> primitives;
  } framework;

  /// Every number by its TOML path ("clock.boost_mhz", "memory.l2.bandwidth_gb_per_s",
  /// "matrix.bf16.peak_tflops", "framework.op_us"), its value in the unit of the key's suffix.
  std::map<std::string, Fact> facts;
  bool calibrated = false;  ///< an overlay measured on this very CPU was applied

  /// Matrix rate if there is one for the dtype, else the vector rate, else nothing.
  const Rate* FindRate(DType dtype) const;
  /// units × rate × sustained clock; 0 where the dtype is not native.
  FlopsPerSecond SustainedPeak(DType dtype) const;
  const MemoryLevel& MainMemory() const { return memory.back(); }
  const MemoryLevel* FindMemory(std::string_view level) const;
};

/// The same device with `units` of its units in use (a CU budget, cores of a CPU): peaks and what
/// belongs to a unit scale; shared caches and memory stay, but give no more than so many units can
/// pull. Any number from 1; facts say that they were scaled.
Device WithUnits(const Device& device, int units);

/// One partition of a GPU whose dies can work as devices of their own: "spx" (all), "dpx" (halves),
/// "tpx" (thirds), "qpx" (quarters), "cpx" (single dies). It has its dies with their caches, and of
/// what all dies share (last-level cache, memory, links, power) the same share in capacity and in
/// bandwidth: all partitions are taken to work at once. Error: no such mode on this device.
Result<Device> Partition(const Device& device, std::string_view mode);

/// The modes that Partition takes for this device, "spx" first; empty where its dies share a cache.
std::vector<std::string_view> PartitionModes(const Device& device);

/// Puts fact.value (in the key's unit) into the member that the TOML path names, and keeps the
/// fact. A rate that the device lacks is added; error: no such key, memory or link, or a value that
/// is not positive.
Status SetFact(Device& device, const std::string& path, const Fact& fact);

/// Reads one file; `overlay` files (from `calibrate`) replace single values of a base file.
Result<Device> ReadDevice(const std::string& path, const std::string& overlay_path = {});

/// A device by id: GNOMON_DEVICES, ./devices, the installed data folder. `host` is the present
/// machine: the calibrated overlay if there is one, else host-x86-64-avx2. Error lists the ids
/// there are.
Result<Device> FindDevice(std::string_view id);

/// Ids that FindDevice knows, sorted.
std::vector<std::string> DeviceIds();

}  // namespace gnomon
