// The time of a blocked GEMM (run_blocked.h) with register tiles or AMX tiles, in cycles of its
// slowest thread.
//
//   time = pack + multiply + overhead + stream + store + barriers + reduction
//   multiply = Σ tiles, k steps:  max(mr·nr / ports, (mr + nr) / loads, fma_latency)          kTile
//                                 max(mr·nr · 16³·4 / amx_flops, (mr + nr) · tile load, latency)
//                                 kAmx
//
// multiply supposes operands in L1. Each tile reads one panel that stays (reused by the next tile)
// and one that moves; `stream` is what the moving panel, or a staying one that does not fit, costs
// more than that from the level where its block lies: L2 if the block fits, else where the operand
// itself lies. Blocks, panels and shares of threads are counted as run_blocked.cc cuts them, with
// their balanced edges. Prefetchers follow runs of lines; each start of a run costs part of a
// line's latency. Power-of-two strides leave only some sets of L1 to an unpacked panel. Left out: a
// second tenant of the shared cache, frequency changes.

#include <cmath>

#include "gnomon/families/cpu/amx.h"
#include "gnomon/families/cpu/model.h"

namespace gnomon::cpu {
namespace {

// L1 is indexed by the offset in a page on all x86-64 cores (virtually indexed, physically tagged).
constexpr std::int64_t kPageBytes = 4096;
constexpr double kTlbPages = 64;  // first-level data TLB entries (Intel since Nehalem, Zen)
// AMX: a tile of A or B is 16 lines, two lines a cycle from L1; sums are ready after 52 cycles
// (Intel optimization manual, "AMX throughput and latency": TDPBF16PS 16 and 52, TILELOADD 8).
constexpr double kTileLoadCycles = 8, kTileLatency = 52;

constexpr double kSum = 4;  // bytes of an fp32 sum
constexpr std::int64_t kFloat = 4;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// How one side of the problem is cut for one thread, as run.h's BalancedBlock and Share cut it.
struct Cut {
  double size = 0;  // of the slowest thread
  double blocks = 1;
  double block = 0;  // average
};

Cut CutSide(std::int64_t side, std::int64_t share, std::int64_t block, std::int64_t grain) {
  if (block <= 0 || block >= share)
    return {static_cast<double>(share), 1, static_cast<double>(share)};
  const std::int64_t balanced = CeilDiv(CeilDiv(side, CeilDiv(side, block)), grain) * grain;
  const std::int64_t blocks = CeilDiv(share, balanced);
  return {static_cast<double>(share), static_cast<double>(blocks),
          static_cast<double>(share) / static_cast<double>(blocks)};
}

// One operand as the tiles go through it.
struct Panel {
  double all = 0;     // bytes of the operand that one thread uses
  double bytes = 0;   // of one panel of one k block
  double block = 0;   // of the block it belongs to
  double reads = 0;   // times the operand goes through the kernels
  double firsts = 0;  // of them: from home, because the block was not in use just before
  bool packed = false;
  double sets = 1;        // share of L1 that its lines can use
  double runs = 0;        // runs of consecutive lines in one pass
  double pages = 0;       // pages of one panel
  double panels = 0;      // in one pass
  double narrow = 0;      // 1 where a run is a single line
  double block_held = 0;  // share of the block that L2 holds
};

class BlockedPricer {
 public:
  BlockedPricer(const Machine& machine, const Problem& problem, const GemmConfig& config,
                const KernelCosts& costs)
      : d_(machine),
        p_(problem),
        c_(config),
        costs_(costs),
        threads_(config.threads),
        amx_(config.kernel == GemmConfig::Kernel::kAmx),
        row_grain_(amx_ ? kAmxSide : 1),
        col_grain_(amx_ ? kAmxSide : static_cast<std::int64_t>(machine.lanes)),
        depth_(amx_ ? kAmxDepth : 1),
        stored_(SizeOf(problem.dtype)),
        packed_(amx_ ? stored_ : kSum) {
    Cuts();
  }

  Parts Run() {
    const double operands = m_.size * k_.size + k_.size * n_.size;
    const double packed = (c_.pack_b ? k_.size * n_.size : 0) + (c_.pack_a ? m_.size * k_.size : 0);
    const Home home(
        d_, operands * stored_ + packed * packed_ + m_.size * n_.size * SizeOf(p_.dtype_out),
        p_.bytes().value, threads_);
    Parts parts;
    Multiply(parts);
    Packing(home, parts);
    Streaming(home, parts);
    Storing(home, parts);
    const double outer = k_.blocks * (c_.loop_n_outer ? n_.blocks : 1);
    parts.overhead += costs_.block_cycles * outer * m_.blocks;
    if (share_b_) parts.barrier += 2 * outer * costs_.barrier_share * d_.fork_join;
    if (split_k_) parts.reduce = ReduceCycles(d_, home, p_, threads_, costs_);
    // Sums of a bf16 C stay in fp32 until K is done; AMX rounds a single block of K as it stores.
    const bool rounds = p_.dtype_out == DType::kBf16 && !split_k_ && !(amx_ && k_.blocks == 1);
    if (rounds) parts.reduce = m_.size * n_.size * costs_.reduce_cycles;
    return parts;
  }

 private:
  void Cuts() {
    const std::int64_t t = c_.threads;
    const std::int64_t width = c_.nr * col_grain_;
    split_k_ = t > 1 && c_.split == GemmConfig::Split::kK;
    const bool split_m = t > 1 && c_.split == GemmConfig::Split::kM;
    const bool split_n = t > 1 && c_.split == GemmConfig::Split::kN;
    const auto share = [t](std::int64_t side, std::int64_t grain) {
      return std::min(side, CeilDiv(CeilDiv(side, grain), t) * grain);
    };
    constexpr std::int64_t kUnroll = 4;  // the register kernels' k steps a pass
    const std::int64_t depth_grain = amx_ ? kAmxDepth : kUnroll;
    const std::int64_t m = split_m ? share(p_.m, row_grain_) : p_.m;
    const std::int64_t n = split_n ? share(p_.n, col_grain_) : p_.n;
    const std::int64_t k = split_k_ ? share(p_.k, depth_grain) : p_.k;
    m_ = CutSide(m, m, c_.mc, c_.mr * row_grain_);
    n_ = CutSide(p_.n, n, c_.nc, width);
    k_ = CutSide(k, k, c_.kc, depth_grain);
    share_b_ = split_m && c_.pack_b;
    row_panels_ = m_.blocks * static_cast<double>(
                                  CeilDiv(static_cast<std::int64_t>(m_.block), c_.mr * row_grain_));
    rows_ = m_.size / row_panels_;
    const std::int64_t whole = n / width, rest = n - whole * width;
    whole_panels_ = static_cast<double>(whole);
    rest_vectors_ = static_cast<double>(CeilDiv(rest, col_grain_));
    rest_masked_ = rest % col_grain_ != 0;
    column_panels_ = whole_panels_ + (rest > 0 ? 1 : 0);
    vectors_ = whole_panels_ * c_.nr + rest_vectors_;
  }

  // One k step of one tile; `vectors` are 16-wide tiles for AMX.
  double StepCycles(double rows, double vectors) const {
    if (amx_) {
      constexpr double kTileFlops = 2.0 * kAmxSide * kAmxSide * kAmxDepth;
      const double tiles = std::ceil(rows / static_cast<double>(kAmxSide));
      return std::max({tiles * vectors * kTileFlops / d_.amx_flops,
                       (tiles + vectors) * kTileLoadCycles, kTileLatency});
    }
    // GCC folds the loads of B into the FMAs of so few rows: each row then loads its vectors again.
    constexpr double kFoldedRows = 3;
    const double lines = amx_ || c_.pack_b ? 1 : LinesOfVector(d_, p_.LeadingB(), kFloat);
    const double loads = rows + vectors * lines * (rows <= kFoldedRows ? rows : 1);
    return std::max({rows * vectors / d_.ports, loads / kLoadsPerCycle, d_.fma_latency});
  }

  // Share of the row panels with an odd number of rows: balanced ones have r or r + 1.
  double OddShare() const {
    const double low = std::floor(rows_), more = rows_ - low;
    return static_cast<std::int64_t>(low) % 2 == 1 ? 1 - more : more;
  }

  void Multiply(Parts& parts) const {
    const double steps = whole_panels_ * StepCycles(rows_, c_.nr) +
                         (rest_vectors_ > 0 ? StepCycles(rows_, rest_vectors_) : 0);
    const bool rows_of_a = !amx_ && !c_.pack_a && !p_.a_transposed();
    const double odd = rows_of_a ? 1 + (costs_.odd_rows - 1) * OddShare() : 1;
    const double depth = k_.blocks * std::ceil(k_.block / static_cast<double>(depth_));
    parts.multiply = depth * row_panels_ * steps * odd / costs_.issue_share;
    const bool plain_store =
        p_.epilogue == Epilogue::kNone && !(amx_ && p_.dtype_out == DType::kBf16);
    const double plain = !plain_store ? 0 : rest_masked_ ? whole_panels_ * c_.nr : vectors_;
    const double finish = amx_ ? costs_.amx_store_cycles : costs_.masked_vector_cycles;
    const double store = costs_.store_vector_cycles * LinesOfVector(d_, p_.LeadingC(), kFloat);
    parts.overhead = row_panels_ * k_.blocks *
                     (column_panels_ * costs_.tile_cycles +
                      rows_ * (plain * store + (vectors_ - plain) * finish));
  }

  // Instructions of packing k × outer values in `panels` panels.
  double PackCycles(bool along, double outer, double panels) const {
    const double values = outer / panels;
    if (amx_) return k_.size * outer * costs_.amx_pack_cycles;
    if (along)
      return k_.size * panels *
             (costs_.copy_row_cycles + values / d_.lanes * costs_.copy_vector_cycles);
    constexpr double kTransposeRows = 4;  // pack.cc transposes groups of at least four stored rows
    return k_.size * outer *
           (values < kTransposeRows ? costs_.scalar_cycles : costs_.transpose_cycles);
  }

  void Packing(const Home& home, Parts& parts) const {
    if (c_.pack_b) {
      const bool along = !p_.b_transposed();
      const double runs = along ? k_.size * column_panels_ : n_.size * k_.blocks;
      const Cost from = home.Read(k_.size * n_.size * stored_, runs, costs_);
      const double cycles = PackCycles(along, n_.size, column_panels_) + from.near + from.far;
      parts.pack_b =
          share_b_ ? cycles * std::ceil(column_panels_ / threads_) / column_panels_ : cycles;
    }
    // An unpacked B has its last, partial panel packed, by every thread for itself.
    if (!c_.pack_b && rest_masked_ && !amx_) {
      const double columns = n_.size - whole_panels_ * c_.nr * d_.lanes;
      const Cost from = home.Read(k_.size * columns * stored_, k_.size, costs_);
      parts.pack_b = PackCycles(true, columns, 1) + from.near + from.far;
    }
    if (c_.pack_a) {
      const bool along = p_.a_transposed();
      const double runs = along ? k_.size * row_panels_ : m_.size * k_.blocks;
      const Cost from = home.Read(m_.size * k_.size * stored_, runs, costs_);
      parts.pack_a = (c_.loop_n_outer ? n_.blocks : 1) *
                     (PackCycles(along, m_.size, row_panels_) + from.near + from.far);
    }
  }

  // `row` bytes of each of `count` stored rows make a panel.
  static void Strided(std::int64_t stride, double row, double count, Panel& panel) {
    // The greatest power of two that divides the stride, at most a page.
    const double step = static_cast<double>(std::min(stride & -stride, kPageBytes));
    panel.sets = std::min(1.0, std::max(row, kLineBytes) / step);
    const bool dense = row >= static_cast<double>(stride);
    panel.runs = panel.panels * (dense ? 1 : count);
    panel.narrow = !dense && row <= kLineBytes ? 1 : 0;
    panel.pages =
        count * std::min(1.0, static_cast<double>(stride) / static_cast<double>(kPageBytes));
  }

  std::int64_t StoredBytes(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(stored_);
  }

  Panel PanelA() const {
    Panel a;
    const double element = c_.pack_a ? packed_ : stored_;
    a.all = m_.size * k_.size * element;
    a.bytes = rows_ * k_.block * element;
    a.block = m_.block * k_.block * element;
    a.reads = column_panels_;
    a.firsts = c_.loop_n_outer ? n_.blocks : 1;
    a.panels = row_panels_ * k_.blocks;
    a.packed = c_.pack_a;
    if (!a.packed)
      Strided(StoredBytes(p_.LeadingA()), (p_.a_transposed() ? rows_ : k_.block) * element,
              p_.a_transposed() ? k_.block : rows_, a);
    return a;
  }

  Panel PanelB() const {
    Panel b;
    const double width = n_.size / column_panels_;
    const double element = c_.pack_b ? packed_ : stored_;
    b.all = k_.size * n_.size * element;
    b.bytes = width * k_.block * element;
    b.block = n_.block * k_.block * element;
    b.reads = row_panels_;
    b.firsts = m_.blocks;
    b.panels = column_panels_ * k_.blocks;
    b.packed = c_.pack_b;
    if (!b.packed) Strided(StoredBytes(p_.LeadingB()), width * element, k_.block, b);
    return b;
  }

  // Bytes of a panel that are not in L1, from where their block lies.
  Cost Touch(const Home& home, const Panel& panel, double passes, double held) const {
    const double bytes = panel.all * passes, runs = panel.runs * passes;
    Cost cost;
    cost.near = held * (bytes * d_.read[kL2] + runs * costs_.start_near * d_.line[kL2]);
    if (panel.packed) {
      cost.far = (1 - held) * bytes * home.SharedRead();
    } else {
      // Prefetchers fetch lines in pairs. The second line of a narrow run is the next panel's,
      // which comes to it in time only if the whole block stays in L2.
      const double waste = panel.narrow * (1 - panel.block_held);
      cost.Add(home.Read((1 - held) * bytes * (1 + waste),
                         (1 - held) * runs * (1 - panel.narrow * panel.block_held / 2), costs_));
    }
    return cost;
  }

  void Streaming(const Home& home, Parts& parts) const {
    Panel a = PanelA(), b = PanelB();
    a.block_held = Held(d_.capacity[kL2] * costs_.usable_l2, a.block);
    b.block_held = Held(d_.capacity[kL2] * costs_.usable_l2, b.block);
    const Panel& stays = c_.loop_n_outer ? b : a;
    const Panel& moves = c_.loop_n_outer ? a : b;
    const double l1 = d_.capacity[kL1] * costs_.usable_l1;
    const double l2 = d_.capacity[kL2] * costs_.usable_l2;
    const double stays_in_l1 = Held(l1 * stays.sets, stays.bytes + moves.bytes);
    const double moves_in_l1 =
        Held(l1 * std::min(stays.sets, moves.sets), moves.block + stays.bytes);
    const double block_in_l2 = Held(l2, moves.block + 2 * stays.bytes);

    // A packed block was written just before its first use, and is in L2 as far as it fits.
    Cost cost = Touch(home, stays, stays.firsts, stays.packed ? Held(l2, stays.block) : 0);
    cost.Add(Touch(home, moves, moves.firsts, moves.packed ? block_in_l2 : 0));
    // What another core packed comes from there.
    if (share_b_)
      cost.far += b.all / kLineBytes * (1 - 1 / threads_) * costs_.foreign_share * d_.transfer;
    const double stays_again = std::max(0.0, stays.reads - stays.firsts) * (1 - stays_in_l1);
    const double moves_again = std::max(0.0, moves.reads - moves.firsts) * (1 - moves_in_l1);
    cost.Add(Touch(home, stays, stays_again, 1));
    cost.Add(Touch(home, moves, moves_again, block_in_l2));
    double pages = 0;
    if (a.pages > kTlbPages) pages += a.pages * a.panels * a.reads;
    if (b.pages > kTlbPages) pages += b.pages * b.panels * b.reads;

    // A vector of B that comes late holds up the FMAs of all rows in the scheduler.
    const double late =
        std::min(1.0, costs_.late_share * std::min(rows_, static_cast<double>(c_.mr)));
    const double near = Exposed(parts.multiply, cost.near, late);
    const double far = Exposed(parts.multiply + near, cost.far, costs_.exposed_far);
    parts.stream = near + far + pages * costs_.page_cycles;
  }

  void Storing(const Home& home, Parts& parts) const {
    const double again = k_.blocks - 1;
    const double bytes = m_.size * n_.size * (split_k_ ? kSum : SizeOf(p_.dtype_out));
    if (split_k_) {
      const double held = Held(d_.capacity[kL2] * costs_.usable_l2, bytes);
      Hide(bytes * (1 + again) * (held * d_.write[kL2] + (1 - held) * home.SharedWrite()), parts);
      return;
    }
    // Every tile begins a run in each of its rows; along rows (N inside) it goes on where the last
    // tile ended.
    const double rows_of_tiles = m_.size * column_panels_;
    const double runs =
        c_.loop_n_outer && column_panels_ > 1 ? rows_of_tiles : rows_of_tiles * costs_.row_of_tile;
    const Cost back = home.Read(bytes * again, 0, costs_);
    // Where threads share out columns, prefetchers of one run over the border into the other's in
    // every row.
    if (threads_ > 1 && c_.split == GemmConfig::Split::kN)
      parts.barrier += costs_.border_share * m_.size * k_.blocks * d_.transfer;
    Hide((1 + again) * home.Write(bytes, runs, costs_) + back.near + back.far, parts);
  }

  // Stores drain behind the next tile's steps.
  void Hide(double cycles, Parts& parts) const {
    parts.store =
        Exposed(parts.multiply + parts.overhead + parts.stream, cycles, costs_.exposed_store);
  }

  const Machine& d_;
  const Problem& p_;
  const GemmConfig& c_;
  const KernelCosts& costs_;
  const double threads_;
  const bool amx_;
  const std::int64_t row_grain_, col_grain_,
      depth_;                     // elements of a tile's unit of rows, columns, k
  const double stored_, packed_;  // bytes of an element of A and B
  bool split_k_ = false, share_b_ = false, rest_masked_ = false;
  Cut m_, n_, k_;
  double row_panels_ = 0, rows_ = 0, column_panels_ = 0, whole_panels_ = 0, rest_vectors_ = 0;
  double vectors_ = 0;
};

}  // namespace

Parts PriceBlocked(const Machine& machine, const Problem& problem, const GemmConfig& config,
                   const KernelCosts& costs) {
  return BlockedPricer(machine, problem, config, costs).Run();
}

}  // namespace gnomon::cpu
