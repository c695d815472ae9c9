// The register-tile kernels under the loop nest of run_blocked.h: packing into fp32 panels, and one
// tile of C.
//
// Panels of A hold mr rows (fewer where rows are balanced), panels of B nr vectors of columns. A
// can be read where it lies in either layout, B only with its rows along N, and the last, partial
// panel of an unpacked B is packed. bf16 is widened while it is packed. Not here: rounding to bf16,
// which Finish does from fp32 sums.

#include "gnomon/families/cpu/kernel.h"
#include "gnomon/families/cpu/pack.h"
#include "gnomon/families/cpu/run_blocked.h"

namespace gnomon::cpu {
namespace {

constexpr std::int64_t kCacheLine = 64;

// Packed A, and A stored transposed, have contiguous rows.
const TileKernels& KernelsOf(const Job& job) {
  return job.config.pack_a || job.problem.a_transposed() ? PanelTileKernels() : RowTileKernels();
}

// Bytes of each buffer.
struct Buffers {
  Buffers(const Job& job, const Plan& plan) {
    const auto floats = [](std::int64_t count) { return RoundUp(count * 4, kCacheLine); };
    const std::int64_t widest = std::max<std::int64_t>(plan.panel.cols, plan.panel.rows);
    b = job.config.pack_b ? floats(plan.kc * plan.b_cols) : 0;
    edge = job.config.pack_b ? 0 : floats(plan.kc * plan.panel.cols);
    a = job.config.pack_a ? floats(plan.kc * plan.mc) : 0;
    wide = job.bf16_in() ? floats(plan.kc * widest) : 0;
  }
  std::int64_t b, edge, a, wide;
};

class TileWorker {
 public:
  TileWorker(const Job& job, const Plan& plan, Team team, char* shared, char* own)
      : job_(job), p_(job.problem), plan_(plan), kernels_(KernelsOf(job)), team_(team) {
    const Buffers size(job, plan);
    const auto take = [&](std::int64_t bytes) {
      float* at = reinterpret_cast<float*>(own);
      own += bytes;
      return at;
    };
    packed_b_ = plan.share_b ? reinterpret_cast<float*>(shared) : take(size.b);
    packed_a_ = take(size.a);
    edge_b_ = take(size.edge);
    wide_ = take(size.wide);
  }

  void PackA(Range m, Range k) {
    if (!job_.config.pack_a) return;
    ForEachRowPanel(m, plan_.panel, [&](Range rows) {
      PackPanel(job_.a, p_.LeadingA(), p_.a_transposed(), rows, k, rows.size(),
                packed_a_ + (rows.begin - m.begin) * k.size());
    });
  }

  void PackB(Range n, Range k) {
    if (!job_.config.pack_b) {
      const std::int64_t edge = n.size() % plan_.panel.cols;
      if (edge % kernels_.lanes != 0) PackColumns({n.end - edge, n.end}, k, edge_b_);
      return;
    }
    if (plan_.share_b && packed_before_) team_.Barrier();  // all are done with the block before
    packed_before_ = true;
    const std::int64_t panels = CeilDiv(n.size(), plan_.panel.cols);
    const Range mine = plan_.share_b ? Share(panels, 1, team_.rank, team_.size) : Range{0, panels};
    for (std::int64_t q = mine.begin; q < mine.end; ++q) {
      const std::int64_t j = n.begin + q * plan_.panel.cols;
      PackColumns({j, std::min(j + plan_.panel.cols, n.end)}, k,
                  packed_b_ + q * plan_.panel.cols * k.size());
    }
    if (plan_.share_b) team_.Barrier();
  }

  void Tile(const TilePlace& at, const Target& target) const {
    TileArgs args;
    args.cols = at.cols.size();
    const std::int64_t vectors = CeilDiv(args.cols, kernels_.lanes);
    args.k = at.k.size();
    LocateA(at, args);
    LocateB(at, vectors, args);
    args.c = static_cast<float*>(target.c) + (at.rows.begin - target.first_row) * target.stride +
             at.cols.begin;
    args.c_stride = target.stride;
    args.accumulate = !at.first;
    if (at.last) {
      args.bias = target.bias == nullptr ? nullptr : target.bias + at.cols.begin;
      args.relu = target.relu;
    }
    kernels_.kernel[static_cast<size_t>(at.rows.size())][static_cast<size_t>(vectors)](args);
  }

 private:
  void LocateA(const TilePlace& at, TileArgs& args) const {
    if (job_.config.pack_a) {
      args.a = packed_a_ + (at.rows.begin - at.m.begin) * args.k;
      args.a_stride = at.rows.size();
      return;
    }
    args.a_stride = p_.LeadingA();
    args.a = static_cast<const float*>(job_.a) + (p_.a_transposed()
                                                      ? at.k.begin * args.a_stride + at.rows.begin
                                                      : at.rows.begin * args.a_stride + at.k.begin);
  }

  void LocateB(const TilePlace& at, std::int64_t vectors, TileArgs& args) const {
    args.b_stride = vectors * kernels_.lanes;
    if (job_.config.pack_b) {
      args.b = packed_b_ + (at.cols.begin - at.n.begin) * args.k;
    } else if (args.cols % kernels_.lanes != 0) {
      args.b = edge_b_;
    } else {
      args.b_stride = p_.LeadingB();
      args.b = static_cast<const float*>(job_.b) + at.k.begin * args.b_stride + at.cols.begin;
    }
  }

  void PackColumns(Range cols, Range k, float* to) {
    PackPanel(job_.b, p_.LeadingB(), !p_.b_transposed(), cols, k,
              RoundUp(cols.size(), kernels_.lanes), to);
  }

  // `along`: stored rows run along the panel's outer side; otherwise along k.
  void PackPanel(const void* source, std::int64_t stride, bool along, Range outer, Range k,
                 std::int64_t width, float* to) {
    const std::int64_t first =
        along ? k.begin * stride + outer.begin : outer.begin * stride + k.begin;
    PanelArgs args = {nullptr, stride, k.size(), outer.size(), width, to};
    if (job_.bf16_in()) {
      const std::int64_t rows = along ? k.size() : outer.size();
      args.stride = along ? outer.size() : k.size();
      Promote(static_cast<const std::uint16_t*>(source) + first, stride, rows, args.stride, wide_);
      args.source = wide_;
    } else {
      args.source = static_cast<const float*>(source) + first;
    }
    if (along) {
      PackCopy(args);
    } else {
      PackTranspose(args);
    }
  }

  const Job& job_;
  const Problem& p_;
  const Plan& plan_;
  const TileKernels& kernels_;
  Team team_;
  bool packed_before_ = false;
  float* packed_b_ = nullptr;
  float* packed_a_ = nullptr;
  float* edge_b_ = nullptr;
  float* wide_ = nullptr;
};

Plan PlanOf(const Job& job, std::int64_t team_size) {
  PanelShape panel;
  panel.rows = job.config.mr;
  panel.col_grain = KernelsOf(job).lanes;
  panel.cols = job.config.nr * panel.col_grain;
  panel.k_grain = 4;  // the kernels' unrolling
  return MakePlan(job, panel, team_size);
}

std::int64_t SharedB(const Job& job, const Plan& plan) {
  return plan.share_b ? Buffers(job, plan).b : 0;
}

}  // namespace

WorkspaceSize TileWorkspace(const Job& job, std::int64_t team_size) {
  const Plan plan = PlanOf(job, team_size);
  const Buffers size(job, plan);
  const std::int64_t sums = plan.sums_size * 4 * (plan.split_k ? team_size : 1);
  return {SharedB(job, plan) + sums, (plan.share_b ? 0 : size.b) + size.a + size.edge + size.wide};
}

void RunTile(const Job& job, Team team, Workspace work) {
  const Plan plan = PlanOf(job, team.size);
  TileWorker worker(job, plan, team, work.shared, work.own);
  RunBlocked(job, plan, team, reinterpret_cast<float*>(work.shared + SharedB(job, plan)), worker);
}

}  // namespace gnomon::cpu
