#pragma once

/// CDNA model: the time of a tiled GEMM kernel on an AMD GPU (gfx90a, gfx942, gfx950).

#include "gnomon/device/device.h"
#include "gnomon/gemm/kernel_families.h"
#include "gnomon/gemm/prediction.h"
#include "gnomon/gemm/problem.h"

namespace gnomon {

/// Facts of a device for one dtype, read once for many prices.
struct CdnaMachine {
  double units = 0, dies = 1;
  double boost = 0, sustained = 0;     ///< Hz
  double matrix_rate = 0;              ///< operations a unit and clock
  double lds_bytes = 0, lds_rate = 0;  ///< rate: bytes a unit and clock
  double load_rate = 0;                ///< L2 → unit, bytes a unit and clock
  double llc_bytes = 0, llc_rate = 0;  ///< rates from here in bytes a second
  double hbm_rate = 0;
  double size = 2;  ///< bytes of an operand's element
};

/// `units` 0: all. Error: no AMD GPU, or no matrix instruction for the dtype.
Result<CdnaMachine> CdnaMachineOf(const Device& device, DType dtype, int units);

struct CdnaKernel {
  int tile_m = 128, tile_n = 128, tile_k = 64;
  int split_k = 1;
  int waves = 4;
  int buffers = 2;            ///< pipeline buffers in LDS
  bool stream_k = false;      ///< one workgroup a unit; k steps of all tiles shared out evenly
  bool non_temporal = false;  ///< the operand that is read once passes the caches by
  int mapping = 0;            ///< rows of tiles that run together; 0: what makes them near-square
};

/// What a kernel meets in a problem's operands, worked out once for many prices.
struct CdnaOperands {
  double m = 0, n = 0, k = 0, batch = 1;
  bool a_by_k = true, b_by_k = true;  ///< K is contiguous
  double size_out = 2;
  double narrow_a = 0, narrow_b = 0, narrow_c = 0;     ///< widest access / possible access − 1
  double crossed_a = 0, crossed_b = 0, crossed_c = 0;  ///< bytes of lines beyond a piece of a row
  double conflict_a = 0, conflict_b = 0;  ///< 1 − L2 channels that the rows spread over / all
};
CdnaOperands CdnaOperandsOf(const Problem& problem);

/// Seconds by cause, and the figures behind them.
struct CdnaTime {
  double start = 0, prologue = 0, main_loop = 0, exposed = 0, last_wave = 0;
  double loads = 0, stores = 0, reduction = 0;
  double total = 0;  ///< their sum

  double workgroups = 0, waves = 0;                ///< waves: workgroups / units
  double resident = 1;                             ///< workgroups of a unit at once
  double clock = 0;                                ///< Hz
  double utilisation = 0;                          ///< of the matrix units, 0 to 1
  double beyond_l2 = 0, from_hbm = 0, stored = 0;  ///< bytes
  double l2_hit = 0, llc_hit = 0;
  double idle = 0;  ///< share of the last wave's places that are empty
};

CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const CdnaOperands& operands, const CdnaKernel& kernel);
CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const Problem& problem, const CdnaKernel& kernel);

/// The price as terms that add up to the time.
Prediction ExplainCdna(const CdnaMachine& machine, const CdnaTime& time, const CdnaKernel& kernel);

/// Workgroups that fit in a unit at once by registers and LDS; 0: one alone does not fit.
double CdnaOccupancy(const CdnaMachine& machine, const CdnaKernel& kernel);

}  // namespace gnomon
