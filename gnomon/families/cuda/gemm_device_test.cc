// Every kernel against a product made on the host in fp64: layouts, odd sides, epilogues, cut K,
// batches, groups. Needs a GPU; skips without.

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gnomon/families/cuda/gemm.h"
#include "gnomon/families/cuda/gnomon_cuda.h"
#include "gnomon/families/cuda/kernel_needs.h"

namespace gnomon::cuda {
namespace {

using Half = __nv_bfloat16;
constexpr std::size_t kWorkspace = std::size_t{64} << 20;

/// Device memory with the values of a host vector.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : bytes_(values.size() * sizeof(T)) {
    EXPECT_EQ(cudaMalloc(&data_, bytes_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes_, cudaMemcpyHostToDevice), cudaSuccess);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  T* data() const { return static_cast<T*>(data_); }
  void Poison() const { EXPECT_EQ(cudaMemset(data_, 0xFF, bytes_), cudaSuccess); }
  std::vector<T> Read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// In [-1, 1), by position.
std::vector<Half> Values(std::int64_t count, std::uint32_t seed) {
  std::vector<Half> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u + seed;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    values[i] = __float2bfloat16(static_cast<float>(x >> 16) / 32768.0f - 1.0f);
  }
  return values;
}

double Applied(Epilogue epilogue, double x) {
  if (epilogue == Epilogue::kRelu || epilogue == Epilogue::kBiasRelu) return x > 0 ? x : 0;
  if (epilogue == Epilogue::kGelu || epilogue == Epilogue::kBiasGelu)
    return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  return x;
}

/// A problem, its operands, and what is right: value, and sum of the magnitudes that were added.
class Case {
 public:
  explicit Case(const Problem& p)
      : problem(p),
        a_(Values(RowsOfA() * p.LeadingA() * p.batch, 1)),
        b_(Values(RowsOfB() * p.LeadingB() * Products(), 2)),
        bias_(Values(p.n, 3)),
        a(a_),
        b(b_),
        bias(bias_),
        c(std::vector<Half>(static_cast<std::size_t>(p.m * p.LeadingC() * p.batch))),
        gradient(std::vector<float>(static_cast<std::size_t>(p.m * p.batch))) {
    for (std::int64_t product = 0; product < p.batch; ++product)
      for (std::int64_t i = 0; i < p.m; ++i) Row(product, i);
  }

  void Check(const KernelConfig& config, void* workspace) {
    c.Poison();
    gradient.Poison();
    const Status ran =
        Run(problem, config,
            {a.data(), b.data(), c.data(), bias.data(), gradient.data(), workspace, kWorkspace},
            nullptr);
    ASSERT_TRUE(ran.ok()) << Text(config) << ": " << ran.error().message;
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << Text(config) << " " << problem.Text();
    const std::vector<Half> got = c.Read();
    std::int64_t wrong = 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::int64_t j = 0; j < problem.n; ++j) {
        const Value& right = rows_[row][static_cast<std::size_t>(j)];
        const double is = __bfloat162float(
            got[row * static_cast<std::size_t>(problem.LeadingC()) + static_cast<std::size_t>(j)]);
        // A bf16 rounding, and fp32 sums in any order.
        const double allowed =
            std::ldexp(std::abs(right.value), -8) +
            right.magnitude * std::sqrt(static_cast<double>(problem.k)) * std::ldexp(1.0, -23) +
            std::ldexp(1.0, -20);
        if (!(std::abs(is - right.value) <= allowed)) ++wrong;
      }
    }
    EXPECT_EQ(wrong, 0) << Text(config) << " on " << problem.Text();
    if (problem.epilogue != Epilogue::kBiasGradient) return;
    const std::vector<float> sums = gradient.Read();
    for (std::size_t row = 0; row < rows_.size(); ++row)
      EXPECT_NEAR(sums[row], sums_[row], 1e-4 * std::sqrt(static_cast<double>(problem.k)))
          << Text(config) << " on " << problem.Text() << " row " << row;
  }

  const Problem problem;

 private:
  struct Value {
    double value = 0, magnitude = 0;
  };

  std::int64_t RowsOfA() const { return problem.a_transposed() ? problem.k : problem.m; }
  std::int64_t RowsOfB() const { return problem.b_transposed() ? problem.n : problem.k; }
  std::int64_t Products() const {
    return problem.grouped() ? static_cast<std::int64_t>(problem.group_m.size()) : problem.batch;
  }
  std::int64_t ProductOfRow(std::int64_t product, std::int64_t row) const {
    if (!problem.grouped()) return product;
    std::int64_t group = 0;
    while (row >= problem.group_m[static_cast<std::size_t>(group)])
      row -= problem.group_m[static_cast<std::size_t>(group++)];
    return group;
  }
  double A(std::int64_t product, std::int64_t i, std::int64_t k) const {
    const std::int64_t at =
        problem.a_transposed() ? k * problem.LeadingA() + i : i * problem.LeadingA() + k;
    return __bfloat162float(
        a_[static_cast<std::size_t>(product * RowsOfA() * problem.LeadingA() + at)]);
  }
  double B(std::int64_t product, std::int64_t k, std::int64_t j) const {
    const std::int64_t at =
        problem.b_transposed() ? j * problem.LeadingB() + k : k * problem.LeadingB() + j;
    return __bfloat162float(
        b_[static_cast<std::size_t>(product * RowsOfB() * problem.LeadingB() + at)]);
  }
  void Row(std::int64_t product, std::int64_t i) {
    std::vector<Value> row(static_cast<std::size_t>(problem.n));
    const std::int64_t of_b = ProductOfRow(product, i);
    double sum = 0;
    for (std::int64_t k = 0; k < problem.k; ++k) {
      const double x = A(product, i, k);
      sum += x;
      for (std::int64_t j = 0; j < problem.n; ++j) {
        const double term = x * B(of_b, k, j);
        row[static_cast<std::size_t>(j)].value += term;
        row[static_cast<std::size_t>(j)].magnitude += std::abs(term);
      }
    }
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (HasBias(problem.epilogue)) row[j].value += __bfloat162float(bias_[j]);
      row[j].value = Applied(problem.epilogue, row[j].value);
    }
    rows_.push_back(std::move(row));
    sums_.push_back(sum);
  }

  std::vector<Half> a_, b_, bias_;
  std::vector<std::vector<Value>> rows_;
  std::vector<double> sums_;

 public:
  OnDevice<Half> a, b, bias, c;
  OnDevice<float> gradient;
};

class GemmDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA device here";
    ASSERT_EQ(cudaMalloc(&workspace_, kWorkspace), cudaSuccess);
    ASSERT_EQ(cudaMemset(workspace_, 0, kWorkspace), cudaSuccess);
  }
  void TearDown() override { cudaFree(workspace_); }

  /// Every kernel that can do the problem, whole and, where `cut`, with K cut in each way.
  void CheckAll(const Problem& problem, bool cut = true) {
    Case one(problem);
    int kernels = 0;
    for (const Kind kind : {TmaLoads(problem) ? Kind::kTma : Kind::kPad, Kind::kCopy}) {
      for (KernelConfig config : KernelsOf(kind)) {
        ++kernels;
        config.group_m = 2;
        one.Check(config, workspace_);
        if (!cut || problem.k < 192) continue;
        config.split_k = 3;
        one.Check(config, workspace_);
        config.fix_up = true;
        one.Check(config, workspace_);
        config.split_k = 1;
        config.fix_up = false;
        config.stream_k = true;
        one.Check(config, workspace_);
      }
    }
    EXPECT_GT(kernels, 20);
  }

  static Problem Bf16(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout,
                      Epilogue epilogue = Epilogue::kNone) {
    Problem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.layout = layout;
    problem.dtype = problem.dtype_out = DType::kBf16;
    problem.epilogue = epilogue;
    return problem;
  }

  void* workspace_ = nullptr;
};

TEST_F(GemmDeviceTest, EveryKernelMultipliesInEveryLayout) {
  for (const Layout layout : {Layout::kNT, Layout::kNN, Layout::kTN}) {
    CheckAll(Bf16(200, 136, 456, layout));
    CheckAll(Bf16(131, 77, 203, layout));
    CheckAll(Bf16(300, 39, 13, layout));
  }
}

TEST_F(GemmDeviceTest, EveryEpilogueIsAppliedOnceAlsoWhereKIsCut) {
  for (const Epilogue epilogue : {Epilogue::kBias, Epilogue::kBiasRelu, Epilogue::kRelu,
                                  Epilogue::kGelu, Epilogue::kBiasGelu}) {
    CheckAll(Bf16(136, 72, 264, Layout::kNT, epilogue));
    CheckAll(Bf16(131, 77, 203, Layout::kNN, epilogue));
  }
}

TEST_F(GemmDeviceTest, AWeightGradientSumsItsBiasGradient) {
  CheckAll(Bf16(200, 136, 456, Layout::kTN, Epilogue::kBiasGradient));
  CheckAll(Bf16(131, 77, 203, Layout::kTN, Epilogue::kBiasGradient));
}

TEST_F(GemmDeviceTest, BatchesAndWideRowsAreFollowed) {
  Problem problem = Bf16(136, 72, 264, Layout::kNT, Epilogue::kBias);
  problem.batch = 3;
  CheckAll(problem);
  problem = Bf16(136, 72, 264, Layout::kNN);
  problem.lda = 272;
  problem.ldb = 88;
  problem.ldc = 75;
  CheckAll(problem);
}

TEST_F(GemmDeviceTest, EveryGroupHasItsOwnBAndKeepsToItsRows) {
  Problem problem = Bf16(0, 136, 200, Layout::kNT);
  problem.group_m = {100, 0, 1, 64, 257, 33};
  problem.m = 455;
  CheckAll(problem, false);
  problem.layout = Layout::kNN;
  problem.n = 77;
  problem.epilogue = Epilogue::kBiasRelu;
  CheckAll(problem, false);
  problem = Bf16(900, 64, 64, Layout::kNT);
  problem.group_m.assign(300, 3);  // more than one launch holds
  CheckAll(problem, false);
}

// With a k step a tile a CTA stores tile after tile: a buffer must not be filled again before its
// store has read it, whatever the number of stores a tile.
TEST_F(GemmDeviceTest, ShortTilesInQuickSuccessionAreStoredWhole) {
  CheckAll(Bf16(20000, 200, 16, Layout::kNT), false);
}

// Small enough to run under compute-sanitizer (bench/h200.sh sanitize).
TEST_F(GemmDeviceTest, OneRunOfEachKind) {
  for (const Layout layout : {Layout::kNT, Layout::kTN}) {
    Case aligned(Bf16(136, 72, 264, layout)), odd(Bf16(131, 77, 203, layout));
    Case thin(Bf16(131, 2, 77, layout));
    KernelConfig config;
    config.tile_m = config.tile_n = 64;
    config.consumers = Consumers::kTurns;
    aligned.Check(config, workspace_);
    config.split_k = 3;
    aligned.Check(config, workspace_);
    config.fix_up = true;
    aligned.Check(config, workspace_);
    config.split_k = 1;
    config.fix_up = false;
    config.stream_k = true;
    aligned.Check(config, workspace_);
    config.stream_k = false;
    for (const Kind kind : {Kind::kCopy, Kind::kPad}) {
      config.kind = kind;
      odd.Check(config, workspace_);
    }
    KernelConfig pair;
    pair.tile_m = 128;
    pair.tile_n = 256;
    pair.cluster_m = 2;
    aligned.Check(pair, workspace_);
    KernelConfig vector;
    vector.kind = Kind::kVector;
    vector.consumers = Consumers::kOne;
    vector.tile_m = layout == Layout::kTN ? 8 : 1;
    vector.tile_n = 4;
    thin.Check(vector, workspace_);
  }
}

TEST_F(GemmDeviceTest, TheSameBytesComeOutEveryTime) {
  Case one(Bf16(200, 136, 4096, Layout::kNT));
  KernelConfig config;
  config.tile_m = config.tile_n = 128;
  config.consumers = Consumers::kTurns;
  config.stream_k = true;
  one.Check(config, workspace_);
  const std::vector<Half> first = one.c.Read();
  for (int again = 0; again < 5; ++again) {
    one.Check(config, workspace_);
    const std::vector<Half> next = one.c.Read();
    EXPECT_EQ(std::memcmp(first.data(), next.data(), first.size() * sizeof(Half)), 0);
  }
}

TEST_F(GemmDeviceTest, ARunWithoutItsWorkspaceIsRefusedBeforeItStarts) {
  Case one(Bf16(136, 72, 264, Layout::kNT));
  KernelConfig config;
  config.split_k = 3;
  const Status ran =
      cuda::Run(one.problem, config, {one.a.data(), one.b.data(), one.c.data()}, nullptr);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("bytes of workspace"), std::string::npos);
}

TEST_F(GemmDeviceTest, CallsFromCPickAndRun) {
  Case one(Bf16(200, 136, 456, Layout::kNT));
  gnomon_gemm_problem problem = {};
  problem.m = 200;
  problem.n = 136;
  problem.k = 456;
  problem.dtype = "bf16";
  gnomon_gemm_operands operands = {};
  operands.a = one.a.data();
  operands.b = one.b.data();
  operands.c = one.c.data();
  operands.workspace = workspace_;
  operands.workspace_bytes = kWorkspace;
  ASSERT_EQ(gnomon_cuda_gemm("h200", &problem, nullptr, &operands, nullptr), 0)
      << gnomon_cuda_last_error();
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<Half> picked = one.c.Read();
  KernelConfig config;
  config.tile_m = config.tile_n = 64;
  config.consumers = Consumers::kTurns;
  one.Check(config, workspace_);
  const std::vector<Half> known = one.c.Read();
  for (std::size_t i = 0; i < known.size(); ++i)
    EXPECT_NEAR(__bfloat162float(picked[i]), __bfloat162float(known[i]), 0.125);
}

// These two need no GPU.
TEST(GnomonCudaC, AnUnknownNameIsABadInputThatNamesTheNearest) {
  gnomon_gemm_problem problem = {};
  problem.m = problem.n = problem.k = 64;
  problem.dtype = "bf61";
  EXPECT_EQ(gnomon_cuda_select("h200", &problem, nullptr, 0, nullptr), 2);
  EXPECT_NE(std::string(gnomon_cuda_last_error()).find("bf16"), std::string::npos);
}

TEST(GnomonCudaC, ThePickFitsTheBufferOrTheCallSaysHowLongItIs) {
  gnomon_gemm_problem problem = {};
  problem.m = problem.n = problem.k = 512;
  problem.dtype = "bf16";
  char small[4];
  EXPECT_EQ(gnomon_cuda_select("h200", &problem, small, sizeof small, nullptr), 2);
  EXPECT_NE(std::string(gnomon_cuda_last_error()).find("bytes"), std::string::npos);
  char config[64];
  std::size_t workspace = 1;
  EXPECT_EQ(gnomon_cuda_select("h200", &problem, config, sizeof config, &workspace), 0);
  EXPECT_TRUE(ParseKernelConfig(config).ok()) << config;
}

}  // namespace
}  // namespace gnomon::cuda
