// cuBLASLt, found and called at run time; its header is needed to build, the library is not.
//
// cuBLASLt is column-major, and a row-major matrix is the column-major matrix transposed:
//
//   C = A·B (row-major)  ⇔  Cᵀ = Bᵀ·Aᵀ (column-major): the library's first operand is our B, sides
//   n, m, k, leading dimensions unchanged, and 'T' for an operand that is stored transposed. Its
//   bias has a value a row of Cᵀ: our N. Its bias gradient of the second operand is our A's: M.
//
// Candidates come from the heuristic as a caller would ask it: scratch memory as granted, operands
// on 16 bytes (what TMA and the widest loads need; no more is asked of callers). Attributes are
// read back from each; where one cannot be, it stays 0.
//
// Not handled: grouped products, scales of fp8, MX formats. Entry points: CublasLt::Load,
// PresentCublasLt.

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "gnomon/families/cuda/lt_present.h"
#include "gnomon/families/cuda/present_gpu.h"

namespace gnomon::cuda {
namespace {

namespace fs = std::filesystem;

// The ends of each rule by which cublaslt.cc generates tile ids, and of its tables.
static_assert(CUBLASLT_MATMUL_TILE_256x32 == 35 && CUBLASLT_MATMUL_TILE_8x128 == 36);
static_assert(CUBLASLT_MATMUL_TILE_768x64 == 311 && CUBLASLT_MATMUL_TILE_64x16 == 312);
static_assert(CUBLASLT_MATMUL_TILE_768x80 == 630 && CUBLASLT_MATMUL_TILE_256x512 == 631);
static_assert(CUBLASLT_CLUSTER_SHAPE_1x15x1 == 51 && CUBLASLT_MATMUL_STAGES_128xAUTO == 36);
static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(CublasLt::Candidate::algorithm));

constexpr std::uint32_t kOperandBytes = 16;  // that operands lie on

// The calls that are used, by their own names.
struct Calls {
  decltype(&::cublasLtCreate) Create = nullptr;
  decltype(&::cublasLtDestroy) Destroy = nullptr;
  decltype(&::cublasLtGetVersion) GetVersion = nullptr;
  decltype(&::cublasLtGetStatusString) GetStatusString = nullptr;
  decltype(&::cublasLtMatmulDescCreate) MatmulDescCreate = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) MatmulDescDestroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) MatrixLayoutCreate = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) MatrixLayoutSetAttribute = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic = nullptr;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) MatmulAlgoConfigGetAttribute = nullptr;
  decltype(&::cublasLtMatmul) Matmul = nullptr;

  /// The first call that the library lacks; empty: none.
  std::string Find(void* library) {
    std::string missing;
    const auto find = [&](const char* name, auto& call) {
      call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name));
      if (call == nullptr && missing.empty()) missing = name;
    };
#define GNOMON_FIND(call) find("cublasLt" #call, call)
    GNOMON_FIND(Create);
    GNOMON_FIND(Destroy);
    GNOMON_FIND(GetVersion);
    GNOMON_FIND(GetStatusString);
    GNOMON_FIND(MatmulDescCreate);
    GNOMON_FIND(MatmulDescDestroy);
    GNOMON_FIND(MatmulDescSetAttribute);
    GNOMON_FIND(MatrixLayoutCreate);
    GNOMON_FIND(MatrixLayoutDestroy);
    GNOMON_FIND(MatrixLayoutSetAttribute);
    GNOMON_FIND(MatmulPreferenceCreate);
    GNOMON_FIND(MatmulPreferenceDestroy);
    GNOMON_FIND(MatmulPreferenceSetAttribute);
    GNOMON_FIND(MatmulAlgoGetHeuristic);
    GNOMON_FIND(MatmulAlgoConfigGetAttribute);
    GNOMON_FIND(Matmul);
#undef GNOMON_FIND
    return missing;
  }
};

std::optional<cudaDataType> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return CUDA_R_64F;
    case DType::kFp32:
    case DType::kTf32:
      return CUDA_R_32F;
    case DType::kFp16:
      return CUDA_R_16F;
    case DType::kBf16:
      return CUDA_R_16BF;
    case DType::kFp8E4m3:
      return CUDA_R_8F_E4M3;
    case DType::kFp8E5m2:
      return CUDA_R_8F_E5M2;
    default:
      return std::nullopt;
  }
}

cublasLtEpilogue_t EpilogueOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::kRelu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::kGelu:
      return CUBLASLT_EPILOGUE_GELU;
    case Epilogue::kBiasGelu:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::kBiasGradient:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::kNone:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// One product as the library describes it. The first status that is no success is kept.
class Product {
 public:
  Product(const Calls& calls, const Problem& p, int units) : calls_(calls) {
    const bool fp64 = p.dtype == DType::kFp64, fp8 = SizeOf(p.dtype) == 1;
    const cublasComputeType_t compute = fp64                      ? CUBLAS_COMPUTE_64F
                                        : p.dtype == DType::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                  : CUBLAS_COMPUTE_32F;
    Keep(calls.MatmulDescCreate(&description, compute, fp64 ? CUDA_R_64F : CUDA_R_32F));
    if (!ok()) return;
    Set(CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed() ? CUBLAS_OP_T : CUBLAS_OP_N);
    Set(CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed() ? CUBLAS_OP_T : CUBLAS_OP_N);
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(p.epilogue));
    if (fp8) Set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
    if (units > 0) Set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, static_cast<std::int32_t>(units));
    if (p.epilogue == Epilogue::kBiasGradient)
      Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    else if (HasBias(p.epilogue))
      Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, *TypeOf(p.dtype_out));
    // Stored rows are the library's columns.
    const cudaDataType in = *TypeOf(p.dtype), out = *TypeOf(p.dtype_out);
    const bool ta = p.a_transposed(), tb = p.b_transposed();
    Describe(first, in, tb ? p.k : p.n, tb ? p.n : p.k, p.LeadingB(), p.batch);
    Describe(second, in, ta ? p.m : p.k, ta ? p.k : p.m, p.LeadingA(), p.batch);
    Describe(result, out, p.n, p.m, p.LeadingC(), p.batch);
  }
  ~Product() {
    for (cublasLtMatrixLayout_t layout : {first, second, result})
      if (layout != nullptr) calls_.MatrixLayoutDestroy(layout);
    if (description != nullptr) calls_.MatmulDescDestroy(description);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void SetBias(const void* bias) { Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }
  bool ok() const { return status == CUBLAS_STATUS_SUCCESS; }

  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

 private:
  void Keep(cublasStatus_t one) {
    if (ok()) status = one;
  }
  template <class Value>
  void Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    if (ok()) Keep(calls_.MatmulDescSetAttribute(description, attribute, &value, sizeof value));
  }
  void Describe(cublasLtMatrixLayout_t& layout, cudaDataType type, std::int64_t rows,
                std::int64_t columns, std::int64_t leading, std::int64_t batch) {
    if (!ok()) return;
    Keep(calls_.MatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), leading));
    if (!ok() || batch == 1) return;
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t step = leading * columns;
    Keep(calls_.MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof count));
    Keep(calls_.MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                         sizeof step));
  }

  const Calls& calls_;
};

class Preference {
 public:
  Preference(const Calls& calls, std::size_t workspace_bytes) : calls_(calls) {
    if (calls.MatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return;
    const auto bytes = static_cast<std::uint64_t>(workspace_bytes);
    ok = Set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
    // Parts of K are added in the compute type: added in bf16 they miss the bound of the check.
    const auto exact = static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE) |
                       static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    ok = ok && Set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, exact);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      ok = ok && Set(attribute, kOperandBytes);
  }
  ~Preference() {
    if (preference != nullptr) calls_.MatmulPreferenceDestroy(preference);
  }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  cublasLtMatmulPreference_t preference = nullptr;
  bool ok = false;

 private:
  template <class Value>
  bool Set(cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    return calls_.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS;
  }
  const Calls& calls_;
};

Status CheckLtProblem(const Problem& p) {
  GNOMON_TRY(CheckProblem(p));
  if (p.grouped()) return BadInput("cuBLASLt has no grouped products");
  for (const DType dtype : {p.dtype, p.dtype_out})
    if (!TypeOf(dtype))
      return BadInput(
          fmt::format("family cublaslt does not call cuBLASLt for {}; it does for "
                      "fp64, fp32, tf32, fp16, bf16, fp8_e4m3 and fp8_e5m2",
                      Name(dtype)));
  if (SizeOf(p.dtype) == 1 && p.layout != Layout::kNT)
    return BadInput(fmt::format("cuBLASLt multiplies {} in layout nt alone, not {}", Name(p.dtype),
                                Name(p.layout)));
  return Done{};
}

class LoadedLt : public CublasLt {
 public:
  LoadedLt(const Calls& calls, cublasLtHandle_t handle) : calls_(calls), handle_(handle) {}
  ~LoadedLt() override { calls_.Destroy(handle_); }

  std::string version() const override {
    constexpr std::size_t kMajor = 10000, kMinor = 100;
    const std::size_t all = calls_.GetVersion();
    return fmt::format("{}.{}.{}", all / kMajor, all % kMajor / kMinor, all % kMinor);
  }

  Result<std::vector<Candidate>> Candidates(const Problem& problem, int count,
                                            std::size_t workspace_bytes, int units) const override {
    GNOMON_TRY(CheckLtProblem(problem));
    GNOMON_CHECK(count > 0, "{}", count);
    Product product(calls_, problem, units);
    // The heuristic looks whether there is a bias, not what it is.
    alignas(kOperandBytes) static const std::array<char, kOperandBytes> kSomeBias{};
    if (HasBias(problem.epilogue) || problem.epilogue == Epilogue::kBiasGradient)
      product.SetBias(kSomeBias.data());
    const Preference preference(calls_, workspace_bytes);
    if (!product.ok() || !preference.ok) return Failed("describing", problem, product.status);
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(count));
    int returned = 0;
    const cublasStatus_t status = calls_.MatmulAlgoGetHeuristic(
        handle_, product.description, product.first, product.second, product.result, product.result,
        preference.preference, count, found.data(), &returned);
    if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED)
      return Failed("asking for kernels for", problem, status);
    std::vector<Candidate> candidates;
    for (std::size_t i = 0;
         status == CUBLAS_STATUS_SUCCESS && i < static_cast<std::size_t>(returned); ++i)
      if (found[i].state == CUBLAS_STATUS_SUCCESS)
        candidates.push_back(CandidateOf(found[i], candidates));
    if (candidates.empty()) return NoKernel(problem, workspace_bytes);
    return candidates;
  }

  Status Run(const Problem& problem, const Candidate& candidate, const Operands& operands,
             CUstream_st* stream) const override {
    GNOMON_TRY(CheckLtProblem(problem));
    GNOMON_TRY(CheckOperands(problem, candidate, operands));
    Product product(calls_, problem, 0);
    if (problem.epilogue == Epilogue::kBiasGradient)
      product.SetBias(operands.bias_gradient);
    else if (HasBias(problem.epilogue))
      product.SetBias(operands.bias);
    if (!product.ok()) return Failed("describing", problem, product.status);
    cublasLtMatmulAlgo_t algorithm;
    std::ranges::copy(candidate.algorithm, algorithm.data);
    const float one = 1, zero = 0;
    const double one64 = 1, zero64 = 0;
    const bool fp64 = problem.dtype == DType::kFp64;
    const void* alpha = fp64 ? static_cast<const void*>(&one64) : &one;
    const void* beta = fp64 ? static_cast<const void*>(&zero64) : &zero;
    const cublasStatus_t status =
        calls_.Matmul(handle_, product.description, alpha, operands.b, product.first, operands.a,
                      product.second, beta, operands.c, product.result, operands.c, product.result,
                      &algorithm, operands.workspace, operands.workspace_bytes, stream);
    if (status != CUBLAS_STATUS_SUCCESS)
      return Failed(fmt::format("running {} on", Text(candidate.config)), problem, status);
    return Done{};
  }

 private:
  template <class Value>
  std::int32_t Attribute(const cublasLtMatmulAlgo_t& algorithm,
                         cublasLtMatmulAlgoConfigAttributes_t attribute) const {
    Value value = 0;
    std::size_t written = 0;
    const cublasStatus_t status =
        calls_.MatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? static_cast<std::int32_t>(value) : 0;
  }

  Candidate CandidateOf(const cublasLtMatmulHeuristicResult_t& found,
                        const std::vector<Candidate>& before) const {
    using Word = std::uint32_t;
    using Half = std::uint16_t;
    Candidate out;
    LtConfig& c = out.config;
    c.algorithm = Attribute<std::int32_t>(found.algo, CUBLASLT_ALGO_CONFIG_ID);
    c.tile = Attribute<Word>(found.algo, CUBLASLT_ALGO_CONFIG_TILE_ID);
    c.stages = Attribute<Word>(found.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID);
    c.cluster = Attribute<Half>(found.algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
    c.split_k = std::max(1, Attribute<std::int32_t>(found.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
    c.reduction = Attribute<Word>(found.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
    c.swizzle = Attribute<Word>(found.algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
    c.option = Attribute<Word>(found.algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
    c.inner = Attribute<Half>(found.algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
    const auto taken = [&](const Candidate& other) { return other.config == c; };
    while (std::ranges::any_of(before, taken)) ++c.twin;
    std::ranges::copy(found.algo.data, out.algorithm.begin());
    out.workspace_bytes = found.workspaceSize;
    out.waves = static_cast<double>(found.wavesCount);
    return out;
  }

  static Status CheckOperands(const Problem& problem, const Candidate& candidate,
                              const Operands& operands) {
    const bool gradient = problem.epilogue == Epilogue::kBiasGradient;
    if (HasBias(problem.epilogue) && operands.bias == nullptr)
      return BadInput("the bias is missing");
    if (gradient && operands.bias_gradient == nullptr)
      return BadInput("there is no place for the bias gradient");
    for (const void* address : {operands.a, operands.b, static_cast<const void*>(operands.c)})
      if (address == nullptr || reinterpret_cast<std::uintptr_t>(address) % kOperandBytes != 0)
        return BadInput("an operand does not lie on 16 bytes");
    if (candidate.workspace_bytes > operands.workspace_bytes)
      return BadInput(fmt::format("{} needs a workspace of {} bytes, not {}",
                                  Text(candidate.config), candidate.workspace_bytes,
                                  operands.workspace_bytes));
    return Done{};
  }

  Error Failed(std::string_view doing, const Problem& problem, cublasStatus_t status) const {
    return BadInput(fmt::format("cuBLASLt {}: {} {}: {}", version(), doing, problem.Text(),
                                calls_.GetStatusString(status)));
  }

  Error NoKernel(const Problem& problem, std::size_t workspace_bytes) const {
    std::string hint;
    if (problem.dtype == DType::kFp8E5m2) hint = "; e5m2 times e5m2 is none of its products";
    if (problem.epilogue == Epilogue::kBiasGradient && problem.batch > 1)
      return BadInput("cuBLASLt sums one bias gradient over a whole batch, not one a product",
                      "batch");
    if (problem.epilogue == Epilogue::kBiasGradient && problem.dtype_out != DType::kFp32)
      hint = "; an fp32 bias gradient goes with an fp32 C";
    return BadInput(
        fmt::format("cuBLASLt {} has no kernel for {} to {} with {} bytes of workspace{}",
                    version(), problem.Text(), Name(problem.dtype_out), workspace_bytes, hint));
  }

  const Calls calls_;
  cublasLtHandle_t handle_;
};

constexpr std::string_view kFiles[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

// Folders of the Python wheels under the prefix of the first python3 on PATH: the runtime of CUDA
// 13 is one wheel, CUDA 12 has one a library.
std::vector<fs::path> PythonFolders() {
  std::vector<fs::path> folders;
  const char* set = std::getenv("PATH");
  std::string_view rest = set == nullptr ? "" : set;
  std::error_code ignored;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const fs::path bin = rest.substr(0, colon);
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (bin.empty() || !fs::exists(bin / "python3", ignored)) continue;
    for (const fs::path& prefix : {bin.parent_path(), bin.parent_path() / "local"})
      for (const fs::directory_entry& python : fs::directory_iterator(prefix / "lib", ignored)) {
        if (!python.path().filename().string().starts_with("python3")) continue;
        for (const char* packages : {"site-packages", "dist-packages"})
          for (const char* wheel : {"nvidia/cu13/lib", "nvidia/cublas/lib"})
            if (fs::is_directory(python.path() / packages / wheel, ignored))
              folders.push_back(python.path() / packages / wheel);
      }
    break;
  }
  return folders;
}

void* Open(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

Result<void*> OpenLibrary() {
  std::error_code ignored;
  if (const char* set = std::getenv("GNOMON_CUBLASLT"); set != nullptr && *set != '\0') {
    const fs::path named = set;
    if (!fs::is_directory(named, ignored)) {
      if (void* library = Open(named.string())) return library;
    } else {
      for (const std::string_view file : kFiles)
        if (void* library = Open((named / file).string())) return library;
    }
    return BadInput(fmt::format("cannot load cuBLASLt from '{}'", set), "$GNOMON_CUBLASLT");
  }
  for (const std::string_view file : kFiles)
    if (void* library = Open(std::string(file))) return library;
  std::vector<fs::path> folders = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib",
                                   "/usr/local/cuda/targets/x86_64-linux/lib", "/opt/cuda/lib64"};
  for (const fs::path& folder : PythonFolders()) folders.push_back(folder);
  for (const fs::path& folder : folders)
    for (const std::string_view file : kFiles)
      if (void* library = Open((folder / file).string())) return library;
  return BadInput(
      "cuBLASLt cannot be loaded: neither libcublasLt.so.13 nor .12 is on the loader's path, in "
      "CUDA's folders or among the wheels of python3; GNOMON_CUBLASLT=FOLDER says where it is");
}

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::Load() {
  GNOMON_ASSIGN(void* library, OpenLibrary());  // stays loaded: its kernels are the driver's now
  Calls calls;
  if (const std::string missing = calls.Find(library); !missing.empty())
    return BadInput(fmt::format("this cuBLASLt is too old: it lacks {}", missing));
  cublasLtHandle_t handle = nullptr;
  if (const cublasStatus_t status = calls.Create(&handle); status != CUBLAS_STATUS_SUCCESS)
    return BadInput(
        fmt::format("cuBLASLt does not start: {} (it needs an NVIDIA GPU and its "
                    "driver)",
                    calls.GetStatusString(status)));
  return std::unique_ptr<CublasLt>(std::make_unique<LoadedLt>(calls, handle));
}

Result<const CublasLt*> PresentCublasLt(const Device& device) {
  if (!device.arch.starts_with("sm_"))
    return BadInput(device.id + " is no NVIDIA GPU; cuBLASLt runs on those alone");
  int ordinal = 0;
  if (cudaGetDevice(&ordinal) != cudaSuccess) ordinal = 0;
  GNOMON_ASSIGN(const std::string present, PresentGpuId(ordinal));
  if (device.id != present && device.id != present + "-measured")
    return BadInput(
        fmt::format("cuBLASLt names kernels for the GPU that it runs on: this one is "
                    "{}, not {}",
                    present, device.id));
  static const Result<std::unique_ptr<CublasLt>> kLoaded = CublasLt::Load();
  if (!kLoaded.ok()) return kLoaded.error();
  return kLoaded->get();
}

}  // namespace gnomon::cuda
