// One kernel of each kind of family `cuda`: compiled for sm_90a by the test cuda_kernels_compile,
// so that a build without a GPU or -DGNOMON_CUDA=ON still notices when they no longer compile.

#include "gnomon/families/cuda/gemm_kernel.cuh"
#include "gnomon/families/cuda/pad.cu"
#include "gnomon/families/cuda/reduce.cu"
#include "gnomon/families/cuda/vector_kernel.cuh"

namespace gnomon::cuda {

using Half = __nv_bfloat16;
template <bool kOuter, bool kCopy, Consumers kConsumers, int kClusterM>
using Small = Instance<Half, kOuter, kOuter, kCopy, 128, 64, kConsumers, kClusterM, 1>;

const void* kernels[] = {
    reinterpret_cast<const void*>(&GemmKernel<Small<false, false, Consumers::kTurns, 1>>),
    reinterpret_cast<const void*>(&GemmKernel<Small<true, false, Consumers::kBoth, 2>>),
    reinterpret_cast<const void*>(&GemmKernel<Small<false, true, Consumers::kTurns, 1>>),
    reinterpret_cast<const void*>(&DotKernel<Half, 1, 1, true>),
    reinterpret_cast<const void*>(&SumKernel<Half, 1, true, false>),
};

}  // namespace gnomon::cuda
