// Launches of kind vector: the arguments from a problem and its plan (vector_table.h).
//
// Operands are loaded eight elements at a time where every row (dot) or line (sum) is whole runs of
// eight and begins at a whole load of 16 bytes (8 for fp8), else element by element, lanes side by
// side.

#include "gnomon/families/cuda/vector_launch.h"

#include "gnomon/families/cuda/kernel_plan.h"
#include "gnomon/families/cuda/vector_arguments.h"
#include "gnomon/families/cuda/vector_kernels.h"

namespace gnomon::cuda {
namespace {

static_assert(kVectorCounters * sizeof(unsigned) == kCounterBytes,
              "counters of one kind are not partial sums of another");

const void* KernelOf(DType dtype, VectorKernelChoice choice) {
  switch (dtype) {
    case DType::kBf16:
      return VectorKernelOfBf16(choice);
    case DType::kFp16:
      return VectorKernelOfFp16(choice);
    case DType::kTf32:
    case DType::kFp32:
      return VectorKernelOfFp32(choice);
    case DType::kFp8E4m3:
      return VectorKernelOfFp8E4m3(choice);
    case DType::kFp8E5m2:
      return VectorKernelOfFp8E5m2(choice);
    default:
      return nullptr;
  }
}

OutType OutTypeOf(DType dtype) {
  return dtype == DType::kBf16   ? OutType::kBf16
         : dtype == DType::kFp16 ? OutType::kFp16
                                 : OutType::kFp32;
}

Activation ActivationOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kRelu:
    case Epilogue::kBiasRelu:
      return Activation::kRelu;
    case Epilogue::kGelu:
    case Epilogue::kBiasGelu:
      return Activation::kGelu;
    default:
      return Activation::kNone;
  }
}

/// Every run of eight along the contiguous dimension begins at a multiple of the load's width.
bool WholeRuns(const void* data, std::int64_t leading, std::int64_t product, std::int64_t bytes) {
  const std::int64_t width = std::min<std::int64_t>(kVectorRun * bytes, 16);
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(width) == 0 &&
         leading * bytes % width == 0 && product * bytes % width == 0;
}

}  // namespace

cudaError_t LaunchVector(const Problem& problem, VectorTile tile, std::int32_t parts,
                         const Operands& operands, cudaStream_t stream) {
  const VectorPlan plan = VectorPlanOf(problem, tile, parts);
  const std::int64_t lda = problem.LeadingA(), ldb = problem.LeadingB(), ldc = problem.LeadingC();
  const bool at = problem.a_transposed(), bt = problem.b_transposed();
  const bool many = problem.batch > 1;
  const VectorStrides a{at ? 1 : lda, at ? lda : 1, many ? (at ? problem.k : problem.m) * lda : 0};
  const VectorStrides b{bt ? ldb : 1, bt ? 1 : ldb, many ? (bt ? problem.n : problem.k) * ldb : 0};
  const auto bytes = static_cast<std::int64_t>(SizeOf(problem.dtype));

  VectorArguments g;
  g.x = plan.long_is_m ? operands.a : operands.b;
  g.y = plan.long_is_m ? operands.b : operands.a;
  g.x_at = plan.long_is_m ? a : b;
  g.y_at = plan.long_is_m ? b : a;
  const std::int64_t product_c = many ? problem.m * ldc : 0;
  g.c = operands.c;
  g.c_at = plan.long_is_m ? VectorStrides{ldc, 1, product_c} : VectorStrides{1, ldc, product_c};
  g.bias = HasBias(problem.epilogue) ? operands.bias : nullptr;
  const bool gradient = problem.epilogue == Epilogue::kBiasGradient;
  g.bias_gradient = gradient ? operands.bias_gradient : nullptr;
  g.counters = static_cast<unsigned*>(operands.workspace);
  g.parts = static_cast<float*>(operands.workspace) + kVectorCounters;
  g.long_side = static_cast<std::int32_t>(plan.long_side);
  g.short_side = static_cast<std::int32_t>(plan.short_side);
  g.k = static_cast<std::int32_t>(problem.k);
  g.lanes = plan.lanes;
  g.warp_long = plan.warp_long;
  g.chunk = plan.chunk;
  g.chunks = static_cast<std::int32_t>(plan.chunks);
  g.parts_count = plan.parts;
  g.sums = plan.sums;
  g.long_tiles = static_cast<std::int32_t>(plan.long_tiles);
  g.short_tiles = static_cast<std::int32_t>(plan.short_tiles);
  g.tiles = static_cast<std::int32_t>(plan.tiles);
  g.together = plan.together;
  g.type = OutTypeOf(problem.dtype_out);
  g.activation = ActivationOf(problem.epilogue);
  g.c_runs = !plan.long_is_m && WholeRuns(g.c, ldc, product_c, g.type == OutType::kFp32 ? 4 : 2);
  g.bias_along_long = !plan.long_is_m;
  g.gradient_of_long = plan.long_is_m;

  const auto whole = [&](const void* data, const VectorStrides& steps, bool along_k) {
    return (along_k ? steps.other : steps.side) == 1 &&
           WholeRuns(data, along_k ? steps.side : steps.other, steps.product, bytes);
  };
  const bool dot = plan.way == VectorWay::kDot;
  const bool runs = whole(g.x, g.x_at, dot) && (!dot || whole(g.y, g.y_at, true)) &&
                    (dot ? g.k : g.long_side) % kVectorRun == 0;
  const void* const kernel =
      KernelOf(problem.dtype, {plan.way, plan.long_tile, plan.short_tile, runs, gradient});
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  void* arguments[] = {&g};
  return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(plan.ctas)), dim3(32 * kVectorWarps),
                          arguments, 0, stream);
}

}  // namespace gnomon::cuda
