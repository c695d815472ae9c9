#pragma once

/// CDNA model: the time of a tiled GEMM kernel on an AMD GPU (gfx90a, gfx942, gfx950).

#include <span>

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
  friend bool operator==(const CdnaMachine&, const CdnaMachine&) = default;
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
  double m = 0, n = 0, k = 0, batch = 1;  ///< of a grouped problem: mean rows of its products
  std::span<const std::int64_t> groups;   ///< the problem's own, which must outlive this
  double longest = 0;                     ///< rows of the longest product
  bool a_by_k = true, b_by_k = true;      ///< K is contiguous
  double size_out = 2;
  double narrow_a = 0, narrow_b = 0, narrow_c = 0;     ///< widest access / possible access − 1
  double crossed_a = 0, crossed_b = 0, crossed_c = 0;  ///< bytes of lines beyond a piece of a row
  double conflict_a = 0, conflict_b = 0;  ///< 1 − L2 channels that the rows spread over / all

  double RowsOfTiles(int tile_m) const;  ///< of all products
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

/// Workgroups that fit in a unit at once by registers and LDS; 0: one alone does not fit.
double CdnaOccupancy(const CdnaMachine& machine, const CdnaKernel& kernel);

/// What the tile of a kernel needs on a machine, whatever the problem.
struct CdnaBlock {
  double matrix = 0, lds = 0, load = 0;  ///< cycles of a k step; load: of aligned rows
  double share_a = 0;                    ///< of the loaded elements
  /// 1 / bytes of a row piece of a tile, weighted by the share of its operand: a k step where K is
  /// contiguous, a tile side where it is not.
  double piece_a_by_k = 0, piece_a_by_m = 0, piece_b_by_k = 0, piece_b_by_n = 0;
  double per_column = 0;       ///< 1 / tile_n
  double per_stored_byte = 0;  ///< seconds
  double occupancy = 1;
};
CdnaBlock CdnaBlockOf(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                      const CdnaKernel& kernel);

/// What all ways to launch a tile on a problem have in common.
struct CdnaTask {
  double rows = 0, columns = 0;  ///< of tiles; rows: of all products
  double tiles = 0, waves = 0;   ///< waves: tiles / units
  double steps = 0;              ///< of the whole K
  double busy = 0, exposed = 0;  ///< cycles of a k step
  double stores = 0;             ///< seconds
};
CdnaTask CdnaTaskOf(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                    const CdnaOperands& operands, const CdnaKernel& kernel, const CdnaBlock& block);

CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const CdnaOperands& operands, const CdnaKernel& kernel, const CdnaBlock& block,
                   const CdnaTask& task);
CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const CdnaOperands& operands, const CdnaKernel& kernel);
CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const Problem& problem, const CdnaKernel& kernel);

/// Bounds below the prices of one problem, with few divisions and one root a tile.
class CdnaFloors {
 public:
  CdnaFloors(const CdnaMachine& machine, const KernelFamilyTraits& traits,
             const CdnaOperands& operands);
  /// Seconds that PriceCdna's total is never below.
  double Of(const CdnaKernel& kernel, const CdnaBlock& block, const CdnaTask& task) const;

 private:
  const CdnaMachine& machine_;
  const KernelFamilyTraits& traits_;
  double loads_, exposed_loads_, k_, elements_, peak_;
  double per_boost_, per_sustained_;
  double throttled_;  // share of the matrix units from which the clock falls below boost
  double per_partial_;
};

/// What the operands hold is more than the last-level cache keeps of them.
bool OutgrowsCache(const CdnaMachine& machine, const CdnaOperands& operands);

/// The price as terms that add up to the time.
Prediction ExplainCdna(const CdnaMachine& machine, const CdnaTime& time, const CdnaKernel& kernel);

}  // namespace gnomon
