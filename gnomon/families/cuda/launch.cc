// Run: finds the kernel, describes the operands to TMA, launches.
//
// What a launch costs the host is this file: a look-up among some thirty kernels, three tensor maps
// (written by the driver's cuTensorMapEncodeTiled, no call into the kernel), one launch, and one
// more where a split is added by a second kernel.

#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unordered_set>

#include "gnomon/families/cuda/gemm.h"
#include "gnomon/families/cuda/kernel_arguments.h"
#include "gnomon/families/cuda/kernel_plan.h"
#include "gnomon/families/cuda/kernels.h"
#include "gnomon/families/cuda/pad.cuh"
#include "gnomon/families/cuda/reduce.cuh"
#include "gnomon/families/cuda/vector_launch.h"

namespace gnomon::cuda {
namespace {

Status Checked(cudaError_t error, std::string_view call) {
  if (error == cudaSuccess) return Done{};
  cudaGetLastError();  // a launch error stays with the thread until it is read
  return Fault(fmt::format("{}: {}", call, cudaGetErrorString(error)));
}

struct Encode {
  CUresult (*call)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                   const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                   CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
};

// The driver's library is not linked, so that a machine without one can load this.
Result<Encode> Encoder() {
  static const auto found = [] {
    constexpr unsigned kSince = 12000;
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                               kSince, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? function : nullptr;
  }();
  if (found == nullptr) return Fault("the CUDA driver has no cuTensorMapEncodeTiled (12.0)");
  return Encode{reinterpret_cast<decltype(Encode::call)>(found)};
}

CUtensorMapDataType MapType(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case 2:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
}

// A stored matrix of `rows` rows of `columns` elements, `products` of them, in boxes whose rows
// have 128 swizzled bytes.
struct Stored {
  const void* data;
  std::int64_t rows, columns, leading, products, product;
  int element_bytes;
  int box_rows;
};

Status Describe(Encode encode, const Stored& stored, CUtensorMap& map) {
  const auto bytes = static_cast<cuuint64_t>(stored.element_bytes);
  const cuuint64_t sides[3] = {static_cast<cuuint64_t>(stored.columns),
                               static_cast<cuuint64_t>(stored.rows),
                               static_cast<cuuint64_t>(stored.products)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(stored.leading) * bytes,
                                 static_cast<cuuint64_t>(stored.product) * bytes};
  const cuuint32_t box[3] = {static_cast<cuuint32_t>(kStepBytes / stored.element_bytes),
                             static_cast<cuuint32_t>(stored.box_rows), 1};
  const cuuint32_t every[3] = {1, 1, 1};
  const CUresult result =
      encode.call(&map, MapType(stored.element_bytes), 3, const_cast<void*>(stored.data), sides,
                  strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return Done{};
  return Fault(fmt::format("cuTensorMapEncodeTiled: error {} for {} rows of {} elements, {} apart",
                           static_cast<int>(result), stored.rows, stored.columns, stored.leading));
}

bool Aligned(const void* data, std::int64_t leading, std::int64_t product, double size, int to) {
  const auto whole = [&](std::int64_t elements) {
    return static_cast<std::int64_t>(static_cast<double>(elements) * size) % to == 0;
  };
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(to) == 0 &&
         whole(leading) && whole(product);
}

Result<int> Units() {
  thread_local std::array<int, 64> known = {};
  int device = 0;
  GNOMON_TRY(Checked(cudaGetDevice(&device), "cudaGetDevice"));
  int& units = known[static_cast<std::size_t>(device) % known.size()];
  if (units == 0)
    GNOMON_TRY(Checked(cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device),
                       "cudaDeviceGetAttribute"));
  return units;
}

// A kernel may use all of shared memory once the driver has been told, for each device.
Status AllowShared(const Kernel& kernel) {
  int device = 0;
  GNOMON_TRY(Checked(cudaGetDevice(&device), "cudaGetDevice"));
  thread_local std::unordered_set<std::uintptr_t> told;
  const std::uintptr_t key =
      reinterpret_cast<std::uintptr_t>(&kernel) + static_cast<std::uintptr_t>(device);
  if (told.contains(key)) return Done{};
  GNOMON_TRY(
      Checked(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   kernel.shared_bytes),
              "cudaFuncSetAttribute"));
  told.insert(key);
  return Done{};
}

Result<OutType> OutTypeOf(const Problem& problem) {
  const DType in = problem.dtype, out = problem.dtype_out;
  if (out == DType::kFp32 || (in == DType::kTf32 && out == DType::kTf32)) return OutType::kFp32;
  if (out == DType::kFp16 && in == DType::kFp16) return OutType::kFp16;
  if (out == DType::kBf16 && in != DType::kFp16 && in != DType::kTf32) return OutType::kBf16;
  return BadInput(fmt::format("family cuda stores a product of {} as fp32{}, not {}", Name(in),
                              in == DType::kTf32   ? ""
                              : in == DType::kFp16 ? " or fp16"
                                                   : " or bf16",
                              Name(out)),
                  "dtype_out");
}

Status CheckOperands(const Problem& problem, const Operands& operands) {
  GNOMON_TRY(CheckProblem(problem));
  if (!operands.a || !operands.b || !operands.c) return BadInput("an operand is null", "Run");
  if (HasBias(problem.epilogue) && !operands.bias)
    return BadInput("the epilogue needs a bias, which is null", "Run");
  if (problem.epilogue == Epilogue::kBiasGradient) {
    if (!operands.bias_gradient)
      return BadInput("the epilogue needs a place for the bias gradient, which is null", "Run");
    if (problem.layout != Layout::kTN)
      return BadInput("a bias gradient is summed from A of layout tn (a wgrad)", "Run");
    if (problem.grouped()) return BadInput("a grouped product has no bias gradient", "Run");
  }
  return Done{};
}

std::int64_t ProductOfA(const Problem& p) { return (p.a_transposed() ? p.k : p.m) * p.LeadingA(); }
std::int64_t ProductOfB(const Problem& p) { return (p.b_transposed() ? p.n : p.k) * p.LeadingB(); }

Status FillOutput(const Problem& problem, const Operands& operands, Output& output) {
  output.c = operands.c;
  output.leading = problem.LeadingC();
  output.product = problem.m * problem.LeadingC();
  output.n = problem.n;
  output.bias = HasBias(problem.epilogue) ? operands.bias : nullptr;
  output.bias_gradient =
      problem.epilogue == Epilogue::kBiasGradient ? operands.bias_gradient : nullptr;
  GNOMON_ASSIGN(output.type, OutTypeOf(problem));
  const Epilogue e = problem.epilogue;
  output.activation = e == Epilogue::kRelu || e == Epilogue::kBiasRelu   ? Activation::kRelu
                      : e == Epilogue::kGelu || e == Epilogue::kBiasGelu ? Activation::kGelu
                                                                         : Activation::kNone;
  output.vectors = Aligned(output.c, output.leading, problem.batch > 1 ? output.product : 0,
                           output.type == OutType::kFp32 ? 4 : 2, 16);
  if (problem.grouped()) output.product = 0;  // groups' rows follow one another
  output.boxes = output.vectors;
  return Done{};
}

// TMA can load the operand: its base, rows and products are whole 16 bytes.
bool LoadsA(const Problem& p, const void* a) {
  return Aligned(a, p.LeadingA(), p.batch > 1 ? ProductOfA(p) : 0, SizeOf(p.dtype), 16);
}
bool LoadsB(const Problem& p, const void* b) {
  const bool several = p.batch > 1 || p.grouped();
  return Aligned(b, p.LeadingB(), several ? ProductOfB(p) : 0, SizeOf(p.dtype), 16);
}

// At most kMostGroups of them.
void FillGroups(const Problem& problem, const KernelConfig& config, Groups& groups) {
  groups.count = static_cast<std::int32_t>(problem.group_m.size());
  const std::int64_t side = static_cast<std::int64_t>(config.tile_m) * config.cluster_m;
  for (std::size_t i = 0; i < problem.group_m.size(); ++i) {
    groups.first_tile[i + 1] =
        groups.first_tile[i] + static_cast<std::int32_t>((problem.group_m[i] + side - 1) / side);
    groups.first_row[i + 1] = groups.first_row[i] + static_cast<std::int32_t>(problem.group_m[i]);
  }
}

Status FillMaps(const Problem& p, const KernelConfig& config, const Operands& operands,
                KernelArguments& arguments) {
  GNOMON_ASSIGN(const Encode encode, Encoder());
  const int bytes = static_cast<int>(SizeOf(p.dtype));
  const bool outer_a = p.a_transposed(), outer_b = !p.b_transposed();
  const std::int64_t products = p.grouped() ? static_cast<std::int64_t>(p.group_m.size()) : p.batch;
  const auto unaligned = [](std::string_view operand) {
    return BadInput(fmt::format("TMA cannot load {}: its base and rows must be whole 16 bytes "
                                "(kinds pad and copy can)",
                                operand),
                    "Run");
  };
  if (!LoadsA(p, operands.a)) return unaligned("A");
  if (!LoadsB(p, operands.b)) return unaligned("B");
  const int depth = StepDepth(p.dtype);
  GNOMON_TRY(Describe(encode,
                      {operands.a, outer_a ? p.k : p.m, outer_a ? p.m : p.k, p.LeadingA(),
                       p.grouped() ? 1 : p.batch, ProductOfA(p), bytes,
                       outer_a ? depth / config.cluster_n : config.tile_m / config.cluster_n},
                      arguments.map_a));
  GNOMON_TRY(Describe(
      encode,
      {operands.b, outer_b ? p.k : p.n, outer_b ? p.n : p.k, p.LeadingB(), products, ProductOfB(p),
       bytes, outer_b ? depth / config.cluster_m : config.tile_n / config.cluster_m},
      arguments.map_b));
  return Done{};
}

Matrix MatrixOf(const void* data, std::int64_t leading, std::int64_t product, int bytes) {
  Matrix matrix{data, leading, product, 16};
  while (matrix.vector_bytes > bytes &&
         !Aligned(data, leading, product, bytes, matrix.vector_bytes))
    matrix.vector_bytes /= 2;
  return matrix;
}

// Nothing: this build has none.
const Kernel* FindKernel(const Problem& problem, const KernelConfig& config) {
  const bool narrow = SizeOf(problem.dtype) != SizeOf(DType::kBf16);
  if (config.kind == Kind::kVector || problem.layout == Layout::kTT ||
      (narrow && problem.layout != Layout::kNT))
    return nullptr;
  const auto of = [&]() -> std::span<const Kernel> {
    switch (problem.dtype) {
      case DType::kBf16:
        return problem.layout == Layout::kNT   ? KernelsOfBf16Nt()
               : problem.layout == Layout::kNN ? KernelsOfBf16Nn()
                                               : KernelsOfBf16Tn();
      case DType::kFp16:
        return problem.layout == Layout::kNT   ? KernelsOfFp16Nt()
               : problem.layout == Layout::kNN ? KernelsOfFp16Nn()
                                               : KernelsOfFp16Tn();
      case DType::kFp8E4m3:
        return KernelsOfFp8E4m3();
      case DType::kFp8E5m2:
        return KernelsOfFp8E5m2();
      case DType::kTf32:
        return KernelsOfTf32();
      default:
        return {};
    }
  }();
  for (const Kernel& kernel : of) {
    if (kernel.copy == (config.kind == Kind::kCopy) && kernel.tile_m == config.tile_m &&
        kernel.tile_n == config.tile_n && kernel.consumers == config.consumers &&
        kernel.cluster_m == config.cluster_m && kernel.cluster_n == config.cluster_n)
      return &kernel;
  }
  return nullptr;
}

Status LaunchMain(const Kernel& kernel, const KernelConfig& config, KernelArguments& arguments,
                  cudaStream_t stream) {
  GNOMON_TRY(AllowShared(kernel));
  const int cluster = config.cluster_m * config.cluster_n;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = static_cast<unsigned>(cluster);
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(static_cast<unsigned>(arguments.schedule.workers * cluster));
  launch.blockDim = dim3(static_cast<unsigned>(kernel.threads));
  launch.dynamicSmemBytes = static_cast<std::size_t>(kernel.shared_bytes);
  launch.stream = stream;
  launch.attrs = attributes;
  launch.numAttrs = cluster > 1 ? 2 : 1;
  void* parameters[] = {&arguments};
  return Checked(cudaLaunchKernelExC(&launch, kernel.function, parameters), "cudaLaunchKernelExC");
}

Status RunTiles(const Problem& problem, const KernelConfig& config, const Operands& operands,
                int units, cudaStream_t stream) {
  const Kernel* const kernel = FindKernel(problem, config);
  if (!kernel)
    return BadInput(fmt::format("this build has no kernel {} for {}", Text(config), problem.Text()),
                    "Run");
  constexpr double kMostTiles = 2147483647.0;
  if (TilesOf(problem, config) * config.split_k > kMostTiles)
    return BadInput(fmt::format("{} tiles of {} do not count in 32 bits", TilesOf(problem, config),
                                Text(config)),
                    "Run");
  KernelArguments arguments;
  arguments.schedule = ScheduleOf(problem, config, units);
  const std::size_t needed = WorkspaceBytes(problem, config, units);
  if (needed > operands.workspace_bytes || (needed > 0 && !operands.workspace))
    return BadInput(fmt::format("{} needs {} bytes of workspace; there are {}", Text(config),
                                needed, operands.workspace_bytes),
                    "Run");
  if (CountersOf(arguments.schedule, config) * sizeof(unsigned) > double{kCounterBytes})
    return BadInput(fmt::format("{}: too many tiles to count the parts of", Text(config)), "Run");
  arguments.m = static_cast<std::int32_t>(problem.m);
  arguments.k = static_cast<std::int32_t>(problem.k);
  GNOMON_TRY(FillOutput(problem, operands, arguments.output));
  arguments.partials.counters = static_cast<unsigned*>(operands.workspace);
  arguments.partials.slots =
      reinterpret_cast<float*>(static_cast<char*>(operands.workspace) + kCounterBytes);
  arguments.partials.added_here = config.stream_k || config.fix_up;
  if (problem.grouped()) FillGroups(problem, config, arguments.groups);
  if (config.kind == Kind::kTma) {
    GNOMON_TRY(FillMaps(problem, config, operands, arguments));
  } else {
    const int bytes = static_cast<int>(SizeOf(problem.dtype));
    arguments.a = MatrixOf(operands.a, problem.LeadingA(), ProductOfA(problem), bytes);
    arguments.b = MatrixOf(operands.b, problem.LeadingB(), ProductOfB(problem), bytes);
  }
  if (arguments.output.boxes) {
    GNOMON_ASSIGN(const Encode encode, Encoder());
    GNOMON_TRY(Describe(encode,
                        {operands.c, problem.m, problem.n, problem.LeadingC(), problem.batch,
                         problem.m * problem.LeadingC(),
                         arguments.output.type == OutType::kFp32 ? 4 : 2, kBoxRowsOfC},
                        arguments.map_c));
    if (problem.grouped()) arguments.output.boxes = false;  // a box may reach into the next group
  }
  GNOMON_TRY(LaunchMain(*kernel, config, arguments, stream));
  if (arguments.schedule.stream || config.fix_up || arguments.schedule.split == 1) return Done{};
  ReduceArguments reduce;
  reduce.schedule = arguments.schedule;
  reduce.output = arguments.output;
  reduce.partials = arguments.partials;
  reduce.m = arguments.m;
  reduce.tile_m = config.tile_m;
  reduce.tile_n = config.tile_n;
  reduce.cluster_m = config.cluster_m;
  reduce.cluster_n = config.cluster_n;
  return Checked(LaunchReduce(reduce, stream), "launch of the kernel that adds the parts");
}

// A launch holds a limited number of groups.
Status RunGroups(const Problem& problem, const KernelConfig& config, const Operands& operands,
                 int units, cudaStream_t stream) {
  const double bytes_in = SizeOf(problem.dtype), bytes_out = SizeOf(problem.dtype_out);
  const auto at = [](const void* data, std::int64_t elements, double bytes) {
    return static_cast<const char*>(data) +
           static_cast<std::int64_t>(static_cast<double>(elements) * bytes);
  };
  std::int64_t row = 0;
  for (std::size_t first = 0; first < problem.group_m.size(); first += kMostGroups) {
    const std::size_t last = std::min(first + kMostGroups, problem.group_m.size());
    Problem some = problem;
    some.group_m.assign(problem.group_m.begin() + static_cast<std::ptrdiff_t>(first),
                        problem.group_m.begin() + static_cast<std::ptrdiff_t>(last));
    some.m = 0;
    for (const std::int64_t rows : some.group_m) some.m += rows;
    if (some.m == 0) continue;
    Operands part = operands;
    part.a = at(operands.a, row * (problem.a_transposed() ? 1 : problem.LeadingA()), bytes_in);
    part.b = at(operands.b, static_cast<std::int64_t>(first) * ProductOfB(problem), bytes_in);
    part.c = const_cast<char*>(at(operands.c, row * problem.LeadingC(), bytes_out));
    if (some.a_transposed() && some.lda == 0) some.lda = problem.LeadingA();
    GNOMON_TRY(RunTiles(some, config, part, units, stream));
    row += some.m;
  }
  return Done{};
}

Status RunVector(const Problem& problem, const KernelConfig& config, const Operands& operands,
                 cudaStream_t stream) {
  const VectorTile tile{config.tile_m, config.tile_n};
  if (!VectorFits(problem, tile) || !VectorSplitFits(problem, tile, config.split_k))
    return BadInput(fmt::format("{} cannot do {}", Text(config), problem.Text()), "Run");
  const std::int64_t needed = VectorWorkspaceBytes(VectorPlanOf(problem, tile, config.split_k));
  if (static_cast<std::size_t>(needed) > operands.workspace_bytes)
    return BadInput(fmt::format("{} needs {} bytes of workspace; there are {}", Text(config),
                                needed, operands.workspace_bytes),
                    "Run");
  return Checked(LaunchVector(problem, tile, config.split_k, operands, stream), "LaunchVector");
}

constexpr double kCopyAlignment = 256;

// Of the padded copies of A and of B.
double CopyBytes(const Problem& p, bool a, bool b) {
  return (a ? PaddedBytesOfA(p) + kCopyAlignment : 0) +
         (b ? PaddedBytesOfB(p) + kCopyAlignment : 0);
}

// Takes `bytes` from the workspace, behind its counters.
char* Take(Operands& operands, double bytes) {
  char* const start = static_cast<char*>(operands.workspace) + kCounterBytes;
  return start + (operands.workspace_bytes - kCounterBytes - static_cast<std::size_t>(bytes)) /
                     static_cast<std::size_t>(kCopyAlignment) *
                     static_cast<std::size_t>(kCopyAlignment);
}

// Copies what TMA cannot load to the end of the workspace; the rest of it is the kernel's.
Status RunPadded(const Problem& problem, KernelConfig config, const Operands& given, int units,
                 cudaStream_t stream) {
  Problem p = problem;
  Operands operands = given;
  config.kind = Kind::kTma;
  const bool pad_a = !LoadsA(p, given.a), pad_b = !LoadsB(p, given.b);
  const double size = SizeOf(p.dtype);
  const double bytes_a = pad_a ? PaddedBytesOfA(p) : 0, bytes_b = pad_b ? PaddedBytesOfB(p) : 0;
  const double copies = CopyBytes(p, pad_a, pad_b);
  if (!given.workspace || static_cast<double>(given.workspace_bytes) < kCounterBytes + copies)
    return BadInput(fmt::format("{} needs {:.0f} bytes of workspace for its copies; there are {}",
                                Text(config), kCounterBytes + copies, given.workspace_bytes),
                    "Run");
  const auto padding = [&](const void* from, char* to, std::int64_t rows, std::int64_t columns,
                           std::int64_t leading) {
    return Padding{static_cast<const std::uint8_t*>(from),
                   reinterpret_cast<std::uint8_t*>(to),
                   rows,
                   columns * static_cast<std::int64_t>(size),
                   leading * static_cast<std::int64_t>(size),
                   PaddedLeading(columns, p.dtype) * static_cast<std::int64_t>(size)};
  };
  Padding a, b;
  if (pad_a) {
    char* const to = Take(operands, bytes_a);
    const std::int64_t rows = p.a_transposed() ? p.k : p.m, columns = p.a_transposed() ? p.m : p.k;
    a = padding(given.a, to, rows * p.batch, columns, p.LeadingA());
    p.lda = PaddedLeading(columns, p.dtype);
    operands.a = to;
    operands.workspace_bytes = static_cast<std::size_t>(to - static_cast<char*>(given.workspace));
  }
  if (pad_b) {
    char* const to = Take(operands, bytes_b);
    const std::int64_t rows = p.b_transposed() ? p.n : p.k, columns = p.b_transposed() ? p.k : p.n;
    const std::int64_t products =
        p.grouped() ? static_cast<std::int64_t>(p.group_m.size()) : p.batch;
    b = padding(given.b, to, rows * products, columns, p.LeadingB());
    p.ldb = PaddedLeading(columns, p.dtype);
    operands.b = to;
    operands.workspace_bytes = static_cast<std::size_t>(to - static_cast<char*>(given.workspace));
  }
  if (pad_a || pad_b) GNOMON_TRY(Checked(LaunchPad(a, b, stream), "launch of the padding copies"));
  return p.grouped() ? RunGroups(p, config, operands, units, stream)
                     : RunTiles(p, config, operands, units, stream);
}

}  // namespace

std::size_t WorkspaceBytes(const Problem& problem, const KernelConfig& config, int units) {
  if (config.kind == Kind::kVector)
    return static_cast<std::size_t>(VectorWorkspaceBytes(
        VectorPlanOf(problem, {config.tile_m, config.tile_n}, config.split_k)));
  double bytes = PartialBytesOf(ScheduleOf(problem, config, units), config);
  if (config.kind == Kind::kPad)
    bytes += CopyBytes(problem, !LoadsA(problem, nullptr), !LoadsB(problem, nullptr));
  return bytes > 0 ? kCounterBytes + static_cast<std::size_t>(bytes) : 0;
}

Status Run(const Problem& problem, const KernelConfig& config, const Operands& operands,
           CUstream_st* stream) {
  GNOMON_TRY(CheckOperands(problem, operands));
  GNOMON_ASSIGN(const int units, Units());
  if (problem.grouped() && (config.stream_k || config.split_k > 1))
    return BadInput("a grouped product is not cut along K", "Run");
  if (config.kind == Kind::kVector) return RunVector(problem, config, operands, stream);
  if (config.kind == Kind::kPad) return RunPadded(problem, config, operands, units, stream);
  return problem.grouped() ? RunGroups(problem, config, operands, units, stream)
                           : RunTiles(problem, config, operands, units, stream);
}

}  // namespace gnomon::cuda
