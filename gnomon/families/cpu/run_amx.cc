// bf16 GEMM on AMX tiles under the loop nest of run_blocked.h: packing into tiles, and one block of
// C.
//
// B is always packed. A is read where it lies if its rows run along k, k is a multiple of 32 and
// the rows fill whole tiles; the last, partial row panel is packed with zeros. Whole blocks of fp32
// sums go to memory and come back straight from the tiles; edges, and sums that still need the
// epilogue or rounding, go through a block in L1.

#include "gnomon/families/cpu/amx.h"
#include "gnomon/families/cpu/run_blocked.h"

namespace gnomon::cpu {
namespace {

// Bytes of each buffer. Blocks of k are whole tiles.
struct Buffers {
  Buffers(const Job& job, const Plan& plan) {
    b = 2 * plan.kc * plan.b_cols;
    a = job.config.pack_a ? 2 * plan.kc * plan.mc : 0;
    edge = job.config.pack_a ? 0 : 2 * plan.kc * plan.panel.rows;
  }
  std::int64_t b, a, edge;
};

class AmxWorker {
 public:
  AmxWorker(const Job& job, const Plan& plan, Team team, char* shared, char* own)
      : job_(job), p_(job.problem), plan_(plan), team_(team) {
    const Buffers size(job, plan);
    const auto take = [&](std::int64_t bytes) {
      char* at = own;
      own += bytes;
      return at;
    };
    packed_b_ = plan.share_b ? shared : take(size.b);
    packed_a_ = take(size.a);
    edge_a_ = take(size.edge);
  }

  void PackA(Range m, Range k) {
    ForEachRowPanel(m, plan_.panel, [&](Range rows) {
      if (job_.config.pack_a) {
        PackPanel(rows, k, p_.a_transposed() ? &AmxPackInterleaveTranspose : &AmxPackCopy, job_.a,
                  p_.LeadingA(), p_.a_transposed(),
                  packed_a_ + 2 * (rows.begin - m.begin) * Depth(k));
      } else if (rows.size() % kAmxSide != 0) {
        PackPanel(rows, k, &AmxPackCopy, job_.a, p_.LeadingA(), false, edge_a_);
      }
    });
  }

  void PackB(Range n, Range k) {
    if (plan_.share_b && packed_before_) team_.Barrier();  // all are done with the block before
    packed_before_ = true;
    const std::int64_t panels = CeilDiv(n.size(), plan_.panel.cols);
    const Range mine = plan_.share_b ? Share(panels, 1, team_.rank, team_.size) : Range{0, panels};
    for (std::int64_t q = mine.begin; q < mine.end; ++q) {
      const std::int64_t j = n.begin + q * plan_.panel.cols;
      PackPanel({j, std::min(j + plan_.panel.cols, n.end)}, k,
                p_.b_transposed() ? &AmxPackTranspose : &AmxPackInterleave, job_.b, p_.LeadingB(),
                !p_.b_transposed(), packed_b_ + 2 * (j - n.begin) * Depth(k));
    }
    if (plan_.share_b) team_.Barrier();
  }

  void Tile(const TilePlace& at, const Target& target) const {
    const std::int64_t rows = CeilDiv(at.rows.size(), kAmxSide),
                       cols = CeilDiv(at.cols.size(), kAmxSide);
    const bool whole = at.rows.size() % kAmxSide == 0 && at.cols.size() % kAmxSide == 0;
    const bool finishes = at.last && (target.bf16 || target.relu || target.bias != nullptr);
    const std::int64_t place = (at.rows.begin - target.first_row) * target.stride + at.cols.begin;
    AmxArgs args;
    LocateA(at, rows, args);
    PrefetchA(at);
    args.b = packed_b_ + 2 * (at.cols.begin - at.n.begin) * Depth(at.k);
    args.k_blocks = Depth(at.k) / kAmxDepth;
    if (whole && !finishes) {
      args.out = static_cast<float*>(target.c) + place;
      args.out_stride = target.stride * 4;
      args.in = at.first ? nullptr : args.out;
      args.in_stride = args.out_stride;
      AmxBlock(static_cast<std::int32_t>(rows), static_cast<std::int32_t>(cols), args);
      return;
    }
    alignas(64) float block[kMaxAmxTiles * kAmxSide * kAmxSide];
    AmxStoreArgs store = {block, cols * kAmxSide, at.rows.size(), at.cols.size(), nullptr,
                          false, nullptr,         target.stride,  false};
    args.in_stride = args.out_stride = cols * kAmxSide * 4;
    args.out = block;
    if (!at.first) {
      // Sums so far; only fp32 targets have a second block of k.
      AmxStore({static_cast<const float*>(target.c) + place, target.stride, at.rows.size(),
                at.cols.size(), nullptr, false, block, cols * kAmxSide, false});
      args.in = block;
    }
    AmxBlock(static_cast<std::int32_t>(rows), static_cast<std::int32_t>(cols), args);
    store.c = static_cast<char*>(target.c) + place * (target.bf16 ? 2 : 4);
    store.bf16 = target.bf16;
    if (at.last) {
      store.bias = target.bias == nullptr ? nullptr : target.bias + at.cols.begin;
      store.relu = target.relu;
    }
    AmxStore(store);
  }

 private:
  static std::int64_t Depth(Range k) { return RoundUp(k.size(), kAmxDepth); }

  // The rows that come after the block (or panel) in use, a slice with each panel of columns.
  void PrefetchA(const TilePlace& at) const {
    if (job_.config.pack_a) return;
    const std::int64_t first = at.rows.begin + (plan_.n_outer ? plan_.mc : plan_.panel.rows);
    const std::int64_t last = std::min(first + at.rows.size(), p_.m);
    const Range slice =
        Share(at.k.size(), kAmxDepth, (at.cols.begin - at.n.begin) / plan_.panel.cols,
              CeilDiv(at.n.size(), plan_.panel.cols));
    for (std::int64_t i = first; i < last; ++i) {
      const std::uint16_t* row =
          static_cast<const std::uint16_t*>(job_.a) + i * p_.LeadingA() + at.k.begin;
      for (std::int64_t k = slice.begin; k < slice.end; k += kAmxDepth)
        __builtin_prefetch(row + k, 0, 2);
    }
  }

  void LocateA(const TilePlace& at, std::int64_t row_tiles, AmxArgs& args) const {
    const bool edge = at.rows.size() % kAmxSide != 0;
    if (job_.config.pack_a || edge) {
      args.a =
          job_.config.pack_a ? packed_a_ + 2 * (at.rows.begin - at.m.begin) * Depth(at.k) : edge_a_;
      args.a_stride = 2 * kAmxDepth;
      args.a_tile = kAmxTileBytes;
      args.a_step = row_tiles * kAmxTileBytes;
      return;
    }
    args.a_stride = 2 * p_.LeadingA();
    args.a = static_cast<const char*>(job_.a) + at.rows.begin * args.a_stride + 2 * at.k.begin;
    args.a_tile = kAmxSide * args.a_stride;
    args.a_step = 2 * kAmxDepth;
  }

  // The tiles of a panel: those of one step of k side by side. `along`: stored rows run along the
  // outer side.
  static void PackPanel(Range outer, Range k, void (*pack)(const AmxPackArgs&), const void* source,
                        std::int64_t stride, bool along, char* to) {
    for (std::int64_t kk = k.begin; kk < k.end; kk += kAmxDepth)
      for (std::int64_t i = outer.begin; i < outer.end; i += kAmxSide) {
        AmxPackArgs args;
        args.source =
            static_cast<const std::uint16_t*>(source) + (along ? kk * stride + i : i * stride + kk);
        args.stride = stride;
        args.outer = std::min(kAmxSide, outer.end - i);
        args.k = std::min(kAmxDepth, k.end - kk);
        args.tile = to;
        pack(args);
        to += kAmxTileBytes;
      }
  }

  const Job& job_;
  const Problem& p_;
  const Plan& plan_;
  Team team_;
  bool packed_before_ = false;
  char* packed_b_ = nullptr;
  char* packed_a_ = nullptr;
  char* edge_a_ = nullptr;
};

Plan PlanOf(const Job& job, std::int64_t team_size) {
  PanelShape panel;
  panel.rows = job.config.mr * kAmxSide;
  panel.cols = job.config.nr * kAmxSide;
  panel.row_grain = panel.col_grain = kAmxSide;
  panel.k_grain = kAmxDepth;
  panel.rounds_in_kernel = true;
  return MakePlan(job, panel, team_size);
}

std::int64_t SharedB(const Job& job, const Plan& plan) {
  return plan.share_b ? Buffers(job, plan).b : 0;
}

}  // namespace

WorkspaceSize AmxWorkspace(const Job& job, std::int64_t team_size) {
  const Plan plan = PlanOf(job, team_size);
  const Buffers size(job, plan);
  const std::int64_t sums = plan.sums_size * 4 * (plan.split_k ? team_size : 1);
  return {SharedB(job, plan) + sums, (plan.share_b ? 0 : size.b) + size.a + size.edge};
}

void RunAmx(const Job& job, Team team, Workspace work) {
  const Plan plan = PlanOf(job, team.size);
  const AmxScope scope;
  AmxWorker worker(job, plan, team, work.shared, work.own);
  RunBlocked(job, plan, team, reinterpret_cast<float*>(work.shared + SharedB(job, plan)), worker);
}

}  // namespace gnomon::cpu
