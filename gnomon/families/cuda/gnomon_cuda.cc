// The C interface: names to enums, a Selector for each device that was asked for, errors as codes.

#include "gnomon/families/cuda/gnomon_cuda.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "gnomon/base/nearest.h"
#include "gnomon/device/device.h"
#include "gnomon/families/cuda/cuda_family.h"
#include "gnomon/families/cuda/gemm.h"
#include "gnomon/gemm/selector.h"

namespace gnomon::cuda {
namespace {

thread_local std::string last_error;

int Failed(const Error& error) {
  constexpr int kBadInputCode = 2, kFaultCode = 3;
  last_error = error.Text();
  return error.code == Error::Code::kBadInput ? kBadInputCode : kFaultCode;
}

constexpr std::array<std::string_view, 7> kEpilogues = {"none", "bias",      "bias_relu",    "relu",
                                                        "gelu", "bias_gelu", "bias_gradient"};
static_assert(static_cast<int>(Epilogue::kBiasGradient) == 6, "kEpilogues is in the enum's order");

Result<Epilogue> ParseEpilogue(std::string_view text) {
  const auto found = std::find(kEpilogues.begin(), kEpilogues.end(), text);
  if (found == kEpilogues.end()) return BadInput(UnknownName("epilogue", text, kEpilogues));
  return static_cast<Epilogue>(found - kEpilogues.begin());
}

Result<Problem> ProblemOf(const gnomon_gemm_problem* given) {
  if (!given) return BadInput("the problem is null");
  if (!given->dtype) return BadInput("the problem names no dtype");
  Problem p;
  p.m = given->m;
  p.n = given->n;
  p.k = given->k;
  p.batch = given->batch == 0 ? 1 : given->batch;
  p.lda = given->lda;
  p.ldb = given->ldb;
  p.ldc = given->ldc;
  GNOMON_ASSIGN(p.layout, ParseLayout(given->layout ? given->layout : "nt"));
  GNOMON_ASSIGN(p.dtype, ParseDType(given->dtype));
  p.dtype_out = p.dtype == DType::kTf32 ? DType::kFp32 : UsualOutput(p.dtype);
  if (given->dtype_out) {
    GNOMON_ASSIGN(p.dtype_out, ParseDType(given->dtype_out));
  }
  GNOMON_ASSIGN(p.epilogue, ParseEpilogue(given->epilogue ? given->epilogue : "none"));
  GNOMON_TRY(CheckProblem(p));
  return p;
}

// Made once for a device and kept to the end of the process.
Result<const Selector*> SelectorOf(const char* id) {
  if (!id) return BadInput("the device is null");
  static std::mutex mutex;
  static std::unordered_map<std::string, std::unique_ptr<Selector>> selectors;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Selector>& selector = selectors[id];
  if (!selector) {
    const auto device = FindDevice(id);
    if (!device) {
      selectors.erase(id);
      return device.error();
    }
    const Family* const family = &CudaFamily();
    selector = std::make_unique<Selector>(*device, std::span(&family, 1));
  }
  return selector.get();
}

struct Planned {
  KernelConfig config;
  int units = 0;
};

Result<Planned> PlanOf(const char* device, const Problem& problem, const char* config) {
  GNOMON_ASSIGN(const Selector* selector, SelectorOf(device));
  Planned planned;
  planned.units = selector->device().units;
  if (config) {
    GNOMON_ASSIGN(planned.config, ParseKernelConfig(config));
    return planned;
  }
  GNOMON_ASSIGN(const Pick pick, selector->Select(problem));
  planned.config = KernelConfigFrom(pick.config);
  return planned;
}

}  // namespace
}  // namespace gnomon::cuda

using namespace gnomon;  // NOLINT: the functions below stand outside every namespace

int gnomon_cuda_gemm(const char* device, const gnomon_gemm_problem* problem, const char* config,
                     const gnomon_gemm_operands* operands, void* stream) {
  const auto parsed = cuda::ProblemOf(problem);
  if (!parsed) return cuda::Failed(parsed.error());
  if (!operands) return cuda::Failed(BadInput("the operands are null"));
  const auto planned = cuda::PlanOf(device, *parsed, config);
  if (!planned) return cuda::Failed(planned.error());
  const cuda::Operands at{operands->a,
                          operands->b,
                          operands->c,
                          operands->bias,
                          operands->bias_gradient,
                          operands->workspace,
                          operands->workspace_bytes};
  const Status ran = cuda::Run(*parsed, planned->config, at, static_cast<CUstream_st*>(stream));
  return ran.ok() ? 0 : cuda::Failed(ran.error());
}

int gnomon_cuda_select(const char* device, const gnomon_gemm_problem* problem, char* config,
                       size_t config_bytes, size_t* workspace_bytes) {
  const auto parsed = cuda::ProblemOf(problem);
  if (!parsed) return cuda::Failed(parsed.error());
  const auto planned = cuda::PlanOf(device, *parsed, nullptr);
  if (!planned) return cuda::Failed(planned.error());
  const std::string text = cuda::Text(planned->config);
  if (config) {
    if (text.size() >= config_bytes)
      return cuda::Failed(BadInput(
          fmt::format("the config needs {} bytes; there are {}", text.size() + 1, config_bytes)));
    std::memcpy(config, text.c_str(), text.size() + 1);
  }
  if (workspace_bytes)
    *workspace_bytes = cuda::WorkspaceBytes(*parsed, planned->config, planned->units);
  return 0;
}

const char* gnomon_cuda_last_error() { return cuda::last_error.c_str(); }
