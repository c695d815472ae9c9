#pragma once

/// KernelName: what the name of a vendor's GEMM kernel says about how it works: hipBLASLt and
/// rocBLAS (Tensile), CK, CK-Tile and aiter on AMD; cuBLAS (xmma, nvjet, gemv) and CUTLASS on
/// NVIDIA; Triton on both.

#include <optional>
#include <string>
#include <string_view>

#include "gnomon/base/dtype.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// Tile, instruction and cluster are row-major (DESIGN.md "Row-major convention"): `m` lies along
/// the rows of our C. A BLAS kernel computes the transpose of our C, so the side that its name
/// gives first lies along our N. 0: the name does not say.
struct KernelName {
  enum class Library {
    kUnknown,
    kTensile,  ///< hipBLASLt and rocBLAS: "Cijk_Alik_Bljk_…_MT256x224x64_MI16x16x1_…"
    kCk,       ///< Composable Kernel, aiter's instances of it among them
    kCkTile,
    kAiterAsm,
    kFlydsl,
    kOpus,
    kXmma,   ///< cuBLAS: "sm90_xmma_gemm_…", "ampere_bf16_s16816gemm_…", "volta_sgemm_…"
    kNvjet,  ///< cuBLAS since 12.8: "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"
    kCutlass2,
    kCutlass3,
    kGemv,  ///< matrix-vector kernels of cuBLAS, rocBLAS and vLLM
    kTriton,
  };
  std::string name;
  Library library = Library::kUnknown;
  std::string arch;  ///< "gfx942", "sm_90", as the name states it; empty: not stated

  int tile_m = 0, tile_n = 0, tile_k = 0;
  int mma_m = 0, mma_n = 0, mma_k = 0;
  int split_k = 0;  ///< 1: not split; 0: chosen at launch, or not said
  bool stream_k = false;
  bool reduces_alone = false;  ///< a separate kernel adds the partial sums of the split
  bool persistent = false;
  int stages = 0;                             ///< pipeline buffers, the one in use among them
  int waves = 0;                              ///< waves (warps) that issue matrix instructions
  int waves_m = 0, waves_n = 0, waves_k = 0;  ///< how they cut the tile; waves_k cut its depth
  int cluster_m = 0, cluster_n = 0;
  int ctas_per_mma = 1;  ///< 2: pairs of SMs share one instruction (sm_100); the tile is one SM's
  int wgm = 0;  ///< workgroup mapping (rows of tiles walked together); negative: the other way
  bool direct_to_lds = false;  ///< global loads land in shared memory past the registers
  bool non_temporal_a = false, non_temporal_b = false, non_temporal_c = false;
  bool cooperative = false, pingpong = false;  ///< two consumer warpgroups on one tile, or on two
  bool rows_along_m = false;  ///< rows of matrix instructions lie along our M, not our N (nvjet)
  int alignment = 1;  ///< leading dimensions of A and B must be multiples of it, in elements
  int multiple_m = 1, multiple_n = 1, multiple_k = 1;  ///< sides that the kernel takes no rest of
  bool gemv = false;           ///< one vector with a matrix, or a few: no tile
  bool vector_units = false;   ///< no matrix instruction (simt, ffma)
  bool not_a_product = false;  ///< no GEMM: a split-K reduction, an elementwise kernel

  std::optional<DType> dtype;    ///< of A and B
  std::optional<Layout> layout;  ///< ours, not BLAS's letters
  bool understood = false;       ///< the tile is known, or the kernel needs none (gemv)
  std::string what_is_missing;   ///< what the model must assume, in words; empty: nothing
};

/// The family as measured files spell it: "hipblaslt", "aiter-ck", "cublas", "cutlass", "triton".
std::string_view FamilyOf(KernelName::Library library);

/// Never fails: a name that nothing matches has library kUnknown and is not understood.
KernelName ParseKernelName(std::string_view name);

}  // namespace gnomon
