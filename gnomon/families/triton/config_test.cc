#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnomon/families/triton/triton_gemm.h"

namespace gnomon::triton {
namespace {

using testing::HasSubstr;

TEST(TritonConfig, PrintsWhatDiffersFromTheDefaults) {
  TritonConfig c;
  EXPECT_EQ(Text(c), "128x128x64.w4.s3.k1");
  c.block_m = 32;
  c.block_n = 256;
  c.block_k = 128;
  c.warps = 8;
  c.stages = 5;
  c.split_k = 16;
  EXPECT_EQ(Text(c), "32x256x128.w8.s5.k16");
  c.group_m = 4;
  c.persistent = true;
  c.waves_per_eu = 2;
  c.mfma = 32;
  c.kpack = 2;
  EXPECT_EQ(Text(c), "32x256x128.w8.s5.k16.g4.p.e2.i32.kp2");
}

TEST(TritonConfig, ReadsWhatItPrints) {
  for (const char* text : {"128x128x64.w4.s3.k1", "16x16x1024.w1.s1.k4096",
                           "256x64x32.w16.s8.k3.g1", "64x64x64.w4.s2.k1.p",
                           "64x64x64.w4.s2.k1.e3.i16.kp2", "64x64x64.w4.s2.k1.g4.p.e2.i32.kp2"}) {
    const auto config = ParseConfig(text);
    ASSERT_TRUE(config.ok()) << config.error().Text();
    EXPECT_EQ(Text(*config), text);
    EXPECT_EQ(Text(FromConfig(ToConfig(*config))), text);
    const auto back = GemmFamily().Parse(text);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(GemmFamily().Print(*back), text);
  }
}

TEST(TritonConfig, NamesThePositionOfWhatItDoesNotUnderstand) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "position 1: expected a power of two up to 1024, found the end"},
      {"96x64x64.w4.s3.k1", "position 1: expected a power of two up to 1024"},
      {"128x128x64", "position 11: expected '.w', found the end"},
      {"128x128x64.w3.s3.k1", "position 13: expected a power of two up to 32"},
      {"128x128x64.w4.s0.k1", "position 16: expected a whole number from 1 to 8"},
      {"128x128x64.w4.s9.k1", "position 16: expected a whole number from 1 to 8"},
      {"128x128x64.w4.s3.k01", "position 19: expected a whole number from 1 to 4096"},
      {"128x128x64.w4.s3.k1.i48", "position 22: expected"},
      {"128x128x64.w4.s3.k1.p.g4", "position 22: expected the end, found '.g4'"},
      {"128x128x64.w4.s3.k1 ", "expected the end"},
      {"tile.14x2", "reads like 128x128x64.w4.s3.k1"}};
  for (const auto& [text, expected] : cases) {
    const auto config = ParseConfig(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(config.error().Text(), HasSubstr(expected)) << text;
  }
}

}  // namespace
}  // namespace gnomon::triton
