#pragma once

/// The kernels of family `cpu`: GEMM on the host's vector units (Google Highway, every x86-64 level
/// from SSE4 up chosen at run time) and, for bf16, on AMX tiles where the CPU has them.

#include <cstdint>
#include <string>
#include <string_view>

#include "gnomon/gemm/family.h"
#include "gnomon/gemm/problem.h"

namespace gnomon::cpu {

/// How the kernel is shaped. Every combination that Enumerate gives is legal by construction;
/// CheckConfig has the rules:
///   kTile  mr up to MaxTileRows(nr) (kernel.h); a transposed B must be packed; bf16 needs both
///   packed kDot   mr up to MaxDotRows(nr) (dot.h); both operands contiguous in k; no packing; mc,
///   nc, kc unused kAmx   bf16 inputs; 2×2, 1×1 to 1×4 or up to 4×1 tiles; B packed; A packed if
///   transposed or K % 32 ≠ 0
/// The loops around the kernel, and which of them pack what, are in run_blocked.h. Blocks are
/// balanced: as few as mc, nc, kc allow. Threads that share M pack B together; those that share N
/// or K pack their own.
struct GemmConfig {
  enum class Kernel : std::int32_t {
    kTile,  ///< outer-product register tile: mr rows × nr vectors of C
    kDot,   ///< both operands along K: mr × nr dot products, for few rows or columns of layout nt
    kAmx,   ///< bf16 tiles of 16×16 outputs, mr × nr tiles in registers
  };
  enum class Split : std::int32_t { kM, kN, kK };  ///< which side the threads share out

  Kernel kernel = Kernel::kTile;
  std::int32_t mr = 1;  ///< rows of the register tile
  std::int32_t nr = 1;  ///< vectors (kTile), columns (kDot) or 16-wide tiles (kAmx) of it
  std::int32_t mc = 0, nc = 0, kc = 0;  ///< cache block; 0: the whole side
  bool pack_a = false, pack_b = false;
  bool loop_n_outer = true;  ///< N blocks outside M blocks (B panel stays in cache), or the reverse
  Split split = Split::kM;   ///< threads share M, N or K (K: partial sums, then a reduction)
  std::int32_t threads = 1;
};

/// Whether RunGemm takes this config for this problem on this machine; the error names the rule.
Status CheckConfig(const Problem& problem, const GemmConfig& config);

/// Whether a batch is shared out whole GEMMs at a time (each then runs on one thread) instead of
/// the threads doing one GEMM after the other together.
bool SharesBatch(std::int64_t batch, std::int32_t threads);

Config ToConfig(const GemmConfig& config);
GemmConfig FromConfig(const Config& config);

/// Does problem.batch GEMMs, batches dense behind one another. `bias` may be null unless the
/// epilogue needs it. Operands may be fp32 or bf16 as problem.dtype says; C as problem.dtype_out
/// says. C is fully written (never read). Error: the config does not fit the problem.
Status RunGemm(const Problem& problem, const GemmConfig& config, const void* a, const void* b,
               void* c, const float* bias);

/// The family object that gemm/select.h takes.
const Family& GemmFamily();

/// Instruction set in use ("AVX3", "AVX2", "SSE4") and whether AMX bf16 tiles are usable.
std::string_view VectorTarget();
bool HasAmx();

}  // namespace gnomon::cpu
