// The config space: small enough to price in microseconds and to time in minutes, with the winners
// in it.
//
//   kernels × register tiles × blocks of K × packing × loop order × split of the threads × thread
//   counts
//
// Register tiles: for each width in vectors the most rows that the registers hold (MaxTileRows), as
// only those reach the FMA peak; few rows or columns take what fits them. Cache blocks follow from
// the loop order and the cache sizes: the operand that moves inside gets a block of half the L2, so
// mc and nc are not dimensions of the space. Packing is offered where an operand is used more than
// twice, and is what the kernel needs where it needs it; of two operands that need not be packed at
// most one is. Each side is shared out only where every thread gets a whole tile. Left out: widths
// between the listed ones and blocks of K other than two and the whole; sweeps over the wide space
// found them within the noise of their neighbours (docs/model.md).

#include "gnomon/families/cpu/config_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/families/cpu/amx.h"
#include "gnomon/families/cpu/dot.h"
#include "gnomon/families/cpu/kernel.h"

namespace gnomon::cpu {
namespace {

using Kernel = GemmConfig::Kernel;
using Split = GemmConfig::Split;

constexpr std::array<std::int32_t, 2> kDepthBlocks = {256, 512};
constexpr std::int64_t kWholeDepth = 1024;  // a K of up to this may stay whole
constexpr std::int64_t kLeastReuse = 3;     // passes over an operand that can pay for packing it

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct TileShape {
  std::int32_t mr = 0, nr = 0;
};

// A short list without an allocation.
template <class T, size_t kMax>
struct Few {
  std::array<T, kMax> item{};
  size_t size = 0;
  void Add(const T& value) {
    if (size < kMax) item[size++] = value;
  }
  const T* begin() const { return item.data(); }
  const T* end() const { return item.data() + size; }
};
using TileShapes = Few<TileShape, 8>;

class Enumerator {
 public:
  Enumerator(const Machine& machine, const Problem& problem, int units,
             std::vector<Config>& configs)
      : d_(machine),
        p_(problem),
        units_(units),
        configs_(configs),
        lanes_(static_cast<std::int64_t>(machine.lanes)),
        registers_(static_cast<std::int32_t>(machine.registers)) {}

  void Run() {
    Threads();
    const bool bf16 = p_.dtype == DType::kBf16;
    if (bf16 && d_.amx_flops > 0) {
      Blocked(Kernel::kAmx, AmxShapes(), kAmxSide, kAmxSide, 2);
    } else {
      constexpr std::int64_t kElement = 4;
      Blocked(Kernel::kTile, TileShapesOf(), 1, lanes_, kElement);
    }
    Dots();
  }

 private:
  // Counts worth trying: powers of two and all. A count is dropped when its share of the work is
  // less than a fraction of forking, and a small count when even double of it would still be mostly
  // work.
  void Threads() {
    constexpr double kLeastShare = 0.25, kClearlyMore = 30;
    const double work = p_.flops().value / (2 * d_.lanes * d_.ports) +
                        p_.bytes().value * d_.read[kShared];  // cycles of one core
    for (int t = 1; t <= units_; t = t < units_ ? std::min(2 * t, units_) : units_ + 1) {
      const bool too_small = t > 1 && work / t < kLeastShare * d_.fork_join;
      const bool too_few = t < units_ && work / (2 * t) > kClearlyMore * d_.fork_join;
      if (t == 1 ? !too_few : !too_small && !too_few) threads_.Add(t);
    }
    if (threads_.size == 0) threads_.Add(1);
  }

  TileShapes TileShapesOf() const {
    TileShapes shapes;
    const std::int64_t vectors = CeilDiv(p_.n, lanes_);
    const auto add = [&](std::int32_t nr, std::int32_t most) {
      if (nr > vectors) return;
      std::int32_t mr = std::min(MaxTileRows(nr, registers_), most);
      mr = static_cast<std::int32_t>(std::min<std::int64_t>(mr, p_.m));
      if (mr >= 1) shapes.Add({mr, nr});
    };
    constexpr std::int32_t kEven = 8;  // rows that divide the usual sides of powers of two
    if (vectors == 1) {
      add(1, kMaxTileRows);
      if (p_.m > kEven) add(1, kEven);
      return shapes;
    }
    constexpr std::int64_t kFewRows = 4;
    if (p_.m <= kFewRows) {  // wide tiles keep enough sums in flight
      for (const std::int32_t nr : {2, 4, 6, 8})
        if (MaxTileRows(nr, registers_) >= p_.m || nr == 2) add(nr, kMaxTileRows);
      return shapes;
    }
    add(2, kMaxTileRows);
    // Three vectors: where an odd count leaves a rest otherwise, and where four leave too few rows.
    constexpr std::int64_t kFewVectors = 9;
    const bool four = MaxTileRows(4, registers_) >= kFewRows;
    if (!four || (vectors % 2 == 1 && vectors <= kFewVectors)) add(3, kEven);
    if (four) add(4, kMaxTileRows);
    return shapes;
  }

  TileShapes AmxShapes() const {
    TileShapes shapes;
    const std::int64_t rows = CeilDiv(p_.m, kAmxSide), cols = CeilDiv(p_.n, kAmxSide);
    if (rows >= 2 && cols >= 2) shapes.Add({2, 2});
    if (cols < 2 || rows > cols)
      shapes.Add({static_cast<std::int32_t>(std::min<std::int64_t>(kMaxAmxTiles, rows)), 1});
    if (rows < 2 || cols > rows)
      shapes.Add({1, static_cast<std::int32_t>(std::min<std::int64_t>(kMaxAmxTiles, cols))});
    return shapes;
  }

  bool SplitFits(Split split, std::int32_t threads, std::int64_t row_grain,
                 std::int64_t col_grain) const {
    constexpr std::int64_t kLeastDepth = 64;
    constexpr double kMostSums = 1 << 20;  // partial sums of a thread: 4 MiB
    switch (split) {
      case Split::kM:
        return CeilDiv(p_.m, row_grain) >= threads;
      case Split::kN:
        return threads > 1 && CeilDiv(p_.n, col_grain) >= threads;
      case Split::kK:
        return threads > 1 && p_.k >= kLeastDepth * threads &&
               static_cast<double>(p_.m) * static_cast<double>(p_.n) <= kMostSums &&
               p_.Grants(p_.PartialSums(threads) / static_cast<double>(p_.batch));
    }
    return false;
  }

  // Kernels under the loop nest of run_blocked.h.
  void Blocked(Kernel kernel, const TileShapes& shapes, std::int64_t row_grain,
               std::int64_t col_grain, std::int64_t element) {
    for (const std::int32_t threads : threads_) {
      for (const Split split : {Split::kM, Split::kN, Split::kK}) {
        if (threads == 1 ? split != Split::kM : !SplitFits(split, threads, row_grain, col_grain))
          continue;
        const std::int64_t t = threads;
        const std::int64_t m = split == Split::kM ? CeilDiv(p_.m, t) : p_.m;
        const std::int64_t n = split == Split::kN ? CeilDiv(p_.n, t) : p_.n;
        const std::int64_t k = split == Split::kK ? CeilDiv(p_.k, t) : p_.k;
        for (const TileShape& shape : shapes) {
          GemmConfig config;
          config.kernel = kernel;
          config.mr = shape.mr;
          config.nr = shape.nr;
          config.split = split;
          config.threads = threads;
          Depths(config, {m, n, k, shape.mr * row_grain, shape.nr * col_grain, element});
        }
      }
    }
    if (configs_.empty()) Fallback(kernel, shapes);
  }

  struct Local {
    std::int64_t m, n, k;        // sides of one thread
    std::int64_t height, width;  // of a tile, in elements
    std::int64_t element;
  };

  void Depths(GemmConfig config, const Local& local) {
    if (local.k <= kWholeDepth) Packings(config, local, local.k);
    for (const std::int32_t kc : kDepthBlocks) {
      constexpr std::int64_t kNearlyWhole = 3;  // k of less than 3/2 of a block is as well whole
      if (2 * local.k < kNearlyWhole * kc) continue;
      config.kc = kc;
      Packings(config, local, kc);
    }
  }

  void Packings(GemmConfig config, const Local& local, std::int64_t kc) {
    const bool amx = config.kernel == Kernel::kAmx, bf16 = p_.dtype == DType::kBf16;
    const bool must_a = amx ? p_.a_transposed() || p_.k % kAmxDepth != 0 : bf16;
    const bool must_b = amx || bf16 || p_.b_transposed();
    const bool may_a = must_a || CeilDiv(local.n, local.width) >= kLeastReuse;
    const bool may_b = must_b || CeilDiv(local.m, local.height) >= kLeastReuse;
    for (const bool pack_a : {false, true}) {
      for (const bool pack_b : {false, true}) {
        if ((pack_a ? !may_a : must_a) || (pack_b ? !may_b : must_b)) continue;
        if (pack_a && pack_b && !must_a && !must_b)
          continue;  // never more than 2% ahead of packing one
        config.pack_a = pack_a;
        config.pack_b = pack_b;
        Loops(config, local, kc);
      }
    }
  }

  void Loops(GemmConfig config, const Local& local, std::int64_t kc) {
    const auto half_l2 = static_cast<std::int64_t>(d_.capacity[kL2] / 2);
    const std::int64_t fits = std::max<std::int64_t>(1, half_l2 / (kc * local.element));
    const auto block = [&](std::int64_t side, std::int64_t grain) {
      if (side <= fits) return 0;
      return static_cast<std::int32_t>(std::max(grain, fits / grain * grain));
    };
    // N outside: a block of A moves past each panel of B.
    if (local.n > local.width || local.m <= local.height) {
      config.loop_n_outer = true;
      config.mc = block(local.m, local.height);
      config.nc = 0;
      Add(config);
    }
    // M outside: a block of B moves past each panel of A, and packed A needs no more than a panel's
    // block.
    if (local.m > local.height || local.n <= local.width) {
      if (local.n <= local.width && local.m <= local.height)
        return;  // one tile: no order to choose
      constexpr std::int64_t kPackedRows = 128;
      config.loop_n_outer = false;
      config.mc =
          config.pack_a && local.m > kPackedRows ? static_cast<std::int32_t>(kPackedRows) : 0;
      config.nc = block(local.n, local.width);
      Add(config);
    }
  }

  // Dot products, where both operands run along k.
  void Dots() {
    const bool a_along = !p_.a_transposed() || (p_.m == 1 && p_.LeadingA() == 1);
    const bool b_along = p_.b_transposed() || (p_.n == 1 && p_.LeadingB() == 1);
    constexpr std::int64_t kFew = 32;  // rows or columns beyond which register tiles win
    if (!a_along || !b_along || std::min(p_.m, p_.n) > kFew) return;
    TileShapes shapes;
    const auto add = [&](std::int32_t most_rows, std::int32_t nr) {
      if (nr > p_.n) return;
      const std::int32_t mr = std::min(most_rows, MaxDotRows(nr, registers_));
      if (mr >= 1) shapes.Add({static_cast<std::int32_t>(std::min<std::int64_t>(mr, p_.m)), nr});
    };
    if (p_.n == 1) {
      for (const std::int32_t rows : {4, 6, 8})
        if (rows == 4 || rows <= p_.m) add(rows, 1);
    } else if (p_.m == 1) {
      for (const std::int32_t columns : {2, 4, 6, 8}) add(1, columns);
    } else {
      for (const std::int32_t columns : {2, 3, 4, 6, 8}) add(kMaxDotRows, columns);
    }
    for (const std::int32_t threads : threads_) {
      for (const Split split : {Split::kM, Split::kN, Split::kK}) {
        if (threads == 1 ? split != Split::kM : !SplitFits(split, threads, 1, 1)) continue;
        for (const TileShape& shape : shapes) {
          for (const bool n_outer : {true, false}) {
            if (!n_outer && (p_.n <= shape.nr || p_.m <= shape.mr))
              continue;  // one block: no order
            GemmConfig config;
            config.kernel = Kernel::kDot;
            config.mr = shape.mr;
            config.nr = shape.nr;
            config.loop_n_outer = n_outer;
            config.split = split;
            config.threads = threads;
            Add(config);
          }
        }
      }
    }
  }

  // One thread, where no split fits the only thread count that was worth trying.
  void Fallback(Kernel kernel, const TileShapes& shapes) {
    GemmConfig config;
    config.kernel = kernel;
    config.mr = shapes.item[0].mr;
    config.nr = shapes.item[0].nr;
    config.pack_a = p_.dtype == DType::kBf16;
    config.pack_b = config.pack_a || p_.b_transposed();
    Add(config);
  }

  void Add(const GemmConfig& config) { configs_.push_back(ToConfig(config)); }

  const Machine& d_;
  const Problem& p_;
  const int units_;
  std::vector<Config>& configs_;
  const std::int64_t lanes_;
  const std::int32_t registers_;
  Few<std::int32_t, 16> threads_;
};

// "no register tile of 20 x 2 on 32 registers; nearest: 14x2". `most_rows(nr)`: largest mr.
template <class MostRows>
std::string NoBlock(std::string_view what, const GemmConfig& c, std::int32_t most_columns,
                    MostRows most_rows) {
  if (c.mr >= 1 && c.mr <= most_rows(c.nr)) return {};
  const std::int32_t nr = std::clamp(c.nr, 1, most_columns);
  return fmt::format("no {} of {}x{}; nearest: {}x{}", what, c.mr, c.nr,
                     std::clamp(c.mr, 1, most_rows(nr)), nr);
}

std::string WhyNoAmx(const Machine& machine, const Problem& p, const GemmConfig& c) {
  if (machine.amx_flops <= 0) return "no AMX tiles here; nearest kernel: tile";
  if (p.dtype != DType::kBf16) return "AMX tiles multiply bf16 only; nearest kernel: tile";
  const std::int32_t rows = std::clamp(c.mr, 1, kMaxAmxTiles),
                     columns = std::clamp(c.nr, 1, kMaxAmxTiles);
  if (!HasAmxBlock(c.mr, c.nr))
    return HasAmxBlock(rows, columns)
               ? fmt::format("no block of {}x{} AMX tiles; nearest: {}x{}", c.mr, c.nr, rows,
                             columns)
               : fmt::format("no block of {}x{} AMX tiles; nearest: 2x2", c.mr, c.nr);
  if (!c.pack_b) return "AMX needs a packed B: pb1";
  if (!c.pack_a && (p.a_transposed() || p.k % kAmxDepth != 0))
    return fmt::format("AMX needs a packed A where A is transposed or K no multiple of {}: pa1",
                       kAmxDepth);
  return {};
}

}  // namespace

std::string WhyNot(const Machine& machine, const Problem& p, const GemmConfig& c) {
  const auto registers = static_cast<std::int32_t>(machine.registers);
  const bool bf16 = p.dtype == DType::kBf16;
  switch (c.kernel) {
    case Kernel::kTile: {
      const auto most = [&](std::int32_t nr) { return MaxTileRows(nr, registers); };
      std::int32_t widest = kMaxTileVectors;
      while (widest > 1 && most(widest) < 1) --widest;
      std::string why = NoBlock("register tile", c, widest, most);
      if (!why.empty()) return why;
      if (p.b_transposed() && !c.pack_b) return "a transposed B must be packed: pb1";
      if (bf16 && !(c.pack_a && c.pack_b)) return "bf16 is widened while packing: pa1.pb1";
      return {};
    }
    case Kernel::kDot: {
      const auto most = [&](std::int32_t nr) { return MaxDotRows(nr, registers); };
      std::int32_t widest = kMaxDotColumns;
      while (widest > 1 && most(widest) < 1) --widest;
      std::string why = NoBlock("block of dot products", c, widest, most);
      if (!why.empty()) return why;
      const bool a_along = !p.a_transposed() || (p.m == 1 && p.LeadingA() == 1);
      const bool b_along = p.b_transposed() || (p.n == 1 && p.LeadingB() == 1);
      if (!a_along || !b_along)
        return "dot products need both operands contiguous in K (layout nt); nearest kernel: tile";
      if (c.pack_a || c.pack_b) return "dot products pack nothing: pa0.pb0";
      return {};
    }
    case Kernel::kAmx:
      return WhyNoAmx(machine, p, c);
  }
  return {};
}

void EnumerateConfigs(const Machine& machine, const Problem& problem, int units,
                      std::vector<Config>& configs) {
  Enumerator(machine, problem, units, configs).Run();
}

Config ToConfig(const GemmConfig& c) {
  return {{static_cast<std::int32_t>(c.kernel), c.mr, c.nr, c.mc, c.nc, c.kc, c.pack_a, c.pack_b,
           c.loop_n_outer, static_cast<std::int32_t>(c.split), c.threads}};
}

GemmConfig FromConfig(const Config& config) {
  const auto& v = config.value;
  GemmConfig c;
  c.kernel = static_cast<GemmConfig::Kernel>(v[0]);
  c.mr = v[1];
  c.nr = v[2];
  c.mc = v[3];
  c.nc = v[4];
  c.kc = v[5];
  c.pack_a = v[6] != 0;
  c.pack_b = v[7] != 0;
  c.loop_n_outer = v[8] != 0;
  c.split = static_cast<GemmConfig::Split>(v[9]);
  c.threads = v[10];
  return c;
}

}  // namespace gnomon::cpu
