// Measures what eager LibTorch costs on this machine: the figures of device.framework.
//
//   op_us, backward_op_us   a long chain of operators on 16 values, time / length, each way
//   gemm_efficiency         at::mm on large squares over the device's sustained peak, by dtype
//   *_ns                    one per entry of cost/primitives.h, each the operator that it names, at
//   shapes
//                           of a DLRM step (dim 16, 26 tables, batch 2048), time / items
//
// Each is the median of repeated calls over about a tenth of a second. Two primitives of our
// embedding backward come from two workloads: few rows looked up often (keys alone), and every row
// once (keys + rows).

#include "gnomon/train/framework_calibration.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "gnomon/base/statistics.h"
#include "gnomon/families/cpu/embedding_bag.h"
#include "gnomon/train/session.h"
#include "gnomon/train/stock_path.h"

namespace gnomon::train {
namespace {

constexpr double kProbeSeconds = 0.1;
constexpr std::size_t kFewestRuns = 5;
constexpr std::int64_t kBatch = 2048, kTables = 26, kDim = 16, kVectors = kTables + 1;
constexpr std::int64_t kLookups = kBatch * kTables;

// Median seconds of `work`, which prepares nothing; `before` runs untimed ahead of each call.
double MedianSeconds(const std::function<void()>& work, const std::function<void()>& before = {}) {
  std::vector<double> times;
  for (const double start = Now();
       times.size() < kFewestRuns + 1 || Now() - start < kProbeSeconds;) {
    if (before) before();
    const double begin = Now();
    work();
    times.push_back(Now() - begin);
  }
  times.erase(times.begin());  // the first call warms up
  return Median(std::move(times));
}

// As many as the spread of the measurements leaves meaning to.
double FourDigits(double value) { return std::stod(fmt::format("{:.4g}", value)); }

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &local);
  return text;
}

class FrameworkCalibration {
 public:
  explicit FrameworkCalibration(Device& device) : device_(device) {}

  Status Run() {
    at::set_num_threads(device_.units);
    at::manual_seed(1);
    GNOMON_TRY(Operators());
    GNOMON_TRY(GemmEfficiency(DType::kFp32, at::kFloat, 1024));
    GNOMON_TRY(GemmEfficiency(DType::kBf16, at::kBFloat16, 2048));
    GNOMON_TRY(StockEmbedding());
    GNOMON_TRY(StockCoalesce());
    GNOMON_TRY(StockInteractionParts());
    return OurEmbedding();
  }

 private:
  Status State(const std::string& key, double value, const std::string& how) {
    return SetFact(device_, "framework." + key,
                   {FourDigits(value), FactKind::kMeasured,
                    fmt::format("gnomon device calibrate: {}, LibTorch {}, {} threads", how,
                                TORCH_VERSION, device_.units),
                    Today()});
  }
  Status StateItem(const std::string& primitive, double seconds, const std::string& how) {
    constexpr double kNanoseconds = 1e9;
    // A difference of two times may come out below nothing on a noisy machine.
    return State(primitive + "_ns", std::max(seconds * kNanoseconds, 0.01), how);
  }

  Status Operators() {
    constexpr int kChain = 400;
    constexpr double kMicroseconds = 1e6;
    const at::Tensor x = at::ones({16}).set_requires_grad(true), factor = at::ones({16});
    at::Tensor y;
    const auto forward = [&] {
      y = x;
      for (int i = 0; i < kChain; ++i) y = at::mul(y, factor);
    };
    const double forward_time = MedianSeconds(forward);
    const at::Tensor gradient = at::ones({16});
    const double backward_time = MedianSeconds([&] { y.backward(gradient); }, forward);
    GNOMON_TRY(State("op_us", forward_time / kChain * kMicroseconds, "chain of multiplications"));
    return State("backward_op_us", backward_time / kChain * kMicroseconds, "its backward");
  }

  Status GemmEfficiency(DType dtype, at::ScalarType type, std::int64_t side) {
    const double peak = device_.SustainedPeak(dtype).value;
    if (peak <= 0) return Done{};  // not native: the cost model knows the reference loop
    at::NoGradGuard no_grad;
    const at::Tensor a = at::randn({side, side}).to(type), b = at::randn({side, side}).to(type);
    const double time = MedianSeconds([&] { at::mm(a, b); });
    const double rate = 2.0 * std::pow(static_cast<double>(side), 3) / time;
    return State(fmt::format("gemm_efficiency_{}", Name(dtype)), std::min(1.0, rate / peak),
                 fmt::format("square of {}", side));
  }

  Status StockEmbedding() {
    constexpr std::int64_t kRows = 1000;  // 64 KB: in cache
    at::Tensor weight = at::randn({kRows, kDim}).set_requires_grad(true);
    const at::Tensor indices = at::randint(kRows, {kLookups}, at::kLong);
    const at::Tensor offsets = at::arange(kLookups, at::kLong);
    const at::Tensor gradient = at::randn({kLookups, kDim});
    at::Tensor pooled;
    const auto forward = [&] {
      weight.mutable_grad() = at::Tensor();
      pooled = StockBag(weight, indices, offsets, /*sparse_gradient=*/true);
    };
    const double lookups = static_cast<double>(kLookups);
    GNOMON_TRY(StateItem("embedding_row", MedianSeconds(forward) / lookups, "embedding_bag"));
    return StateItem("lookup_grad_row",
                     MedianSeconds([&] { pooled.backward(gradient); }, forward) / lookups,
                     "sparse backward of embedding_bag");
  }

  // At the sizes of a sort a table and of one for all tables; the mean of both.
  Status StockCoalesce() {
    constexpr std::int64_t kRows = 1 << 20;
    double per_level = 0, per_row = 0;
    for (const std::int64_t n : {kBatch, kLookups}) {
      // Squares of uniform numbers: hot rows repeat, as in click logs.
      const at::Tensor rows = (at::rand({n}).pow(4) * kRows).to(at::kLong).unsqueeze(0);
      const at::Tensor values = at::randn({n, kDim});
      const auto make = [&] { return at::sparse_coo_tensor(rows, values, {kRows, kDim}); };
      at::Tensor gradient;
      const double time = MedianSeconds([&] { gradient.coalesce(); }, [&] { gradient = make(); });
      per_level += time / (static_cast<double>(n) * std::log2(static_cast<double>(n))) / 2;

      at::Tensor weight = at::zeros({kRows, kDim}).set_requires_grad(true),
                 state = at::zeros({kRows});
      const at::Tensor coalesced = make().coalesce();
      weight.mutable_grad() = coalesced;
      const double update = MedianSeconds([&] { StockRowwiseAdagrad(weight, state, 0.01, 1e-8); });
      per_row += update / static_cast<double>(coalesced._indices().size(1)) / 2;
    }
    GNOMON_TRY(StateItem("coalesce_key_level", per_level, "coalesce of 2048 and 53248 rows"));
    return StateItem("update_row", per_row, "row-wise Adagrad of index operators");
  }

  Status StockInteractionParts() {
    at::NoGradGuard no_grad;
    const std::vector<at::Tensor> triangle = TriangleIndex(kVectors);
    const double pairs = static_cast<double>(triangle[0].numel());
    const c10::List<c10::optional<at::Tensor>> index({c10::nullopt, triangle[0], triangle[1]});
    for (const bool half : {false, true}) {
      if (half && device_.SustainedPeak(DType::kBf16).value <= 0) continue;
      const at::Tensor z =
          at::randn({kBatch, kVectors, kDim}).to(half ? at::kBFloat16 : at::kFloat);
      const double time = MedianSeconds([&] { at::bmm(z, z.transpose(1, 2)); });
      GNOMON_TRY(StateItem(half ? "bmm_item_half" : "bmm_item_fp32",
                           time / static_cast<double>(kBatch), "bmm of 27 x 27 x 16"));
    }
    const at::Tensor dots = at::randn({kBatch, kVectors, kVectors});
    GNOMON_TRY(StateItem("index_element", MedianSeconds([&] {
                                            at::index(dots, index);
                                          }) / (static_cast<double>(kBatch) * pairs),
                         "z[:, i, j]"));
    for (const bool near : {true, false}) {
      const std::int64_t batch = near ? kBatch / 32 : kBatch;  // 187 KB, or 6 MB
      at::Tensor target = at::zeros({batch, kVectors, kVectors});
      const at::Tensor values = at::randn({batch, static_cast<std::int64_t>(pairs)});
      const double time =
          MedianSeconds([&] { target.index_put_(index, values, /*accumulate=*/true); });
      GNOMON_TRY(StateItem(near ? "index_put_near" : "index_put_far",
                           time / (static_cast<double>(batch) * pairs),
                           "accumulating z[:, i, j] = v"));
    }
    return Done{};
  }

  // Lookups of every table, table-major, at rows scattered over it as real keys are.
  Status OurEmbedding() {
    constexpr std::int64_t kRows = 1 << 16, kFew = 64;
    std::vector<float> weight(static_cast<std::size_t>(kTables * kRows * kDim), 0.1f);
    std::vector<float> state(static_cast<std::size_t>(kTables * kRows), 1.0f);
    std::vector<float> pooled(static_cast<std::size_t>(kLookups * kDim), 0.01f);
    std::vector<cpu::EmbeddingTable> tables;
    for (std::int64_t t = 0; t < kTables; ++t)
      tables.push_back({weight.data() + t * kRows * kDim, state.data() + t * kRows, kRows});
    std::vector<std::int64_t> indices(static_cast<std::size_t>(kLookups));
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(kLookups + 1));
    std::iota(offsets.begin(), offsets.end(), 0);
    const auto spread = [&](std::int64_t rows) {
      constexpr std::int64_t kScatter = 40503;  // odd: no two of the rows meet
      for (std::int64_t i = 0; i < kLookups; ++i)
        indices[static_cast<std::size_t>(i)] = i % rows * kScatter % kRows;
    };
    const cpu::EmbeddingLookups lookups{.batch = kBatch, .indices = indices, .offsets = offsets};
    const auto update = [&] {
      cpu::EmbeddingBackwardAdagrad(tables, kDim, lookups, pooled.data(), DType::kFp32,
                                    {1e-6f, 1e-8f}, device_.units);
    };
    spread(kFew);
    Status done = Done{};
    const double lookup = MedianSeconds([&] {
      done =
          cpu::EmbeddingForward(tables, kDim, lookups, pooled.data(), DType::kFp32, device_.units);
    });
    const double keys = MedianSeconds(update);
    spread(kBatch);
    const double all = MedianSeconds(update);
    GNOMON_TRY(done);
    const double count = static_cast<double>(kLookups);
    GNOMON_TRY(StateItem("fused_lookup_row", lookup / count, "our embedding bag, 64 rows a table"));
    GNOMON_TRY(
        StateItem("fused_update_key", keys / count, "our embedding backward, 64 rows a table"));
    return StateItem("fused_update_row", (all - keys) / count,
                     "our embedding backward, every row once");
  }

  Device& device_;
};

}  // namespace

Status CalibrateFrameworkOn(Device& device) {
  if (device.kind != Device::Kind::kCpu)
    return BadInput("the framework is measured on the host's CPU only", device.id);
  return FrameworkCalibration(device).Run();
}

}  // namespace gnomon::train
