// Memory-bound operators of a GPU: bytes over the rate of where they lie, plus what starting costs.
//
//   time     = host + kernels + max(traffic / share, vector operations / peak) + row re-reads
//   traffic  = bytes of all operands, GpuStreamTime of their footprint                 traffic.h
//   host     = eager operators · framework.op (eager callers only: one call between two events)
//
//   share    1 for streams; less where a kernel's access or structure keeps memory idle (constants)
//   softmax, norms: a block a row reads the row again (norm: once, softmax: twice) after its
//            reduction; rows that the blocks of a unit hold together beyond its L1 come from main
//            memory again: miss = rows' bytes / usable L1 − 1, cut to [0, 1]
//   softmax to 1024 values a row keeps the row in registers: no re-read
//   backward passes over rows × width values, as the frameworks' kernels do them: norm 6 (dX reads
//            dY and X, half of them twice; the weight gradient reads both again), softmax 6
//   index select, index add: both sides at the memory's random rate, as the frameworks' kernels go
//            element by element
//
// Left out: strides that hit one channel, alignment of odd widths (softmax of 1280 or 3072 values
// takes up to a fifth longer than predicted), fusion of neighbours.

#include "gnomon/cost/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gnomon/base/text_table.h"
#include "gnomon/cost/traffic.h"

namespace gnomon {
namespace {

using Kind = OperatorProblem::Kind;
using Pass = OperatorProblem::Pass;

// Shares of the streaming rate in public operator timings (sitar-lab/NeuSight): reductions from the
// even-hash rows of A100, the others read off all rows of H100, which are few (docs/model.md).
constexpr double kReductionShare = 0.92;  // the block waits for its reduction between the passes
constexpr double kBroadcastShare = 0.81;  // index arithmetic an element instead of vector loads
constexpr double kPermuteShare = 0.78;    // a part of every sector is read for another block
// Rows in flight: threads of a block decide how many blocks a unit holds.
constexpr double kNormBlocks = 16;    // 128 threads a block (PyTorch), 2048 a unit
constexpr double kSoftmaxBlocks = 4;  // 512 threads for long rows
constexpr double kUsableL1 = 0.76;    // of a unit's L1 and shared memory, beside the output's lines
constexpr std::int64_t kSoftmaxInRegisters = 1024;  // values a row: PyTorch's warp softmax
constexpr double kNormRereads = 1, kSoftmaxRereads = 2;
constexpr double kNormBackwardPasses = 6, kNormBackwardKernels = 2;
constexpr double kSoftmaxBackwardPasses = 6, kSoftmaxBackwardKernels = 2;
// torch's layer_norm costs the host as much as two elementwise operators: it also allocates mean
// and rstd.
constexpr double kNormHostOps = 2;
constexpr double kIndexBytes = 8;        // int64
constexpr double kOffsetBytes = 8;       // of a segment
constexpr double kStreamKernels = 3;     // splits of the work, partial results, their sum
constexpr double kOperatorError = 0.10;  // held-out medians of `cost evaluate`: 1 to 12%

struct Work {
  Bytes moved, footprint;
  double share = 1;
  double kernels = 1, host_ops = 1;
  Seconds vector_time, reread;
  std::string what;
};

double Values(const OperatorProblem& p) {
  return static_cast<double>(p.rows) * static_cast<double>(p.width);
}

Seconds VectorTime(const Device& device, const OperatorProblem& p) {
  const Rate* rate = nullptr;
  for (const Rate& vector : device.vector)
    if (vector.dtype == DType::kFp32) rate = &vector;
  if (rate == nullptr || rate->flops_per_unit_clock <= 0) return Seconds{0};
  const FlopsPerSecond peak{rate->flops_per_unit_clock * device.units * device.boost_clock.value};
  return Flops{Values(p) * p.flops_per_element} / peak;
}

Work Elementwise(const Device& device, const OperatorProblem& p) {
  Work work;
  const Bytes tensor{Values(p) * p.element_bytes};
  work.moved = tensor * (p.read_tensors + p.written_tensors);
  work.footprint = work.moved / std::max(1.0, p.kernels);
  work.kernels = work.host_ops = std::max(1.0, p.kernels);
  work.share = p.kind == Kind::kBroadcast ? kBroadcastShare
               : p.kind == Kind::kPermute ? kPermuteShare
                                          : 1;
  work.vector_time = VectorTime(device, p);
  work.what = fmt::format("{:g} tensors of {} read, {:g} written", p.read_tensors, Show(tensor),
                          p.written_tensors);
  return work;
}

// Share of a row's second read that misses L1, when each block of a unit holds a row.
double RereadMiss(const Device& device, Bytes row, double blocks) {
  const MemoryLevel& l1 = device.memory.front();
  if (l1.scope != MemoryLevel::Scope::kUnit || l1.capacity.value <= 0) return 1;
  return std::clamp(blocks * row / (l1.capacity * kUsableL1) - 1, 0.0, 1.0);
}

Work RowReduction(const Device& device, const OperatorProblem& p) {
  Work work;
  const bool softmax = p.kind == Kind::kSoftmax;
  const Bytes row{static_cast<double>(p.width) * p.element_bytes};
  const Bytes tensor = row * static_cast<double>(p.rows);
  work.share = kReductionShare;
  work.host_ops = softmax ? 1 : kNormHostOps;
  if (p.pass == Pass::kBackward) {
    const double passes = softmax ? kSoftmaxBackwardPasses : kNormBackwardPasses;
    work.kernels = softmax ? kSoftmaxBackwardKernels : kNormBackwardKernels;
    work.host_ops = 1;  // one autograd node
    work.share = 1;
    work.moved = tensor * passes;
    work.footprint = tensor * (1 + 2);  // dY, X or Y, dX
    work.what = fmt::format("{:g} passes over {}", passes, Show(tensor));
    return work;
  }
  work.moved = work.footprint = tensor * 2;
  const bool registers = softmax && p.width <= kSoftmaxInRegisters;
  if (registers) work.share = 1;
  const double miss =
      registers ? 0 : RereadMiss(device, row, softmax ? kSoftmaxBlocks : kNormBlocks);
  work.reread =
      tensor * ((softmax ? kSoftmaxRereads : kNormRereads) * miss) / device.MainMemory().bandwidth;
  work.what = fmt::format("{} read and written", Show(tensor));
  return work;
}

// Moves of whole rows: between jagged and dense, into segments, by index.
Work Rows(const Device& device, const OperatorProblem& p) {
  Work work;
  const double rows = static_cast<double>(p.rows);
  const double data = p.input_rows > 0 ? p.input_rows : rows;
  const Bytes row{static_cast<double>(p.width) * p.element_bytes};
  double read = data, written = rows;
  Bytes indices{rows * kOffsetBytes};
  if (p.kind == Kind::kDenseToJagged) written = data;  // padding is neither read nor written
  if (p.kind == Kind::kIndexSelect || p.kind == Kind::kIndexAdd) {
    read = written = rows;
    indices = Bytes{rows * kIndexBytes};
  }
  if (p.kind == Kind::kIndexAdd) read = 2 * rows;  // the gradient and the row it is added to
  work.moved = row * (read + written) + indices;
  const double unique = p.unique_rows > 0 ? p.unique_rows : rows;
  const bool random = p.kind == Kind::kIndexSelect || p.kind == Kind::kIndexAdd;
  work.footprint = random ? row * (unique + rows) + indices : work.moved;
  if (random) {
    const MemoryLevel& main = device.MainMemory();
    if (main.random_bandwidth.value > 0)
      work.share = std::min(1.0, main.random_bandwidth / main.bandwidth);
    const Seconds at_random = GpuRowsTime(device, rows, row, work.footprint);
    const Seconds streamed = GpuStreamTime(device, row * rows, work.footprint);
    work.reread = at_random - streamed;  // the sectors' unused ends
  }
  work.what = fmt::format("{:.4g} rows of {} read, {:.4g} written", read, Show(row), written);
  return work;
}

Work WorkOf(const Device& device, const OperatorProblem& p) {
  switch (p.kind) {
    case Kind::kElementwise:
    case Kind::kBroadcast:
    case Kind::kPermute:
      return Elementwise(device, p);
    case Kind::kSoftmax:
    case Kind::kLayerNorm:
    case Kind::kRmsNorm:
      return RowReduction(device, p);
    case Kind::kStream: {
      OperatorProblem stream = p;
      stream.kernels = kStreamKernels;
      Work work = Elementwise(device, stream);
      work.footprint = Bytes{std::numeric_limits<double>::infinity()};  // nothing waits in a cache
      return work;
    }
    default:
      return Rows(device, p);
  }
}

void Add(Prediction& prediction, std::string name, Seconds time, std::string why) {
  if (time.value <= 0) return;
  prediction.time += time;
  prediction.terms.push_back({std::move(name), time, std::move(why)});
}

}  // namespace

std::string_view Name(Kind kind) {
  constexpr std::array<std::string_view, 12> kNames = {
      "elementwise",    "broadcast",    "permute",         "softmax",
      "layer_norm",     "rms_norm",     "jagged_to_dense", "dense_to_jagged",
      "segment_reduce", "index_select", "index_add",       "stream"};
  return kNames[static_cast<size_t>(kind)];
}

Prediction PredictOperator(const Device& device, const OperatorProblem& problem) {
  GNOMON_CHECK(device.kind == Device::Kind::kGpu && !device.memory.empty(), "{}", device.id);
  GNOMON_CHECK(problem.rows >= 0 && problem.width > 0 && problem.element_bytes > 0, "{} rows of {}",
               problem.rows, problem.width);
  const Work work = WorkOf(device, problem);
  Prediction prediction;
  prediction.relative_error = kOperatorError;
  const Seconds host = problem.caller == OperatorProblem::Caller::kEager
                           ? device.framework.op * work.host_ops
                           : Seconds{0};
  const Seconds start = GpuKernelTime(device) * work.kernels;
  Add(prediction, "host", host, fmt::format("{:g} eager operators", work.host_ops));
  Add(prediction, "kernel", start, fmt::format("start and end of {:g} kernels", work.kernels));
  const Seconds traffic = GpuStreamTime(device, work.moved, work.footprint) / work.share;
  const bool vector = work.vector_time > traffic;
  if (vector)
    Add(prediction, "vector units", work.vector_time,
        fmt::format("{:g} operations a value", problem.flops_per_element));
  else
    Add(prediction, "traffic", traffic, work.what);
  Add(prediction, "re-reads", work.reread, "rows or sectors read again from main memory");
  const bool starting = host + start > traffic + work.reread;
  prediction.bound = vector ? Bound::kCompute : starting ? Bound::kLaunch : Bound::kMemory;
  return prediction;
}

}  // namespace gnomon
