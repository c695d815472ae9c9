#pragma once

/// The GEMM kernel of kinds tma and copy. A CTA has a producer warpgroup, which fills a ring of
/// shared memory stages with A and B of one k step each, and one or two consumer warpgroups, which
/// multiply what is in a stage (wgmma), free it, and store their tile. CTAs go from tile to tile as
/// the Schedule says; those of a cluster take neighbouring tiles and share A or B by multicast.
///
///   full[s]   a stage holds its operands: TMA counts the bytes; copying threads arrive
///   empty[s]  every consumer warp that reads the stage (of all CTAs that share it) is done with it
///   turn[w]   consumers take turns: warpgroup w may multiply

#include "gnomon/families/cuda/copy_loader.cuh"
#include "gnomon/families/cuda/epilogue.cuh"

namespace gnomon::cuda {

/// A row of kernel_table.h for one element type and layout. kAOuter, kBOuter: stored with K as the
/// outer dimension (A of layouts t., B of layouts .n).
template <class ElementType, bool kAOuterValue, bool kBOuterValue, bool kCopyValue, int kTileMValue,
          int kTileNValue, Consumers kConsumersValue, int kClusterMValue, int kClusterNValue>
struct Instance {
  using Element = ElementType;
  static constexpr bool kAOuter = kAOuterValue, kBOuter = kBOuterValue, kCopy = kCopyValue;
  static constexpr int kTileM = kTileMValue, kTileN = kTileNValue;
  static constexpr int kTileK = kStepBytes / sizeof(Element);
  static constexpr bool kTurns = kConsumersValue == Consumers::kTurns;
  static constexpr int kWarpgroups = ConsumersOf(kConsumersValue);
  static constexpr int kClusterM = kClusterMValue, kClusterN = kClusterNValue;
  static constexpr int kCluster = kClusterM * kClusterN;
  static constexpr int kStages = StagesOf(kCopy, kTileM, kTileN, kConsumersValue, kAOuter, kBOuter);
  static constexpr int kThreads = (1 + kWarpgroups) * kWarpgroup;

  static constexpr int kRows = kTurns ? kTileM : kTileM / kWarpgroups;  // of a warpgroup
  static constexpr int kBlocks = kRows / kWarpgroupRows;
  static constexpr int kStageBytes = StageBytes(kTileM, kTileN, kAOuter, kBOuter);
  static constexpr int kSideBytes = kCopy ? SideBytes(kTileM, kTileN, kAOuter, kBOuter) : 0;
  static constexpr int kBoxBytes = 64 * kStepBytes;  // 64 rows, K outermost: 64 of K
  static constexpr int kBytesA = StageBytes(kTileM, 0, kAOuter, false);
  static constexpr int kShared = kSwizzleAtom + kStages * (kStageBytes + kSideBytes) +
                                 kWarpgroups * kStagingBytes + kBarrierBytes;

  // Registers of a thread after the roles part; 504 of 512 for three warpgroups.
  static constexpr bool kMovesRegisters = kWarpgroups == 2;
  static constexpr int kProducerRegisters = kCopy ? 104 : 40;
  static constexpr int kConsumerRegisters = kCopy ? 200 : 232;

  static_assert(kRows % kWarpgroupRows == 0 && kBlocks * kTileN <= 256, "accumulators");
  static_assert(kStages >= 2 && kShared <= kSharedBytes, "shared memory");
  static_assert((!kAOuter && !kBOuter) || sizeof(Element) == 2,
                "wgmma: K innermost but for 16 bits");
  static_assert(!kCopy || kCluster == 1, "only TMA can multicast");
};

/// Position in the ring; `parity` of the phase that is to complete.
template <int kStages>
struct Ring {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void Next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ void Skip(int steps) {
    const int to = stage + steps, rounds = to / kStages;
    stage = to - rounds * kStages;
    parity ^= static_cast<std::uint32_t>(rounds) & 1;
  }
};

/// Where a tile of a cluster stands in C.
struct TileOrigin {
  int product = 0;
  std::int64_t row = 0, rows = 0, column = 0;  ///< rows: end of the product's (or group's) rows
};

template <class I>
__device__ inline TileOrigin OriginOf(const KernelArguments& arguments, int tile, int rank) {
  TilePlace place = PlaceOf(arguments.schedule, tile);
  TileOrigin origin;
  origin.product = place.product;
  origin.rows = arguments.m;
  std::int64_t first = 0;
  const Groups& groups = arguments.groups;
  if (groups.count > 0) {
    int group = 0;
    for (int step = kMostGroups; step > 0; step /= 2)
      if (group + step < groups.count && groups.first_tile[group + step] <= place.m) group += step;
    origin.product = group;
    first = groups.first_row[group];
    origin.rows = groups.first_row[group + 1];
    place.m -= groups.first_tile[group];
  }
  const int rank_m = rank % I::kClusterM, rank_n = rank / I::kClusterM;
  origin.row = first + (static_cast<std::int64_t>(place.m) * I::kClusterM + rank_m) * I::kTileM;
  origin.column = (static_cast<std::int64_t>(place.n) * I::kClusterN + rank_n) * I::kTileN;
  return origin;
}

/// Shared memory of a CTA: stages, staging of C, barriers.
template <class I>
struct SharedPlan {
  std::uint32_t stages, staging, barriers, sides;
  __device__ explicit SharedPlan(std::uint32_t start)
      : stages((start + kSwizzleAtom - 1) & ~(kSwizzleAtom - 1u)),
        staging(stages + I::kStages * I::kStageBytes),
        barriers(staging + I::kWarpgroups * kStagingBytes),
        sides(barriers + kBarrierBytes) {}
  __device__ std::uint32_t A(int stage) const { return stages + stage * I::kStageBytes; }
  __device__ std::uint32_t B(int stage) const { return A(stage) + I::kBytesA; }
  __device__ std::uint32_t SideOfA(int stage) const { return sides + stage * I::kSideBytes; }
  __device__ std::uint32_t SideOfB(int stage) const {
    return SideOfA(stage) + I::kBytesA / kStepBytes * 4;
  }
  __device__ std::uint32_t Full(int stage) const { return barriers + 8 * stage; }
  __device__ std::uint32_t Empty(int stage) const { return barriers + 8 * (I::kStages + stage); }
  __device__ std::uint32_t Turn(int warpgroup) const {
    return barriers + 8 * (2 * I::kStages + warpgroup);
  }
  __device__ std::uint32_t Flag(int warpgroup) const {
    return barriers + 8 * (2 * I::kStages + 2) + 4 * warpgroup;
  }
  __device__ std::uint32_t Staging(int warpgroup) const {
    return staging + warpgroup * kStagingBytes;
  }
};

template <class I>
__device__ inline void InitBarriers(const SharedPlan<I>& shared) {
  constexpr int kWarps = 4 * (I::kTurns ? 1 : I::kWarpgroups);
  for (int stage = 0; stage < I::kStages; ++stage) {
    InitBarrier(shared.Full(stage), I::kCopy ? kWarpgroup : 1);
    InitBarrier(shared.Empty(stage), kWarps * I::kCluster);
  }
  for (int w = 0; w < 2; ++w) InitBarrier(shared.Turn(w), 4);
  FenceBarrierInit();
}

/// Rows of an operand's share that this CTA loads for the cluster, as TMA boxes into a stage.
/// kParts CTAs share the operand; this one loads part `part` of it and sends it to all in `mask`.
template <bool kOuter, int kRows, int kTileK, int kParts>
__device__ inline void LoadOperand(std::uint32_t to, const CUtensorMap* map, std::uint32_t full,
                                   std::int64_t row, int k, int product, int part,
                                   std::uint16_t mask) {
  const auto load = [&](std::uint32_t address, int x, int y) {
    if constexpr (kParts == 1) {
      LoadBox(address, map, full, x, y, product);
    } else {
      LoadBoxToAll(address, map, full, mask, x, y, product);
    }
  };
  if constexpr (kOuter) {
    constexpr int kDepth = kTileK / kParts;
#pragma unroll
    for (int box = 0; box < (kRows + 63) / 64; ++box)
      load(to + box * 64 * kStepBytes + part * kDepth * kStepBytes,
           static_cast<int>(row) + box * 64, k + part * kDepth);
  } else {
    constexpr int kShare = kRows / kParts;
    load(to + part * kShare * kStepBytes, k, static_cast<int>(row) + part * kShare);
  }
}

template <class I>
__device__ inline void ProduceByTma(const KernelArguments& arguments, const SharedPlan<I>& shared,
                                    int worker, int rank) {
  constexpr int kBytes = I::kStageBytes;
  // CTAs in a row of the cluster (same rank_m) share A; those in a column share B.
  const int rank_m = rank % I::kClusterM, rank_n = rank / I::kClusterM;
  std::uint16_t mask_a = 0, mask_b = 0;
  for (int n = 0; n < I::kClusterN; ++n) mask_a |= 1u << (rank_m + n * I::kClusterM);
  for (int m = 0; m < I::kClusterM; ++m) mask_b |= 1u << (m + rank_n * I::kClusterM);
  Walk walk(arguments.schedule, worker);
  Ring<I::kStages> ring;
  Unit unit;
  while (walk.Next(unit)) {
    const TileOrigin origin = OriginOf<I>(arguments, unit.tile, rank);
    const int product_a = arguments.groups.count > 0 ? 0 : origin.product;
    for (int step = unit.first; step < unit.last; ++step) {
      Wait(shared.Empty(ring.stage), ring.parity ^ 1);
      const std::uint32_t full = shared.Full(ring.stage);
      ExpectBytes(full, kBytes);
      const int k = step * I::kTileK;
      LoadOperand<I::kAOuter, I::kTileM, I::kTileK, I::kClusterN>(
          shared.A(ring.stage), &arguments.map_a, full, origin.row, k, product_a, rank_n, mask_a);
      LoadOperand<I::kBOuter, I::kTileN, I::kTileK, I::kClusterM>(
          shared.B(ring.stage), &arguments.map_b, full, origin.column, k, origin.product, rank_m,
          mask_b);
      ring.Next();
    }
  }
}

/// Copies of the last kLag steps are under way while the next one starts; what Start says of a step
/// is kept for its Finish.
template <class I>
class CopyProducer {
 public:
  __device__ CopyProducer(const KernelArguments& arguments, const SharedPlan<I>& shared, int thread)
      : arguments_(arguments), shared_(shared), thread_(thread) {}

  __device__ void Run(int worker) {
    Walk walk(arguments_.schedule, worker);
    Ring<I::kStages> ring;
    Unit unit;
    const Matrix &a = arguments_.a, &b = arguments_.b;
    while (walk.Next(unit)) {
      const TileOrigin origin = OriginOf<I>(arguments_, unit.tile, 0);
      const Element* const from_a = static_cast<const Element*>(a.data) +
                                    (arguments_.groups.count > 0 ? 0 : origin.product) * a.product;
      const Element* const from_b =
          static_cast<const Element*>(b.data) + origin.product * b.product;
      for (int step = unit.first; step < unit.last; ++step) {
        Wait(shared_.Empty(ring.stage), ring.parity ^ 1);
        const std::int64_t k = static_cast<std::int64_t>(step) * I::kTileK;
        const std::uint32_t note_a =
            CopyA::Start(shared_.A(ring.stage), shared_.SideOfA(ring.stage), from_a, a.leading,
                         origin.row, origin.rows, k, arguments_.k, a.vector_bytes, thread_);
        const std::uint32_t note_b = CopyB::Start(
            shared_.B(ring.stage), shared_.SideOfB(ring.stage), from_b, b.leading, origin.column,
            arguments_.output.n, k, arguments_.k, b.vector_bytes, thread_);
        const std::uint32_t oldest = Push(note_a | note_b << 16);
        if (++under_way_ > kLag) Finish(oldest);
        ring.Next();
      }
    }
#pragma unroll 1
    for (int left = kLag; left > 0; --left) {
      const std::uint32_t oldest = Push(0);
      if (under_way_ >= left) Finish(oldest);
    }
  }

 private:
  using Element = typename I::Element;
  using CopyA = OperandCopy<Element, I::kAOuter, I::kTileM>;
  using CopyB = OperandCopy<Element, I::kBOuter, I::kTileN>;
  static constexpr int kLag = I::kStages > 2 ? I::kStages - 2 : 1;

  __device__ std::uint32_t Push(std::uint32_t note) {
    const std::uint32_t oldest = notes_[0];
#pragma unroll
    for (int i = 0; i + 1 < kLag; ++i) notes_[i] = notes_[i + 1];
    notes_[kLag - 1] = note;
    CommitCopies();
    return oldest;
  }

  __device__ void Finish(std::uint32_t note) {
    WaitCopies<kLag>();
    __syncwarp();
    const Matrix &a = arguments_.a, &b = arguments_.b;
    CopyA::Finish(shared_.A(behind_.stage), shared_.SideOfA(behind_.stage), a.leading,
                  a.vector_bytes, note & 0xFFFF, thread_);
    CopyB::Finish(shared_.B(behind_.stage), shared_.SideOfB(behind_.stage), b.leading,
                  b.vector_bytes, note >> 16, thread_);
    FenceAsync();
    Arrive(shared_.Full(behind_.stage));
    behind_.Next();
    --under_way_;
  }

  const KernelArguments& arguments_;
  const SharedPlan<I>& shared_;
  const int thread_;
  Ring<I::kStages> behind_;
  std::uint32_t notes_[kLag] = {};  ///< of the steps under way, oldest first
  int under_way_ = 0;
};

/// All wgmmas of one k step: kBlocks blocks of 64 rows by the tile's columns, 32 bytes of K each.
/// `a`, `b`: descriptors of the operands in the stage. An address is a descriptor's low field in
/// units of 16 bytes, so that moving on is an addition.
template <class I>
__device__ inline void MultiplyStage(float (&d)[I::kBlocks][I::kTileN / 2], std::uint64_t a,
                                     std::uint64_t b, int add) {
  constexpr int kInstructions = kStepBytes / 32;
  // K outermost: 16 rows of 128 bytes a step of K; else 32 bytes within the swizzled row.
  constexpr int kAdvanceA = I::kAOuter ? 16 * kStepBytes : 32;
  constexpr int kAdvanceB = I::kBOuter ? 16 * kStepBytes : 32;
  constexpr int kNextBlock = I::kAOuter ? I::kBoxBytes : kWarpgroupRows * kStepBytes;
#pragma unroll
  for (int k = 0; k < kInstructions; ++k) {
#pragma unroll
    for (int i = 0; i < I::kBlocks; ++i) {
      Multiply<typename I::Element, I::kTileN, I::kAOuter, I::kBOuter>::Run(
          d[i], a + (i * kNextBlock + k * kAdvanceA) / 16, b + k * kAdvanceB / 16, add | (k > 0));
    }
  }
}

/// Sums over K of a stage of A, K outermost: thread t adds rows 2·(t % 32) and the next of every
/// block, over a quarter of the stage's K.
template <class I>
__device__ inline void AddRowSums(float (&sums)[I::kBlocks][2], std::uint32_t a, int thread) {
  const int pair = thread % 32, quarter = thread / 32;
#pragma unroll
  for (int i = 0; i < I::kBlocks; ++i) {
#pragma unroll
    for (int k = 0; k < I::kTileK / 4; ++k) {
      const int line = quarter * (I::kTileK / 4) + k;
      const std::uint32_t word = LoadShared4(a + i * I::kBoxBytes + line * kStepBytes +
                                             (((pair / 4) ^ (line & 7)) << 4) + (pair % 4) * 4);
      if constexpr (std::is_same_v<typename I::Element, __half>) {
        const float2 v = __half22float2(reinterpret_cast<const __half2&>(word));
        sums[i][0] += v.x;
        sums[i][1] += v.y;
      } else {
        sums[i][0] += __uint_as_float(word << 16);
        sums[i][1] += __uint_as_float(word & 0xFFFF0000u);
      }
    }
  }
}

/// A consumer warpgroup: multiplies and stores its share of every unit.
template <class I>
class Consumer {
 public:
  __device__ Consumer(const KernelArguments& arguments, const SharedPlan<I>& shared, int warpgroup,
                      int worker, int rank, int thread)
      : arguments_(arguments),
        shared_(shared),
        warpgroup_(warpgroup),
        worker_(worker),
        rank_(rank),
        thread_(thread) {}

  __device__ void Run() {
    Walk walk(arguments_.schedule, worker_);
    Unit unit;
    int whose = 0;
    std::uint32_t parity = warpgroup_ == 0 ? 1 : 0;
    while (walk.Next(unit)) {
      if constexpr (I::kTurns) {
        const bool mine = whose == warpgroup_;
        whose ^= 1;
        if (!mine) {
          ring_.Skip(unit.last - unit.first);
          continue;
        }
        Wait(shared_.Turn(warpgroup_), parity);
        parity ^= 1;
      }
      const TileOrigin origin = OriginOf<I>(arguments_, unit.tile, rank_);
      summing_ = I::kAOuter && arguments_.output.bias_gradient != nullptr && origin.column == 0;
      MainLoop(unit);
      Finish(unit, origin);
    }
    if (thread_ % 32 == 0) WaitStoresRead<0>();
  }

 private:
  static constexpr int kShare = I::kTurns ? 0 : 1;  // 1: the tile's rows are shared out

  __device__ int FirstBlock() const { return kShare * warpgroup_ * I::kBlocks; }
  __device__ int Barrier() const { return 1 + warpgroup_; }

  __device__ void Free(int stage) {
    if constexpr (I::kAOuter) __syncwarp();  // all lanes have read their sums
    if (thread_ % 32 != 0) return;
    if constexpr (I::kCluster == 1) {
      Arrive(shared_.Empty(stage));
    } else {
#pragma unroll
      for (int rank = 0; rank < I::kCluster; ++rank) ArriveAt(shared_.Empty(stage), rank);
    }
  }

  __device__ void MainLoop(const Unit& unit) {
    constexpr int kBlockBytes = I::kAOuter ? I::kBoxBytes : kWarpgroupRows * kStepBytes;
    const int rows = FirstBlock() * kBlockBytes;
    if constexpr (I::kAOuter) {
#pragma unroll
      for (int i = 0; i < I::kBlocks; ++i) sums_[i][0] = sums_[i][1] = 0;
    }
    const std::uint64_t a = OperandOf(shared_.A(0) + rows, I::kBoxBytes, kSwizzleAtom);
    const std::uint64_t b = OperandOf(shared_.B(0), I::kBoxBytes, kSwizzleAtom);
    int before = 0;
#pragma unroll 1
    for (int step = unit.first; step < unit.last; ++step) {
      const int stage = ring_.stage;
      Wait(shared_.Full(stage), ring_.parity);
      ring_.Next();
      OrderMultiplies();
      const std::uint64_t on = static_cast<std::uint64_t>(stage * (I::kStageBytes / 16));
      MultiplyStage<I>(d_, a + on, b + on, step > unit.first);
      CommitMultiplies();
      if constexpr (I::kAOuter) {
        if (summing_) AddRowSums<I>(sums_, shared_.A(stage) + rows, thread_);
      }
      if (step > unit.first) {
        WaitMultiplies<1>();
        Free(before);
      }
      before = stage;
    }
    if constexpr (I::kTurns) {
      if (thread_ % 32 == 0) Arrive(shared_.Turn(1 - warpgroup_));
    }
    WaitMultiplies<0>();
    Free(before);
  }

  static constexpr int kSums = I::kRows > kWarpgroup ? I::kRows / kWarpgroup : 1;

  /// The quarters' sums of AddRowSums, added in order: thread t has rows t, t + 128, … of the
  /// warpgroup's.
  __device__ void RowSums(float (&sums)[kSums]) {
    const std::uint32_t scratch = shared_.Staging(warpgroup_);
    if (thread_ % 32 == 0) WaitStoresRead<0>();
    SyncThreads(Barrier(), kWarpgroup);
#pragma unroll
    for (int i = 0; i < I::kBlocks; ++i) {
      const int row = i * kWarpgroupRows + 2 * (thread_ % 32);
      StoreShared(scratch + (thread_ / 32 * I::kRows + row) * 4, sums_[i][0], sums_[i][1]);
    }
    SyncThreads(Barrier(), kWarpgroup);
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const int row = thread_ + i * kWarpgroup;
      sums[i] = 0;
#pragma unroll
      for (int quarter = 0; quarter < 4; ++quarter)
        if (row < I::kRows)
          sums[i] += __uint_as_float(LoadShared4(scratch + (quarter * I::kRows + row) * 4));
    }
    SyncThreads(Barrier(), kWarpgroup);
  }

  __device__ void Finish(const Unit& unit, const TileOrigin& origin) {
    const Partials& partials = arguments_.partials;
    const TileShare block{origin.product, origin.row + FirstBlock() * kWarpgroupRows, origin.rows,
                          origin.column};
    float sums[kSums] = {};
    if constexpr (I::kAOuter) {
      if (summing_) RowSums(sums);
    }
    const auto each_row = [&](const auto& what) {
      if (!summing_) return;
#pragma unroll
      for (int i = 0; i < kSums; ++i)
        if (thread_ + i * kWarpgroup < I::kRows) what(i, thread_ + i * kWarpgroup);
    };
    if (unit.parts > 1) {
      WritePart<I::kBlocks, I::kTileN>(Slot(unit.tile, unit.part), FirstBlock(), d_, thread_);
      each_row([&](int i, int row) { __stcg(SlotSum(unit.tile, unit.part) + row, sums[i]); });
      if (!partials.added_here) return;
      const int tile = unit.tile - (arguments_.schedule.stream ? arguments_.schedule.whole : 0);
      unsigned* const counter =
          partials.counters + (tile * I::kCluster + rank_) * 2 + kShare * warpgroup_;
      if (!IsLast(counter, unit.parts, shared_.Flag(warpgroup_), Barrier(), thread_)) return;
#pragma unroll
      for (int i = 0; i < I::kBlocks; ++i)
#pragma unroll
        for (int j = 0; j < I::kTileN / 2; ++j) d_[i][j] = 0;
      each_row([&](int i, int) { sums[i] = 0; });
      for (int part = 0; part < unit.parts; ++part) {
        AddPart<I::kBlocks, I::kTileN>(Slot(unit.tile, part), FirstBlock(), d_, thread_);
        each_row([&](int i, int row) { sums[i] += __ldcg(SlotSum(unit.tile, part) + row); });
      }
    }
    each_row([&](int i, int row) {
      if (block.row + row < block.rows)
        arguments_.output.bias_gradient[origin.product * arguments_.m + block.row + row] = sums[i];
    });
    Store<typename I::Element, I::kBlocks, I::kTileN>(arguments_, block, d_,
                                                      shared_.Staging(warpgroup_), turn_, thread_);
  }

  __device__ float* Slot(int tile, int part) const {
    constexpr std::int64_t kValues = I::kTileM * I::kTileN + I::kTileM;
    const std::int64_t slot = SlotOf(arguments_.schedule, tile, part);
    return arguments_.partials.slots + (slot * I::kCluster + rank_) * kValues;
  }
  __device__ float* SlotSum(int tile, int part) const {
    return Slot(tile, part) + I::kTileM * I::kTileN + FirstBlock() * kWarpgroupRows;
  }

  const KernelArguments& arguments_;
  const SharedPlan<I>& shared_;
  const int warpgroup_, worker_, rank_, thread_;
  Ring<I::kStages> ring_;
  bool summing_ = false;
  std::uint32_t turn_ = 0;  ///< of the two buffers of C
  float sums_[I::kBlocks][2];
  float d_[I::kBlocks][I::kTileN / 2];
};

template <class I>
__global__ void __launch_bounds__(I::kThreads, 1)
    GemmKernel(const __grid_constant__ KernelArguments arguments) {
  extern __shared__ std::uint8_t memory[];
  const SharedPlan<I> shared(SharedAddress(memory));
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int rank = I::kCluster > 1 ? static_cast<int>(ClusterRank()) : 0;
  const int worker = static_cast<int>(blockIdx.x) / I::kCluster;

  if (threadIdx.x == 0) {
    if constexpr (!I::kCopy) {
      PrefetchMap(&arguments.map_a);
      PrefetchMap(&arguments.map_b);
    }
    InitBarriers<I>(shared);
  }
  if constexpr (I::kCluster > 1) {
    SyncCluster();
  } else {
    __syncthreads();
  }
  // The launch of what comes next on the stream may overlap this kernel; and this one's may have
  // overlapped the one before: nothing of global memory is touched before that has ended.
  LetDependentsStart();
  WaitForDependency();

  if (warpgroup == 0) {
    if constexpr (I::kMovesRegisters) LowerRegisters<I::kProducerRegisters>();
    if constexpr (I::kCopy) {
      CopyProducer<I>(arguments, shared, thread).Run(worker);
    } else if (thread == 0) {
      ProduceByTma<I>(arguments, shared, worker, rank);
    }
  } else {
    if constexpr (I::kMovesRegisters) RaiseRegisters<I::kConsumerRegisters>();
    Consumer<I>(arguments, shared, warpgroup - 1, worker, rank, thread).Run();
  }
  // A CTA's shared memory must outlive what others of its cluster still send to it.
  if constexpr (I::kCluster > 1) {
    __syncwarp();
    SyncCluster();
  }
}

}  // namespace gnomon::cuda
