#pragma once

/// The config space of family `cdna` on one device for one kind of problem, and the ways that it
/// offers a problem. Internal to the family.

#include <vector>

#include "gnomon/families/hip/cdna_config.h"
#include "gnomon/gemm/cdna_search.h"

namespace gnomon::hip {

/// What a space depends on beside the device.
struct CdnaKind {
  DType dtype = DType::kBf16, dtype_out = DType::kBf16;
  bool rows_aligned = true;  ///< for direct-to-LDS loads
  friend bool operator==(const CdnaKind&, const CdnaKind&) = default;
};
CdnaKind KindOf(std::string_view arch, const Problem& problem);

struct CdnaSpace {
  CdnaMachine machine;
  const KernelFamilyTraits* traits = nullptr;
  double accumulator = 0;           ///< bytes of a partial sum
  std::vector<CdnaConfig> configs;  ///< only what fits a unit; unsplit
  std::vector<CdnaTile> tiles;      ///< of the configs, by position
};

/// Error: no AMD GPU, or no matrix instruction for the dtype.
Result<CdnaSpace> MakeSpace(const Device& device, const CdnaKind& kind, int units);

/// Fills `ways` with those worth pricing, every one of which passes WhyNot. At least one unless no
/// kernel can do the problem.
void EnumerateCdna(const CdnaSpace& space, const Problem& problem, const CdnaOperands& operands,
                   CdnaWays& ways);

CdnaConfig ConfigOf(const CdnaSpace& space, const CdnaLaunch& launch);

const KernelFamilyTraits& TraitsOf(std::string_view arch, DType dtype);

}  // namespace gnomon::hip
