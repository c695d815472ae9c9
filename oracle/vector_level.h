#pragma once

/// Runs a test once on every vector level that kernels are compiled for and this machine has.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "hwy/targets.h"

namespace gnomon::oracle {

/// The parameter is the one level that kernels may use; a machine that lacks it skips.
class VectorLevel : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(0);
    if ((hwy::SupportedTargets() & GetParam()) == 0)
      GTEST_SKIP() << "this machine lacks " << hwy::TargetName(GetParam());
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

inline std::string LevelName(const testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace gnomon::oracle

/// Gives a suite derived from VectorLevel its levels.
#define GNOMON_ON_EACH_LEVEL(suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(EachLevel, suite, ::testing::Values(HWY_SSE4, HWY_AVX2, HWY_AVX3), \
                           ::gnomon::oracle::LevelName)
