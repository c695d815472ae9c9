// Rates and latencies of one CUDA device that the model takes from its device file: what device files cite as
// "bench/gpu_limits.cu". Prints CSV: what,bytes,value,unit. Median of 9 runs each; cold means a 256 MiB store before.
// build: nvcc -O3 -gencode arch=compute_90a,code=sm_90a -o gpu_limits bench/gpu_limits.cu
#include <cstdio>
#include <cstddef>
#include <cstdlib>
#include <algorithm>
#include <vector>

#define CHECK(call)                                                                       \
  do {                                                                                    \
    cudaError_t error = (call);                                                           \
    if (error != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      std::exit(3);                                                                       \
    }                                                                                     \
  } while (0)

__global__ void Empty() {}
__global__ void Flush(int4* p, size_t n) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) p[i] = int4{1, 2, 3, 4};
}
// Every block reads the whole buffer from its own start, `passes` times round: served by the L2 when it fits.
__global__ void ReadAll(const int4* p, size_t n, int passes, int* out) {
  int4 sum{0, 0, 0, 0};
  const size_t start = n / gridDim.x * blockIdx.x;
  for (int pass = 0; pass < passes; ++pass) {
    #pragma unroll 8
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
      size_t at = start + i;
      if (at >= n) at -= n;
      int4 v = __ldcg(p + at);
      sum.x ^= v.x; sum.y ^= v.y; sum.z ^= v.z; sum.w ^= v.w;
    }
  }
  if (sum.x + sum.y + sum.z + sum.w == 12345) *out = 1;
}
// The buffer is read once by the whole grid.
__global__ void ReadOnce(const int4* p, size_t n, int* out) {
  int4 sum{0, 0, 0, 0};
  #pragma unroll 8
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    int4 v = __ldcg(p + i);
    sum.x ^= v.x; sum.y ^= v.y; sum.z ^= v.z; sum.w ^= v.w;
  }
  if (sum.x + sum.y + sum.z + sum.w == 12345) *out = 1;
}
__global__ void WriteOnce(int4* p, size_t n) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) p[i] = int4{1, 2, 3, 4};
}
__global__ void Chase(const unsigned* p, int steps, long long* cycles, unsigned* out) {
  unsigned at = 0;
  const long long begin = clock64();
  for (int i = 0; i < steps; ++i) at = __ldcg(p + at);
  *cycles = (clock64() - begin) / steps;
  *out = at;
}

int4* flush_buffer;
const size_t kFlush = size_t(256) << 20;
template <class F>
double Median(F run, bool cold) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin)); CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 11; ++i) {
    if (cold) Flush<<<1024, 256>>>(flush_buffer, kFlush / 16);
    CHECK(cudaEventRecord(begin)); run(); CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end)); CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i > 1) times.push_back(ms * 1e3f);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main() {
  cudaDeviceProp prop; CHECK(cudaGetDeviceProperties(&prop, 0));
  const int sms = prop.multiProcessorCount;
  std::printf("what,bytes,value,unit\n");
  std::printf("units,0,%d,SM\nl2,0,%d,bytes\nshared per unit,0,%zu,bytes\nshared per block,0,%zu,bytes\nregisters per unit,0,%d,\nthreads per unit,0,%d,\n",
              sms, prop.l2CacheSize, prop.sharedMemPerMultiprocessor, prop.sharedMemPerBlockOptin, prop.regsPerMultiprocessor, prop.maxThreadsPerMultiProcessor);
  CHECK(cudaMalloc(&flush_buffer, kFlush));
  int* out; CHECK(cudaMalloc(&out, 64));
  std::printf("empty kernel,0,%.3f,us\n", Median([&] { Empty<<<1, 128>>>(); }, false));
  std::printf("empty kernel cold,0,%.3f,us\n", Median([&] { Empty<<<1, 128>>>(); }, true));
  std::printf("empty kernel 1056 blocks cold,0,%.3f,us\n", Median([&] { Empty<<<1056, 128>>>(); }, true));
  std::printf("two empty kernels cold,0,%.3f,us\n", Median([&] { Empty<<<132, 128>>>(); Empty<<<132, 128>>>(); }, true));
  std::printf("ten empty kernels cold,0,%.3f,us\n", Median([&] { for (int i = 0; i < 10; ++i) Empty<<<132, 128>>>(); }, true));
  int4* data; const size_t most = size_t(2) << 30; CHECK(cudaMalloc(&data, most)); CHECK(cudaMemset(data, 1, most));
  for (size_t bytes : {size_t(4) << 20, size_t(8) << 20, size_t(16) << 20, size_t(24) << 20, size_t(32) << 20, size_t(48) << 20}) {
    for (int threads : {256, 1024}) {
      const int passes = 8;
      const int blocks = sms * (threads == 256 ? 4 : 2);
      const double us = Median([&] { ReadAll<<<blocks, threads>>>(data, bytes / 16, 1, out); }, false);
      const double us2 = Median([&] { ReadAll<<<blocks, threads>>>(data, bytes / 16, 1 + passes, out); }, false);
      std::printf("l2 read %d threads,%zu,%.1f,GB/s\n", blocks / sms * threads, bytes, double(bytes) * blocks * passes / ((us2 - us) * 1e-6) / 1e9);
      const double one = Median([&] { ReadAll<<<1, threads>>>(data, bytes / 16, 1, out); }, false);
      const double one2 = Median([&] { ReadAll<<<1, threads>>>(data, bytes / 16, 3, out); }, false);
      std::printf("l2 read one block %d threads,%zu,%.1f,GB/s\n", threads, bytes, double(bytes) * 2 / ((one2 - one) * 1e-6) / 1e9);
    }
  }
  for (size_t mib : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}) {
    const size_t bytes = mib << 20;
    double us = Median([&] { ReadOnce<<<sms * 8, 256>>>(data, bytes / 16, out); }, true);
    std::printf("cold read,%zu,%.3f,us\n", bytes, us);
    us = Median([&] { WriteOnce<<<sms * 8, 256>>>(data, bytes / 16); }, true);
    std::printf("write,%zu,%.3f,us\n", bytes, us);
    if (bytes <= (size_t(128) << 20)) std::printf("warm read,%zu,%.3f,us\n", bytes, Median([&] { ReadOnce<<<sms * 8, 256>>>(data, bytes / 16, out); }, false));
  }
  // pointer chase: stride 4352 bytes through 8 MiB (L2) and 1 GiB (HBM)
  for (size_t bytes : {size_t(8) << 20, size_t(1) << 30}) {
    const size_t n = bytes / 4, stride = 1088;
    std::vector<unsigned> host(n, 0);
    size_t at = 0, steps = 0;
    while (steps < n / stride - 1) { host[at] = unsigned(at + stride); at += stride; ++steps; }
    host[at] = 0;
    CHECK(cudaMemcpy(data, host.data(), bytes, cudaMemcpyHostToDevice));
    long long* cycles; unsigned* end; CHECK(cudaMallocManaged(&cycles, 8)); CHECK(cudaMalloc(&end, 4));
    const int count = bytes > (size_t(64) << 20) ? 20000 : 4 * int(steps);
    Chase<<<1, 1>>>(reinterpret_cast<unsigned*>(data), count, cycles, end);
    if (bytes <= (size_t(64) << 20)) Chase<<<1, 1>>>(reinterpret_cast<unsigned*>(data), count, cycles, end);
    CHECK(cudaDeviceSynchronize());
    std::printf("latency,%zu,%lld,cycles\n", bytes, *cycles);
  }
  return 0;
}
