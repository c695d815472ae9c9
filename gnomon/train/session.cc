// What training and comparing share: data, predictions, the process's memory habits, small
// statistics.
//
// Page faults are the reason for KeepAllocations: by default glibc maps every block over 128 KiB
// anew and gives it back when freed, so that each activation of each step is faulted in page by
// page (4 KiB at about 0.25 us, as much as some kernels take). LibTorch users meet this too, but it
// hits an arm by the sizes of its tensors rather than by its design; so it is switched off once,
// for all arms.

#include "gnomon/train/session.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "gnomon/train/data_criteo.h"
#include "gnomon/train/data_synthetic.h"

namespace gnomon::train {

Result<std::unique_ptr<SampleSource>> OpenSource(const Model& model, const SampleShape& shape,
                                                 const DataOptions& options, int threads) {
  if (options.path.empty())
    return MakeSyntheticSource(shape, model.zipf_exponent, options.seed, threads);
  CriteoOptions criteo;
  criteo.path = options.path;
  criteo.shape = shape;
  criteo.bad_line_limit = options.bad_line_limit;
  criteo.held_out = options.held_out;
  return OpenCriteo(criteo);
}

std::vector<float> PredictAll(Network& network, const SampleShape& shape, const Samples& samples,
                              std::int64_t batch_size) {
  std::vector<float> logits(static_cast<std::size_t>(samples.count));
  Batch batch;
  for (std::int64_t first = 0; first < samples.count; first += batch_size) {
    // The last batch is filled up from the start: kernels are chosen for one batch size.
    MakeBatch(shape, samples, first, batch_size, network.layout(), batch);
    const std::int64_t wanted = std::min(batch_size, samples.count - first);
    network.Predict(batch, {logits.data() + first, static_cast<std::size_t>(wanted)});
  }
  return logits;
}

void KeepAllocations() {
  constexpr int kNoMappings = 0, kNeverTrim = 1 << 30, kGrowBy = 64 << 20;
  mallopt(M_MMAP_MAX, kNoMappings);
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
  mallopt(M_TOP_PAD, kGrowBy);
}

void ReleaseAllocations() { malloc_trim(0); }

Bytes PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lld", &kib) == 1)
      return {static_cast<double>(kib) * 1024};
  }
  return {};
}

void ResetPeakMemory() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);  // proc(5): resets the peak resident set size
    std::fclose(file);
  }
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gnomon::train
