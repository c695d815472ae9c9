// The GPUs of this machine, as the CUDA runtime and NVML know them.
//
// NVML belongs to the driver and is found at run time. It numbers GPUs as the bus does, CUDA as
// CUDA_VISIBLE_DEVICES says: a GPU is known to both by its place on the bus. Its header is not
// needed: the five calls are declared here as the NVML reference states them.
// Entry points: PresentGpuId, ReadPresentGpu, ReadClocks.

#include "gnomon/families/cuda/present_gpu.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace gnomon::cuda {
namespace {

constexpr std::size_t kTextBytes = 96;  // of a bus id or version: NVML asks for 80 at most

class Nvml {
 public:
  // Loaded once and kept: nothing is gained by an unload.
  static Result<const Nvml*> Get() {
    static const Result<Nvml> kLoaded = Load();
    if (!kLoaded.ok()) return kLoaded.error();
    return &*kLoaded;
  }

  std::string Driver() const {
    std::array<char, kTextBytes> text{};
    return driver_(text.data(), kTextBytes) == 0 ? std::string(text.data()) : std::string();
  }

  Result<Clocks> Read(const std::string& bus) const {
    void* device = nullptr;
    if (const int code = by_bus_(bus.c_str(), &device); code != 0) return Failed(code, bus);
    constexpr int kSm = 1, kMemory = 2;  // nvmlClockType_t
    constexpr double kMilli = 1e-3;
    unsigned sm = 0, memory = 0, milliwatts = 0;
    if (const int code = clock_(device, kSm, &sm); code != 0) return Failed(code, bus);
    if (const int code = clock_(device, kMemory, &memory); code != 0) return Failed(code, bus);
    if (power_(device, &milliwatts) != 0) milliwatts = 0;
    return Clocks{static_cast<double>(sm), static_cast<double>(memory), milliwatts * kMilli};
  }

 private:
  static Result<Nvml> Load() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      return BadInput("NVML (libnvidia-ml.so.1, part of the NVIDIA driver) cannot be loaded");
    Nvml nvml;
    int (*start)() = nullptr;
    const bool found = Find(library, "nvmlInit_v2", start) &&
                       Find(library, "nvmlErrorString", nvml.error_text_) &&
                       Find(library, "nvmlSystemGetDriverVersion", nvml.driver_) &&
                       Find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.by_bus_) &&
                       Find(library, "nvmlDeviceGetClockInfo", nvml.clock_) &&
                       Find(library, "nvmlDeviceGetPowerUsage", nvml.power_);
    if (!found) return BadInput("NVML lacks a call that gnomon needs; its driver is too old");
    if (const int code = start(); code != 0)
      return BadInput(fmt::format("NVML does not start: {}", nvml.error_text_(code)));
    return nvml;
  }

  template <class Function>
  static bool Find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }

  Error Failed(int code, const std::string& bus) const {
    return BadInput(fmt::format("NVML: {}", error_text_(code)), bus);
  }

  const char* (*error_text_)(int) = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*by_bus_)(const char*, void**) = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
};

Status CheckOrdinal(int ordinal) {
  int devices = 0;
  const cudaError_t failed = cudaGetDeviceCount(&devices);
  if (failed != cudaSuccess || devices == 0) {
    (void)cudaGetLastError();
    return BadInput(fmt::format("no CUDA device on this machine: {}", cudaGetErrorString(failed)),
                    fmt::format("cuda:{}", ordinal));
  }
  if (ordinal < 0 || ordinal >= devices)
    return BadInput(fmt::format("no such device; this machine has cuda:0 to cuda:{}", devices - 1),
                    fmt::format("cuda:{}", ordinal));
  return Done{};
}

}  // namespace

Result<PresentGpu> ReadPresentGpu(int ordinal) {
  GNOMON_TRY(CheckOrdinal(ordinal));
  cudaDeviceProp properties{};
  if (const cudaError_t failed = cudaGetDeviceProperties(&properties, ordinal);
      failed != cudaSuccess)
    return Fault(fmt::format("cudaGetDeviceProperties: {}", cudaGetErrorString(failed)),
                 fmt::format("cuda:{}", ordinal));
  PresentGpu gpu;
  gpu.name = properties.name;
  gpu.units = properties.multiProcessorCount;
  GNOMON_ASSIGN(gpu.id, GpuIdOf(gpu.name));
  const auto nvml = Nvml::Get();
  if (nvml.ok()) gpu.driver = (*nvml)->Driver();
  return gpu;
}

Result<std::string> PresentGpuId(int ordinal) {
  GNOMON_ASSIGN(PresentGpu gpu, ReadPresentGpu(ordinal));
  return std::move(gpu.id);
}

Result<Clocks> ReadClocks(int ordinal) {
  GNOMON_TRY(CheckOrdinal(ordinal));
  std::array<char, kTextBytes> bus{};
  if (const cudaError_t failed = cudaDeviceGetPCIBusId(bus.data(), kTextBytes, ordinal);
      failed != cudaSuccess)
    return Fault(fmt::format("cudaDeviceGetPCIBusId: {}", cudaGetErrorString(failed)),
                 fmt::format("cuda:{}", ordinal));
  GNOMON_ASSIGN(const Nvml* nvml, Nvml::Get());
  return nvml->Read(bus.data());
}

}  // namespace gnomon::cuda
