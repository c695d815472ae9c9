// Every kernel of the family against the fp64 oracle: odd sizes, all layouts, leading dimensions,
// batches, epilogues and ways to cut the work up, on every vector level that this machine has.
// Outputs start as NaN, and the bytes before, between and after the rows of C must be the same
// afterwards.

#include "gnomon/families/cpu/cpu_gemm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "gnomon/families/cpu/dot.h"
#include "gnomon/families/cpu/kernel.h"
#include "hwy/targets.h"
#include "oracle/gemm.h"

namespace gnomon::cpu {
namespace {

using Kernel = GemmConfig::Kernel;
using Split = GemmConfig::Split;
using ::testing::HasSubstr;

constexpr std::int64_t kGuard = 64;                // elements before and after C
constexpr std::uint32_t kGuardWord = 0x7F8ADEADu;  // a NaN

std::int64_t SizeOfElement(DType dtype) { return dtype == DType::kBf16 ? 2 : 4; }

// Values of a small range in both signs, exact in the operand's format.
std::vector<unsigned char> RandomOperand(DType dtype, std::int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<unsigned char> data(static_cast<size_t>(count * SizeOfElement(dtype)));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(uniform(random));
    const std::uint16_t high = static_cast<std::uint16_t>(bits >> 16);
    if (dtype == DType::kBf16) {
      std::memcpy(data.data() + i * 2, &high, 2);
    } else {
      std::memcpy(data.data() + i * 4, &bits, 4);
    }
  }
  return data;
}

// A problem's operands with the oracle's answer; many configs can then be checked against it.
class Case {
 public:
  explicit Case(const Problem& problem, unsigned seed = 1) : p_(problem) {
    std::mt19937 random(seed);
    a_ = RandomOperand(p_.dtype, p_.batch * p_.LeadingA() * (p_.a_transposed() ? p_.k : p_.m),
                       random);
    b_ = RandomOperand(p_.dtype, p_.batch * p_.LeadingB() * (p_.b_transposed() ? p_.n : p_.k),
                       random);
    bias_.resize(static_cast<size_t>(p_.n));
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    for (float& value : bias_) value = uniform(random);
    reference_ = oracle::Gemm(p_, a_.data(), b_.data(), bias_.data());
  }

  // Empty, or what is wrong.
  std::string Check(const GemmConfig& config) {
    const std::int64_t size = p_.batch * p_.m * p_.LeadingC() + 2 * kGuard;
    std::vector<unsigned char> c(static_cast<size_t>(size * SizeOfElement(p_.dtype_out)));
    for (size_t i = 0; i < c.size(); i += 2) std::memcpy(c.data() + i, &kGuardWord, 2);
    if (p_.dtype_out == DType::kFp32)
      for (size_t i = 0; i < c.size(); i += 4) std::memcpy(c.data() + i, &kGuardWord, 4);
    const std::vector<unsigned char> before = c;
    unsigned char* first = c.data() + kGuard * SizeOfElement(p_.dtype_out);
    const Status status = RunGemm(p_, config, a_.data(), b_.data(), first, bias_.data());
    if (!status.ok()) return status.error().Text();
    return Compare(c, before);
  }

 private:
  std::string Compare(const std::vector<unsigned char>& c,
                      const std::vector<unsigned char>& before) const {
    const std::int64_t element = SizeOfElement(p_.dtype_out);
    const std::int64_t size = static_cast<std::int64_t>(c.size()) / element;
    size_t next = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t at = i - kGuard, row = at / p_.LeadingC();
      const bool inside = at >= 0 && row < p_.batch * p_.m && at % p_.LeadingC() < p_.n;
      if (!inside) {
        if (std::memcmp(&c[static_cast<size_t>(i * element)],
                        &before[static_cast<size_t>(i * element)],
                        static_cast<size_t>(element)) != 0)
          return fmt::format("wrote outside of C, at element {}", at);
        continue;
      }
      const double got = oracle::ReadElement(p_.dtype_out, c.data(), i);
      const double want = reference_.value[next];
      const double most = oracle::Tolerance(p_, want, reference_.magnitude[next]);
      ++next;
      if (!(std::abs(got - want) <= most))
        return fmt::format("row {} column {}: got {}, want {} within {}", row, at % p_.LeadingC(),
                           got, want, most);
    }
    return {};
  }

  Problem p_;
  std::vector<unsigned char> a_, b_;
  std::vector<float> bias_;
  oracle::GemmReference reference_;
};

std::string Describe(const Problem& p, const GemmConfig& c) {
  return fmt::format(
      "{} kernel {} mr {} nr {} mc {} nc {} kc {} pack_a {} pack_b {} n_outer {} split {} threads "
      "{}",
      p.Text(), static_cast<int>(c.kernel), c.mr, c.nr, c.mc, c.nc, c.kc, c.pack_a, c.pack_b,
      c.loop_n_outer, static_cast<int>(c.split), c.threads);
}

GemmConfig TileConfig(std::int32_t mr, std::int32_t nr) {
  GemmConfig config;
  config.mr = mr;
  config.nr = nr;
  config.pack_a = config.pack_b = true;
  return config;
}

GemmConfig DotConfig(std::int32_t mr, std::int32_t nr) {
  GemmConfig config;
  config.kernel = Kernel::kDot;
  config.mr = mr;
  config.nr = nr;
  return config;
}

Problem MakeProblem(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout,
                    DType dtype = DType::kFp32) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.layout = layout;
  problem.dtype = problem.dtype_out = dtype;
  return problem;
}

constexpr std::array kLayouts = {Layout::kNN, Layout::kNT, Layout::kTN, Layout::kTT};

std::int32_t Registers() { return PanelTileKernels().registers; }
std::int32_t Lanes() { return PanelTileKernels().lanes; }

// Runs on one vector level; levels that the machine lacks are left out.
class CpuGemm : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(0);
    if ((hwy::SupportedTargets() & GetParam()) == 0)
      GTEST_SKIP() << "this machine lacks the vector level";
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(CpuGemm, TileMatchesTheOracleForEveryRegisterTile) {
  for (std::int32_t nr = 1; nr <= kMaxTileVectors; ++nr)
    for (std::int32_t mr = 1; mr <= MaxTileRows(nr, Registers()); ++mr)
      for (const bool packed : {false, true}) {
        const Problem p =
            MakeProblem(2 * mr + 1, nr * Lanes() + 3, 11, packed ? Layout::kNT : Layout::kNN);
        GemmConfig config = TileConfig(mr, nr);
        config.pack_a = config.pack_b = packed;
        EXPECT_EQ(Case(p).Check(config), "") << Describe(p, config);
      }
}

TEST_P(CpuGemm, TileMatchesTheOracleForOddSizes) {
  constexpr std::array<std::int64_t, 10> kSizes = {1, 2, 3, 5, 7, 13, 17, 31, 33, 97};
  for (const Layout layout : kLayouts)
    for (size_t i = 0; i < kSizes.size(); ++i)
      for (size_t j = 0; j < kSizes.size(); ++j) {
        const Problem p =
            MakeProblem(kSizes[i], kSizes[j], kSizes[(i * 3 + j * 7) % kSizes.size()], layout);
        Case test(p);
        GemmConfig config = TileConfig(4, 2);
        EXPECT_EQ(test.Check(config), "") << Describe(p, config);
        config.pack_a = false;
        config.pack_b = p.b_transposed();
        config.loop_n_outer = false;
        EXPECT_EQ(test.Check(config), "") << Describe(p, config);
      }
}

TEST_P(CpuGemm, TileMatchesTheOracleForEveryWayToCutTheWork) {
  for (const Layout layout : kLayouts) {
    Problem p = MakeProblem(37, 83, 61, layout);
    p.epilogue = Epilogue::kBiasRelu;
    Case test(p);
    for (int bits = 0; bits < 32; ++bits)
      for (const Split split : {Split::kM, Split::kN, Split::kK})
        for (std::int32_t threads = 1; threads <= 3; ++threads) {
          GemmConfig config = TileConfig(4, 2);
          config.pack_a = bits & 1;
          config.pack_b = bits & 2;
          config.loop_n_outer = bits & 4;
          config.kc = bits & 8 ? 16 : 0;
          config.mc = bits & 8 ? 8 : 0;
          config.nc = bits & 16 ? 2 * Lanes() : 0;
          config.split = split;
          config.threads = threads;
          if (p.b_transposed() && !config.pack_b) continue;
          EXPECT_EQ(test.Check(config), "") << Describe(p, config);
        }
  }
}

TEST_P(CpuGemm, HonoursLeadingDimensionsBatchAndEpilogue) {
  for (const Layout layout : kLayouts)
    for (const DType in : {DType::kFp32, DType::kBf16})
      for (const DType out : {DType::kFp32, DType::kBf16})
        for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasRelu})
          for (const std::int64_t batch : {1, 2, 5}) {
            Problem p = MakeProblem(19, 21, 23, layout, in);
            p.dtype_out = out;
            p.batch = batch;
            p.epilogue = epilogue;
            p.lda = 29;
            p.ldb = 31;
            p.ldc = 27;
            Case test(p);
            for (const Split split : {Split::kM, Split::kN, Split::kK})
              for (std::int32_t threads = 1; threads <= 2; ++threads) {
                GemmConfig config = TileConfig(5, 1);
                config.kc = 8;
                config.split = split;
                config.threads = threads;
                EXPECT_EQ(test.Check(config), "") << Describe(p, config);
              }
          }
}

TEST_P(CpuGemm, DotMatchesTheOracleForEveryBlock) {
  for (std::int32_t nr = 1; nr <= kMaxDotColumns; ++nr)
    for (std::int32_t mr = 1; mr <= MaxDotRows(nr, Registers()); ++mr)
      for (const DType dtype : {DType::kFp32, DType::kBf16}) {
        const Problem p = MakeProblem(2 * mr + 1, 2 * nr + 1, 3 * Lanes() + 5, Layout::kNT, dtype);
        const GemmConfig config = DotConfig(mr, nr);
        EXPECT_EQ(Case(p).Check(config), "") << Describe(p, config);
      }
}

TEST_P(CpuGemm, DotMatchesTheOracleForEveryWayToCutTheWork) {
  for (const DType dtype : {DType::kFp32, DType::kBf16})
    for (const auto& [m, n, k] :
         {std::array{1, 1, 1}, {1, 1, 517}, {257, 1, 130}, {1, 97, 200}, {5, 3, 64}}) {
      Problem p = MakeProblem(m, n, k, Layout::kNT, dtype);
      p.epilogue = Epilogue::kBiasRelu;
      p.ldc = n + 2;
      p.lda = k + 3;
      p.batch = 2;
      Case test(p);
      for (const bool n_outer : {false, true})
        for (const Split split : {Split::kM, Split::kN, Split::kK})
          for (std::int32_t threads = 1; threads <= 3; ++threads) {
            GemmConfig config = DotConfig(4, 2);
            config.loop_n_outer = n_outer;
            config.split = split;
            config.threads = threads;
            EXPECT_EQ(test.Check(config), "") << Describe(p, config);
          }
    }
}

TEST_P(CpuGemm, DotTakesASingleRowOrColumnOfAnyLayout) {
  for (const Layout layout : kLayouts) {
    const bool a_one = layout == Layout::kTN || layout == Layout::kTT;
    const bool b_one = layout == Layout::kNN || layout == Layout::kTN;
    const Problem p = MakeProblem(a_one ? 1 : 9, b_one ? 1 : 9, 77, layout);
    EXPECT_EQ(Case(p).Check(DotConfig(2, 2)), "") << p.Text();
  }
  const Problem wide = MakeProblem(9, 2, 77, Layout::kNN);
  EXPECT_THAT(CheckConfig(wide, DotConfig(1, 1)).error().Text(), HasSubstr("contiguous in k"));
}

TEST_P(CpuGemm, SplitsAKThatIsShorterThanTheTeam) {
  // The first leaves its partial sums in the working memory that the second uses.
  for (const std::int64_t k : {61, 3}) {
    const Problem p = MakeProblem(9, 7, k, Layout::kNT);
    for (GemmConfig config : {TileConfig(4, 1), DotConfig(2, 2)}) {
      config.split = Split::kK;
      config.threads = 3;
      EXPECT_EQ(Case(p).Check(config), "") << Describe(p, config);
    }
  }
}

TEST_P(CpuGemm, ReluKeepsNaN) {
  Problem p = MakeProblem(3, 5, 4, Layout::kNN);
  p.epilogue = Epilogue::kBiasRelu;
  const std::vector<float> a(12, 1.0f), bias(5, -9.0f);
  std::vector<float> b(20, 1.0f), c(15);
  b[2] = std::nanf("");
  ASSERT_TRUE(RunGemm(p, TileConfig(3, 1), a.data(), b.data(), c.data(), bias.data()).ok());
  for (size_t i = 0; i < c.size(); ++i) {
    if (i % 5 == 2) {
      EXPECT_TRUE(std::isnan(c[i])) << i;
    } else {
      EXPECT_EQ(c[i], 0.0f) << i;
    }
  }
}

TEST_P(CpuGemm, RefusesConfigsThatDoNotFit) {
  const Problem p = MakeProblem(8, 8, 8, Layout::kNT);
  GemmConfig config = TileConfig(MaxTileRows(2, Registers()) + 1, 2);
  EXPECT_THAT(CheckConfig(p, config).error().Text(), HasSubstr("no register tile"));
  config = TileConfig(1, kMaxTileVectors + 1);
  EXPECT_THAT(CheckConfig(p, config).error().Text(), HasSubstr("no register tile"));
  config = TileConfig(2, 1);
  config.pack_b = false;
  EXPECT_THAT(CheckConfig(p, config).error().Text(), HasSubstr("must be packed"));
  config = TileConfig(2, 1);
  config.threads = 0;
  EXPECT_THAT(CheckConfig(p, config).error().Text(), HasSubstr("threads is 0"));
  config.threads = 1;
  config.kc = -1;
  EXPECT_THAT(CheckConfig(p, config).error().Text(), HasSubstr("kc"));
  config.kc = 0;
  EXPECT_THAT(CheckConfig(MakeProblem(8, 8, 8, Layout::kNT, DType::kInt8), config).error().Text(),
              HasSubstr("fp32 and bf16"));
  EXPECT_THAT(CheckConfig(MakeProblem(0, 8, 8, Layout::kNT), config).error().Text(),
              HasSubstr("m is 0"));
  const std::int64_t huge = std::int64_t{1} << 30;
  EXPECT_THAT(CheckConfig(MakeProblem(huge, huge, 1, Layout::kNN), config).error().Text(),
              HasSubstr("2^47"));
  const float value = 1;
  EXPECT_THAT(RunGemm(p, config, nullptr, &value, nullptr, nullptr).error().Text(),
              HasSubstr("null"));
}

class CpuGemmAmx : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasAmx()) GTEST_SKIP() << "this machine has no AMX";
  }
};

GemmConfig AmxConfig(std::int32_t mr, std::int32_t nr) {
  GemmConfig config = TileConfig(mr, nr);
  config.kernel = Kernel::kAmx;
  return config;
}

TEST_F(CpuGemmAmx, MatchesTheOracleForEveryBlockAndOddSizes) {
  constexpr std::array<std::int64_t, 10> kSizes = {1, 2, 3, 15, 16, 17, 31, 33, 64, 97};
  constexpr std::array<std::pair<int, int>, 8> kBlocks = {
      {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}, {3, 1}, {4, 1}}};
  for (const Layout layout : kLayouts)
    for (size_t i = 0; i < kSizes.size(); ++i)
      for (size_t j = 0; j < kSizes.size(); ++j) {
        const Problem p = MakeProblem(kSizes[i], kSizes[j], kSizes[(i * 3 + j * 7) % kSizes.size()],
                                      layout, DType::kBf16);
        Case test(p);
        for (const auto& [mr, nr] : kBlocks) {
          const GemmConfig config = AmxConfig(mr, nr);
          EXPECT_EQ(test.Check(config), "") << Describe(p, config);
        }
      }
}

TEST_F(CpuGemmAmx, MatchesTheOracleForEveryWayToCutTheWork) {
  for (const Layout layout : kLayouts)
    for (const DType out : {DType::kFp32, DType::kBf16})
      for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kBiasRelu}) {
        Problem p = MakeProblem(75, 83, 96, layout, DType::kBf16);
        p.dtype_out = out;
        p.epilogue = epilogue;
        p.batch = 2;
        p.lda = p.ldb = p.ldc = 99;
        Case test(p);
        for (int bits = 0; bits < 16; ++bits)
          for (const Split split : {Split::kM, Split::kN, Split::kK})
            for (std::int32_t threads = 1; threads <= 3; ++threads) {
              GemmConfig config = AmxConfig(2, 2);
              config.pack_a = p.a_transposed() || (bits & 1);
              config.loop_n_outer = bits & 2;
              config.kc = bits & 4 ? 32 : 0;
              config.mc = bits & 4 ? 32 : 0;
              config.nc = bits & 8 ? 32 : 0;
              config.split = split;
              config.threads = threads;
              EXPECT_EQ(test.Check(config), "") << Describe(p, config);
            }
      }
}

TEST_F(CpuGemmAmx, RefusesWhatTilesCannotDo) {
  const Problem p = MakeProblem(64, 64, 64, Layout::kNT, DType::kBf16);
  EXPECT_THAT(CheckConfig(MakeProblem(64, 64, 64, Layout::kNT), AmxConfig(2, 2)).error().Text(),
              HasSubstr("bf16 only"));
  EXPECT_THAT(CheckConfig(p, AmxConfig(2, 3)).error().Text(), HasSubstr("no block"));
  GemmConfig config = AmxConfig(2, 2);
  config.pack_b = false;
  EXPECT_THAT(CheckConfig(p, config).error().Text(), HasSubstr("packed B"));
  config = AmxConfig(2, 2);
  config.pack_a = false;
  EXPECT_TRUE(CheckConfig(p, config).ok());
  EXPECT_THAT(
      CheckConfig(MakeProblem(64, 64, 63, Layout::kNT, DType::kBf16), config).error().Text(),
      HasSubstr("packed A"));
}

TEST(CpuGemmTarget, NamesTheVectorLevelInUse) {
  EXPECT_THAT(std::string(VectorTarget()), ::testing::AnyOf("AVX3", "AVX2", "SSE4"));
}

std::string NameOfTarget(const ::testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

INSTANTIATE_TEST_SUITE_P(EachLevel, CpuGemm, ::testing::Values(HWY_SSE4, HWY_AVX2, HWY_AVX3),
                         NameOfTarget);

}  // namespace
}  // namespace gnomon::cpu
