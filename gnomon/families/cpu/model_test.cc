#include "gnomon/families/cpu/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/gemm/fixed_devices.h"
#include "gnomon/gemm/select.h"

namespace gnomon::cpu {
namespace {

Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout,
             DType dtype = DType::kFp32) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.layout = layout;
  p.dtype = p.dtype_out = dtype;
  return p;
}

std::vector<Problem> SomeProblems() {
  return {Gemm(2048, 512, 13, Layout::kNT),
          Gemm(512, 13, 2048, Layout::kTN),
          Gemm(2048, 256, 512, Layout::kNT),
          Gemm(2048, 1, 256, Layout::kNT),
          Gemm(1, 256, 2048, Layout::kTN),
          Gemm(4096, 367, 512, Layout::kNN),
          Gemm(7, 9, 11, Layout::kTT),
          Gemm(65536, 512, 13, Layout::kNT),
          Gemm(512, 512, 512, Layout::kNT, DType::kBf16)};
}

// Visits every config of every problem on a device.
template <class Visit>
void ForAll(const Device& device, const Visit& visit) {
  for (const Problem& problem : SomeProblems()) {
    std::vector<Config> configs;
    ASSERT_TRUE(GemmFamily().Enumerate(device, problem, 0, configs).ok());
    for (const Config& config : configs) visit(problem, config);
  }
}

double Time(const Device& device, const Problem& problem, const Config& config) {
  return GemmFamily().PredictTime(device, problem, config).value;
}

Pick BestOf(const Device& device, const Problem& problem) {
  const Family* family = &GemmFamily();
  return Select(device, problem, std::span(&family, 1)).value()[0];
}

TEST(CpuModel, TermsAddUpToTheTime) {
  for (const int bits : {256, 512}) {
    const Device device = FixedCpu(bits);
    ForAll(device, [&](const Problem& problem, const Config& config) {
      const Prediction prediction = GemmFamily().Predict(device, problem, config);
      double sum = 0;
      for (const Term& term : prediction.terms) {
        EXPECT_GT(term.time.value, 0) << term.name;
        sum += term.time.value;
      }
      EXPECT_NEAR(sum, prediction.time.value, 1e-12 * prediction.time.value);
      EXPECT_EQ(prediction.time.value, Time(device, problem, config));
    });
  }
}

TEST(CpuModel, BoundIsThatOfTheBiggestTerm) {
  const Device device = FixedCpu();
  const Problem square = Gemm(1024, 1024, 1024, Layout::kNT), tiny = Gemm(4, 4, 4, Layout::kNT);
  EXPECT_EQ(GemmFamily().Predict(device, square, BestOf(device, square).config).bound,
            Bound::kCompute);
  EXPECT_EQ(GemmFamily().Predict(device, tiny, BestOf(device, tiny).config).bound, Bound::kLaunch);
  const Problem rank_one = Gemm(65536, 512, 1, Layout::kNN);
  EXPECT_EQ(GemmFamily().Predict(device, rank_one, BestOf(device, rank_one).config).bound,
            Bound::kMemory);
}

TEST(CpuModel, NeverBeatsTheArithmetic) {
  const Device device = FixedCpu();
  ForAll(device, [&](const Problem& problem, const Config& config) {
    const double peak =
        device.FindRate(problem.dtype)->peak.value * FromConfig(config).threads / device.units;
    EXPECT_GE(Time(device, problem, config), problem.flops().value / peak)
        << GemmFamily().Print(config);
  });
}

TEST(CpuModel, MoreBandwidthIsNeverSlower) {
  const Device device = FixedCpu();
  for (size_t level = 0; level < device.memory.size(); ++level) {
    Device wide = device;
    MemoryLevel& memory = wide.memory[level];
    memory.bandwidth = memory.bandwidth * 2;
    memory.unit_bandwidth = memory.unit_bandwidth * 2;
    ForAll(device, [&](const Problem& problem, const Config& config) {
      EXPECT_LE(Time(wide, problem, config), Time(device, problem, config) * (1 + 1e-12))
          << memory.name << ", " << problem.Text() << ", " << GemmFamily().Print(config);
    });
  }
}

TEST(CpuModel, DoublingASideOfTheBestPickIsNeverFaster) {
  const Device device = FixedCpu();
  for (const Problem& problem : SomeProblems()) {
    const double time = BestOf(device, problem).predicted.value;
    for (std::int64_t Problem::*side : {&Problem::m, &Problem::n, &Problem::k}) {
      Problem twice = problem;
      twice.*side *= 2;
      EXPECT_GE(BestOf(device, twice).predicted.value, time * 0.98) << problem.Text();
    }
  }
}

// Time has one unit: a device twice as fast in everything does everything in half the time.
TEST(CpuModel, ScalesWithTheUnitOfTime) {
  const Device device = FixedCpu();
  Device fast = device;
  fast.sustained_clock = device.sustained_clock * 2;
  fast.launch = device.launch / 2;
  fast.fork_join = device.fork_join / 2;
  for (MemoryLevel& level : fast.memory) {
    level.bandwidth = level.bandwidth * 2;
    level.unit_bandwidth = level.unit_bandwidth * 2;
    level.write_bandwidth = level.write_bandwidth * 2;
    level.random_bandwidth = level.random_bandwidth * 2;
    level.latency = level.latency / 2;
  }
  ForAll(device, [&](const Problem& problem, const Config& config) {
    EXPECT_NEAR(Time(fast, problem, config) * 2, Time(device, problem, config),
                1e-9 * Time(device, problem, config));
  });
}

TEST(CpuModel, StaysFiniteBeyondThirtyTwoBits) {
  const Device device = FixedCpu();
  const Problem huge = Gemm(std::int64_t{1} << 33, 4096, 4096, Layout::kNN);
  const Pick pick = BestOf(device, huge);
  EXPECT_TRUE(std::isfinite(pick.predicted.value));
  EXPECT_GT(pick.predicted.value, huge.flops().value / device.FindRate(DType::kFp32)->peak.value);
  const Problem tall = Gemm(64, 64, std::int64_t{1} << 34, Layout::kTN);
  EXPECT_GT(BestOf(device, tall).predicted.value,
            tall.flops().value / device.FindRate(DType::kFp32)->peak.value);
}

TEST(CpuModel, ChargesABatchByTheNumberOfProblems) {
  const Device device = FixedCpu();
  Problem one = Gemm(128, 64, 64, Layout::kNT), many = one;
  many.batch = 64;
  const GemmConfig config = FromConfig(BestOf(device, one).config);
  Parts single = Price(MachineOf(device), one, config);
  GemmConfig shared = config;
  shared.threads = 2;
  const Parts batch = Price(MachineOf(device), many, shared);
  GemmConfig alone = config;
  alone.threads = 1;
  single = Price(MachineOf(device), one, alone);
  EXPECT_NEAR(batch.multiply, 32 * single.multiply, 1e-9 * batch.multiply);
}

// Golden picks on devices of round numbers: kernel and tile for each shape, as text.
TEST(CpuModel, RanksConfigsByShape) {
  const auto kernel = [](const Pick& pick) {
    const std::string text = pick.family->Print(pick.config);
    return text.substr(0, text.find('.'));
  };
  for (const int bits : {256, 512}) {
    const Device device = FixedCpu(bits);
    EXPECT_EQ(kernel(BestOf(device, Gemm(2048, 1, 256, Layout::kNT))), "dot") << bits;
    EXPECT_EQ(kernel(BestOf(device, Gemm(2048, 256, 512, Layout::kNT))), "tile") << bits;
    // Few outputs and a long K: only K gives both threads work.
    const Pick tall = BestOf(device, Gemm(13, 8, 65536, Layout::kTN));
    EXPECT_EQ(FromConfig(tall.config).split, GemmConfig::Split::kK) << bits;
    // Many rows: they are what the threads share.
    const Pick rows = BestOf(device, Gemm(65536, 512, 13, Layout::kNT));
    EXPECT_EQ(FromConfig(rows.config).split, GemmConfig::Split::kM) << bits;
    EXPECT_EQ(FromConfig(rows.config).threads, 2) << bits;
  }
  const Pick amx = BestOf(FixedCpu(512), Gemm(1024, 1024, 1024, Layout::kNT, DType::kBf16));
  EXPECT_EQ(FromConfig(amx.config).kernel, GemmConfig::Kernel::kAmx);
  EXPECT_EQ(FromConfig(amx.config).mr * FromConfig(amx.config).nr, 4);
}

TEST(CpuModel, PowerOfTwoRowsOfAnUnpackedOperandCost) {
  const Device device = FixedCpu();
  const Machine machine = MachineOf(device);
  GemmConfig config;
  config.mr = 14;
  config.nr = 2;
  config.kc = 256;
  config.loop_n_outer = true;
  Problem even = Gemm(1024, 1024, 1024, Layout::kNN), padded = even;
  even.ldb = 1024;
  padded.ldb = 1040;
  EXPECT_GT(Price(machine, even, config).stream, Price(machine, padded, config).stream);
}

}  // namespace
}  // namespace gnomon::cpu
