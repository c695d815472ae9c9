// Which attention kernel a name means, and what it reaches.
//
// A kernel is a family (who wrote it) on a generation (for which matrix unit), forward or backward:
// each has one number, the share of the matrix units' rate that its main loop reaches while it is
// not held up by what attention.cc counts apart (exponentials, block start, idle units, memory).
// It says how well a kernel feeds the units, whatever the shape. A family not measured on a
// generation keeps its share from another; one not measured at all takes the mean of its class:
// `tuned` (hand-scheduled for one generation: assembly, warp-specialised, tile libraries) or not
// (compilers, templates for many chips). A backward kernel not measured reaches kBackwardShare of
// its forward one.
//
// Shares are fitted on the even-hash rows (base/fit_split.h, over batch,heads,seq_q,seq_kv,
// head_dim_qk) of public timings of A100, H100, B200, MI300X, MI350X and MI355X; never on H200 or
// GB200. HSTU on MI300X has no even-hash row: its rows are split with
// the measured time in the text (attention_rows.cc).
// Left out: versions of one library, which differ by up to a third (CK backward on MI350X: 375 and
// 500 TFLOP/s at one size in two reports).

#include "gnomon/cost/attention_kernels.h"

#include <algorithm>
#include <array>

#include "gnomon/cost/op_text.h"

namespace gnomon {
namespace {

using Generation = AttentionGeneration;

struct Share {
  std::string_view family;
  Generation generation;
  bool backward;
  double matrix_share;
};

// Sources: ai-dynamo/aiconfigurator@095f58a51 (A100, H100, B200 forward); facebookexperimental/
// triton #1591, #2282, #2709, #2798, #2843, #3582; meta-pytorch/MSLK #448, #467; ROCm/FlyDSL #894;
// HazyResearch/HipKittens@f09e968; moonmath-ai/amd-kernels@5f758e7; midiareshadi/attn-dsl-bench
// @94ea7f3; ROCm/aiter@2f5304c docs/HSTU_backward_optimization_log.md.
constexpr std::array<Share, 33> kShares = {{
    {"fa2", Generation::kSm80, false, 0.7},
    {"trtllm", Generation::kSm80, false, 0.65},
    {"fa3", Generation::kSm90, false, 0.885},
    {"fa3", Generation::kSm90, true, 0.575},
    {"tlx", Generation::kSm90, false, 0.93},
    {"tlx", Generation::kSm90, true, 0.66},
    {"trtllm", Generation::kSm90, false, 0.73},
    {"trtllm", Generation::kSm100, false, 0.97},
    {"fa4", Generation::kSm100, true, 0.91},
    {"tlx", Generation::kSm100, true, 0.71},
    {"flashinfer", Generation::kSm100, false, 0.54},
    {"triton", Generation::kSm100, false, 0.16},
    {"aiter", Generation::kCdna3, false, 0.625},
    {"ck", Generation::kCdna3, false, 0.19},
    {"max", Generation::kCdna3, false, 0.44},
    {"moonmath", Generation::kCdna3, false, 0.81},
    {"sdpa", Generation::kCdna3, false, 0.26},
    {"triton", Generation::kCdna3, false, 0.196},
    {"hstu flydsl", Generation::kCdna3, false, 0.211},
    {"hstu flydsl", Generation::kCdna3, true, 0.097},
    {"hstu triton", Generation::kCdna3, false, 0.232},
    {"hstu triton", Generation::kCdna3, true, 0.135},
    {"aiter", Generation::kCdna4, false, 0.84},
    {"aiter", Generation::kCdna4, true, 0.32},
    {"ck", Generation::kCdna4, false, 0.39},
    {"ck", Generation::kCdna4, true, 0.158},
    {"flydsl", Generation::kCdna4, false, 1.0},
    {"flydsl", Generation::kCdna4, true, 0.221},
    {"hipkittens", Generation::kCdna4, false, 0.82},
    {"hipkittens", Generation::kCdna4, true, 0.516},
    {"sdpa", Generation::kCdna4, false, 0.184},
    {"tlx", Generation::kCdna4, false, 0.425},
    {"tlx", Generation::kCdna4, true, 0.447},
}};

// Backward over forward share of one family: FA3 on H100.
constexpr double kBackwardShare = 0.64;

struct Family {
  std::string_view name;
  std::string_view words;  ///< parts of a text that mean it, '|' between them
  bool tuned;
  bool splits_kv;  ///< FA2's and FA3's heuristic when there are few query tiles
};

// The first match counts: a text may name a framework and a library, a language and a kernel.
constexpr std::array<Family, 16> kFamilies = {{
    {"flashinfer", "torch_flow_flashinfer", false, false},
    {"cutlass", "cutlass|colfax|cudnn", true, false},
    {"fa2", "fa2", false, true},
    {"fa3", "fa3", true, true},
    {"fa4", "fa4", true, false},
    {"hipkittens", "hipkittens", true, false},
    {"flydsl", "flydsl", true, false},
    {"tlx", "tlx|autows", true, false},
    {"triton", "triton", false, false},
    {"opus", "opus", true, false},
    {"moonmath", "moonmath", true, false},
    {"max", "modular max", false, false},
    {"trtllm", "trtllm", true, false},
    {"flashinfer", "flashinfer", false, false},
    {"sdpa", "sdpa", false, false},
    {"aiter", "aiter|fmha v4", true, false},
}};
constexpr Family kCk = {"ck", "ck", false, false};
constexpr Family kHstuFlydsl = {"hstu flydsl", "", false, false};
constexpr Family kHstuTriton = {"hstu triton", "", false, false};
constexpr Family kUnknown = {"unknown", "", false, false};

// Head dimensions of AITER's assembly forward; it hands others to CK (ROCm/aiter, fmha v3).
constexpr std::int64_t kAssemblyHeadDims[] = {128, 192};

bool IsAmd(Generation generation) {
  return generation == Generation::kCdna3 || generation == Generation::kCdna4;
}
bool IsAmd(const Device& device) { return device.arch.starts_with("gfx"); }

bool HasAnyText(std::string_view text, std::string_view parts) {
  while (!parts.empty()) {
    const size_t bar = parts.find('|');
    if (HasText(text, parts.substr(0, bar))) return true;
    parts = bar == std::string_view::npos ? std::string_view() : parts.substr(bar + 1);
  }
  return false;
}

const Family& ByName(std::string_view name) {
  const auto found = std::ranges::find(kFamilies, name, &Family::name);
  return found == kFamilies.end() ? kCk : *found;
}

// What PyTorch or a serving stack calls when nobody asks for a kernel.
const Family& Usual(const Device& device, Generation generation, bool backward) {
  if (IsAmd(device)) return ByName("aiter");
  switch (generation) {
    case Generation::kSm80:
      return ByName("fa2");
    case Generation::kSm90:
      return ByName("fa3");
    case Generation::kSm100:
      return ByName(backward ? "fa4" : "trtllm");
    default:
      return kUnknown;
  }
}

const Family& Named(const Device& device, std::string_view text, bool backward) {
  // A CK kernel may be called through AITER, and AITER's assembly is named by itself.
  if (HasWord(text, "ck")) return kCk;
  for (const Family& family : kFamilies)
    if (HasAnyText(text, family.words)) return family;
  if (HasWord(text, "asm")) return ByName("aiter");
  return Usual(device, AttentionGenerationOf(device), backward);
}

// Mean share over the rows of the table that `wanted` accepts; 0 where none does.
template <class Wanted>
double MeanShare(const Wanted& wanted) {
  double sum = 0, count = 0;
  for (const Share& share : kShares)
    if (wanted(share)) {
      sum += share.matrix_share;
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

double CarriedShare(const Family& family, bool amd, bool backward) {
  const double other = MeanShare([&](const Share& s) {
    return s.family == family.name && s.backward == backward && IsAmd(s.generation) == amd;
  });
  if (other > 0) return other;
  if (backward) return kBackwardShare * CarriedShare(family, amd, false);
  return MeanShare([&](const Share& s) {
    return !s.backward && IsAmd(s.generation) == amd && !s.family.starts_with("hstu") &&
           ByName(s.family).tuned == family.tuned;
  });
}

}  // namespace

AttentionGeneration AttentionGenerationOf(const Device& device) {
  if (device.arch.starts_with("sm_8")) return Generation::kSm80;
  if (device.arch.starts_with("sm_9")) return Generation::kSm90;
  if (device.arch.starts_with("sm_10")) return Generation::kSm100;
  if (device.arch == "gfx942") return Generation::kCdna3;
  if (device.arch == "gfx950") return Generation::kCdna4;
  return Generation::kOther;
}

AttentionKernel FindAttentionKernel(const Device& device, const AttentionProblem& problem,
                                    bool backward) {
  const Generation generation = AttentionGenerationOf(device);
  const bool amd = IsAmd(device);
  const Family* family = &Named(device, problem.implementation, backward);
  if (family->name == "aiter" && !backward &&
      std::ranges::find(kAssemblyHeadDims, problem.head_dim_qk) == std::end(kAssemblyHeadDims))
    family = &kCk;
  // HSTU on AMD has its own kernels, all first versions.
  if (problem.kind == AttentionProblem::Kind::kHstu && amd)
    family = family->name == "flydsl" ? &kHstuFlydsl : &kHstuTriton;

  AttentionKernel kernel{family->name, 0, false, family->splits_kv};
  const auto own = std::ranges::find_if(kShares, [&](const Share& s) {
    return s.family == family->name && s.generation == generation && s.backward == backward;
  });
  kernel.measured = own != kShares.end();
  kernel.matrix_share = kernel.measured ? own->matrix_share : CarriedShare(*family, amd, backward);
  return kernel;
}

ServingFramework FindServingFramework(std::string_view name) {
  // Least time of tiny shapes, less our kernel's: aiconfigurator@095f58a51, even-hash rows.
  constexpr std::array<ServingFramework, 3> kFrameworks = {
      {{"sglang", 6.4, false}, {"vllm", 8.7, false}, {"trtllm", 11.4, true}}};
  const auto found = std::ranges::find(kFrameworks, name, &ServingFramework::name);
  return found == kFrameworks.end() ? ServingFramework{} : *found;
}

void ReadAttentionName(std::string_view op, AttentionProblem& problem) {
  problem.implementation = std::string(op);
  if (HasAnyText(op, "hstu|gdpa")) problem.kind = AttentionProblem::Kind::kHstu;
  if (HasText(op, "context attention"))
    for (const std::string_view framework : {"sglang", "vllm", "trtllm"})
      if (HasWord(op, framework)) {
        problem.framework = std::string(framework);
        break;
      }
  for (const std::string_view key : {"window=(", "window="})
    if (const auto window = NumberAfter(op, key)) {
      problem.window = static_cast<std::int64_t>(*window);
      break;
    }
  if (HasText(op, "rocprof")) problem.timing = AttentionProblem::Timing::kKernels;
  if (HasText(op, "wall clock")) problem.timing = AttentionProblem::Timing::kEager;
  if (HasText(op, "main dqdkdv")) problem.main_kernel_only = true;
}

}  // namespace gnomon
