#pragma once

/// Family `cublaslt`: the candidates that cuBLASLt's heuristic names for a problem, re-ordered by
/// our model. Configs can be read, printed and priced in any build; candidates need the library, a
/// GPU and a build with -DGNOMON_CUDA=ON. Include from any C++, no CUDA header is needed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gnomon/families/cuda/gemm.h"
#include "gnomon/gemm/family.h"
#include "gnomon/gemm/named_kernel.h"

namespace gnomon::cuda {

/// What cuBLASLt tells of an algorithm. Ids are those of its header; row-major sides are ours:
/// BLAS's M lies along our N.
struct LtConfig {
  std::int32_t algorithm = 0;  ///< id
  std::int32_t tile = 0;       ///< id; 0: not told
  std::int32_t stages = 0;     ///< id; 0: not told
  std::int32_t cluster = 0;    ///< id; 0: the library chooses
  std::int32_t split_k = 1;    ///< 1: none
  std::int32_t reduction = 0;  ///< id of the scheme that adds a split; 0: none
  std::int32_t swizzle = 0;    ///< of CTAs over C
  std::int32_t option = 0;     ///< what the other attributes do not say: the algorithm's own
  std::int32_t inner = 0;      ///< id of the matrix instruction; 0: not told
  std::int32_t twin = 0;       ///< candidates that all of this is the same of: 0, 1, …
  friend bool operator==(const LtConfig&, const LtConfig&) = default;
};

/// Sides in our order; 0: the id says nothing, or is not one of cuBLASLt 13.1's.
struct LtSides {
  int m = 0, n = 0;
  friend bool operator==(const LtSides&, const LtSides&) = default;
};
LtSides TileOfId(std::int32_t id);
LtSides ClusterOfId(std::int32_t id);
/// Elements of K in a step, and how many steps are in flight; count 0: as many as fit.
struct LtStages {
  int depth = 0, count = 0;
  friend bool operator==(const LtStages&, const LtStages&) = default;
};
LtStages StagesOfId(std::int32_t id);

Config ToConfig(const LtConfig& config);
LtConfig LtConfigFrom(const Config& config);

/// "128x256.c2x1.s64xauto.k1.a66": tile, cluster, stages, split of K, algorithm; then what is not
/// 0: ".r2" reduction, ".w1" swizzle, ".o3" option, ".i4" instruction, ".n1" twin. An id that is
/// not known is written as one: "t700", "c#99", "s#99".
std::string Text(const LtConfig& config);
Result<LtConfig> ParseLtConfig(std::string_view text);

/// The config as a vendor kernel known by its name, which gemm/named_kernel.h prices; without a
/// tile it is not understood and has its library's average price.
KernelName KernelNameOf(const Problem& problem, const LtConfig& config);

/// cuBLASLt as loaded at run time. Safe to use from several threads at once.
class CublasLt {
 public:
  struct Candidate {
    LtConfig config;
    std::array<std::uint64_t, 8> algorithm{};  ///< cuBLASLt's own description
    std::size_t workspace_bytes = 0;
    double waves = 0;  ///< of CTAs, as the library counts them; 1: the device is full once
  };

  /// Looks for libcublasLt.so.13, then .12: the file or folder that $GNOMON_CUBLASLT names; the
  /// loader's own path; CUDA's usual folders and the Python wheels beside the folders of
  /// $LD_LIBRARY_PATH and of the python3 on $PATH. Error: where it was looked for; no GPU.
  static Result<std::unique_ptr<CublasLt>> Load();
  virtual ~CublasLt() = default;

  virtual std::string version() const = 0;  ///< "13.1.0"

  /// At most `count` candidates for the current device, the library's favourite first. `units`:
  /// multiprocessors to use (0: all). Error: the problem is grouped, of a type that the library has
  /// not, or it has no kernel for it.
  virtual Result<std::vector<Candidate>> Candidates(const Problem& problem, int count,
                                                    std::size_t workspace_bytes,
                                                    int units = 0) const = 0;

  /// C = epilogue(A·B), enqueued on the stream; does not wait. Operands lie on 16 bytes. fp8
  /// operands have no scales and accumulate fast, as our own kernels do; kGelu is the tanh
  /// approximation; the bias gradient is the library's, fp32. The workspace must not be one of
  /// gemm.h's Run: its counters would be overwritten.
  virtual Status Run(const Problem& problem, const Candidate& candidate, const Operands& operands,
                     CUstream_st* stream) const = 0;

  /// The candidate of that config among the problem's.
  Result<Candidate> Find(const Problem& problem, const LtConfig& config,
                         std::size_t workspace_bytes) const;
};

/// How many candidates the family asks for, and the scratch memory that it grants unless the
/// problem says.
inline constexpr int kLtCandidates = 16;
inline constexpr Bytes kLtWorkspace = {32.0 * 1024 * 1024};
std::size_t LtWorkspaceOf(const Problem& problem);

/// Seconds of each config on `units` units of the device (0: all), by our model.
std::vector<double> PriceLtConfigs(const Device& device, const Problem& problem, int units,
                                   std::span<const Config> configs);

/// Enumerate asks the library on this machine's GPU; error where that is another device.
const Family& CublasLtFamily();

}  // namespace gnomon::cuda
