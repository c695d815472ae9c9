// What must hold of the picks of family triton on AMD GPUs.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gnomon/base/fit_split.h"
#include "gnomon/families/triton/amd.h"
#include "gnomon/gemm/cdna_properties.h"
#include "gnomon/gemm/select.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon {
INSTANTIATE_TEST_SUITE_P(Triton, PicksOnAmd, OnCdnaCards(triton::GemmFamily()));
}  // namespace gnomon

namespace gnomon::triton {
namespace {

class TritonOnAmd : public testing::TestWithParam<FamilyOnCard> {
 protected:
  const Device card_ = FindDevice(GetParam().card).value();
};
INSTANTIATE_TEST_SUITE_P(Cards, TritonOnAmd, OnCdnaCards(GemmFamily()));

TEST_P(TritonOnAmd, CanBeLaunched) {
  std::mt19937 random(8);
  const std::array<const Family*, 1> families = {&GemmFamily()};
  const Selector selector(card_, families);
  for (int i = 0; i < kCdnaProblems; ++i) {
    Problem p = RandomProblem(random, i);
    if (i % 10 == 0 && !p.grouped()) {
      p.m = std::int64_t{1} << 27;
      p.n = std::min<std::int64_t>(p.n, 1024);
      p.batch = 1;
    }
    const Pick pick = *selector.SelectCold(p);
    const TritonConfig c = FromConfig(pick.config);
    const double size = SizeOf(p.dtype);
    const double buffers = card_.arch == "gfx950" ? c.stages : c.stages - 1;
    EXPECT_LE(buffers * (c.block_m + c.block_n) * c.block_k * size, card_.shared_memory.value);
    EXPECT_LE(c.block_m * c.block_n / (64 * c.warps), 512) << p.Text();
    EXPECT_LE(c.mfma, std::min(c.block_m, c.block_n)) << p.Text();
    double rows = 0;
    for (const std::int64_t m : p.grouped() ? p.group_m : std::vector{p.m})
      rows += std::ceil(static_cast<double>(m) / c.block_m);
    EXPECT_LE(rows * std::ceil(static_cast<double>(p.n) / c.block_n) *
                  static_cast<double>(p.batch) * c.split_k * 64 * c.warps,
              4294967295.0)
        << p.Text();
    EXPECT_GT(pick.predicted.value, 0) << p.Text();
  }
}

double Us(const Device& card, const Problem& p) {
  const std::array<const Family*, 1> families = {&GemmFamily()};
  return InMicroseconds(Select(card, p, families)->front().predicted);
}

// facebookexperimental/triton pull 2865: plain Triton kernels in fp16 on an MI350X; shapes whose
// hash is odd, as the even ones were fitted on. Large K, where stores, which that bench sends
// through a dirty cache, say little.
TEST(TritonOnMi350x, IsNearItsTimings) {
  struct Timed {
    std::int64_t m, n, k;
    double us;
  };
  for (const Timed& row : {Timed{1024, 32768, 6144, 533.52}, Timed{3072, 3072, 11800, 401.87},
                           Timed{3072, 8192, 3072, 229.29}, Timed{3072, 9216, 3072, 239.4},
                           Timed{3072, 15360, 4096, 503.38}}) {
    ASSERT_FALSE(IsFitRow(fmt::format("{},{},{}", row.m, row.n, row.k)));
    EXPECT_NEAR(Us(FindDevice("mi350x").value(), Gemm(row.m, row.n, row.k, DType::kFp16)) / row.us,
                1, 0.15)
        << row.m << "x" << row.n << "x" << row.k;
  }
}

TEST(TritonOnAmdDevices, SayHowFarTheyCanBeOff) {
  const auto error = [](const char* id, DType dtype) {
    const Config config = GemmFamily().Parse("128x128x64.w8.s2.k1.i32").value();
    return GemmFamily()
        .Predict(FindDevice(id).value(), Gemm(4096, 4096, 4096, dtype), config)
        .relative_error;
  };
  EXPECT_LE(error("mi350x", DType::kFp16), 0.12);
  EXPECT_EQ(error("mi350x", DType::kFp8E4m3), 0.3);
  EXPECT_EQ(error("mi300x", DType::kFp16), 0.3);
  EXPECT_EQ(error("mi250x", DType::kBf16), 0.3);
}

TEST(TritonOnAmdDevices, HaveTermsThatAddUpToTheTime) {
  const Device card = FindDevice("mi300x").value();
  const Problem p = Gemm(1000, 512, 8191, DType::kFp16);
  for (const char* text : {"128x128x32.w8.s2.k1.i32", "64x64x64.w4.s2.k8.i32"}) {
    const Config config = GemmFamily().Parse(text).value();
    const Prediction prediction = GemmFamily().Predict(card, p, config);
    double sum = 0;
    for (const Term& term : prediction.terms) sum += term.time.value;
    EXPECT_GT(sum, 0);
    EXPECT_NEAR(sum / prediction.time.value, 1, 1e-12);
    EXPECT_EQ(GemmFamily().PredictTime(card, p, config).value, prediction.time.value);
  }
}

// Two buffers of (256 + 256) x 128 x 2 bytes on gfx950; gfx942 keeps the next operands in
// registers.
TEST(TritonOnAmdDevices, NeverPickWhatHasNoPlace) {
  const Config large = GemmFamily().Parse("256x256x128.w8.s2.k1.i32").value();
  for (const char* id : {"mi300x", "mi350x"}) {
    const Device card = FindDevice(id).value();
    EXPECT_GT(GemmFamily().PredictTime(card, Gemm(4096, 4096, 4096, DType::kFp16), large).value,
              1e20);
    EXPECT_GT(
        GemmFamily().Ready(card, 0)->TimeOf(Gemm(4096, 4096, 4096, DType::kFp16), large).value,
        1e20);
  }
  // pytorch issue 166442.
  const Config crashes = GemmFamily().Parse("16x64x128.w4.s2.k1.i16").value();
  const Problem p = Gemm(16, 4096, 4096, DType::kFp8E4m3);
  const Device card = FindDevice("mi350x").value();
  EXPECT_GT(GemmFamily().PredictTime(card, p, crashes).value, 1e20);
  std::vector<Config> configs;
  ASSERT_TRUE(GemmFamily().Enumerate(card, p, 0, configs).ok());
  EXPECT_GT(configs.size(), 10u);
  for (const Config& config : configs) EXPECT_FALSE(config == crashes);
}

TEST(TritonOnAmdDevices, TakeGroupsAsTilesOfTheirOwn) {
  const Device card = FindDevice("mi300x").value();
  const Problem one = Gemm(8192, 4096, 1024, DType::kFp16);
  Problem groups = one;
  groups.group_m = {0, 8192, 0};
  EXPECT_EQ(Us(card, groups), Us(card, one));
  groups.group_m.assign(64, 128);
  EXPECT_GT(Us(card, groups), Us(card, one));
  Problem batch = Gemm(128, 4096, 1024, DType::kFp16);
  batch.batch = 64;
  EXPECT_DOUBLE_EQ(Us(card, groups), Us(card, batch));
}

}  // namespace
}  // namespace gnomon::triton
