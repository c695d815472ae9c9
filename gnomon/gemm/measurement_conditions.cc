// What a row's source says about how it was timed, as a table: the first source whose text stands
// in the row's is taken, then what the row's own config adds (a conversion that is timed as well, a
// cache said to be warm). A condition is a fact of the harness, never of a shape.

#include "gnomon/gemm/measurement_conditions.h"

#include <array>
#include <string_view>

namespace gnomon {
namespace {

struct Harness {
  std::string_view source;  ///< part of the row's source
  std::string_view device;  ///< start of its device's id; empty: any
  LibraryConditions conditions;
};

// Caches emptied before each call, kernel time alone. Filling a buffer with zeros, as do_bench and
// our own sweep do, leaves nothing to write back on NVIDIA's parts (their H200 rows fit only so);
// the flush of flashinfer's benchmark does, and zeros do on AMD's.
constexpr LibraryConditions kCold{.weight_copies = 1, .cold_l2 = true};
constexpr LibraryConditions kFlushed{.weight_copies = 1, .cold_l2 = true, .dirty_l2 = true};
constexpr LibraryConditions kColdEvents{.weight_copies = 1, .cold_l2 = true, .events = true};
// The same buffers again and again in a CUDA graph.
constexpr LibraryConditions kSameBuffers{.weight_copies = 1};
// Triton's do_bench on the B200 of its Meta fork: for seconds, limited to 750 W (stated with the
// numbers of its pull requests 220, 407 and 681).
constexpr LibraryConditions kMetaB200{
    .weight_copies = 1, .cold_l2 = true, .events = true, .sustained = true, .power_limit = 750};

constexpr std::array<Harness, 12> kHarnesses = {{
    // aiconfigurator: CUDA graphs of c copies with weights of their own. TensorRT-LLM: as few as
    // exceed the L2, at most five, the same activations; SGLang: six, everything its own.
    {"/gemm/trtllm/", "", {.weight_copies = 5, .copies_until_l2 = true, .own_activations = false}},
    {"ai-dynamo/aiconfigurator", "", {.weight_copies = 6}},
    {"H200 2026-12-01", "", kColdEvents},
    {"flashinfer-ai/flashinfer#3426", "", kColdEvents},
    {"flashinfer-ai/flashinfer#1829", "", kSameBuffers},
    {"flashinfer-ai/flashinfer#2540", "", kFlushed},
    {"NVIDIA/cutlass#2923", "", kFlushed},
    {"pytorch/helion", "", kCold},
    {"facebookexperimental/triton", "mi", kFlushed},
    {"facebookexperimental/triton", "", kMetaB200},
    {"vllm-project/vllm", "", kSameBuffers},
    {"NVIDIA/TransformerEngine", "", {.weight_copies = 1, .events = true, .sustained = true}},
}};

}  // namespace

LibraryConditions ConditionsOf(const Measurement& row) {
  LibraryConditions out;
  const auto says = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  for (const Harness& harness : kHarnesses) {
    if (!says(row.source, harness.source) || !row.device.starts_with(harness.device)) continue;
    out = harness.conditions;
    break;
  }
  if (says(row.config, "cudagraph") || says(row.config, "Kineto")) out.events = false;
  if (says(row.config, "cutlass_profiler")) out = {.events = true};
  out.scales_in_loop = says(row.config, "blockwise") || says(row.config, "groupwise");
  const bool narrow = SizeOf(row.problem.dtype) < SizeOf(DType::kBf16);
  out.converts_a =
      narrow && (says(row.config, "incl quant") || says(row.config, "includes quantisation") ||
                 says(row.config, "+actquant"));
  return out;
}

}  // namespace gnomon
