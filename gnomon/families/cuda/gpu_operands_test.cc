// The check of results on a device, against products made on the host. Needs a GPU; skips without.

#include "gnomon/families/cuda/gpu_operands.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace gnomon::cuda {
namespace {

constexpr std::size_t kL2 = 50 << 20;

double Read(DType dtype, const std::vector<unsigned char>& bytes, std::int64_t at) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes.data() + static_cast<std::size_t>(at) * sizeof(T), sizeof(T));
    return static_cast<double>(static_cast<float>(value));
  };
  switch (dtype) {
    case DType::kBf16:
      return as(__nv_bfloat16());
    case DType::kFp16:
      return as(__half());
    case DType::kFp8E4m3:
      return as(__nv_fp8_e4m3());
    case DType::kFp8E5m2:
      return as(__nv_fp8_e5m2());
    default:
      return as(float());
  }
}

void Write(DType dtype, std::vector<unsigned char>& bytes, std::int64_t at, double value) {
  const auto put = [&]<class T>(T narrow) {
    std::memcpy(bytes.data() + static_cast<std::size_t>(at) * sizeof(T), &narrow, sizeof(T));
  };
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::kBf16)
    put(__float2bfloat16(narrow));
  else if (dtype == DType::kFp16)
    put(__float2half(narrow));
  else
    put(narrow);
}

std::vector<unsigned char> Copied(const void* from, double bytes) {
  std::vector<unsigned char> to(static_cast<std::size_t>(bytes));
  EXPECT_EQ(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  return to;
}

class GpuOperandsTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU here";
  }

  // C as it should be, computed on the host from copy 0.
  void Multiply(const Problem& p) {
    const Operands at = operands_.At(0);
    const std::int64_t rows_a = p.a_transposed() ? p.k : p.m, rows_b = p.b_transposed() ? p.n : p.k;
    const auto a =
        Copied(at.a, SizeOf(p.dtype) * static_cast<double>(rows_a * p.LeadingA() * p.batch));
    const auto b =
        Copied(at.b, SizeOf(p.dtype) * static_cast<double>(rows_b * p.LeadingB() * p.batch));
    c_.assign(static_cast<std::size_t>(SizeOf(p.dtype_out)) *
                  static_cast<std::size_t>(p.batch * p.m * p.LeadingC()),
              0xFF);
    for (std::int64_t product = 0; product < p.batch; ++product)
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < p.k; ++k) {
            const std::int64_t in_a =
                p.a_transposed() ? k * p.LeadingA() + i : i * p.LeadingA() + k;
            const std::int64_t in_b =
                p.b_transposed() ? j * p.LeadingB() + k : k * p.LeadingB() + j;
            sum += Read(p.dtype, a, product * rows_a * p.LeadingA() + in_a) *
                   Read(p.dtype, b, product * rows_b * p.LeadingB() + in_b);
          }
          Write(p.dtype_out, c_, (product * p.m + i) * p.LeadingC() + j, sum);
        }
  }

  // What the check says of c_.
  std::string Check() {
    EXPECT_EQ(cudaMemcpy(operands_.At(0).c, c_.data(), c_.size(), cudaMemcpyHostToDevice),
              cudaSuccess);
    return CheckDevice();
  }
  std::string CheckDevice() {
    EXPECT_TRUE(operands_.EnqueueCheck(nullptr).ok());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const auto verdict = operands_.Verdict();
    return verdict.ok() ? *verdict : verdict.error().Text();
  }

  // Right passes; one element off by half the size of a sum, and one never written, do not.
  void ExpectTold(const Problem& p) {
    SCOPED_TRACE(p.Text());
    const Status prepared = operands_.Prepare(p, kL2, nullptr);
    ASSERT_TRUE(prepared.ok()) << prepared.error().Text();
    Multiply(p);
    EXPECT_EQ(Check(), "");
    const std::vector<unsigned char> right = c_;
    const std::int64_t place = (p.batch * p.m - 1) * p.LeadingC() + p.n / 2;
    Write(p.dtype_out, c_, place,
          Read(p.dtype_out, c_, place) + 20 * std::sqrt(static_cast<double>(p.k)));
    EXPECT_NE(Check(), "");
    c_ = right;
    Write(p.dtype_out, c_, place, NAN);
    EXPECT_NE(Check(), "");
    ASSERT_TRUE(operands_.Poison(nullptr).ok());
    EXPECT_NE(CheckDevice(), "");
  }

  GpuOperands operands_;
  std::vector<unsigned char> c_;
};

TEST_F(GpuOperandsTest, TellRightFromWrongInEveryTypeAndLayout) {
  for (const DType dtype :
       {DType::kBf16, DType::kFp16, DType::kFp8E4m3, DType::kFp8E5m2, DType::kTf32})
    for (const Layout layout : {Layout::kNN, Layout::kNT, Layout::kTN, Layout::kTT})
      for (const bool wide : {false, true}) {
        Problem p;
        p.m = 37;
        p.n = 53;
        p.k = 300;
        p.layout = layout;
        p.dtype = dtype;
        p.dtype_out = wide || dtype == DType::kTf32 ? DType::kFp32
                      : dtype == DType::kFp16       ? DType::kFp16
                                                    : DType::kBf16;
        p.batch = wide ? 2 : 1;
        p.lda = wide ? 320 : 0;
        p.ldb = wide ? 328 : 0;
        p.ldc = wide ? 64 : 0;
        ExpectTold(p);
      }
}

// Too many elements, or too many products, to look at each: C·x against A·(B·x).
TEST_F(GpuOperandsTest, TellRightFromWrongInLargeProducts) {
  for (const auto& [dtype, layout] :
       {std::pair{DType::kBf16, Layout::kNN}, std::pair{DType::kBf16, Layout::kTN},
        std::pair{DType::kFp8E4m3, Layout::kNT}, std::pair{DType::kTf32, Layout::kNT}}) {
    Problem p;
    p.m = 4200;
    p.n = 4001;
    p.k = 5;
    p.layout = layout;
    p.dtype = dtype;
    p.dtype_out = dtype == DType::kTf32 ? DType::kFp32 : DType::kBf16;
    ExpectTold(p);
  }
}

TEST_F(GpuOperandsTest, AreTheSameInEveryRunAndColdBetweenThem) {
  Problem p;
  p.m = 512;
  p.n = 256;
  p.k = 128;
  p.dtype = p.dtype_out = DType::kBf16;
  ASSERT_TRUE(operands_.Prepare(p, kL2, nullptr).ok());
  const auto first = Copied(operands_.At(0).a, 2 * 512 * 128);
  const double each = 2.0 * (512 * 128 + 256 * 128 + 512 * 256);
  EXPECT_GE(each * operands_.copies(), 2.0 * kL2);
  p.n = 4096;
  ASSERT_TRUE(operands_.Prepare(p, kL2, nullptr).ok());
  EXPECT_EQ(Copied(operands_.At(0).a, 2 * 512 * 128), first);
  EXPECT_GE(operands_.copies(), 3);
}

}  // namespace
}  // namespace gnomon::cuda
