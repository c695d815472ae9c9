#include "gnomon/families/cuda/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnomon/families/cuda/needs.h"

namespace gnomon::cuda {
namespace {

using testing::HasSubstr;
constexpr Generation kHopper = Generation::kSm90, kBlackwell = Generation::kSm100;

const Device& H200() {
  static const Device device = FindDevice("h200").value();
  return device;
}
const Device& B200() {
  static const Device device = FindDevice("b200").value();
  return device;
}

Problem Gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::kBf16,
             Layout layout = Layout::kNT) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.dtype = dtype;
  p.dtype_out = DType::kBf16;
  p.layout = layout;
  return p;
}

TileConfig Read(Generation generation, const char* text) {
  const auto config = ParseConfig(generation, text);
  EXPECT_TRUE(config.ok()) << config.error().Text();
  return config.ok() ? *config : TileConfig{};
}

std::string Why(Generation generation, const char* text, const Problem& problem) {
  const Device& device = generation == kHopper ? H200() : B200();
  return WhyNot(device, generation, problem, Read(generation, text));
}

TEST(TmaConfig, ReadsEveryField) {
  const TileConfig hopper = Read(kHopper, "128x256x64.c2x1.s4.coop2.k3.p.g8");
  const TileConfig expected = {.tile_m = 128,
                               .tile_n = 256,
                               .tile_k = 64,
                               .cluster_m = 2,
                               .stages = 4,
                               .consumers = 2,
                               .split_k = 3,
                               .persistent = true,
                               .group_m = 8};
  EXPECT_EQ(hopper, expected);
  const TileConfig blackwell = Read(kBlackwell, "256x128x64.c2x1.s6.mma2.acc2.k1.sk");
  EXPECT_EQ(blackwell.pair, 2);
  EXPECT_EQ(blackwell.accumulators, 2);
  EXPECT_TRUE(blackwell.stream_k);
  EXPECT_TRUE(Read(kHopper, "64x256x64.c1x1.s4.pp2.k1.p").ping_pong);
}

TEST(TmaConfig, PrintsWhatItReadAndKeepsItInAConfig) {
  for (const char* text :
       {"128x256x64.c2x1.s4.coop2.k1", "64x8x64.c1x1.s12.coop1.k16",
        "128x128x64.c1x2.s6.pp2.k1.p.g16", "192x128x128.c1x2.s4.coop2.k1.sk.g2"}) {
    const TileConfig c = Read(kHopper, text);
    EXPECT_EQ(Text(kHopper, c), text);
    EXPECT_EQ(FromConfig(ToConfig(c)), c);
  }
  for (const char* text :
       {"128x256x64.c2x1.s6.mma2.acc2.k1.p", "16x64x128.c1x1.s12.mma1.acc1.k4"}) {
    const TileConfig c = Read(kBlackwell, text);
    EXPECT_EQ(Text(kBlackwell, c), text);
    EXPECT_EQ(FromConfig(ToConfig(c)), c);
  }
}

TEST(TmaConfig, RefusesNonsenseWithPlaceExpectationAndAnExample) {
  const auto error = [](const char* text) { return ParseConfig(kHopper, text).error().Text(); };
  EXPECT_THAT(
      error("128x250x64.c2x1.s4.coop2.k1"),
      HasSubstr("position 5: expected a multiple of 8 up to 256, found '250x64.c' (a config "
                "of family sm90 reads like 128x256x64.c2x1.s4.coop2.k1)"));
  EXPECT_THAT(error("128x256x64.c3x1.s4.coop2.k1"),
              HasSubstr("position 13: expected a power of two"));
  EXPECT_THAT(error("128x256x64.c2x1.s4.mma2.k1"),
              HasSubstr("expected '.coop1', '.coop2' or '.pp2'"));
  EXPECT_THAT(error("128x256x64.c2x1.s4.coop3.k1"),
              HasSubstr("expected a whole number from 1 to 2"));
  EXPECT_THAT(error("128x128x64.c2x1.s4.pp2.k1"), HasSubstr("expected '.p'"));
  EXPECT_THAT(error("128x256x64.c2x1.s4.coop2.k2.sk"), HasSubstr("expected the end, found '.sk'"));
  EXPECT_THAT(error("128x256x64.c2x1.s04.coop2.k1"), HasSubstr("found '04.coop2'"));
  EXPECT_THAT(error(""), HasSubstr("position 1"));
  EXPECT_THAT(ParseConfig(kBlackwell, "128x256x64.c2x1.s4.coop2.k1").error().Text(),
              HasSubstr("128x256x64.c2x1.s6.mma2.acc2.k1"));
}

TEST(TmaNeeds, CountsRegistersSharedMemoryAndTensorMemory) {
  const ElementBytes bytes = ElementBytesOf(Gemm(4096, 4096, 4096));
  // 128·256 accumulators over 256 threads, and 48 others.
  const UnitNeeds hopper =
      UnitNeedsOf(kHopper, Read(kHopper, "128x256x64.c1x1.s4.coop2.k1"), bytes);
  EXPECT_DOUBLE_EQ(hopper.consumer_registers, 128 + 48);
  EXPECT_EQ(hopper.tensor_columns, 0);
  // 4 · (384 · 64 · 2 + 16) of stages, 4 boxes of 64 · 128 bytes, 1024 of alignment.
  EXPECT_DOUBLE_EQ(hopper.shared.value, 4 * (49152 + 16) + 32768 + 1024);
  const UnitNeeds pair =
      UnitNeedsOf(kBlackwell, Read(kBlackwell, "128x256x64.c2x1.s4.mma2.acc2.k1.p"), bytes);
  EXPECT_EQ(pair.tensor_columns, 512);
  // Each CTA of a pair holds half of B: (128 + 128) · 64 · 2.
  EXPECT_DOUBLE_EQ(pair.shared.value, 4 * (32768 + 16) + 16384 + 1024);
  // A power of two, at least 32.
  const auto columns = [&](const char* text) {
    return UnitNeedsOf(kBlackwell, Read(kBlackwell, text), bytes).tensor_columns;
  };
  EXPECT_EQ(columns("128x16x64.c1x1.s4.mma1.acc1.k1"), 32);
  EXPECT_EQ(columns("128x96x64.c1x1.s4.mma1.acc1.k1"), 128);
  EXPECT_EQ(columns("16x128x64.c1x1.s4.mma1.acc1.k1"), 32);
  EXPECT_EQ(columns("256x192x64.c1x1.s3.mma1.acc1.k1"), 512);
}

TEST(TmaNeeds, NamesWhatDoesNotFit) {
  const Problem p = Gemm(4096, 4096, 4096);
  EXPECT_EQ(Why(kHopper, "128x256x64.c2x1.s4.coop2.k1", p), "");
  EXPECT_THAT(Why(kHopper, "128x256x64.c2x1.s5.coop2.k1", p),
              HasSubstr("279632 bytes of shared memory; a CTA has 232448"));
  EXPECT_THAT(Why(kHopper, "256x256x64.c2x1.s3.coop2.k1", p),
              HasSubstr("304 registers a consumer thread; it has 232"));
  EXPECT_THAT(Why(kHopper, "128x256x64.c2x1.s3.pp2.k1.p", p), HasSubstr("304 registers"));
  EXPECT_THAT(Why(kHopper, "128x256x64.c4x4.s4.coop2.k1", p), HasSubstr("a cluster of 16"));
  EXPECT_THAT(Why(kHopper, "32x32x64.c1x1.s4.coop1.k1", p),
              HasSubstr("no matrix instruction makes a tile of 32x32"));
  EXPECT_THAT(Why(kHopper, "64x8x64.c1x1.s4.coop2.k1", p), HasSubstr("cannot be halved"));
  EXPECT_THAT(Why(kHopper, "128x128x64.c1x1.s4.coop2.k128", p), HasSubstr("fewer steps"));
  EXPECT_THAT(Why(kHopper, "128x128x64.c1x1.s4.coop2.k9", p),
              HasSubstr("604 MB of partial sums; the workspace has 537"));
  EXPECT_THAT(Why(kHopper, "64x64x64.c1x1.s4.coop1.k1", Gemm(2147483647, 65536, 64)),
              HasSubstr("32 bits"));
  EXPECT_EQ(Why(kBlackwell, "256x256x64.c2x1.s4.mma2.acc1.k1", p), "");
  EXPECT_THAT(Why(kBlackwell, "256x256x64.c2x1.s4.mma2.acc2.k1.p", p),
              HasSubstr("1024 columns of tensor memory; a unit has 512"));
  EXPECT_THAT(Why(kBlackwell, "128x256x64.c1x2.s4.mma2.acc1.k1", p), HasSubstr("along the rows"));
  EXPECT_THAT(Why(kBlackwell, "192x192x64.c1x1.s4.mma1.acc1.k1", p), HasSubstr("tile of 192x192"));
}

TEST(TmaNeeds, RefusesOperandsThatTmaCannotLoad) {
  const auto error = [](const Problem& p, Generation g = kHopper) {
    const Status status = CheckProblemFor(g == kHopper ? H200() : B200(), g, p);
    return status.ok() ? std::string() : status.error().Text();
  };
  EXPECT_THAT(
      error(Gemm(512, 512, 511)),
      HasSubstr("rows of A are not whole 16 bytes, which TMA needs; unaligned operands need "
                "another family"));
  EXPECT_THAT(error(Gemm(512, 511, 512)), HasSubstr("rows of C"));
  Problem strided = Gemm(512, 512, 512);
  strided.ldb = 516;
  EXPECT_THAT(error(strided), HasSubstr("rows of B"));
  strided.ldb = 520;
  EXPECT_EQ(error(strided), "");
  // Stored [K, M]: its rows are M long.
  EXPECT_THAT(error(Gemm(511, 512, 512, DType::kBf16, Layout::kTN)), HasSubstr("rows of A"));
  EXPECT_EQ(error(Gemm(511, 512, 512)), "");
  EXPECT_THAT(error(Gemm(512, 512, 512, DType::kFp8E4m3, Layout::kNN)),
              HasSubstr("in layout nt only"));
  EXPECT_EQ(error(Gemm(512, 512, 512, DType::kFp8E4m3)), "");
  EXPECT_THAT(error(Gemm(512, 512, 512, DType::kMxFp4)), HasSubstr("no kernel for mxfp4"));
  EXPECT_EQ(error(Gemm(512, 512, 512, DType::kMxFp4), kBlackwell), "");
  EXPECT_THAT(error(Gemm(512, 512, 528, DType::kMxFp8), kBlackwell),
              HasSubstr("a scale for every 32"));
  EXPECT_THAT(CheckProblemFor(B200(), kHopper, Gemm(512, 512, 512)).error().Text(),
              HasSubstr("family sm90 runs on Hopper GPUs, and b200 is none"));
}

TEST(TmaNeeds, LeavesIdleWhatAGpcHasBeyondWholeClusters) {
  EXPECT_EQ(UnitsInClusters(132, 1), 132);
  EXPECT_EQ(UnitsInClusters(132, 2), 132);
  EXPECT_EQ(UnitsInClusters(132, 4), 128);  // 32 clusters of four on GH100
  EXPECT_EQ(UnitsInClusters(7, 2), 6);
  EXPECT_EQ(UnitsInClusters(8, 8), 0);  // eight units lie in four GPCs
}

}  // namespace
}  // namespace gnomon::cuda
