// Names of NVIDIA's GEMM kernels.
//
// nvjet (cuBLAS ≥ 12.8): nvjet_[sm100_]tst_128x256_64x4_1x2_[2cta_]h_bz_[coopA_][splitK_][bias_]NNT
//   tst       type of A and B, of the accumulator, of the result: t bf16, h fp16, s fp32, q e4m3,
//             o fp4; five letters give A and B (and C and D) apart
//   128x256   tile of one SM along BLAS's M, then N. Seen on decode shapes: "384x8 … TNT" computes
//             a few tokens against a vocabulary, "32x64_…_2x1" 64 weight rows as two tiles in a
//             cluster of 2x1
//   64x4      depth and pipeline stages; 1x2 cluster along the same two sides
//   coopA/B   two consumer warpgroups share the tile
//   NNT       A and B as BLAS's flags; the third letter says whether the epilogue turns the tile:
//             T: the instruction's rows lie along BLAS's M (so 64x8, 384x8), N: along its N (16x64)
// xmma and what came before: sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_stage3_
//   warpsize2x2x1_tensor16x8x16_…, ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn
// CUTLASS 2: cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8: tile, depth x
//   stages, flags. CUTLASS 3: cutlass3x_sm90_tensorop_s64x256x16gemm_f16_f16_f32_void_f16_
//   128x256x64_2x1x1_0_tnn_align8_warpspecialized_cooperative_…: tile, cluster, stages (0: what
//   fits), flags of A, B and C.
// A C that is column-major ('n') is the transpose of ours: then M and N change places. In CUTLASS a
// "2sm" tile is that of two SMs; we keep one SM's.

#include <algorithm>
#include <array>
#include <cctype>

#include "gnomon/gemm/kernel_name_words.h"

namespace gnomon::kernel_name {
namespace {

struct Tile {
  int m = 0, n = 0, k = 0;
};

// A kernel whose C is row-major works in our terms; one whose C is column-major in BLAS's.
void SetOriented(KernelName& kernel, const Tile& tile, const Tile& cluster, bool row_major_c) {
  if (row_major_c) {
    kernel.tile_m = tile.m;
    kernel.tile_n = tile.n;
    kernel.tile_k = tile.k;
  } else {
    SetBlasTile(kernel, tile.m, tile.n, tile.k);
  }
  kernel.cluster_m = row_major_c ? cluster.m : cluster.n;
  kernel.cluster_n = row_major_c ? cluster.n : cluster.m;
}

// Flags 't' and 'n' are row- and column-major operands. With a row-major C they are our A and B.
std::optional<Layout> LayoutOfFlags(char a, char b, bool row_major_c) {
  if ((a != 't' && a != 'n') || (b != 't' && b != 'n')) return std::nullopt;
  return row_major_c ? LayoutOf(a == 'n', b == 'n') : LayoutOfBlas(a, b);
}

bool StartsWithDigit(std::string_view word) {
  return !word.empty() && word.front() >= '0' && word.front() <= '9';
}

bool IsFlags(std::string_view word, size_t letters) {
  return word.size() == letters && word.find_first_not_of("nt") == std::string_view::npos;
}

// "16816" → 16x8x16: the shapes of mma and wmma, whose digits are written without separators.
void SetInstruction(KernelName& kernel, std::string_view digits) {
  struct Shape {
    std::string_view digits;
    int m, n, k;
  };
  constexpr std::array<Shape, 11> kShapes = {{{"884", 8, 8, 4},
                                              {"1684", 16, 8, 4},
                                              {"1688", 16, 8, 8},
                                              {"16816", 16, 8, 16},
                                              {"16832", 16, 8, 32},
                                              {"16864", 16, 8, 64},
                                              {"8816", 8, 8, 16},
                                              {"8832", 8, 8, 32},
                                              {"161616", 16, 16, 16},
                                              {"32816", 32, 8, 16},
                                              {"83216", 8, 32, 16}}};
  for (const Shape& shape : kShapes) {
    if (shape.digits != digits) continue;
    kernel.mma_m = shape.m;
    kernel.mma_n = shape.n;
    kernel.mma_k = shape.k;
  }
}

// "s16816gemm", "s64x256x16gemm", "sgemm", "s1688tf32gemm": the accumulator's letter, the
// instruction, and sometimes the type that is multiplied.
bool ReadGemmWord(std::string_view word, KernelName& kernel) {
  if (!word.ends_with("gemm")) return false;
  word.remove_suffix(std::string_view("gemm").size());
  if (word.empty()) return true;
  const char accumulator = word.front();
  const std::string_view shape = word.substr(1);
  const size_t letters = shape.find_first_not_of("0123456789x");
  const std::string_view digits = shape.substr(0, letters);
  const std::vector<int> sides = Sizes(digits);
  if (sides.size() == 3) {
    kernel.mma_m = sides[0];
    kernel.mma_n = sides[1];
    kernel.mma_k = sides[2];
  } else {
    SetInstruction(kernel, digits);
  }
  if (letters != std::string_view::npos) kernel.dtype = DTypeNamed(shape.substr(letters));
  if (kernel.dtype) return true;
  if (digits.empty()) {  // sgemm, dgemm, hgemm on vector units
    kernel.vector_units = true;
    if (accumulator == 's') kernel.dtype = DType::kFp32;
    if (accumulator == 'd') kernel.dtype = DType::kFp64;
    if (accumulator == 'h') kernel.dtype = DType::kFp16;
  } else if (accumulator == 'd') {
    kernel.dtype = DType::kFp64;
  } else if (accumulator == 'h') {
    kernel.dtype = DType::kFp16;
  }
  return true;
}

// The number of warps of "warpsize2x2x1".
int Warps(std::string_view word, std::string_view key) {
  const std::vector<int> sides = Sizes(word.substr(key.size()));
  long product = sides.empty() ? 0 : 1;
  for (const int side : sides) product = std::min<long>(product * side, kLargestNumber);
  return static_cast<int>(product);
}

constexpr int kWarpsOfWarpgroup = 4;

std::optional<DType> NvjetDType(std::string_view types, bool mx, bool nvfp4) {
  if (types.size() != 3 && types.size() != 5) return std::nullopt;
  if (types.size() == 5 && types[0] != types[1]) return std::nullopt;  // mixed operands
  switch (types[0]) {
    case 't':
      return DType::kBf16;
    case 'h':
      return DType::kFp16;
    case 's':
      return DType::kFp32;
    case 'd':
      return DType::kFp64;
    case 'q':
      return mx ? DType::kMxFp8 : DType::kFp8E4m3;
    case 'o':
      return nvfp4 ? std::nullopt : std::optional(DType::kMxFp4);
    default:
      return std::nullopt;
  }
}

}  // namespace

bool ParseNvjet(std::string_view lower, KernelName& kernel) {
  const size_t at = lower.find("nvjet_");
  if (at == std::string_view::npos) return false;
  const Words words = Split(Identifier(lower, at));
  kernel.library = KernelName::Library::kNvjet;
  kernel.persistent = true;
  size_t next = 1;
  if (next < words.size() && words[next].starts_with("sm")) {
    kernel.arch = "sm_" + std::string(words[next].substr(2));
    ++next;
  }
  const bool mx = Has(lower, "vec32ue8m0"), nvfp4 = Has(lower, "vec16ue4m3");
  if (next < words.size()) kernel.dtype = NvjetDType(words[next], mx, nvfp4);
  if (Has(words, "tf32")) kernel.dtype = DType::kTf32;
  // The tile is the word behind the types ("tf32" and sm_120's "mma" may stand between), then depth
  // and stages, then the cluster. sm_120 writes "mma_64x64x128_3_32x32x128".
  ++next;
  while (next < words.size() && (words[next] == "tf32" || words[next] == "mma")) ++next;
  const auto sizes = [&](size_t word) {
    return word < words.size() ? Sizes(words[word]) : std::vector<int>{};
  };
  const std::vector<int> tile = sizes(next), depth = sizes(next + 1), cluster = sizes(next + 2);
  if (tile.size() == 3) {
    SetBlasTile(kernel, tile[0], tile[1], tile[2]);
    if (depth.size() == 1) kernel.stages = depth[0];
  } else if (tile.size() == 2) {
    const bool deep = depth.size() == 2;
    SetBlasTile(kernel, tile[0], tile[1], deep ? depth[0] : 0);
    if (deep) kernel.stages = depth[1];
    if (deep && cluster.size() == 2) {
      kernel.cluster_n = cluster[0];
      kernel.cluster_m = cluster[1];
    }
  }
  kernel.cooperative = Has(words, "coopa") || Has(words, "coopb");
  kernel.waves = kernel.cooperative ? 2 * kWarpsOfWarpgroup : kWarpsOfWarpgroup;
  if (Has(words, "2cta")) kernel.ctas_per_mma = 2;
  // "splitK": how often stands in the launch, and cublasLt::splitKreduce_kernel adds the sums.
  const bool split = Has(words, "splitk");
  kernel.split_k = split ? 0 : 1;
  kernel.reduces_alone = split;
  if (!words.empty() && IsFlags(words.back(), 3)) {
    kernel.layout = LayoutOfBlas(words.back()[0], words.back()[1]);
    kernel.rows_along_m = words.back()[2] == 'n';
  }
  return true;
}

bool ParseXmma(std::string_view lower, KernelName& kernel) {
  constexpr std::array<std::string_view, 5> kMarks = {"_xmma_gemm_", "ampere_", "volta_", "turing_",
                                                      "hopper_"};
  size_t at = std::string_view::npos;
  for (const std::string_view mark : kMarks) at = std::min(at, lower.find(mark));
  if (at == std::string_view::npos || !Has(lower, "gemm")) return false;
  const bool xmma = lower.substr(at).starts_with("_xmma");
  if (xmma) {  // back to the front of "sm90_xmma_gemm_…"
    while (at > 0 && std::isalnum(static_cast<unsigned char>(lower[at - 1])) != 0) --at;
  }
  const Words words = Split(Identifier(lower, at));
  kernel.library = KernelName::Library::kXmma;
  kernel.split_k = 1;
  if (Has(words, "splitk") || Has(words, "splitkreduce")) kernel.split_k = 0;
  bool row_major_c = false;
  Tile tile, cluster;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::vector<int> sides = Sizes(word);
    if (word.starts_with("sm") && xmma && i == 0) {
      if (const auto number = Number(word.substr(2))) kernel.arch = "sm_" + std::to_string(*number);
    } else if (word == "gemm" && i + 1 < words.size() && xmma) {
      // "bf16bf16": operand and result; the shortest front that is a type is the operand's.
      for (size_t length = 2; length <= words[i + 1].size() && !kernel.dtype; ++length)
        kernel.dtype = DTypeNamed(words[i + 1].substr(0, length));
    } else if (word.starts_with("tilesize")) {
      const std::vector<int> size = Sizes(word.substr(std::string_view("tilesize").size()));
      if (size.size() == 3) tile = {size[0], size[1], size[2]};
    } else if (word.starts_with("cgasize")) {
      const std::vector<int> size = Sizes(word.substr(std::string_view("cgasize").size()));
      if (size.size() == 3) cluster = {size[0], size[1], size[2]};
    } else if (word.starts_with("warpgroupsize")) {
      kernel.waves = std::min(Warps(word, "warpgroupsize"), kLargestNumber / kWarpsOfWarpgroup) *
                     kWarpsOfWarpgroup;
    } else if (word.starts_with("warpsize")) {
      kernel.waves = Warps(word, "warpsize");
    } else if (word.starts_with("tensor")) {
      const std::vector<int> size = Sizes(word.substr(std::string_view("tensor").size()));
      if (size.size() == 3) {
        kernel.mma_m = size[0];
        kernel.mma_n = size[1];
        kernel.mma_k = size[2];
      }
    } else if (word == "ffma") {
      kernel.vector_units = true;
    } else if (IsFlags(word, 2) && !kernel.layout) {
      row_major_c = xmma && i + 1 < words.size() && words[i + 1] == "t";
      kernel.layout = LayoutOfFlags(word[0], word[1], row_major_c);
    } else if (!xmma && ReadGemmWord(word, kernel)) {
      if (!kernel.dtype && i + 1 < words.size()) kernel.dtype = DTypeNamed(words[i + 1]);
      if (!kernel.dtype && i > 0) kernel.dtype = DTypeNamed(words[i - 1]);
    } else if (!xmma && sides.size() == 2 && tile.m == 0) {
      tile = {sides[0], sides[1], 0};
    } else if (word == "stages" && i + 1 < words.size()) {
      const std::vector<int> depth = Sizes(words[i + 1]);
      if (depth.size() == 2) {
        tile.k = depth[0];
        kernel.stages = depth[1];
      }
    }
  }
  if (const auto stages = Keyed(words, "stage")) kernel.stages = *stages;
  if (!xmma) {
    if (words[0] == "ampere") kernel.arch = "sm_80";
    if (words[0] == "turing") kernel.arch = "sm_75";
    if (words[0] == "volta") kernel.arch = "sm_70";
    if (words[0] == "hopper") kernel.arch = "sm_90";
    // 1688 multiplies tf32 where no half-precision type is named.
    if (!kernel.dtype && kernel.mma_k > 0 && kernel.mma_m > 0) kernel.dtype = DType::kTf32;
  }
  SetOriented(kernel, tile, cluster, row_major_c);
  return true;
}

namespace {

// "align8": the vector width of the loads, in elements.
void SetAlignment(const Words& words, KernelName& kernel) {
  kernel.alignment = std::max(Keyed(words, "align").value_or(1), 1);
}

// CUTLASS 2: "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8".
void ReadCutlass2(const Words& words, KernelName& kernel) {
  kernel.library = KernelName::Library::kCutlass2;
  kernel.split_k = 1;  // serial split-K is an argument that cuBLAS does not use with these
  Tile tile;
  char a = '?', b = '?';
  bool row_major_c = false, gemm_seen = false, sizes_begun = false;
  if (words.size() > 1) {
    if (const auto arch = Number(words[1])) kernel.arch = "sm_" + std::to_string(*arch);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::vector<int> sides = Sizes(words[i]);
    const bool first = !sizes_begun;
    sizes_begun = sizes_begun || (gemm_seen && StartsWithDigit(words[i]));
    if (sides.size() == 2 && first && sizes_begun) {
      tile.m = sides[0];
      tile.n = sides[1];
    } else if (sides.size() == 2 && tile.m > 0 && tile.k == 0) {
      tile.k = sides[0];
      kernel.stages = sides[1];
    } else if (words[i] == "simt") {
      kernel.vector_units = true;
    } else if (tile.m > 0 && (IsFlags(words[i], 2) || IsFlags(words[i], 3))) {
      a = words[i][0];
      b = words[i][1];
      row_major_c = words[i].size() == 3 && words[i][2] == 't';
    } else if (ReadGemmWord(words[i], kernel)) {
      gemm_seen = true;
      // The operand's type stands behind the epilogue's words, or before the instruction.
      for (size_t j = i + 1; j < words.size() && Sizes(words[j]).empty() && !kernel.dtype; ++j)
        kernel.dtype = DTypeNamed(words[j]);
      if (!kernel.dtype && i > 0) kernel.dtype = DTypeNamed(words[i - 1]);
      if (!kernel.dtype && kernel.mma_m > 0) kernel.dtype = DType::kTf32;
    }
  }
  kernel.layout = LayoutOfFlags(a, b, row_major_c);
  SetAlignment(words, kernel);
  SetOriented(kernel, tile, {}, row_major_c);
}

// CUTLASS 3: "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64_2x1x1_0_
// tnn_align8_warpspecialized_pingpong_epi_tma".
void ReadCutlass3(const Words& words, KernelName& kernel) {
  kernel.library = KernelName::Library::kCutlass3;
  kernel.split_k = 1;
  Tile tile, cluster;
  char a = '?', b = '?';
  bool row_major_c = false;
  if (words.size() > 1 && words[1].starts_with("sm"))
    kernel.arch = "sm_" + std::string(words[1].substr(2));
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::vector<int> sides = Sizes(word);
    if (sides.size() == 3 && tile.m == 0) {
      tile = {sides[0], sides[1], sides[2]};
    } else if (sides.size() == 3) {
      cluster = {sides[0], sides[1], sides[2]};
    } else if (tile.m > 0 && kernel.stages == 0 && Number(word)) {
      kernel.stages = *Number(word);
    } else if (word == "simt") {
      kernel.vector_units = true;
    } else if (tile.m > 0 && IsFlags(word, 3)) {
      a = word[0];
      b = word[1];
      row_major_c = word[2] == 't';
    } else if (word == "2sm") {
      kernel.ctas_per_mma = 2;
    } else if (ReadGemmWord(word, kernel) && !kernel.dtype && i + 1 < words.size()) {
      // "ue8m0xe4m3": a block-scaled type, its scale first.
      const std::string_view type = words[i + 1];
      if (type.starts_with("ue8m0x")) {
        if (type.ends_with("e4m3") || type.ends_with("e5m2")) kernel.dtype = DType::kMxFp8;
        if (type.ends_with("e2m1")) kernel.dtype = DType::kMxFp4;
      } else {
        kernel.dtype = DTypeNamed(type);
      }
    }
  }
  kernel.cooperative = Has(words, "cooperative");
  kernel.pingpong = Has(words, "pingpong");
  kernel.stream_k = Has(words, "streamk") || (Has(words, "stream") && Has(words, "k"));
  kernel.persistent = kernel.cooperative || kernel.pingpong || kernel.stream_k;
  kernel.waves = kernel.cooperative ? 2 * kWarpsOfWarpgroup : kWarpsOfWarpgroup;
  if (kernel.ctas_per_mma == 2 && tile.m > 1) tile.m /= 2;
  kernel.layout = LayoutOfFlags(a, b, row_major_c);
  SetAlignment(words, kernel);
  SetOriented(kernel, tile, cluster, row_major_c);
}

}  // namespace

bool ParseCutlass(std::string_view lower, KernelName& kernel) {
  size_t at = lower.find("cutlass3x_");
  if (at != std::string_view::npos) {
    ReadCutlass3(Split(Identifier(lower, at)), kernel);
    return true;
  }
  at = lower.find("cutlass_");
  if (at == std::string_view::npos || !Has(lower.substr(at), "gemm")) return false;
  const Words words = Split(Identifier(lower, at));
  ReadCutlass2(words, kernel);
  return true;
}

}  // namespace gnomon::kernel_name
