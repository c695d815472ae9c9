// Which library a kernel's name belongs to, and what then is known of it.
//
//   ParseKernelName = the first of the grammars that the name matches
//
// The order matters only where one name holds another: a reduction kernel is no product, an aiter
// name may hold "gemm", a gemv kernel may hold a CUTLASS type. Each grammar reads what its library
// writes into names and leaves the rest 0; nothing is guessed here. What the model then has to
// assume stands in `what_is_missing`. Only the first kLongestName characters are looked at: C++
// template names repeat themselves behind that. Mangled C++ names are read where what we need
// stands in them in plain text (aiter), else they stay unknown.

#include "gnomon/gemm/kernel_name.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "gnomon/gemm/kernel_name_words.h"

namespace gnomon {
namespace kernel_name {

std::optional<int> TakeNumber(std::string_view& text) {
  int value = 0;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    constexpr int kBase = 10;
    value = value > kLargestNumber ? value : value * kBase + (text[digits] - '0');
  }
  text.remove_prefix(digits);
  if (digits == 0 || value > kLargestNumber) return std::nullopt;
  return value;
}

std::optional<int> Number(std::string_view text) {
  const auto value = TakeNumber(text);
  return text.empty() ? value : std::nullopt;
}

Words Split(std::string_view text, char by) {
  Words words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(by), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::vector<int> Sizes(std::string_view word, char by) {
  std::vector<int> sizes;
  while (true) {
    const auto number = TakeNumber(word);
    if (!number || *number == 0) return {};
    sizes.push_back(*number);
    if (word.empty()) return sizes;
    if (word.front() != by) return {};
    word.remove_prefix(1);
  }
}

std::optional<int> Keyed(std::span<const std::string_view> words, std::string_view key) {
  for (std::string_view word : words) {
    if (!word.starts_with(key)) continue;
    word.remove_prefix(key.size());
    const bool negative = word.starts_with("n");
    if (negative) word.remove_prefix(1);
    if (const auto number = Number(word)) return negative ? -*number : *number;
  }
  return std::nullopt;
}

std::string_view Identifier(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
    ++end;
  return text.substr(at, end - at);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower;
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool Has(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<DType> DTypeNamed(std::string_view word) {
  struct Spelling {
    std::string_view word;
    DType dtype;
  };
  constexpr std::array<Spelling, 27> kSpellings = {
      {{"bf16", DType::kBf16},     {"bfloat16", DType::kBf16},
       {"bhalf_t", DType::kBf16},  {"bf16_t", DType::kBf16},
       {"f16", DType::kFp16},      {"fp16", DType::kFp16},
       {"half", DType::kFp16},     {"half_t", DType::kFp16},
       {"fp16_t", DType::kFp16},   {"tf32", DType::kTf32},
       {"f32", DType::kFp32},      {"fp32", DType::kFp32},
       {"float", DType::kFp32},    {"f64", DType::kFp64},
       {"double", DType::kFp64},   {"e4m3", DType::kFp8E4m3},
       {"f8", DType::kFp8E4m3},    {"fp8", DType::kFp8E4m3},
       {"f8_t", DType::kFp8E4m3},  {"f8_ocp_t", DType::kFp8E4m3},
       {"fp8_t", DType::kFp8E4m3}, {"f8_fnuz_t", DType::kFp8E4m3Fnuz},
       {"e5m2", DType::kFp8E5m2},  {"bf8", DType::kFp8E5m2},
       {"s8", DType::kInt8},       {"i8", DType::kInt8},
       {"int8_t", DType::kInt8}}};
  for (const Spelling& spelling : kSpellings)
    if (spelling.word == word) return spelling.dtype;
  return std::nullopt;
}

void SetBlasTile(KernelName& kernel, int first, int second, int depth) {
  kernel.tile_n = first;
  kernel.tile_m = second;
  kernel.tile_k = depth;
}

std::optional<Layout> LayoutOf(bool a_transposed, bool b_transposed) {
  if (a_transposed) return b_transposed ? Layout::kTT : Layout::kTN;
  return b_transposed ? Layout::kNT : Layout::kNN;
}

// A column-major BLAS call for our row-major C passes our B as its first operand and our A as its
// second: a transposed first operand is stored [N, K] in our terms, which is our 't' for B; a plain
// second operand is our A stored [M, K], our 'n'.
std::optional<Layout> LayoutOfBlas(char a, char b) {
  if ((a != 't' && a != 'n') || (b != 't' && b != 'n')) return std::nullopt;
  return LayoutOf(b == 't', a == 't');
}

bool ParseGemv(std::string_view lower, KernelName& kernel) {
  constexpr std::array<std::string_view, 4> kMarks = {"gemv", "gemmsn_", "wvsplitk", "llgemm1"};
  if (std::none_of(kMarks.begin(), kMarks.end(), [&](auto mark) { return Has(lower, mark); }))
    return false;
  kernel.library = KernelName::Library::kGemv;
  kernel.gemv = kernel.vector_units = true;
  kernel.split_k = 1;
  // The type of the operands is the first of the template's types that is not the accumulator.
  constexpr std::array<std::pair<std::string_view, DType>, 5> kTypes = {{{"bfloat16", DType::kBf16},
                                                                         {"half", DType::kFp16},
                                                                         {"double", DType::kFp64},
                                                                         {"float", DType::kFp32},
                                                                         {"int8", DType::kInt8}}};
  for (const auto& [type, dtype] : kTypes) {
    if (!Has(lower, type)) continue;
    kernel.dtype = dtype;
    break;
  }
  return true;
}

bool ParseTriton(std::string_view lower, KernelName& kernel) {
  const Words words = Split(lower);
  constexpr std::array<std::string_view, 4> kGenerated = {"triton_mm", "triton_tem", "triton_bmm",
                                                          "triton_matmul"};
  const bool generated = std::any_of(kGenerated.begin(), kGenerated.end(),
                                     [&](auto mark) { return lower.starts_with(mark); });
  // aiter writes the constants of its Triton kernels into their names: "…_BLOCK_SIZE_M_256_…".
  const auto constant = [&](std::string_view name) -> int {
    const size_t at = lower.find(name);
    if (at == std::string_view::npos) return 0;
    std::string_view rest = lower.substr(at + name.size());
    return TakeNumber(rest).value_or(0);
  };
  kernel.tile_m = constant("block_size_m_");
  kernel.tile_n = constant("block_size_n_");
  if (!generated && (kernel.tile_m == 0 || kernel.tile_n == 0) && !lower.starts_with("triton_"))
    return false;
  kernel.library = KernelName::Library::kTriton;
  kernel.tile_k = constant("block_size_k_");
  kernel.wgm = constant("group_size_m_");
  kernel.split_k = constant("num_ksplit_");
  if (Has(lower, "a16_w16") || Has(lower, "a16w16")) kernel.dtype = DType::kBf16;
  if (Has(lower, "a8w8_blockscale")) kernel.dtype = DType::kFp8E4m3;
  if (Has(lower, "a4w4") || Has(lower, "afp4wfp4")) kernel.dtype = DType::kMxFp4;
  return true;
}

}  // namespace kernel_name

namespace {

/// Longer names are C++ types whose front holds all that is read.
constexpr size_t kLongestName = 4096;

// Kernels that stand beside GEMMs in profiles: the second half of a split K, PyTorch's own
// elementwise and reduction kernels, Inductor's (poi: pointwise, red and per: reductions).
bool IsNoProduct(std::string_view lower) {
  constexpr std::array<std::string_view, 6> kMarks = {
      "splitkreduce", "splitk_reduce", "at::native::", "triton_poi_", "triton_red_", "triton_per_"};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](auto mark) { return kernel_name::Has(lower, mark); });
}

void Add(std::string& list, std::string_view what) {
  if (!list.empty()) list += ", ";
  list += what;
}

// What the model will have to assume.
std::string Missing(const KernelName& kernel) {
  std::string missing;
  if (kernel.not_a_product) return "it is no matrix product";
  if (kernel.library == KernelName::Library::kUnknown) return "a grammar for this name";
  if (kernel.gemv) return missing;
  if (kernel.tile_m == 0 || kernel.tile_n == 0) {
    Add(missing, "the tile");
    return missing;
  }
  if (kernel.tile_k == 0) Add(missing, "the depth of the tile");
  if (kernel.split_k == 0 && !kernel.stream_k) Add(missing, "the split of K");
  if (!kernel.dtype) Add(missing, "the dtype");
  if (!kernel.layout) Add(missing, "the layout");
  return missing;
}

}  // namespace

std::string_view FamilyOf(KernelName::Library library) {
  constexpr std::array<std::string_view, 13> kNames = {
      "unknown", "hipblaslt", "aiter-ck", "aiter-cktile", "aiter-asm", "aiter-flydsl", "aiter-opus",
      "cublas",  "cublas",    "cutlass",  "cutlass",      "gemv",      "triton"};
  return kNames[static_cast<size_t>(library)];
}

KernelName ParseKernelName(std::string_view name) {
  namespace parse = kernel_name;
  KernelName kernel;
  kernel.name = name;
  const std::string_view read = name.substr(0, kLongestName);
  const std::string lower = parse::Lower(read);
  if (IsNoProduct(lower)) {
    kernel.not_a_product = true;
  } else if (!(parse::ParseTensile(read, kernel) || parse::ParseNvjet(lower, kernel) ||
               parse::ParseGemv(lower, kernel) || parse::ParseXmma(lower, kernel) ||
               parse::ParseCutlass(lower, kernel) || parse::ParseTriton(lower, kernel) ||
               parse::ParseAiter(lower, kernel) || parse::ParseCk(read, kernel))) {
    kernel = KernelName{};
    kernel.name = name;
  }
  kernel.understood = kernel.gemv || (kernel.tile_m > 0 && kernel.tile_n > 0);
  kernel.what_is_missing = Missing(kernel);
  return kernel;
}

}  // namespace gnomon
