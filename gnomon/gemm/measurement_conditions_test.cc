#include "gnomon/gemm/measurement_conditions.h"

#include <gtest/gtest.h>

namespace gnomon {
namespace {

Measurement Row(std::string source, std::string config, DType dtype = DType::kBf16) {
  Measurement row;
  row.source = std::move(source);
  row.config = std::move(config);
  row.problem.dtype = dtype;
  return row;
}

TEST(MeasurementConditions, TellTheCollectorsOfOneRepositoryApart) {
  const auto few = ConditionsOf(
      Row("ai-dynamo/aiconfigurator@095f58a51 b200_sxm/gemm/trtllm/1.3.0rc10", "torch_flow"));
  EXPECT_EQ(few.weight_copies, 5);
  EXPECT_TRUE(few.copies_until_l2);
  EXPECT_FALSE(few.own_activations);
  const auto six =
      ConditionsOf(Row("ai-dynamo/aiconfigurator@095f58a51 b200_sxm/gemm/sglang/0.5.9", "sglang"));
  EXPECT_EQ(six.weight_copies, 6);
  EXPECT_FALSE(six.copies_until_l2);
  EXPECT_TRUE(six.own_activations);
  EXPECT_FALSE(six.cold_l2);
}

TEST(MeasurementConditions, AFlushIsColdAndEventsAreEager) {
  const auto sweep = ConditionsOf(Row("H200 2026-12-01", "default"));
  EXPECT_TRUE(sweep.cold_l2);
  EXPECT_FALSE(sweep.dirty_l2);
  EXPECT_TRUE(sweep.events);
  const auto cupti = ConditionsOf(Row("flashinfer-ai/flashinfer#2540", "mm_fp4 cudnn autotuned"));
  EXPECT_TRUE(cupti.cold_l2);
  EXPECT_TRUE(cupti.dirty_l2);
  EXPECT_FALSE(cupti.events);
  EXPECT_FALSE(ConditionsOf(Row("flashinfer-ai/flashinfer#1829", "L2 probably warm")).cold_l2);
}

TEST(MeasurementConditions, MetasB200IsLimitedTo750WattsAndItsMi350xIsNot) {
  Measurement row = Row("facebookexperimental/triton#220", "cuBLAS");
  row.device = "b200";
  EXPECT_EQ(ConditionsOf(row).power_limit, 750);
  EXPECT_TRUE(ConditionsOf(row).sustained);
  EXPECT_TRUE(ConditionsOf(row).events);
  row.config = "cutlass, cudagraph";
  EXPECT_FALSE(ConditionsOf(row).events);
  row.device = "mi350x";
  EXPECT_EQ(ConditionsOf(row).power_limit, 0);
  EXPECT_TRUE(ConditionsOf(row).dirty_l2);
}

TEST(MeasurementConditions, BlockwiseScalesAreAppliedInTheLoop) {
  EXPECT_TRUE(ConditionsOf(Row("", "tlx_scaled_mm blockwise 1x128/128x128")).scales_in_loop);
  EXPECT_FALSE(ConditionsOf(Row("", "tlx_scaled_mm rowwise")).scales_in_loop);
}

TEST(MeasurementConditions, AConversionCountsOnlyForNarrowFormats) {
  const std::string config = "fp8-tensor-w-tensor-a incl quant";
  EXPECT_TRUE(ConditionsOf(Row("vllm-project/vllm#19566", config, DType::kFp8E4m3)).converts_a);
  EXPECT_FALSE(ConditionsOf(Row("vllm-project/vllm#19566", config, DType::kBf16)).converts_a);
  EXPECT_FALSE(
      ConditionsOf(Row("vllm-project/vllm#19566", "fp8-noquant", DType::kFp8E4m3)).converts_a);
}

TEST(MeasurementConditions, AnUnknownSourceHasTheDefault) {
  const LibraryConditions unknown = ConditionsOf(Row("somewhere", "")), standard;
  EXPECT_EQ(unknown.weight_copies, standard.weight_copies);
  EXPECT_EQ(unknown.cold_l2, standard.cold_l2);
  EXPECT_EQ(unknown.power_limit, 0);
}

}  // namespace
}  // namespace gnomon
