// Names of AMD's GEMM kernels.
//
// Tensile (hipBLASLt, rocBLAS): Cijk_Alik_Bljk_BBS_BH_…_MT256x224x64_MI16x16x1_…_GSU4_…_WG32_8_1
//   Alik      the order in which A's indices lie in memory: l (K) first is BLAS's transposed A
//   BBS       types of A and B, of C, of the accumulator (B bf16, H fp16, S fp32, D fp64, F8, F8N)
//   MT        macro tile along BLAS's M, then N, then depth; row-major M is BLAS's N
//   MI        matrix instruction m, n, [k,] blocks
//   GSU       global split of K; no such word: chosen at launch. GSUAMB: partial sums in buffers
//   and
//             a second kernel, GSUAMBSK: the last workgroup adds them
//   SK3       stream-K; SK0 not
//   AFEM, ASEM  sides that must be multiples of a number
//   WGM       workgroup mapping; WG and WS workgroup and wave size; PGR2: one tile loaded ahead
//   DTL       global to LDS past the registers; NT a cache hint, A to D
// CK C++ templates state the numbers in a fixed order behind GemmSpecialization; its type strings
// name them (BlkTile); aiter spells both in words of its own. aiter's tables give the tile in our
// order, M first (aiter/configs/*_tuned_gemm.csv: the smallest first sides stand at the smallest
// M). Left out: complex types, sparse kernels, MoE kernels.

#include <algorithm>
#include <array>

#include "gnomon/gemm/kernel_name_words.h"

namespace gnomon::kernel_name {
namespace {

// ---- Tensile

struct TensileType {
  std::string_view prefix;
  DType dtype;
};

// The longest prefix first.
constexpr std::array<TensileType, 13> kTensileTypes = {{{"F8N", DType::kFp8E4m3Fnuz},
                                                        {"B8N", DType::kFp8E5m2Fnuz},
                                                        {"4xi8", DType::kInt8},
                                                        {"F8", DType::kFp8E4m3},
                                                        {"B8", DType::kFp8E5m2},
                                                        {"F6", DType::kMxFp6},
                                                        {"F4", DType::kMxFp4},
                                                        {"I8", DType::kInt8},
                                                        {"B", DType::kBf16},
                                                        {"H", DType::kFp16},
                                                        {"S", DType::kFp32},
                                                        {"D", DType::kFp64},
                                                        {"X", DType::kTf32}}};

std::optional<DType> TensileDType(const Words& words, size_t type_word) {
  if (type_word >= words.size()) return std::nullopt;
  for (const TensileType& type : kTensileTypes) {
    if (!words[type_word].starts_with(type.prefix)) continue;
    // "MX": fp32 operands multiplied as xf32, AMD's tf32.
    return type.dtype == DType::kFp32 && Has(words, "MX") ? DType::kTf32 : type.dtype;
  }
  return std::nullopt;
}

// "Alik": transposed if the summation index l comes before the free one.
char TensileTranspose(std::string_view operand, char free, bool summed_first_is_transposed) {
  const size_t summed = operand.find('l'), own = operand.find(free);
  if (summed == std::string_view::npos || own == std::string_view::npos) return '?';
  return (summed < own) == summed_first_is_transposed ? 't' : 'n';
}

// Threads of "WG32_8_1": the two words behind it belong to it.
int TensileThreads(const Words& words) {
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (!words[i].starts_with("WG")) continue;
    const auto first = Number(words[i].substr(2)), second = Number(words[i + 1]),
               third = Number(words[i + 2]);
    if (!first || !second || !third) continue;
    constexpr long kLargestWorkgroup = 1024;  // threads: HIP's limit
    const long threads = static_cast<long>(*first) * *second;
    if (threads > kLargestWorkgroup) return 0;
    return static_cast<int>(std::min(threads * *third, kLargestWorkgroup));
  }
  return 0;
}

// "MIWT8_5": matrix instructions that one wave does along BLAS's M and N. The tile divided by what
// they cover is the waves along it; waves that are left over share the depth (local split).
void SetTensileWaves(const Words& words, KernelName& kernel) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (!words[i].starts_with("MIWT")) continue;
    const auto along_n = Number(words[i].substr(std::string_view("MIWT").size())),
               along_m = Number(words[i + 1]);
    if (!along_n || !along_m || *along_n == 0 || *along_m == 0 || kernel.mma_m == 0) return;
    const int n = kernel.tile_n / (kernel.mma_n * *along_n);
    const int m = kernel.tile_m / (kernel.mma_m * *along_m);
    if (n == 0 || m == 0 || kernel.waves % (n * m) != 0) return;
    kernel.waves_n = n;
    kernel.waves_m = m;
    kernel.waves_k = kernel.waves / (n * m);
    return;
  }
}

}  // namespace

bool ParseTensile(std::string_view name, KernelName& kernel) {
  const size_t at = name.find("Cijk_");
  if (at == std::string_view::npos) return false;
  const Words words = Split(Identifier(name, at));
  kernel.library = KernelName::Library::kTensile;
  constexpr size_t kFirstOperand = 1, kSecondOperand = 2, kTypes = 3;  // words behind "Cijk"
  if (words.size() > kTypes) {
    kernel.layout = LayoutOfBlas(TensileTranspose(words[kFirstOperand], 'i', true),
                                 TensileTranspose(words[kSecondOperand], 'j', false));
    kernel.dtype = TensileDType(words, kTypes);
  }
  for (const std::string_view word : words) {
    if (word.starts_with("MT") && kernel.tile_m == 0) {
      const std::vector<int> sides = Sizes(word.substr(2));
      if (sides.size() == 3) SetBlasTile(kernel, sides[0], sides[1], sides[2]);
    } else if (word.starts_with("MI") && kernel.mma_m == 0) {
      const std::vector<int> sides = Sizes(word.substr(2));
      constexpr size_t kWithDepth = 4;  // m, n, k, blocks; three: m, n, blocks
      if (sides.size() >= 2) {
        kernel.mma_n = sides[0];
        kernel.mma_m = sides[1];
        if (sides.size() == kWithDepth) kernel.mma_k = sides[2];
      }
    } else if (word.starts_with("ISA")) {
      kernel.arch = "gfx" + std::string(word.substr(3));
    } else if (word.starts_with("gfx")) {
      kernel.arch = word;
    }
  }
  // Asserted multiples: of BLAS's M and N ("AF0EM8", newer "AFEM8_AFEM1" in that order), of K.
  const auto multiple = [&](std::string_view key) {
    return std::max(Keyed(words, key).value_or(1), 1);
  };
  kernel.multiple_n = multiple("AF0EM");
  kernel.multiple_m = multiple("AF1EM");
  kernel.multiple_k = multiple("ASEM");
  const auto free0 = std::find_if(words.begin(), words.end(),
                                  [](std::string_view word) { return word.starts_with("AFEM"); });
  if (free0 != words.end()) {
    kernel.multiple_n =
        std::max(Number(free0->substr(std::string_view("AFEM").size())).value_or(1), 1);
    const Words behind(free0 + 1, words.end());
    kernel.multiple_m = std::max(Keyed(behind, "AFEM").value_or(1), 1);
  }
  const auto set = [&](std::string_view key) { return Keyed(words, key).value_or(0) > 0; };
  kernel.stream_k = set("SK");
  const auto split = Keyed(words, "GSU");
  kernel.split_k = split.value_or(0);
  kernel.reduces_alone = Has(words, "GSUAMB");
  kernel.wgm = Keyed(words, "WGM").value_or(0);
  kernel.direct_to_lds = set("DTLA") || set("DTLB") || set("DTL");
  kernel.non_temporal_a = set("NTA");
  kernel.non_temporal_b = set("NTB");
  std::swap(kernel.non_temporal_a, kernel.non_temporal_b);  // BLAS's A is our B
  kernel.non_temporal_c = set("NTC") || set("NTD");
  // PGR counts the tiles that are loaded ahead of the one that is multiplied; 1LDSBuffer (LDSB1)
  // keeps some of them in registers, which does not change how far ahead the loads run.
  if (const auto ahead = Keyed(words, "PGR")) kernel.stages = std::max(*ahead, 0) + 1;
  constexpr int kWaveOnCdna = 64;
  const int threads = TensileThreads(words);
  const int wave = std::max(Keyed(words, "WS").value_or(kWaveOnCdna), 1);
  kernel.waves = threads / wave;
  SetTensileWaves(words, kernel);
  kernel.vector_units = kernel.tile_m > 0 && kernel.mma_m == 0;
  return true;
}

// ---- aiter: assembly, FlyDSL, opus, and its instances of CK and CK-Tile

namespace {

/// aiter writes its own M first, N second.
void SetTile(KernelName& kernel, int m, int n, int k) {
  kernel.tile_m = m;
  kernel.tile_n = n;
  kernel.tile_k = k;
}

int Product(const std::vector<int>& sizes) {
  long product = 1;
  for (const int size : sizes) product = std::min<long>(product * size, kLargestNumber);
  return static_cast<int>(product);
}

void SetWaves(KernelName& kernel, const std::vector<int>& along) {
  kernel.waves = Product(along);
  kernel.waves_m = along[0];
  kernel.waves_n = along.size() > 1 ? along[1] : 1;
  kernel.waves_k = along.size() > 2 ? along[2] : 1;
}

std::optional<DType> AiterDType(std::string_view lower) {
  struct Mark {
    std::string_view word;
    DType dtype;
  };
  // a8w8 alone may be int8 as well as fp8.
  constexpr std::array<Mark, 12> kMarks = {{{"bf16gemm", DType::kBf16},
                                            {"hgemm_bf16", DType::kBf16},
                                            {"hgemm_f16", DType::kFp16},
                                            {"abf16_wbf16", DType::kBf16},
                                            {"af16_wf16", DType::kFp16},
                                            {"fp8gemm", DType::kFp8E4m3},
                                            {"f8_f8", DType::kFp8E4m3},
                                            {"abf8", DType::kFp8E4m3},
                                            {"a8w8_blockscale", DType::kFp8E4m3},
                                            {"i8gemm", DType::kInt8},
                                            {"f4gemm", DType::kMxFp4},
                                            {"a4w4", DType::kMxFp4}}};
  for (const Mark& mark : kMarks)
    if (Has(lower, mark.word)) return mark.dtype;
  return std::nullopt;
}

// "_ZN5aiter39bf16gemm_fp32bf16_tn_64x64_splitk_cleanE": the last word of two sizes is the tile.
bool ParseAsm(const Words& words, KernelName& kernel) {
  kernel.library = KernelName::Library::kAiterAsm;
  for (std::string_view word : words) {
    if (word.ends_with("e")) word.remove_suffix(1);  // the E that ends a mangled name
    const std::vector<int> sides = Sizes(word);
    if (sides.size() == 2) SetTile(kernel, sides[0], sides[1], 0);
  }
  if (!std::any_of(words.begin(), words.end(),
                   [](std::string_view word) { return word.starts_with("splitk"); }))
    kernel.split_k = 0;
  return true;
}

// "flydsl_gemm5_…_t16x64x128_split_k2_block_m_warp1_…", "hgemm_bf16_16x64x128x5_spk8_w1x2x1_…",
// "flydsl_bpreshuflle_128x64x256_f8_f8_b16_2x0x1x1_default".
bool ParseFlydsl(const Words& words, KernelName& kernel) {
  constexpr size_t kTile = 3, kTileAndStages = 4;
  kernel.library = KernelName::Library::kFlydsl;
  kernel.split_k = 1;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word.starts_with("t")) word.remove_prefix(1);
    const std::vector<int> sides = Sizes(word);
    if (kernel.tile_m == 0 && (sides.size() == kTile || sides.size() == kTileAndStages)) {
      SetTile(kernel, sides[0], sides[1], sides[2]);
      if (sides.size() == kTileAndStages) kernel.stages = sides[kTile];
    } else if (word.starts_with("w") && Sizes(word.substr(1)).size() == kTile) {
      SetWaves(kernel, Sizes(word.substr(1)));
    } else if (word == "split" && i + 1 < words.size() && words[i + 1].starts_with("k")) {
      kernel.split_k = Number(words[i + 1].substr(1)).value_or(0);
    }
  }
  if (const auto split = Keyed(words, "spk")) kernel.split_k = *split;
  if (const auto split = Keyed(words, "sk")) kernel.split_k = *split;
  if (const auto stages = Keyed(words, "gemm")) kernel.stages = *stages;
  if (Has(words, "ksd")) kernel.split_k = 0;  // split at launch
  // "block_m_warp1_block_n_warp2_block_k_warp1"
  std::vector<int> along;
  for (const std::string_view word : words) {
    constexpr std::string_view kKey = "warp";
    if (!word.starts_with(kKey)) continue;
    if (const auto count = Number(word.substr(kKey.size())); count && *count > 0)
      along.push_back(*count);
  }
  if (!along.empty()) SetWaves(kernel, along);
  if (Has(words, "copytrue")) kernel.direct_to_lds = true;
  for (const std::string_view word : words)
    if (word.starts_with("gfx")) kernel.arch = word;
  return true;
}

// "opus_gemm_flatmm_splitk_256x32x128x64_2x1_16x16x32_…": threads, tile, waves, instruction.
bool ParseOpus(const Words& words, KernelName& kernel) {
  constexpr size_t kThreadsAndTile = 4, kInstruction = 3;
  kernel.library = KernelName::Library::kOpus;
  kernel.split_k = Has(words, "splitk") ? 0 : 1;
  kernel.persistent = Has(words, "persistent");
  for (size_t i = 0; i < words.size(); ++i) {
    const std::vector<int> sides = Sizes(words[i]);
    if (sides.size() == kThreadsAndTile && kernel.tile_m == 0) {
      SetTile(kernel, sides[1], sides[2], sides[3]);
    } else if (sides.size() == 2 && kernel.tile_m > 0 && kernel.waves == 0) {
      SetWaves(kernel, sides);
    } else if (sides.size() == kInstruction && kernel.tile_m > 0 && kernel.mma_m == 0) {
      kernel.mma_m = sides[0];
      kernel.mma_n = sides[1];
      kernel.mma_k = sides[2];
    }
  }
  return true;
}

// "a8w8_bpreshuffle_cktile_0x0x8x4x1x0x0x0x0x1_32x64x512_1x4x1_16x16x64_default": three words of
// three sizes in a row are tile, waves, instruction.
bool ParseCkTileWords(const Words& words, KernelName& kernel) {
  constexpr size_t kSides = 3;
  kernel.library = KernelName::Library::kCkTile;
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    const std::vector<int> tile = Sizes(words[i]), waves = Sizes(words[i + 1]),
                           mma = Sizes(words[i + 2]);
    if (tile.size() != kSides || waves.size() != kSides || mma.size() != kSides) continue;
    SetTile(kernel, tile[0], tile[1], tile[2]);
    SetWaves(kernel, waves);
    kernel.mma_m = mma[0];
    kernel.mma_n = mma[1];
    kernel.mma_k = mma[2];
    break;
  }
  return true;
}

constexpr int kWaveThreads = 64;  // CDNA

// "a8w8_blockscale_1x128x128_256x16x64x256_16x16_16x16_1x1_…": threads and tile, then (not for
// rowwise kernels) vector widths, then the instruction's m and n. The split is an argument.
bool ParseCkWords(const Words& words, KernelName& kernel) {
  constexpr size_t kThreadsAndTile = 4;
  kernel.library = KernelName::Library::kCk;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::vector<int> sides = Sizes(words[i]);
    if (sides.size() != kThreadsAndTile) continue;
    SetTile(kernel, sides[1], sides[2], sides[3]);
    kernel.waves = std::max(sides[0] / kWaveThreads, 1);
    const size_t instruction = Has(words, "rowwise") ? i + 1 : i + 2;
    if (instruction < words.size()) {
      const std::vector<int> mma = Sizes(words[instruction]);
      if (mma.size() == 2) {
        kernel.mma_m = mma[0];
        kernel.mma_n = mma[1];
      }
    }
    break;
  }
  return true;
}

}  // namespace

bool ParseAiter(std::string_view lower, KernelName& kernel) {
  const size_t mangled = lower.find("aiter");
  std::string_view text = lower;
  bool assembly = false;
  if (mangled != std::string_view::npos) {
    // "_zn5aiter39bf16gemm_…e" or "aiter::bf16gemm_…"
    text = lower.substr(mangled + std::string_view("aiter").size());
    while (!text.empty() && (text.front() == ':' || (text.front() >= '0' && text.front() <= '9')))
      text.remove_prefix(1);
    assembly = true;
  }
  text = Identifier(text, 0);
  const Words words = Split(text);
  constexpr std::array<std::string_view, 5> kAssembly = {"bf16gemm_", "fp8gemm_", "i8gemm_",
                                                         "f4gemm_", "fp16gemm_"};
  const bool named = std::any_of(kAssembly.begin(), kAssembly.end(),
                                 [&](auto mark) { return text.starts_with(mark); });
  bool parsed = false;
  if (named || (assembly && Has(text, "gemm_"))) {
    parsed = ParseAsm(words, kernel);
  } else if (text.starts_with("flydsl_") || text.starts_with("hgemm_bf16_") ||
             text.starts_with("hgemm_f16_")) {
    parsed = ParseFlydsl(words, kernel);
  } else if (text.starts_with("opus_gemm")) {
    parsed = ParseOpus(words, kernel);
  } else if (text.starts_with("a8w8_") || text.starts_with("a4w4_") ||
             text.starts_with("a16w16_")) {
    parsed = Has(words, "cktile") ? ParseCkTileWords(words, kernel) : ParseCkWords(words, kernel);
  }
  if (!parsed) return false;
  kernel.dtype = AiterDType(text);
  kernel.layout = Layout::kNT;  // aiter's GEMMs take weights stored [N, K]
  return true;
}

// ---- Composable Kernel by its C++ names

namespace {

// Numbers between commas from `at` on, up to the first piece that is none.
std::vector<int> NumberList(std::string_view text) {
  std::vector<int> numbers;
  for (std::string_view piece : Split(text, ',')) {
    while (piece.starts_with(" ")) piece.remove_prefix(1);
    const auto number = Number(piece);
    if (!number) break;
    numbers.push_back(*number);
  }
  return numbers;
}

// "BlkTile: 16x128x128" → the sizes behind a key of a type string.
std::vector<int> SizesBehind(std::string_view name, std::string_view key) {
  const size_t at = name.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = name.substr(at + key.size());
  while (rest.starts_with(" ")) rest.remove_prefix(1);
  return Sizes(Identifier(rest, 0));
}

std::optional<Layout> CkLayout(std::string_view name) {
  // "RCR" of a type string, or the first two layout types of a template.
  const size_t letters = name.find(", ");
  if (name.starts_with("DeviceGemm") && letters != std::string_view::npos &&
      name.size() > letters + 4) {
    const std::string_view three = Identifier(name, letters + 2);
    if (three.size() == 3 && three.find_first_not_of("RC") == std::string_view::npos)
      return LayoutOf(three[0] == 'C', three[1] == 'C');
  }
  std::array<bool, 2> column{};
  size_t at = 0;
  for (bool& is_column : column) {
    const size_t row = name.find("RowMajor", at), col = name.find("ColumnMajor", at);
    if (row == std::string_view::npos && col == std::string_view::npos) return std::nullopt;
    is_column = col < row;
    at = std::min(row, col) + 1;
  }
  return LayoutOf(column[0], column[1]);
}

std::optional<DType> CkDType(std::string_view name) {
  // The first type of the template that is a number format: "ck::f8_fnuz_t", "ck::half_t".
  for (const std::string_view piece : Split(name, ',')) {
    const size_t scope = piece.rfind(':');
    const size_t at = scope == std::string_view::npos ? piece.find_first_not_of(' ') : scope + 1;
    if (at == std::string_view::npos) continue;
    const std::string type = Lower(Identifier(piece, at));
    if (type == "_float16") return DType::kFp16;
    if (type == "unsigned") return DType::kBf16;  // CK's bhalf_t is an unsigned short
    if (const auto dtype = DTypeNamed(type)) return dtype;
  }
  return std::nullopt;
}

}  // namespace

bool ParseCk(std::string_view name, KernelName& kernel) {
  const bool tile = Has(name, "ck_tile::");
  if (!tile && !Has(name, "ck::") && !name.starts_with("DeviceGemm")) return false;
  kernel.library = tile ? KernelName::Library::kCkTile : KernelName::Library::kCk;
  kernel.layout = CkLayout(name);
  kernel.dtype = CkDType(name);
  constexpr size_t kSides = 3;
  if (tile) {
    const std::string_view key = "sequence<";
    std::vector<std::vector<int>> shapes;
    for (size_t at = name.find(key); at != std::string_view::npos; at = name.find(key, at + 1)) {
      std::vector<int> numbers =
          NumberList(name.substr(at + key.size(), name.find('>', at) - at - key.size()));
      if (numbers.size() == kSides) shapes.push_back(std::move(numbers));
    }
    if (!shapes.empty()) SetTile(kernel, shapes[0][0], shapes[0][1], shapes[0][2]);
    if (shapes.size() >= kSides) {
      SetWaves(kernel, shapes[1]);
      kernel.mma_m = shapes[2][0];
      kernel.mma_n = shapes[2][1];
      kernel.mma_k = shapes[2][2];
    }
    return true;
  }
  const std::vector<int> sides = SizesBehind(name, "BlkTile:");
  if (sides.size() == kSides) {
    SetTile(kernel, sides[0], sides[1], sides[2]);
    if (const auto threads = SizesBehind(name, "BlkSize:"); threads.size() == 1)
      kernel.waves = std::max(threads[0] / kWaveThreads, 1);
    if (const auto mma = SizesBehind(name, "WaveTile:"); mma.size() == 2) {
      kernel.mma_m = mma[0];
      kernel.mma_n = mma[1];
    }
    if (const auto stages = SizesBehind(name, "PrefetchStages:"); stages.size() == 1)
      kernel.stages = stages[0];
    return true;
  }
  // Template: "(…::GemmSpecialization)0, threads, [scale block m, n, k,] m, n, k, AK1, BK1,
  // instruction m, n, …".
  const std::string_view key = "GemmSpecialization)";
  const size_t at = name.find(key);
  if (at == std::string_view::npos) return true;
  std::vector<int> numbers = NumberList(name.substr(at + key.size()));
  const bool scaled = Has(name, "ABScale") || Has(name, "blockscale") || Has(name, "BlockScale");
  constexpr size_t kScaleBlock = 3, kDepth = 2, kInstructionM = 5, kInstructionN = 6;
  const size_t first = (scaled ? kScaleBlock : 0) + 2;  // behind the specialisation, the threads
  if (numbers.size() <= first + kInstructionN) return true;
  if (numbers[first] == 0 || numbers[first + 1] == 0 || numbers[first + kDepth] == 0) return true;
  SetTile(kernel, numbers[first], numbers[first + 1], numbers[first + kDepth]);
  kernel.waves = std::max(numbers[1] / kWaveThreads, 1);
  kernel.mma_m = numbers[first + kInstructionM];
  kernel.mma_n = numbers[first + kInstructionN];
  // InMemoryDataOperationEnum 0 stores the result: no other workgroup adds to it. 1 adds
  // atomically.
  if (Has(name, "InMemoryDataOperationEnum)0")) kernel.split_k = 1;
  return true;
}

}  // namespace gnomon::kernel_name
