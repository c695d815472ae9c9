#include "gnomon/gemm/kernel_name.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>

#include "gnomon/gemm/shapes.h"

namespace gnomon {
namespace {

using testing::HasSubstr;
using Library = KernelName::Library;

// "family m×n×k mma mxnxk split stages waves cluster layout dtype arch [flags]": what a name says,
// on one line.
std::string Text(const KernelName& k) {
  std::string text = fmt::format(
      "{} {}x{}x{} mma {}x{}x{} split {} stages {} waves {} cluster {}x{} {} {} {}",
      FamilyOf(k.library), k.tile_m, k.tile_n, k.tile_k, k.mma_m, k.mma_n, k.mma_k, k.split_k,
      k.stages, k.waves, k.cluster_m, k.cluster_n, k.layout ? Name(*k.layout) : "?",
      k.dtype ? Name(*k.dtype) : "?", k.arch.empty() ? "?" : k.arch);
  if (k.stream_k) text += " stream_k";
  if (k.reduces_alone) text += " reduces_alone";
  if (k.persistent) text += " persistent";
  if (k.ctas_per_mma > 1) text += " pairs";
  if (k.wgm != 0) text += fmt::format(" wgm {}", k.wgm);
  if (k.direct_to_lds) text += " dtl";
  if (k.non_temporal_a) text += " nta";
  if (k.non_temporal_b) text += " ntb";
  if (k.non_temporal_c) text += " ntc";
  if (k.cooperative) text += " cooperative";
  if (k.pingpong) text += " pingpong";
  if (k.gemv) text += " gemv";
  if (k.vector_units) text += " vector";
  return text;
}

struct Case {
  std::string_view name, text;
};

void Check(std::span<const Case> cases) {
  for (const Case& c : cases) {
    const KernelName parsed = ParseKernelName(c.name);
    EXPECT_EQ(Text(parsed), c.text) << c.name;
    EXPECT_TRUE(parsed.understood) << c.name;
    EXPECT_EQ(parsed.name, c.name);
  }
}

// Names from profiler traces (MI300X and MI355X; hipBLASLt, rocBLAS).
TEST(KernelName, ReadsTensile) {
  const Case cases[] = {
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x160x64_MI16x16x1_SN_LDSB1_DTLA0_DTLB0_"
       "GSUAMBSK_ISA942_K1_MIWT8_5_MO40_NTn1_NTA0_NTB0_NTC0_NTD4_PGR2_PLR1_SK0_WS64_WG32_8_1",
       "hipblaslt 160x256x64 mma 16x16x0 split 0 stages 3 waves 4 cluster 0x0 nt bf16 gfx942 ntc"},
      {"Cijk_Ailk_Bjlk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT192x256x64_MI16x16x1_SN_LDSB0_DTLA1_DTLB1_"
       "GSU0_GSUAMB_ISA950_NTA4_NTB0_PGR2_SK3_SKXCCM0_WS64_WG32_8_1",
       "hipblaslt 256x192x64 mma 16x16x0 split 0 stages 3 waves 4 cluster 0x0 tn bf16 gfx950 "
       "stream_k reduces_alone dtl ntb"},
      {"Cijk_Ailk_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT64x16x64_MI16x16x1_SN_ISA942_WS64_"
       "WG16_4_4_WGM8_WGMXCC1",
       "hipblaslt 16x64x64 mma 16x16x0 split 0 stages 0 waves 4 cluster 0x0 nn bf16 gfx942 wgm 8"},
      {"Custom_Cijk_Ailk_Bljk_HHS_BH_Bias_AH_SDV_MT16x32x64_MI16x16x16x1_SN_GRVWA8_GSU5_K1_"
       "MIWT1_1_WG16_8_1_WGM0",
       "hipblaslt 32x16x64 mma 16x16x16 split 5 stages 0 waves 2 cluster 0x0 nn fp16 ?"},
      {"Cijk_Alik_Bjlk_F8BS_BH_MT256x256x128_MI16x16x1_WGMn4_ISA950",
       "hipblaslt 256x256x128 mma 16x16x0 split 0 stages 0 waves 0 cluster 0x0 tt fp8_e4m3 gfx950 "
       "wgm -4"},
      {"Cijk_Alik_Bljk_F8NBS_BH_MT64x64x512_MI16x16x1",
       "hipblaslt 64x64x512 mma 16x16x0 split 0 stages 0 waves 0 cluster 0x0 nt fp8_e4m3fnuz ?"},
      {"Cijk_Ailk_Bjlk_DB_MT64x32x8_MI16x16x4x1_SN",
       "hipblaslt 32x64x8 mma 16x16x4 split 0 stages 0 waves 0 cluster 0x0 tn fp64 ?"},
      {"Cijk_Alik_Bljk_SB_MT64x128x16_SN_1LDSB0_WG16_16_1",
       "hipblaslt 128x64x16 mma 0x0x0 split 0 stages 0 waves 4 cluster 0x0 nt fp32 ? vector"},
      {"Cijk_Alik_Bljk_S_MX_B_Bias_HA_S_SAV_UserArgs_MT128x96x32_MI16x16x1",
       "hipblaslt 96x128x32 mma 16x16x0 split 0 stages 0 waves 0 cluster 0x0 nt tf32 ?"},
  };
  Check(cases);
}

// Names of aiter's tuned tables (aiter/configs) and of its kernels in traces.
TEST(KernelName, ReadsAiter) {
  const Case cases[] = {
      {"_ZN5aiter39bf16gemm_fp32bf16_tn_32x64_splitk_cleanE",
       "aiter-asm 32x64x0 mma 0x0x0 split 0 stages 0 waves 0 cluster 0x0 nt bf16 ?"},
      {"_ZN5aiter24bf16gemm_bf16_tn_256x256E",
       "aiter-asm 256x256x0 mma 0x0x0 split 0 stages 0 waves 0 cluster 0x0 nt bf16 ?"},
      {"aiter::fp8gemm_bf16_blockscale_BpreShuffle_80x128",
       "aiter-asm 80x128x0 mma 0x0x0 split 0 stages 0 waves 0 cluster 0x0 nt fp8_e4m3 ?"},
      {"_ZN5aiter42I8gemm_bf16_perTokenI8_BpreShuffle_112x256E",
       "aiter-asm 112x256x0 mma 0x0x0 split 0 stages 0 waves 0 cluster 0x0 nt int8 ?"},
      {"flydsl_gemm5_abf16_wbf16_bf16_t16x64x128_split_k2_block_m_warp1_block_n_warp2_block_k_warp1"
       "_async_copyTrue_b_to_ldsTrue_b_preshuffleFalse_c_to_ldsFalse_gfx950",
       "aiter-flydsl 16x64x128 mma 0x0x0 split 2 stages 5 waves 2 cluster 0x0 nt bf16 gfx950 dtl"},
      {"hgemm_bf16_32x64x128x5_SPK8_W1x2x1_BLDS1_TN_AS1_0",
       "aiter-flydsl 32x64x128 mma 0x0x0 split 8 stages 5 waves 2 cluster 0x0 nt bf16 ?"},
      {"flydsl_bpreshuflle_128x64x256_F8_F8_B16_2x0x1x1_default",
       "aiter-flydsl 128x64x256 mma 0x0x0 split 1 stages 0 waves 0 cluster 0x0 nt fp8_e4m3 ?"},
      {"opus_gemm_flatmm_splitk_256x32x128x64_2x1_16x16x32_0x0x0_wgpcu2",
       "aiter-opus 32x128x64 mma 16x16x32 split 0 stages 0 waves 2 cluster 0x0 nt ? ?"},
      {"opus_gemm_persistent_512x128x128x64_2x4_16x16x32_0x0x0_cA0cB0",
       "aiter-opus 128x128x64 mma 16x16x32 split 1 stages 0 waves 8 cluster 0x0 nt ? ? persistent"},
      {"a8w8_blockscale_1x128x128_256x16x64x256_16x16_16x16_1x1_16x16x1_16x16x1_1x16x1x16_4_1x1_"
       "intrawave_v1",
       "aiter-ck 16x64x256 mma 16x16x0 split 0 stages 0 waves 4 cluster 0x0 nt fp8_e4m3 ?"},
      {"a8w8_rowwise_256x128x128x64_32x32_2x2_4x64x1_4x64x1_1x32x1x8_8x8x1_1x1_interwave_v1",
       "aiter-ck 128x128x64 mma 32x32x0 split 0 stages 0 waves 4 cluster 0x0 nt ? ?"},
      {"a4w4_blockscale_256x96x512x128_16x16_16x16_8x32x1_8x32x1_1x32x1x8_8_2x2_intrawave_v3",
       "aiter-ck 96x512x128 mma 16x16x0 split 0 stages 0 waves 4 cluster 0x0 nt mxfp4 ?"},
      {"a8w8_bpreshuffle_cktile_0x0x8x4x1x0x0x0x0x1_32x64x512_1x4x1_16x16x64_default",
       "aiter-cktile 32x64x512 mma 16x16x64 split 0 stages 0 waves 4 cluster 0x0 nt ? ?"},
      {"_gemm_a16_w16_kernel_BLOCK_SIZE_M_256_BLOCK_SIZE_N_128_BLOCK_SIZE_K_64_GROUP_SIZE_M_16_"
       "NUM_KSPLIT_4_SPLITK_BLOCK_SIZE_4096_EVEN_K_1_GRID_MN_256",
       "triton 256x128x64 mma 0x0x0 split 4 stages 0 waves 0 cluster 0x0 ? bf16 ? wgm 16"},
  };
  Check(cases);
}

TEST(KernelName, ReadsCkTemplates) {
  const Case cases[] = {
      {"void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemmMultiD_ABScale_xdl_cshuffle_v3<"
       "ck::tensor_layout::gemm::RowMajor, ck::tensor_layout::gemm::ColumnMajor, ck::Tuple<>, "
       "ck::tensor_layout::gemm::RowMajor, ck::f8_fnuz_t, ck::f8_fnuz_t, float, float, ck::Tuple<>,"
       " unsigned short, (ck::tensor_operation::device::GemmSpecialization)0, 256, 1, 128, 128, 16,"
       " 128, 256, 16, 16, 16, 16, 1, 2, ck::Sequence<16, 16, 1>>, true, "
       "(ck::InMemoryDataOperationEnum)0, 2, (ck::TailNumber)10>",
       "aiter-ck 16x128x256 mma 16x16x0 split 1 stages 0 waves 4 cluster 0x0 nt fp8_e4m3fnuz ?"},
      {"DeviceGemmXdlUniversal<MNPadding, RRR> BlkSize: 256, BlkTile: 224x256x64, WaveTile: 16x16, "
       "WaveMap: 7x8, VmemReadVec: 8x8, BlkGemmPipelineScheduler: Intrawave, "
       "BlkGemmPipelineVersion: v3, BlkGemmPipelinePrefetchStages: 2",
       "aiter-ck 224x256x64 mma 16x16x0 split 0 stages 2 waves 4 cluster 0x0 nn ? ?"},
      {"void ck_tile::kentry<1, ck_tile::GemmKernel<ck_tile::GemmTile1DPartitioner<"
       "ck_tile::TileGemmShape<ck_tile::sequence<128, 64, 32>, ck_tile::sequence<2, 2, 1>, "
       "ck_tile::sequence<32, 32, 16>>>>>",
       "aiter-cktile 128x64x32 mma 32x32x16 split 0 stages 0 waves 4 cluster 0x0 ? ? ?"},
  };
  Check(cases);
}

// The first side of the tile lies along BLAS's M, which is our N.
TEST(KernelName, ReadsNvjet) {
  const Case cases[] = {
      {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT",
       "cublas 256x128x64 mma 0x0x0 split 1 stages 4 waves 8 cluster 2x1 nn bf16 ? persistent "
       "cooperative"},
      {"nvjet_sm90_tst_384x8_64x4_2x1_v_bz_TNT",
       "cublas 8x384x64 mma 0x0x0 split 1 stages 4 waves 4 cluster 1x2 nt bf16 sm_90 persistent"},
      {"nvjet_sm100_tst_64x16_64x16_2x4_2cta_h_bz_splitK_bias_TNT",
       "cublas 16x64x64 mma 0x0x0 split 0 stages 16 waves 4 cluster 4x2 nt bf16 sm_100 "
       "reduces_alone persistent pairs"},
      {"nvjet_hsh_320x128_64x3_2x1_v_badd_coopB_NTN",
       "cublas 128x320x64 mma 0x0x0 split 1 stages 3 waves 8 cluster 1x2 tn fp16 ? persistent "
       "cooperative"},
      {"nvjet_qqtst_128x256_128x6_2x1_2cta_v_bz_TNT",
       "cublas 256x128x128 mma 0x0x0 split 1 stages 6 waves 4 cluster 1x2 nt fp8_e4m3 ? persistent "
       "pairs"},
      {"nvjet_qqtst_128x256_128x6_2x2_2cta_h_bz_Avec32UE8M0_Bvec32UE8M0_TNT",
       "cublas 256x128x128 mma 0x0x0 split 1 stages 6 waves 4 cluster 2x2 nt mxfp8 ? persistent "
       "pairs"},
      {"nvjet_sss_tf32_128x256_TNT",
       "cublas 256x128x0 mma 0x0x0 split 1 stages 0 waves 4 cluster 0x0 nt tf32 ? persistent"},
  };
  Check(cases);
}

TEST(KernelName, ReadsXmmaAndItsForerunners) {
  const Case cases[] = {
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x128x64_warpgroupsize2x1x1_execute_"
       "segment_k_off_kernel__5x_cublas",
       "cublas 128x256x64 mma 0x0x0 split 1 stages 0 waves 8 cluster 0x0 nt bf16 sm_90"},
      {"sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize160x128x32_stage3_warpsize2x2x1_"
       "tensor16x8x16_execute_kernel__5x_cublas",
       "cublas 128x160x32 mma 16x8x16 split 1 stages 3 waves 4 cluster 0x0 nn fp16 sm_80"},
      {"sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x64x128_cgasize1x2x1_stage4_gmmastage2_"
       "warpgroupsize1x1x1_tensor64x128x32",
       "cublas 64x128x128 mma 64x128x32 split 1 stages 4 waves 4 cluster 2x1 nt fp8_e4m3 sm_90"},
      {"sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_kernel",
       "cublas 64x128x8 mma 0x0x0 split 1 stages 3 waves 4 cluster 0x0 tn fp32 sm_80 vector"},
      {"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
       "cublas 64x128x64 mma 16x8x16 split 1 stages 3 waves 0 cluster 0x0 nt bf16 sm_80"},
      {"ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_relu_f2f_stages_64x6_tn",
       "cublas 64x64x64 mma 16x8x16 split 1 stages 6 waves 0 cluster 0x0 nt fp16 sm_80"},
      {"ampere_sgemm_128x32_nn",
       "cublas 32x128x0 mma 0x0x0 split 1 stages 0 waves 0 cluster 0x0 nn fp32 sm_80 vector"},
      {"ampere_h16816gemm_256x128_ldg8_stages_32x3_tn",
       "cublas 128x256x32 mma 16x8x16 split 1 stages 3 waves 0 cluster 0x0 nt fp16 sm_80"},
      {"volta_sgemm_64x32_sliced1x4_nn",
       "cublas 32x64x0 mma 0x0x0 split 1 stages 0 waves 0 cluster 0x0 nn fp32 sm_70 vector"},
  };
  Check(cases);
}

TEST(KernelName, ReadsCutlass) {
  const Case cases[] = {
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>("
       "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8::Params)",
       "cutlass 64x128x64 mma 16x8x16 split 1 stages 6 waves 0 cluster 0x0 nt bf16 sm_80"},
      {"void cutlass::Kernel2<cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_nn_align1>("
       "cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_nn_align1::Params)",
       "cutlass 32x32x32 mma 16x16x16 split 1 stages 1 waves 0 cluster 0x0 nn bf16 sm_75"},
      {"cutlass_tensorop_h16816gemm_128x256_32x3_tn_align4",
       "cutlass 256x128x32 mma 16x8x16 split 1 stages 3 waves 0 cluster 0x0 nt fp16 ?"},
      {"cutlass_80_tensorop_s1688gemm_128x64_32x3_nt_align4",
       "cutlass 64x128x32 mma 16x8x8 split 1 stages 3 waves 0 cluster 0x0 tn tf32 sm_80"},
      {"cutlass3x_sm90_tensorop_s64x256x16gemm_f16_f16_f32_void_f16_128x256x64_2x1x1_0_tnn_align8_"
       "warpspecialized_cooperative_epi_tma",
       "cutlass 256x128x64 mma 64x256x16 split 1 stages 0 waves 8 cluster 1x2 nt fp16 sm_90 "
       "persistent cooperative"},
      {"cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x64x64_2x1x1_0_tnt_align8"
       "_warpspecialized_pingpong_epi_tma",
       "cutlass 128x64x64 mma 64x128x16 split 1 stages 0 waves 4 cluster 2x1 nt bf16 sm_90 "
       "persistent pingpong"},
      {"cutlass3x_sm100_tensorop_s256x256x8tf32gemm_f32_f32_f32_f32_f32_256x128x32_2x1x1_0_ntn_"
       "align4_2sm_bias_f32_relu",
       "cutlass 128x128x32 mma 256x256x8 split 1 stages 0 waves 4 cluster 1x2 tn tf32 sm_100 "
       "pairs"},
      {"cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x32x16_1x1x1_3_tnn_align1_bias_f32_relu",
       "cutlass 32x64x16 mma 0x0x0 split 1 stages 3 waves 4 cluster 1x1 nt fp32 sm_100 vector"},
      {"cutlass3x_sm90_tensorop_gemm_e4m3_e4m3_f32_bf16_bf16_128x128x128_1x2x1_4_tnn_align16_"
       "stream_k_warpspecialized_cooperative_epi_tma",
       "cutlass 128x128x128 mma 0x0x0 split 1 stages 4 waves 8 cluster 2x1 nt fp8_e4m3 sm_90 "
       "stream_k persistent cooperative"},
  };
  Check(cases);
}

TEST(KernelName, ReadsMatrixVectorKernels) {
  const KernelName cublas = ParseKernelName(
      "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, "
      "16, 4, 4, false, false, cublasGemvParamsEx<int>>(float, float)");
  EXPECT_EQ(cublas.library, Library::kGemv);
  EXPECT_TRUE(cublas.gemv && cublas.understood);
  EXPECT_EQ(cublas.dtype, DType::kBf16);
  EXPECT_EQ(ParseKernelName("internal::gemvx::kernel<int, int, float, float, float, float>").dtype,
            DType::kFp32);
  EXPECT_TRUE(ParseKernelName("void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true>").gemv);
  EXPECT_TRUE(ParseKernelName("void wvSplitK_hf_sml_<__hip_bfloat16, 64, 16>").gemv);
}

TEST(KernelName, SaysWhatIsNoProduct) {
  for (const std::string_view name :
       {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>",
        "void at::native::vectorized_elementwise_kernel<4, gemm_like>", "triton_poi_fused_add_0",
        "triton_red_fused_mm_1"}) {
    const KernelName kernel = ParseKernelName(name);
    EXPECT_TRUE(kernel.not_a_product) << name;
    EXPECT_FALSE(kernel.understood) << name;
    EXPECT_EQ(kernel.what_is_missing, "it is no matrix product") << name;
  }
}

TEST(KernelName, LeavesWhatItDoesNotKnowUnknown) {
  for (const std::string_view name : {"", "matmul_kernel", "my_gemm", "Cij", "nvje", "attn_fwd",
                                      "_ZN2ck40kernel_gemm_xdl_cshuffle_v3_multi_d_b_preshuffle"}) {
    const KernelName kernel = ParseKernelName(name);
    EXPECT_EQ(kernel.library, Library::kUnknown) << name;
    EXPECT_FALSE(kernel.understood) << name;
    EXPECT_THAT(kernel.what_is_missing, HasSubstr("grammar"));
  }
  const KernelName generated = ParseKernelName("triton_mm_123");
  EXPECT_EQ(generated.library, Library::kTriton);
  EXPECT_FALSE(generated.understood);
  EXPECT_EQ(generated.what_is_missing, "the tile");
}

TEST(KernelName, ReadsWhatTheSidesMustBeMultiplesOf) {
  const KernelName aligned =
      ParseKernelName("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8");
  EXPECT_EQ(aligned.alignment, 8);
  const KernelName old =
      ParseKernelName("Cijk_Alik_Bljk_HBH_MT128x64x64_MI32x32x8x1_AF0EM4_AF1EM2_ASEM16");
  EXPECT_EQ(old.multiple_n, 4);
  EXPECT_EQ(old.multiple_m, 2);
  EXPECT_EQ(old.multiple_k, 16);
  const KernelName recent =
      ParseKernelName("Cijk_Alik_Bljk_BBS_BH_MT128x64x64_MI16x16x1_AFEM8_AFEM1_ASEM32");
  EXPECT_EQ(recent.multiple_n, 8);
  EXPECT_EQ(recent.multiple_m, 1);
  EXPECT_EQ(recent.multiple_k, 32);
}

TEST(KernelName, ReadsHowWavesCutTheTile) {
  const auto waves = [](std::string_view name) {
    const KernelName k = ParseKernelName(name);
    return fmt::format("{}x{}x{}", k.waves_m, k.waves_n, k.waves_k);
  };
  // Four waves of 64x80 each (BLAS: 8 instructions along M, 5 along N); four that share a depth.
  EXPECT_EQ(waves("Cijk_Alik_Bljk_BBS_MT256x160x64_MI16x16x1_MIWT8_5_WS64_WG32_8_1"), "2x2x1");
  EXPECT_EQ(waves("Cijk_Alik_Bljk_BBS_MT16x16x256_MI16x16x1_MIWT1_1_WS64_WG16_4_4"), "1x1x4");
  EXPECT_EQ(waves("a8w8_bpreshuffle_cktile_0x0_32x64x512_1x4x1_16x16x64_default"), "1x4x1");
  EXPECT_EQ(waves("hgemm_bf16_32x64x128x5_SPK8_W1x2x1_BLDS1"), "1x2x1");
  EXPECT_EQ(waves("opus_gemm_512x128x256x64_2x4_16x16x32_0x0x0"), "2x4x1");
  EXPECT_EQ(waves("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"), "0x0x0");
}

TEST(KernelName, SaysWhatTheModelMustAssume) {
  EXPECT_EQ(ParseKernelName("_ZN5aiter24bf16gemm_bf16_tn_256x256E").what_is_missing,
            "the depth of the tile, the split of K");
  EXPECT_EQ(ParseKernelName("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT").what_is_missing, "");
}

TEST(KernelName, NumbersThatNoKernelHasAreNotRead) {
  for (const std::string_view name :
       {"Cijk_Alik_Bljk_BBS_MT99999999999999999999x16x64_MI16x16x1",
        "Cijk_Alik_Bljk_BBS_MT0x16x64_MI16x16x1", "nvjet_tst_4294967297x8_64x4_1x2_h_bz_NNT",
        "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x_64x6_tn_align8",
        "Cijk_Alik_Bljk_BBS_MTx16x64"}) {
    const KernelName kernel = ParseKernelName(name);
    EXPECT_FALSE(kernel.understood) << name;
    EXPECT_THAT(kernel.what_is_missing, HasSubstr("the tile"));
  }
  const KernelName group =
      ParseKernelName("Cijk_Alik_Bljk_BBS_MT16x16x64_MI16x16x1_WS64_WG8192_8192_8192_PGR8192");
  EXPECT_EQ(group.waves, 0);
}

// A cheap generator of repeatable bytes (xorshift64).
struct Bytes64 {
  std::uint64_t state;
  std::uint64_t Next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
};

TEST(KernelName, SurvivesAnyBytes) {
  constexpr std::string_view kPieces[] = {"Cijk_",
                                          "Alik_",
                                          "Bljk_",
                                          "MT",
                                          "MI",
                                          "x",
                                          "_",
                                          "nvjet_",
                                          "tst_",
                                          "coopA",
                                          "cutlass_",
                                          "gemm",
                                          "3x_sm90",
                                          "tilesize",
                                          "_xmma_gemm_",
                                          "ampere_",
                                          "WG",
                                          "99999999999",
                                          "0",
                                          "16",
                                          "ck::",
                                          "ck_tile::",
                                          "sequence<",
                                          ">",
                                          ",",
                                          "GemmSpecialization)",
                                          "ABScale",
                                          "DeviceGemm",
                                          "BlkTile:",
                                          "aiter",
                                          "bf16gemm_",
                                          "flydsl_",
                                          "opus_gemm",
                                          "a8w8_",
                                          "block_size_m_",
                                          "warp",
                                          "split",
                                          "k",
                                          "n",
                                          "t",
                                          "\xff",
                                          "sm",
                                          "WS",
                                          "GSU",
                                          "SK",
                                          "-",
                                          "warpsize",
                                          "hgemm_bf16_"};
  Bytes64 random{0x9e3779b97f4a7c15};
  for (int round = 0; round < 20000; ++round) {
    std::string name;
    const std::uint64_t pieces = random.Next() % 24;
    for (std::uint64_t i = 0; i < pieces; ++i) name += kPieces[random.Next() % std::size(kPieces)];
    if (round % 4 == 0 && !name.empty())
      name[random.Next() % name.size()] = static_cast<char>(random.Next() & 0xff);
    const KernelName kernel = ParseKernelName(name);
    ASSERT_EQ(kernel.name, name);
    for (const int number :
         {kernel.tile_m, kernel.tile_n, kernel.tile_k, kernel.mma_m, kernel.mma_n, kernel.mma_k,
          kernel.split_k, kernel.stages, kernel.waves, kernel.cluster_m, kernel.cluster_n}) {
      ASSERT_GE(number, 0) << name;
      ASSERT_LE(number, 8193) << name;
    }
    ASSERT_EQ(kernel.understood, kernel.gemv || (kernel.tile_m > 0 && kernel.tile_n > 0)) << name;
  }
  for (const char c : {'x', '_', '9', ',', '<', '\0', '\xff'}) {
    const std::string endless(1 << 20, c);
    EXPECT_FALSE(ParseKernelName(endless).understood);
    EXPECT_FALSE(ParseKernelName("Cijk_" + endless).understood);
    EXPECT_FALSE(ParseKernelName("nvjet_" + endless).understood);
    EXPECT_FALSE(ParseKernelName("ck::GemmSpecialization)" + endless).understood);
  }
}

// Every name of the public traces is understood, and its tile is the one that the file states.
TEST(KernelName, AgreesWithTheTilesOfPublicTraces) {
  const std::string path =
      GNOMON_SOURCE_DIR "/../shared/measured/default_library_pick_in_traces.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no ../shared/measured beside the project";
  const auto rows = ReadMeasurements(path);
  ASSERT_TRUE(rows.ok()) << rows.error().Text();
  int tiles = 0;
  for (const Measurement& row : *rows) {
    const KernelName kernel = ParseKernelName(row.config);
    EXPECT_TRUE(kernel.understood) << row.config;
    EXPECT_TRUE(kernel.layout || kernel.gemv) << row.config;
    EXPECT_EQ(FamilyOf(kernel.library) == "hipblaslt", row.family == "hipblaslt");
    EXPECT_EQ(kernel.dtype, row.problem.dtype) << row.config;
    if (row.tile_m == 0) continue;
    ++tiles;
    EXPECT_EQ(kernel.tile_m, row.tile_m) << row.config;
    EXPECT_EQ(kernel.tile_n, row.tile_n) << row.config;
    EXPECT_EQ(kernel.tile_k, row.tile_k) << row.config;
  }
  EXPECT_EQ(tiles, 90);
}

}  // namespace
}  // namespace gnomon
