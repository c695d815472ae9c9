#pragma once

/// Triton's GEMM on AMD GPUs: a config space of its own, priced by AMD's model (gemm/cdna_model.h)
/// with the constants of Triton kernels timed there.

#include <vector>

#include "gnomon/families/triton/triton_gemm.h"
#include "gnomon/gemm/cdna_search.h"

namespace gnomon::triton {

bool IsAmd(const Device& device);

/// What can be launched on a device for operands of one dtype.
struct AmdSpace {
  CdnaMachine machine;
  KernelFamilyTraits traits;
  std::vector<TritonConfig> configs;  ///< unsplit
  std::vector<CdnaTile> tiles;        ///< of the configs, by position
};
/// Error: no matrix rate for the dtype.
Result<AmdSpace> MakeAmdSpace(const Device& device, DType dtype, int units);
/// A space made once a device, units and dtype, and remembered by the calling thread.
Result<const AmdSpace*> AmdSpaceOf(const Device& device, DType dtype, int units);

/// Fills `ways` with every config of a problem.
void EnumerateAmd(const AmdSpace& space, const Problem& problem, const CdnaOperands& operands,
                  CdnaWays& ways);
TritonConfig ConfigOf(const AmdSpace& space, const CdnaLaunch& launch);

/// Appends every config that can run and its time.
void PriceAmd(const AmdSpace& space, const Problem& problem, std::vector<Config>& configs,
              std::vector<double>& seconds);

/// The fastest, as Family::Fastest says. `priced`: how many were priced in full.
size_t FastestAmd(const AmdSpace& space, const Problem& problem, std::span<TimedConfig> fastest,
                  size_t* priced = nullptr);

/// One config. Error: it does not fit the device.
Result<CdnaTime> PriceOneAmd(const Device& device, const AmdSpace& space, const Problem& problem,
                             const TritonConfig& config);
Result<Prediction> PredictAmd(const Device& device, const AmdSpace& space, const Problem& problem,
                              const TritonConfig& config);

}  // namespace gnomon::triton
