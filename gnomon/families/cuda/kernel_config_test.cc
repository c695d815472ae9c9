#include "gnomon/families/cuda/kernel_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnomon/families/cuda/kernel_needs.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon::cuda {
namespace {

using testing::HasSubstr;

KernelConfig Read(std::string_view text) {
  const auto config = ParseKernelConfig(text);
  EXPECT_TRUE(config.ok()) << config.error().Text();
  return config.ok() ? *config : KernelConfig{};
}

std::string Why(const char* text, const Problem& problem) {
  static const Device h200 = FindDevice("h200").value();
  return WhyNot(h200, problem, Read(text));
}

TEST(KernelConfig, ReadsEveryField) {
  const KernelConfig tma = {.kind = Kind::kTma,
                            .tile_m = 128,
                            .tile_n = 256,
                            .consumers = Consumers::kBoth,
                            .cluster_m = 2,
                            .cluster_n = 1,
                            .split_k = 3,
                            .fix_up = true,
                            .group_m = 8};
  EXPECT_EQ(Read("tma.128x256.c2x1.both.k3.fix.g8"), tma);
  const KernelConfig copy = Read("copy.64x32.c1x1.turns.k1.sk");
  EXPECT_EQ(copy.kind, Kind::kCopy);
  EXPECT_EQ(copy.consumers, Consumers::kTurns);
  EXPECT_TRUE(copy.stream_k);
  const KernelConfig vector = Read("vector.8x4.k16");
  EXPECT_EQ(vector.kind, Kind::kVector);
  EXPECT_EQ(vector.tile_m, 8);
  EXPECT_EQ(vector.tile_n, 4);
  EXPECT_EQ(vector.split_k, 16);
}

TEST(KernelConfig, PrintsWhatItReadAndKeepsItInAConfig) {
  for (const char* text :
       {"tma.128x256.c2x1.both.k1", "tma.128x256.c2x1.both.k1.g8", "copy.64x32.c1x1.turns.k4.fix",
        "tma.64x64.c1x1.turns.k1.sk.g4", "copy.128x128.c1x1.both.k2.g512", "vector.8x4.k16",
        "vector.1x1.k1", "pad.128x64.c1x1.turns.k2.fix.g4", "tma.64x64.c1x1.one.k64"}) {
    const KernelConfig c = Read(text);
    EXPECT_EQ(Text(c), text);
    EXPECT_EQ(KernelConfigFrom(ToConfig(c)), c);
  }
}

TEST(KernelConfig, PrintsEveryKernelOfTheTable) {
  EXPECT_GE(KernelsOf(Kind::kTma).size(), 20u);
  EXPECT_GE(KernelsOf(Kind::kCopy).size(), 4u);
  for (const Kind kind : {Kind::kTma, Kind::kCopy, Kind::kPad})
    for (const KernelConfig& kernel : KernelsOf(kind)) EXPECT_EQ(Read(Text(kernel)), kernel);
}

TEST(KernelConfig, RefusesNonsenseWithPlaceExpectationAndAnExample) {
  const auto error = [](const char* text) { return ParseKernelConfig(text).error().Text(); };
  EXPECT_THAT(error("tma.128x250.c2x1.both.k1"),
              HasSubstr("position 9: expected a multiple of 8 up to 256, found '250.c2x1' (a "
                        "config of family cuda reads like tma.128x256.c2x1.both.k1.g8)"));
  EXPECT_THAT(error("tmb.128x256.c2x1.both.k1"),
              HasSubstr("position 1: expected 'tma.', 'copy.', 'pad.' or 'vector.'"));
  EXPECT_THAT(error("tma.128x256.c3x1.both.k1"), HasSubstr("expected a power of two up to 16"));
  EXPECT_THAT(error("tma.128x256.c2x1.coop.k1"),
              HasSubstr("position 18: expected 'both', 'turns' or 'one'"));
  EXPECT_THAT(error("tma.128x256.c2x1.both.k0"), HasSubstr("a whole number from 1 to 4096"));
  EXPECT_THAT(error("tma.128x256.c2x1.both.k1.fix"), HasSubstr("expected the end, found '.fix'"));
  EXPECT_THAT(error("tma.128x256.c2x1.both.k2.sk"), HasSubstr("expected the end, found '.sk'"));
  EXPECT_THAT(error("tma.128x256.c2x1.both.k1.g1"), HasSubstr("a whole number from 2"));
  EXPECT_THAT(error("tma.128x256.c2x1.both.k1.g8.sk"), HasSubstr("expected the end"));
  EXPECT_THAT(error("vector.8x4.k1.g2"), HasSubstr("expected the end, found '.g2'"));
  EXPECT_THAT(error(""), HasSubstr("found the end"));
}

TEST(KernelConfig, NamesTheNearestKernelOfTheTable) {
  const Problem p = Gemm(512, 512, 512);
  EXPECT_EQ(Why("tma.128x256.c2x1.both.k1", p), "");
  EXPECT_EQ(Why("tma.128x248.c2x1.both.k2.g8", p),
            "no kernel tma.128x248.c2x1.both.k1; nearest: tma.128x256.c2x1.both.k1");
  EXPECT_THAT(Why("tma.64x64.c1x1.both.k1", p), HasSubstr("nearest: tma.64x64.c1x1.turns.k1"));
  EXPECT_THAT(Why("copy.128x128.c2x1.both.k1", p), HasSubstr("nearest: copy.128x128.c1x1.both.k1"));
}

TEST(KernelNeeds, AskTmaForRowsOfWhole16Bytes) {
  EXPECT_THAT(Why("tma.64x64.c1x1.turns.k1", Gemm(512, 512, 13)),
              HasSubstr("rows of A allow loads of 2, of B 2; nearest kind: copy"));
  EXPECT_EQ(Why("copy.64x64.c1x1.turns.k1", Gemm(512, 512, 13)), "");
  EXPECT_EQ(Why("copy.64x64.c1x1.turns.k1", Gemm(512, 512, 512)), "");
  // C may have any leading dimension.
  EXPECT_EQ(Why("tma.64x64.c1x1.turns.k1", Gemm(512, 511, 512)), "");
  EXPECT_FALSE(TmaStores(Gemm(512, 511, 512)));
  EXPECT_TRUE(TmaStores(Gemm(512, 512, 512)));

  const auto loads = [](std::int64_t k, std::int64_t lda) {
    Problem p = Gemm(64, 64, k);
    p.lda = lda;
    return LoadBytesOfA(p);
  };
  EXPECT_EQ(loads(13, 0), 2);
  EXPECT_EQ(loads(14, 0), 4);
  EXPECT_EQ(loads(12, 0), 8);
  EXPECT_EQ(loads(8, 0), 16);
  EXPECT_EQ(loads(64, 0), 16);
  EXPECT_EQ(loads(13, 16), 16);
  // Stored [K, M]: its rows are M long.
  EXPECT_EQ(LoadBytesOfA(Gemm(39, 64, 512, DType::kBf16, Layout::kTN)), 2);
  EXPECT_EQ(LoadBytesOfB(Gemm(64, 36, 512, DType::kBf16, Layout::kTN)), 8);
  EXPECT_EQ(LoadBytesOfA(Gemm(64, 64, 13, DType::kFp8E4m3)), 1);
  EXPECT_EQ(LoadBytesOfA(Gemm(64, 64, 13, DType::kTf32)), 4);
}

TEST(KernelNeeds, AskForPartsThatExistAndScratchThatIsGranted) {
  Problem p = Gemm(512, 512, 512);
  EXPECT_EQ(Why("tma.128x128.c1x1.both.k8", p), "");
  EXPECT_EQ(Why("tma.128x128.c1x1.both.k9", p), "K has 8 steps of 64; nearest split: k8");
  EXPECT_THAT(
      Why("tma.128x128.c1x1.both.k1.sk", Gemm(512, 512, 64)),
      HasSubstr("nothing to cut: 16 tiles of 1 k steps for 132 clusters; nearest: without"));
  EXPECT_THAT(Why("tma.128x128.c1x1.both.k1.sk", Gemm(128 * 132, 128, 512)),
              HasSubstr("nothing to cut: 132 tiles"));
  // 16 tiles of 2 parts, behind the counters.
  constexpr double kNeeded = kCounterBytes + 16 * 2 * (128 * 128 + 128) * 4;
  p.workspace = Bytes{kNeeded};
  EXPECT_EQ(Why("tma.128x128.c1x1.both.k2.fix", p), "");
  p.workspace = Bytes{kNeeded - 1};
  EXPECT_THAT(Why("tma.128x128.c1x1.both.k2.fix", p), HasSubstr("2.24 MB of partial sums"));
  EXPECT_EQ(Why("tma.128x128.c1x1.both.k1", p), "");
}

TEST(KernelNeeds, CutNoGroupsAndNoMoreTilesThanThereAreCounters) {
  Problem p = Gemm(512, 512, 512);
  p.group_m = {256, 256};
  EXPECT_EQ(Why("tma.64x64.c1x1.turns.k1", p), "");
  EXPECT_THAT(Why("tma.64x64.c1x1.turns.k2", p), HasSubstr("not cut along K; nearest: k1"));
  EXPECT_THAT(Why("tma.64x64.c1x1.turns.k1.sk", p), HasSubstr("not cut along K; nearest: k1"));
  // 128 KiB hold 16384 tiles' counters of 2 warpgroups.
  EXPECT_EQ(Why("tma.64x16.c1x1.turns.k2.fix", Gemm(64 * 128, 16 * 128, 512)), "");
  EXPECT_THAT(Why("tma.64x16.c1x1.turns.k2.fix", Gemm(64 * 129, 16 * 128, 512)),
              HasSubstr("than the workspace has counters; nearest: without .fix"));
  EXPECT_EQ(Why("tma.64x16.c1x1.turns.k2", Gemm(64 * 129, 16 * 128, 512)), "");
}

TEST(KernelNeeds, NameTheNearestVectorKernel) {
  EXPECT_EQ(Why("vector.4x1.k1", Gemm(65536, 1, 256)), "");
  EXPECT_EQ(Why("vector.4x2.k1", Gemm(65536, 1, 256)),
            "no vector kernel of 4x2 for this problem; nearest: 4x1");
  EXPECT_THAT(Why("vector.4x1.k1", Gemm(512, 512, 512)),
              HasSubstr("a side of at most 16; nearest kind: tma"));
  EXPECT_THAT(Why("vector.4x1.k64", Gemm(65536, 1, 256)), HasSubstr("nearest: k1"));
}

TEST(KernelNeeds, CountTilesIn32Bits) {
  EXPECT_THAT(Why("copy.64x16.c1x1.turns.k1", Gemm(2147483647, 2000, 1)),
              HasSubstr("more tiles than a kernel can count in 32 bits"));
  EXPECT_EQ(Why("copy.128x128.c1x1.both.k1", Gemm(2147483647, 200, 1)), "");
  EXPECT_THAT(Why("copy.64x64.c1x1.turns.k1", Gemm(2147483648, 64, 1)),
              HasSubstr("a side of 2147483648"));
}

TEST(KernelNeeds, SayWhatTheFamilyHasNoKernelsFor) {
  const char* const kernel = "tma.64x64.c1x1.turns.k1";
  EXPECT_THAT(Why(kernel, Gemm(64, 64, 64, DType::kInt8)), HasSubstr("no kernel for int8"));
  EXPECT_THAT(Why(kernel, Gemm(64, 64, 64, DType::kFp8E4m3, Layout::kNN)),
              HasSubstr("fp8_e4m3 in layout nt only"));
  EXPECT_THAT(Why(kernel, Gemm(64, 64, 64, DType::kBf16, Layout::kTT)), HasSubstr("nt, nn and tn"));
  EXPECT_THAT(Why(kernel, Gemm(8, 64, 64, DType::kBf16, Layout::kTT)),
              HasSubstr("nearest kind: vector"));
  Problem p = Gemm(64, 64, 64);
  p.epilogue = Epilogue::kBiasGradient;
  EXPECT_THAT(Why(kernel, p), HasSubstr("layout tn"));
  p.layout = Layout::kTN;
  EXPECT_EQ(Why(kernel, p), "");
  p.dtype_out = DType::kInt8;
  EXPECT_THAT(Why(kernel, p), HasSubstr("stores a product of bf16 as fp32 or bf16, not int8"));
  EXPECT_THAT(CheckKernelProblem(FindDevice("b200").value(), Gemm(64, 64, 64)).error().Text(),
              HasSubstr("family cuda runs on Hopper GPUs, and b200 is none"));
}

}  // namespace
}  // namespace gnomon::cuda
