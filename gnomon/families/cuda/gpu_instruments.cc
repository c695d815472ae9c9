// The instruments of a GPU's calibration: what is timed, how often, and what of it is taken.
//
//   bandwidth  bytes / median time of 9 runs between events; main memory's over 2 GiB, which no L2
//              holds; where less is touched, a store of 256 MiB goes before
//   L2         the time of more passes less that of one, over the bytes of those passes
//   latency    time of a chain of dependent loads / links
//   launch     wall time of 2,000 small kernels in a stream / 2,000; the same in a graph of 500
//              between events; medians of 7
//   matrix     a large product again and again for a second and a half, two batches always ahead:
//              burst is the first 50 ms after a pause, sustained the median of the last half second
//
// Our own kernels multiply, with the fastest of a few configs. All data are random: zeros draw less
// power. Of its own choice the part runs at any clock; nothing is locked, what NVML sees is kept
// with the rates. Entry points: ReadInstruments, CalibrateGpu.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <deque>
#include <limits>
#include <thread>

#include "gnomon/families/cuda/calibrate_gpu.h"
#include "gnomon/families/cuda/gemm.h"
#include "gnomon/families/cuda/gpu_probes.h"

namespace gnomon::cuda {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr std::size_t kBuffer = 2048 * kMib, kFlush = 256 * kMib;
constexpr std::size_t kL2Set = 16 * kMib, kL2Chain = 8 * kMib, kFarChain = 512 * kMib;
constexpr int kRuns = 9, kBlocksPerUnit = 8;

Status Check(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return Done{};
  return Fault(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}
Status Check(int code, std::string_view what) {
  return Check(static_cast<cudaError_t>(code), what);
}

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

class Memory {
 public:
  Memory() = default;
  ~Memory() { cudaFree(address_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Status Get(std::size_t bytes) {
    return Check(cudaMalloc(&address_, bytes), fmt::format("cudaMalloc of {} MiB", bytes / kMib));
  }
  void* at(std::size_t byte = 0) const { return static_cast<char*>(address_) + byte; }

 private:
  void* address_ = nullptr;
};

class Event {
 public:
  Event() { made_ = cudaEventCreate(&event_) == cudaSuccess; }
  ~Event() {
    if (made_) cudaEventDestroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Status Record(cudaStream_t stream) {
    return Check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  Status Wait() const { return Check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  Result<double> SecondsFrom(const Event& begin) const {
    float milliseconds = 0;
    GNOMON_TRY(
        Check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime"));
    constexpr double kMilli = 1e-3;
    return kMilli * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
  bool made_ = false;
};

class Stream {
 public:
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Status Get() {
    return Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Instruments {
 public:
  Instruments(int ordinal, PresentGpu gpu, const CalibrateProgress& progress)
      : ordinal_(ordinal), progress_(progress) {
    readings_.gpu = std::move(gpu);
  }

  Result<GpuReadings> Read() {
    GNOMON_TRY(Check(cudaSetDevice(ordinal_), "cudaSetDevice"));
    GNOMON_TRY(stream_.Get());
    {
      GNOMON_TRY(small_.Get(kMib));
      GNOMON_TRY(buffer_.Get(kBuffer));
      GNOMON_TRY(flush_.Get(kFlush));
      GNOMON_TRY(Check(probes::FillRandom(buffer_.at(), probes::Element::kFp32,
                                          kBuffer / sizeof(float), 1, stream_.get()),
                       "filling a buffer"));
    }
    Report("launch cost");
    GNOMON_TRY(Launches());
    Report("main memory bandwidth");
    GNOMON_TRY(MainMemory());
    Report("L2 bandwidth");
    GNOMON_TRY(SecondCache());
    Report("latencies");
    GNOMON_TRY(Latencies());
    for (const DType dtype : kRated) {
      Report(fmt::format("{} matrix rate", Name(dtype)));
      const Status status = RateOf(dtype);
      if (status.ok()) continue;
      // A build may lack the kernels of a dtype; whatever CUDA says beside that ends the run.
      if (status.error().code != Error::Code::kBadInput) return status.error();
      readings_.skipped.push_back(fmt::format("{}: {}", Name(dtype), status.error().message));
    }
    return std::move(readings_);
  }

 private:
  static constexpr std::array kRated = {DType::kBf16, DType::kFp16, DType::kFp8E4m3, DType::kTf32};

  void Report(const std::string& what) {
    constexpr int kBesideRates = 4;
    if (progress_) progress_(done_, kBesideRates + static_cast<int>(kRated.size()), what);
    ++done_;
  }

  // Median seconds of what `enqueue` puts on the stream.
  template <class Enqueue>
  Result<double> Time(bool cold, Enqueue enqueue) {
    std::vector<double> seconds;
    for (int run = -1; run < kRuns; ++run) {  // the first one warms up
      if (cold)
        GNOMON_TRY(Check(probes::Write(flush_.at(), kFlush, Blocks(), stream_.get()), "store"));
      Event begin, end;
      GNOMON_TRY(begin.Record(stream_.get()));
      GNOMON_TRY(Check(enqueue(), "launch of an instrument"));
      GNOMON_TRY(end.Record(stream_.get()));
      GNOMON_TRY(end.Wait());
      GNOMON_ASSIGN(const double one, end.SecondsFrom(begin));
      if (run >= 0) seconds.push_back(one);
    }
    return Median(std::move(seconds));
  }

  int Blocks() const { return readings_.gpu.units * kBlocksPerUnit; }

  Status Launches() {
    constexpr int kLaunches = 2000, kNodes = 500, kRounds = 7;
    const auto small = [&] {
      return probes::Small(static_cast<float*>(small_.at()), readings_.gpu.units, stream_.get());
    };
    std::vector<double> streamed;
    for (int round = -1; round < kRounds; ++round) {
      GNOMON_TRY(Check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"));
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < kLaunches; ++i) GNOMON_TRY(Check(small(), "launch of a small kernel"));
      GNOMON_TRY(Check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"));
      if (round >= 0) streamed.push_back(Since(begin) / kLaunches);
    }
    readings_.stream_launch = {Median(std::move(streamed))};

    GNOMON_TRY(Check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal),
                     "cudaStreamBeginCapture"));
    int failed = 0;
    for (int i = 0; i < kNodes; ++i) failed = std::max(failed, small());
    cudaGraph_t graph = nullptr;
    GNOMON_TRY(Check(cudaStreamEndCapture(stream_.get(), &graph), "cudaStreamEndCapture"));
    cudaGraphExec_t ready = nullptr;
    const cudaError_t made = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    GNOMON_TRY(Check(failed, "capture of a small kernel"));
    GNOMON_TRY(Check(made, "cudaGraphInstantiate"));
    const auto each = Time(false, [&] { return cudaGraphLaunch(ready, stream_.get()); });
    cudaGraphExecDestroy(ready);
    if (!each.ok()) return each.error();
    readings_.graph_kernel = {*each / kNodes};
    return Done{};
  }

  Status MainMemory() {
    const auto rate = [&](double bytes, double seconds) { return BytesPerSecond{bytes / seconds}; };
    constexpr auto kAll = static_cast<double>(kBuffer);
    constexpr int kThreads = 256, kMostThreads = 1024;
    GNOMON_ASSIGN(const double read, Time(false, [&] {
                    return probes::ReadOnce(buffer_.at(), kBuffer, Blocks(), kThreads, small_.at(),
                                            stream_.get());
                  }));
    readings_.hbm_read = rate(kAll, read);
    GNOMON_ASSIGN(const double copied, Time(false, [&] {
                    return probes::Copy(buffer_.at(kBuffer / 2), buffer_.at(), kBuffer / 2,
                                        Blocks(), stream_.get());
                  }));
    readings_.hbm_copy = rate(kAll, copied);
    constexpr std::size_t kRows = kBuffer / 2 / probes::kLineBytes;
    GNOMON_ASSIGN(const double random, Time(false, [&] {
                    return probes::ReadRandomRows(buffer_.at(), kBuffer, kRows, Blocks(),
                                                  small_.at(), stream_.get());
                  }));
    readings_.hbm_random = rate(static_cast<double>(kRows * probes::kLineBytes), random);
    constexpr std::size_t kOneUnit = 64 * kMib;
    GNOMON_ASSIGN(const double one, Time(true, [&] {
                    return probes::ReadOnce(buffer_.at(), kOneUnit, 1, kMostThreads, small_.at(),
                                            stream_.get());
                  }));
    readings_.hbm_unit = rate(static_cast<double>(kOneUnit), one);
    GNOMON_ASSIGN(const double written, Time(false, [&] {
                    return probes::Write(buffer_.at(), kBuffer, Blocks(), stream_.get());
                  }));
    readings_.hbm_write = rate(kAll, written);
    return Done{};
  }

  // Bytes a second of `blocks` blocks that each read the set again and again.
  Result<double> FromL2(int blocks, int threads, int passes) {
    const auto run = [&](int times) {
      return Time(false, [&] {
        return probes::ReadByAll(buffer_.at(), kL2Set, blocks, threads, times, small_.at(),
                                 stream_.get());
      });
    };
    GNOMON_ASSIGN(const double once, run(1));
    GNOMON_ASSIGN(const double more, run(1 + passes));
    return static_cast<double>(kL2Set) * blocks * passes / std::max(more - once, 1e-9);
  }

  Status SecondCache() {
    // Few large blocks or more small ones: which reads faster differs between parts.
    for (const auto& [per_unit, threads] : {std::pair{4, 256}, std::pair{2, 1024}}) {
      constexpr int kPasses = 4;
      GNOMON_ASSIGN(const double all, FromL2(readings_.gpu.units * per_unit, threads, kPasses));
      GNOMON_ASSIGN(const double one, FromL2(1, threads, kPasses));
      readings_.l2_read.value = std::max(readings_.l2_read.value, all);
      readings_.l2_unit.value = std::max(readings_.l2_unit.value, one);
    }
    return Done{};
  }

  Status Latencies() {
    const auto chase = [&](std::size_t bytes, bool cold, int steps) -> Result<double> {
      GNOMON_TRY(Check(probes::MakeChain(buffer_.at(), bytes, stream_.get()), "making a chain"));
      GNOMON_ASSIGN(const double seconds, Time(cold, [&] {
                      return probes::Chase(buffer_.at(), steps, small_.at(), stream_.get());
                    }));
      return seconds / steps;
    };
    constexpr int kNearSteps = kL2Chain / probes::kLineBytes, kFarSteps = 40000;
    GNOMON_ASSIGN(readings_.l2_latency.value, chase(kL2Chain, false, kNearSteps));
    GNOMON_ASSIGN(readings_.hbm_latency.value, chase(kFarChain, true, kFarSteps));
    // One thread draws next to nothing: the clock now is the highest.
    GNOMON_TRY(Check(probes::Chase(buffer_.at(), kFarSteps, small_.at(), stream_.get()), "chase"));
    constexpr double kMega = 1e6;
    if (const auto clocks = ReadClocks(ordinal_); clocks.ok())
      readings_.light_clock = {clocks->sm_mhz * kMega};
    return Check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }

  // A product and its operands in memory.
  struct Product {
    Problem problem;
    Operands operands;
    KernelConfig config;
    Memory a, b, c, workspace;
  };

  Status Repeat(const Product& product, int times) {
    for (int i = 0; i < times; ++i)
      GNOMON_TRY(Run(product.problem, product.config, product.operands, stream_.get()));
    return Done{};
  }

  Result<double> TimeOf(const Product& product, int times) {
    Event begin, end;
    GNOMON_TRY(begin.Record(stream_.get()));
    GNOMON_TRY(Repeat(product, times));
    GNOMON_TRY(end.Record(stream_.get()));
    GNOMON_TRY(end.Wait());
    return end.SecondsFrom(begin);
  }

  Status Prepare(DType dtype, Product& product) {
    constexpr std::int64_t kSide = 8192;
    constexpr auto kElements = static_cast<std::size_t>(kSide * kSide);
    Problem& p = product.problem;
    p.m = p.n = p.k = kSide;
    p.dtype = dtype;
    p.dtype_out = dtype == DType::kTf32 ? DType::kFp32 : UsualOutput(dtype);
    const auto bytes = [&](DType one) { return kElements * static_cast<std::size_t>(SizeOf(one)); };
    GNOMON_TRY(product.a.Get(bytes(dtype)));
    GNOMON_TRY(product.b.Get(bytes(dtype)));
    GNOMON_TRY(product.c.Get(bytes(p.dtype_out)));
    const probes::Element element = dtype == DType::kBf16      ? probes::Element::kBf16
                                    : dtype == DType::kFp16    ? probes::Element::kFp16
                                    : dtype == DType::kFp8E4m3 ? probes::Element::kFp8E4m3
                                                               : probes::Element::kFp32;
    std::uint32_t seed = 1;
    for (const Memory* operand : {&product.a, &product.b})
      GNOMON_TRY(Check(probes::FillRandom(operand->at(), element, kElements, seed++, stream_.get()),
                       "filling"));
    product.operands.a = product.a.at();
    product.operands.b = product.b.at();
    product.operands.c = product.c.at();
    return Done{};
  }

  // The fastest of the large tiles; error: this build has none of them.
  Status PickConfig(Product& product) {
    constexpr std::array<std::array<std::int32_t, 4>, 4> kLarge = {
        {{128, 256, 2, 1}, {256, 128, 1, 2}, {256, 128, 2, 1}, {128, 256, 1, 1}}};
    constexpr int kTimes = 5, kGroup = 8;
    double least = std::numeric_limits<double>::max();
    KernelConfig best;
    Status last = BadInput("no config was tried");
    for (const auto& [tile_m, tile_n, cluster_m, cluster_n] : kLarge) {
      product.config = {};
      product.config.tile_m = tile_m;
      product.config.tile_n = tile_n;
      product.config.cluster_m = cluster_m;
      product.config.cluster_n = cluster_n;
      product.config.group_m = kGroup;
      if (Status first = Repeat(product, 1); !first.ok()) {
        last = std::move(first);
        continue;
      }
      GNOMON_ASSIGN(const double seconds, TimeOf(product, kTimes));
      if (seconds < least) {
        least = seconds;
        best = product.config;
      }
    }
    if (least == std::numeric_limits<double>::max()) return last.error();
    product.config = best;
    return Done{};
  }

  Status RateOf(DType dtype) {
    Product product;
    GNOMON_TRY(Prepare(dtype, product));
    GNOMON_TRY(PickConfig(product));
    constexpr int kBatch = 8;
    constexpr double kLong = 1.5, kSettled = 1.0, kBurst = 0.05;
    constexpr std::chrono::milliseconds kPause(400);
    std::this_thread::sleep_for(kPause);  // power comes down: what follows is a burst

    const double flops = product.problem.flops().value * kBatch;
    std::deque<Event> marks(1);
    GNOMON_TRY(marks.front().Record(stream_.get()));
    double run = 0;
    std::vector<double> burst, settled;
    Clocks sum;
    int seen = 0;
    while (run < kLong) {
      // Two batches are always ahead of the device.
      while (marks.size() <= 2) {
        GNOMON_TRY(Repeat(product, kBatch));
        GNOMON_TRY(marks.emplace_back().Record(stream_.get()));
      }
      GNOMON_TRY(marks[1].Wait());
      GNOMON_ASSIGN(const double seconds, marks[1].SecondsFrom(marks[0]));
      marks.pop_front();
      run += seconds;
      if (run <= kBurst || burst.empty()) burst.push_back(flops / seconds);
      if (run <= kSettled) continue;
      settled.push_back(flops / seconds);
      if (const auto clocks = ReadClocks(ordinal_); clocks.ok()) {
        sum.sm_mhz += clocks->sm_mhz;
        sum.memory_mhz += clocks->memory_mhz;
        sum.power_watts += clocks->power_watts;
        ++seen;
      }
    }
    GNOMON_TRY(Check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"));
    const double samples = std::max(1, seen);
    readings_.rates.push_back(
        {dtype,
         Text(product.config),
         {Median(std::move(burst))},
         {Median(std::move(settled))},
         {sum.sm_mhz / samples, sum.memory_mhz / samples, sum.power_watts / samples}});
    return Done{};
  }

  const int ordinal_;
  const CalibrateProgress& progress_;
  GpuReadings readings_;
  Stream stream_;
  Memory small_, buffer_, flush_;
  int done_ = 0;
};

std::string Today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

}  // namespace

Result<GpuReadings> ReadInstruments(int ordinal, const CalibrateProgress& progress) {
  GNOMON_ASSIGN(PresentGpu gpu, ReadPresentGpu(ordinal));
  return Instruments(ordinal, std::move(gpu), progress).Read();
}

Result<GpuCalibration> CalibrateGpu(int ordinal, const CalibrateProgress& progress) {
  GpuCalibration out;
  GNOMON_ASSIGN(out.readings, ReadInstruments(ordinal, progress));
  GNOMON_ASSIGN(out.base, FindDevice(out.readings.gpu.id));
  GNOMON_ASSIGN(out.measured, StateReadings(out.base, out.readings, Today()));
  return out;
}

}  // namespace gnomon::cuda
