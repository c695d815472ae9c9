// Lookups and updates of many embedding tables in one kernel.
//
//   forward   unique rows + repeats · (1 − cached) read from their home, bags written
//   backward  sort of the lookups (radix) + gradient of the bags read + unique rows read and
//   written cached    share of the repeats that find their row in the last-level cache: capacity /
//   unique
//             rows' bytes, at most 1; skew enters by unique_rows, which it makes few
//   home      device: read at the streaming rate, updated at the random rate; host: over the host
//             link, a write half hidden behind the read of another row; cached: as device, and each
//             lookup pays for the cache's tags, the state stays with the host
//
// Left out: rows in flight that many blocks update at once, int32 keys, prefetch of the cache
// beside the step, hash tables (DynamicEmb), a row narrower than a sector but for the padding it
// moves.

#include "gnomon/cost/table_batched.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"
#include "gnomon/cost/bandwidth.h"
#include "gnomon/cost/traffic.h"

namespace gnomon {
namespace {

constexpr Bytes kKey{16};           // a linear index and the place of its gradient
constexpr double kRadixPasses = 8;  // over 64-bit keys, eight bits each, read and written
// Kernels of FBGEMM's backward: linearise, sort, run lengths, long and short segments.
constexpr double kBackwardKernels = 12;
// A row's write over the host link goes out while the next row is read, but not all of it: Adam's
// three rows and SGD's one, read and written, take 1.35 of the reads alone
// (NVIDIA/recsys-examples, H100, tables in host memory).
constexpr double kHostWriteExposed = 0.35;
// FBGEMM's software cache, a lookup: sort of the batch's indices, tags of 32 ways, LRU stamps
// (NVIDIA/recsys-examples, H100, every row cached: 3.36 ms for 1.05 M lookups, 0.35 without).
constexpr Seconds kCacheLookup{2.9e-9};
constexpr double kTableError = 0.15;  // held-out rows of H100

struct Rows {
  const Device& device;
  const TableBatchedProblem& problem;
  double cached = 0;
  Bytes row;

  Rows(const Device& d, const TableBatchedProblem& p)
      : device(d), problem(p), row{p.dim * p.weight_bytes} {
    for (const MemoryLevel& level : d.memory) {
      if (&level == &d.MainMemory() || level.scope == MemoryLevel::Scope::kUnit) continue;
      const Bytes unique = p.unique_rows * row;
      const double share = unique.value > 0 ? TotalCapacity(d, level, d.units) / unique : 1;
      cached = std::max(cached, std::min(1.0, share));
    }
  }
  double Fetched() const {
    return problem.unique_rows + (problem.lookups - problem.unique_rows) * (1 - cached);
  }
  BytesPerSecond Host() const {
    return device.host_link ? device.host_link->bandwidth : device.MainMemory().bandwidth;
  }
  BytesPerSecond Random() const {
    const MemoryLevel& main = device.MainMemory();
    return main.random_bandwidth.value > 0 ? main.random_bandwidth : main.bandwidth;
  }
};

void Add(Prediction& prediction, std::string name, Seconds time, std::string why) {
  if (time.value <= 0) return;
  prediction.time += time;
  prediction.terms.push_back({std::move(name), time, std::move(why)});
}

void AddForward(const Rows& rows, Prediction& prediction) {
  const TableBatchedProblem& p = rows.problem;
  const Device& device = rows.device;
  const bool host = p.home == TableBatchedProblem::Home::kHost;
  const Bytes read = rows.Fetched() * rows.row;
  Add(prediction, "rows",
      host ? read / rows.Host() : GpuRowsTime(device, rows.Fetched(), rows.row, read),
      fmt::format("{:.4g} of {:.4g} lookups fetched from {}", rows.Fetched(), p.lookups,
                  host ? "the host" : "memory"));
  if (p.home == TableBatchedProblem::Home::kHostCached)
    Add(prediction, "cache", kCacheLookup * p.lookups, "tags and stamps of the software cache");
  const Bytes out = p.bags * rows.row;
  Add(prediction, "output", GpuStreamTime(device, out, out), fmt::format("{} written", Show(out)));
  Add(prediction, "kernel", GpuKernelTime(device), "start and end");
}

void AddBackward(const Rows& rows, Prediction& prediction) {
  const TableBatchedProblem& p = rows.problem;
  const Device& device = rows.device;
  const Bytes keys = kKey * p.lookups;
  Add(prediction, "sort", GpuStreamTime(device, keys * (2 * kRadixPasses), keys * 2),
      fmt::format("{:.4g} lookups by row", p.lookups));
  const Bytes gradient{p.bags * p.dim * p.gradient_bytes};
  Add(prediction, "gradient", GpuStreamTime(device, gradient, gradient),
      fmt::format("{} read", Show(gradient)));
  const Bytes weights = p.unique_rows * rows.row;
  const Bytes state = weights * p.state_rows;
  const bool weights_away = p.home == TableBatchedProblem::Home::kHost;
  const bool state_away = p.home != TableBatchedProblem::Home::kDevice;
  const Bytes away = (weights_away ? weights : Bytes{0}) + (state_away ? state : Bytes{0});
  const Bytes here = weights + state - away;
  Add(prediction, "rows", here * 2 / rows.Random(),
      fmt::format("{} read and written at random", Show(here)));
  Add(prediction, "host rows", away * (1 + kHostWriteExposed) / rows.Host(),
      fmt::format("{} over the host link and back", Show(away)));
  Add(prediction, "kernels", GpuKernelTime(device) * kBackwardKernels,
      fmt::format("{:g} of them", kBackwardKernels));
}

}  // namespace

Prediction PredictTableBatched(const Device& device, const TableBatchedProblem& problem) {
  GNOMON_CHECK(problem.lookups >= 0 && problem.bags >= 0 && problem.dim > 0 &&
                   problem.unique_rows >= 0 && problem.unique_rows <= problem.lookups,
               "{} lookups of {} rows", problem.lookups, problem.unique_rows);
  Prediction prediction;
  prediction.relative_error = kTableError;
  prediction.bound = Bound::kMemory;
  const Rows rows(device, problem);
  if (problem.pass != TableBatchedProblem::Pass::kBackward) AddForward(rows, prediction);
  if (problem.pass != TableBatchedProblem::Pass::kForward) AddBackward(rows, prediction);
  return prediction;
}

}  // namespace gnomon
