#pragma once

/// What Triton's compiler makes of one config: which loads are wide, registers, spills, shared
/// memory, the matrix instruction. Facts that decide the time and that can be known without
/// compiling.

#include "gnomon/families/triton/triton_gemm.h"
#include "gnomon/gemm/tile_model.h"

namespace gnomon::triton {

/// What the compiler specialises on: integer arguments that are multiples of 16.
struct Specialisation {
  bool wide_a = true, wide_b = true;  ///< 16-byte loads: contiguous side and stride allow them
  bool wide_c = true;
  bool scattered_b = false;  ///< narrow loads of B whose threads lie across its rows
  bool b_by_k = true;        ///< B is stored along K (layouts nt, tt)
  friend bool operator==(const Specialisation&, const Specialisation&) = default;
};
Specialisation SpecialisationOf(const Problem& problem);

enum class MatrixPath { kWarpgroup, kSync, kTensorMemory };

struct CompiledKernel {
  MatrixPath path = MatrixPath::kSync;
  double threads = 128;
  double accumulators = 0;            ///< fp32 values a thread
  double wide_copies = 0;             ///< 16-byte copies a thread issues in a k step
  double narrow_a = 0, narrow_b = 0;  ///< single elements a thread loads in a k step
  double registers = 0;               ///< a thread, granted
  double spilled = 0;                 ///< registers a thread keeps in local memory
  double shared_bytes = 0;
  double buffers = 1;       ///< tiles of a wide operand in shared memory
  bool serialised = false;  ///< ptxas runs the warpgroup instructions one after the other
};
CompiledKernel Compile(const TileMachine& machine, std::string_view arch,
                       const Specialisation& spec, const TritonConfig& config,
                       double element_bytes);

}  // namespace gnomon::triton
