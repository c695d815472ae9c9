// The time of a problem in a library whose pick is not known: the least over the tiles that such
// libraries carry.
//
// A tuned library picks near the best of its kernels, so the least predicted time over a menu of
// macro tiles and splits stands for it. Menus are sides that Tensile and Triton kernels come in; a
// tile twice as long as the problem's side is left out, a split that makes more workgroups than
// kMostParts or leaves a part under kLeastSteps steps too. A stated tile is priced alone.
//
// Entry point: PredictCdnaFamily.

#include "gnomon/gemm/cdna_library.h"

#include <algorithm>
#include <array>
#include <span>

namespace gnomon {
namespace {

struct MenuTile {
  int m, n, k_bytes;
};
constexpr std::array kLibraryTiles = {
    MenuTile{256, 256, 128}, MenuTile{256, 192, 128}, MenuTile{192, 256, 128},
    MenuTile{256, 128, 128}, MenuTile{128, 256, 128}, MenuTile{256, 160, 128},
    MenuTile{160, 256, 128}, MenuTile{224, 256, 128}, MenuTile{256, 224, 128},
    MenuTile{128, 128, 128}, MenuTile{128, 192, 128}, MenuTile{192, 128, 128},
    MenuTile{128, 64, 128},  MenuTile{64, 128, 128},  MenuTile{96, 128, 128},
    MenuTile{128, 96, 128},  MenuTile{64, 64, 128},   MenuTile{64, 64, 256},
    MenuTile{96, 64, 128},   MenuTile{64, 256, 128},  MenuTile{256, 64, 128},
    MenuTile{32, 64, 256},   MenuTile{64, 32, 256},   MenuTile{32, 128, 128},
    MenuTile{16, 64, 256},   MenuTile{64, 16, 256},   MenuTile{32, 32, 256},
    MenuTile{16, 16, 512},   MenuTile{16, 32, 512},   MenuTile{32, 16, 512},
    MenuTile{16, 128, 256}};
constexpr std::array kTritonTiles = {
    MenuTile{256, 256, 128}, MenuTile{128, 256, 128}, MenuTile{256, 128, 128},
    MenuTile{128, 128, 128}, MenuTile{64, 128, 128}, MenuTile{128, 64, 128}, MenuTile{64, 64, 128},
    MenuTile{64, 64, 256}, MenuTile{32, 64, 256}, MenuTile{64, 32, 256}, MenuTile{32, 32, 256},
    MenuTile{16, 64, 256}, MenuTile{16, 32, 256}, MenuTile{32, 128, 128}, MenuTile{256, 64, 128},
    MenuTile{64, 256, 128},
    // The wide menu goes on (kTritonTileCount ends the narrow one):
    MenuTile{256, 160, 128}, MenuTile{256, 192, 128}};
constexpr size_t kTritonTileCount = 16;

constexpr std::array kSplits = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kMostParts = 1024;
constexpr double kLeastSteps = 2;
constexpr int kUsualDepthBytes = 128;  // k step of kernels whose name does not say

bool EnoughSteps(const Problem& problem, const CdnaKernel& kernel) {
  return static_cast<double>(problem.k) / kernel.tile_k / kernel.split_k >= kLeastSteps;
}

}  // namespace

Result<LibraryPrediction> PredictCdnaFamily(const Device& device, const Problem& problem,
                                            std::string_view family, const StatedTile& stated,
                                            int units) {
  GNOMON_TRY(CheckProblem(problem));
  GNOMON_ASSIGN(const CdnaMachine machine, CdnaMachineOf(device, problem.dtype, units));
  const KernelFamilyTraits* known = FindKernelFamily(family, device.arch, problem.dtype);
  KernelFamilyTraits traits = known ? *known : GenericKernelFamily(device.arch, problem.dtype);
  if (stated.dirty_cache) traits.store_share = kDirtyStoreShare;
  LibraryPrediction out;
  out.generic = known == nullptr;
  const CdnaOperands operands = CdnaOperandsOf(problem);
  CdnaTime least;
  const auto consider = [&](CdnaKernel kernel) {
    kernel.buffers = static_cast<int>(traits.lds_buffers);
    const CdnaTime time = PriceCdna(machine, traits, operands, kernel);
    if (least.total > 0 && least.total <= time.total) return;
    least = time;
    out.kernel = kernel;
  };
  const auto depth = [&](int bytes) {
    return static_cast<int>(bytes / std::max(1.0, machine.size));
  };

  if (stated.tile_m > 0 && stated.tile_n > 0) {
    CdnaKernel kernel;
    kernel.tile_m = static_cast<int>(stated.tile_m);
    kernel.tile_n = static_cast<int>(stated.tile_n);
    kernel.tile_k = stated.tile_k > 0 ? static_cast<int>(stated.tile_k) : depth(kUsualDepthBytes);
    kernel.split_k = std::max(1, static_cast<int>(stated.split_k));
    consider(kernel);
    if (traits.split_is_a_wish && kernel.split_k > 1) {
      kernel.split_k = 1;
      consider(kernel);
    }
    if (traits.split_at_launch && stated.split_k == 0)
      for (const int split : kSplits) {
        kernel.split_k = split;
        if (split > 1 && EnoughSteps(problem, kernel)) consider(kernel);
      }
  } else {
    const bool triton = traits.menu != TileMenu::kLibrary;
    std::span<const MenuTile> menu = kLibraryTiles;
    if (triton) menu = kTritonTiles;
    if (traits.menu == TileMenu::kTriton) menu = menu.first(kTritonTileCount);
    constexpr int kSmallest = 16;
    for (const MenuTile& tile : menu) {
      if ((tile.m >= 2 * operands.longest && tile.m > kSmallest) ||
          (tile.n >= 2 * problem.n && tile.n > kSmallest))
        continue;
      CdnaKernel kernel;
      kernel.tile_m = tile.m;
      kernel.tile_n = tile.n;
      kernel.tile_k = depth(tile.k_bytes);
      const std::int64_t columns = (problem.n + tile.n - 1) / tile.n;
      const double tiles = operands.RowsOfTiles(tile.m) * static_cast<double>(columns);
      for (const int split : kSplits) {
        kernel.split_k = split;
        if (split > 1 && (triton || tiles * split > kMostParts || !EnoughSteps(problem, kernel)))
          continue;
        consider(kernel);
      }
    }
  }
  out.prediction = ExplainCdna(machine, least, out.kernel);
  // Median of |predicted / measured − 1| on rows that were not fitted: tuned tables 3 to 4%,
  // kernels that are not named 8%; unknown families as the reports of kernel authors.
  constexpr double kNamed = 0.04, kUnnamed = 0.08, kUnknown = 0.3;
  out.prediction.relative_error = out.generic ? kUnknown : stated.tile_m > 0 ? kNamed : kUnnamed;
  return out;
}

}  // namespace gnomon
