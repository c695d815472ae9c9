#pragma once

/// How kernel names are taken apart (only for kernel_name*.cc): words between separators, numbers
/// that may not overflow, sizes such as "256x224x64".

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/gemm/kernel_name.h"

namespace gnomon::kernel_name {

/// No tile, count or stage of a real kernel is larger; a longer run of digits means something else.
inline constexpr int kLargestNumber = 8192;

/// The decimal number that `text` is; nothing if it is empty, has another character, or is larger
/// than kLargestNumber.
std::optional<int> Number(std::string_view text);
/// The number at the front of `text`, which is then cut off.
std::optional<int> TakeNumber(std::string_view& text);

using Words = std::vector<std::string_view>;
/// Non-empty pieces between separators.
Words Split(std::string_view text, char by = '_');
/// "256x224x64" as three numbers; empty if any part is none or is 0.
std::vector<int> Sizes(std::string_view word, char by = 'x');
/// The number behind `key` in a word that is just that ("PGR2", "WGMn1" = -1); nothing if no word
/// is.
std::optional<int> Keyed(std::span<const std::string_view> words, std::string_view key);
/// Letters, digits and underscores from `at` on.
std::string_view Identifier(std::string_view text, size_t at);
std::string Lower(std::string_view text);
bool Has(std::string_view text, std::string_view part);
bool Has(std::span<const std::string_view> words, std::string_view word);

/// Names of number formats as CUTLASS, xmma and CK write them: "bf16", "f16", "e4m3", "bhalf_t".
std::optional<DType> DTypeNamed(std::string_view word);

/// Puts a tile whose first side lies along M of a column-major C, that is along our N.
void SetBlasTile(KernelName& kernel, int first, int second, int depth);
/// Our layout where a column-major BLAS call states `a` and `b` ('t' or 'n').
std::optional<Layout> LayoutOfBlas(char a, char b);
/// Our layout where the operands themselves are row-major ('n') or column-major ('t') in memory.
std::optional<Layout> LayoutOf(bool a_transposed, bool b_transposed);

/// Each fills `kernel` and is true if the name is of its kind; `lower` is the name in lower case.
bool ParseTensile(std::string_view name, KernelName& kernel);
bool ParseAiter(std::string_view lower, KernelName& kernel);
bool ParseCk(std::string_view name, KernelName& kernel);
bool ParseNvjet(std::string_view lower, KernelName& kernel);
bool ParseXmma(std::string_view lower, KernelName& kernel);
bool ParseCutlass(std::string_view lower, KernelName& kernel);
bool ParseTriton(std::string_view lower, KernelName& kernel);
bool ParseGemv(std::string_view lower, KernelName& kernel);

}  // namespace gnomon::kernel_name
