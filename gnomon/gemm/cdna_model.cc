// The time of a grid of workgroups on CDNA.
//
//   time  = start + max₄(units + (1 − hidden_loads)·loads + (1 − hidden_stores)·stores,
//                        loads + stores) + reduction            max₄: a maximum with a round corner
//   units = (n − 1)·pace + alone                                of the busiest unit
//   alone = steps·(busy + exposed) + prologue                   one workgroup that has the unit
//   pace  = max₆(alone / resident, steps·busy)                  residents fill each other's waits
//   busy  = max₄(matrix, LDS reads, L2 → unit)                  cycles of a k step
//   n     = workgroups a unit: ⌈w⌉ and w weighted, as workgroups drift apart; at least 1
//
// The clock is what the load leaves: full matrix utilisation holds the sustained clock, less of it
// a higher one up to boost, and every cycle count runs at it. Operands that are not 16-byte aligned
// load and store narrower; rows whose distance is a multiple of 256 bytes times a power of two
// gather on few of the 16 channels of an XCD's L2. Loads are what L2 misses: the tiles resident on
// one XCD share rows of A and columns of B, the XCDs share through the last-level cache, and of
// what is fetched twice HBM serves the share that this cache cannot hold.
//
// A grouped problem is its products side by side: each has tiles of its own, and its B is read
// once.
//
// Not modelled: TLB misses, the order of tiles beyond "near-square", dirty caches from before.
//
// Entry points: the header's.

#include "gnomon/gemm/cdna_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gnomon/base/text_table.h"

namespace gnomon {
namespace {

// Fitted on the even-hash rows of the measured AMD files, all families together (docs/model.md).
constexpr double kRounding = 0.727;       // weight of ⌈w⌉ against w; 1: workgroups end together
constexpr double kNarrowLoad = 2.26 / 7;  // a 2-byte load costs 1 + 7 of these
constexpr double kNarrowStore = 0.713 / 7;  // the same of a store
constexpr double kConflictWait = 0.271;  // share that conflicts add to the exposed cycles of a step
constexpr double kConflictLoad = 0.382;  // the same, to the bytes a unit gets
// Streamed reads / data sheet: 8×6144×18432 bf16 reads 226 MB in 36 µs after its start on MI355X
// (6.5 of 8 TB/s); BabelStream 4.3 of 5.3 TB/s on MI300X.
constexpr double kReadShare = 0.81;
// Clock under full matrix utilisation / the device file's sustained clock, which was derived from
// the best GEMMs known as if they kept the matrix units busy 94% of the time; by this model's other
// terms they do so less.
constexpr double kClockShare = 1.287;
// Infinity Cache, peak: AMD CDNA 3 white paper. A GEMM gets more of it than the pointer chase or
// plain copy behind the device file's rate: eight XCDs ask for the same lines at about one time.
constexpr double kLlcRate = 17.2e12;
// Bytes a unit gets from L2 in a clock. gfx950: 32 KB k steps of 64×64×128 tiles take 480 ns on
// MI355X; fitted with the rest. Others: the width of the path, CDNA 3 white paper.
constexpr double kLoadRateGfx950 = 46.2, kLoadRate = 64;

constexpr double kLineBytes = 128;   // of L2
constexpr double kVectorBytes = 16;  // widest load and store of a lane
constexpr int kChannels = 16;        // of an XCD's L2, CDNA 3 white paper
constexpr int kChannelBytes = 256;   // consecutive bytes of a channel
constexpr double kWaveLanes = 64, kSimds = 4;
constexpr double kLaneRegisters = 512;   // vector and accumulation registers, gfx90a and later
constexpr double kOtherRegisters = 80;   // operands, addresses, next operands
constexpr double kMostResident = 4;      // more add nothing: measured small tiles do not speed up
constexpr double kSkinnySide = 16;       // tiles this narrow give all waves the other side
constexpr double kAccumulator = 4;       // bytes of a partial sum
constexpr double kLlcForOperands = 0.5;  // the rest holds C and what streams past
constexpr double kLeastUtilisation = 1e-3;
constexpr double kMargin = 1 - 1e-9;  // some dozens of roundings of 2^-53 each are far below

double Square(double x) { return x * x; }
double Cubed(double x) { return x * x * x; }

// std::ceil of what is not negative and below 2^62, without a call.
double CeilOf(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole < x ? whole + 1 : whole;
}

// Maxima with round corners: powers 4 and 6 of the two, three sides.
double Max4(double a, double b, double c = 0) {
  return std::sqrt(std::sqrt(Square(Square(a)) + Square(Square(b)) + Square(Square(c))));
}
double Max6(double a, double b) {
  return std::cbrt(std::sqrt(Square(Cubed(a)) + Square(Cubed(b))));
}

// Clock under a share of matrix utilisation: power is about utilisation × f × V², and V follows f
// closely near the top of the curve. Exponent fitted (see above); its root is cheap.
double ClockUnder(const CdnaMachine& machine, double utilisation) {
  const double u = std::max(utilisation, kLeastUtilisation);
  return std::min(machine.boost, machine.sustained / std::cbrt(std::sqrt(u)));
}

// What an operand's rows (`lead` elements apart) do to the loads of a tile.
struct Access {
  double narrow = 0;    // kVectorBytes / bytes of an aligned access − 1
  double crossed = 0;   // bytes of lines that a piece of a row touches beyond its own
  double conflict = 0;  // 1 − channels that the rows spread over / channels
};
// The greatest power of two that divides both.
std::int64_t SharedPower(std::int64_t value, std::int64_t power) {
  return std::min(value & -value, power);
}
Access AccessOf(std::int64_t lead, double size) {
  const auto bytes = static_cast<std::int64_t>(std::llround(static_cast<double>(lead) * size));
  Access access;
  const std::int64_t width = SharedPower(bytes, static_cast<std::int64_t>(kVectorBytes));
  access.narrow = kVectorBytes / static_cast<double>(width) - 1;
  access.crossed =
      kLineBytes - static_cast<double>(SharedPower(bytes, static_cast<std::int64_t>(kLineBytes)));
  if (bytes % kChannelBytes == 0)
    access.conflict = 1 - 1.0 / static_cast<double>(SharedPower(bytes / kChannelBytes, kChannels));
  return access;
}

// Rows × columns of tiles that `count` neighbours cover, near-square in elements or as mapped.
struct Region {
  double rows = 1, columns = 1;
};
Region RegionOf(double count, double grid_m, double grid_n, double wanted_rows) {
  Region region;
  region.rows = std::clamp(wanted_rows, 1.0, grid_m);
  region.columns = std::clamp(count / region.rows, 1.0, grid_n);
  region.rows = std::clamp(count / region.columns, 1.0, grid_m);
  return region;
}

struct Traffic {
  double compulsory = 0, requested = 0, beyond_l2 = 0, from_hbm = 0;
};
double OperandBytes(const CdnaMachine& machine, const CdnaOperands& operands) {
  return (operands.m + operands.n) * operands.k * machine.size * operands.batch;
}
Traffic TrafficOf(const CdnaMachine& machine, const CdnaOperands& operands,
                  const CdnaKernel& kernel, const CdnaTask& task, double resident, double steps) {
  const double side_m = std::min<double>(kernel.tile_m, operands.m),
               side_n = std::min<double>(kernel.tile_n, operands.n);
  const double grid_m = task.rows / operands.batch, grid_n = task.columns;  // of a product
  const double tiles = grid_m * grid_n;
  Traffic traffic;
  traffic.compulsory = OperandBytes(machine, operands);
  traffic.requested =
      task.tiles * kernel.split_k * steps * (side_m + side_n) * kernel.tile_k * machine.size;
  // Share of its requests that a region of tiles must fetch once.
  const auto fetched = [&](double count) {
    count = std::clamp(count, 1.0, tiles);
    const double wanted =
        kernel.mapping > 0 ? kernel.mapping
                           : std::sqrt(count * kernel.tile_n / static_cast<double>(kernel.tile_m));
    const Region region = RegionOf(count, grid_m, grid_n, wanted);
    return std::min(1.0,
                    (region.rows * side_m + region.columns * side_n) / (count * (side_m + side_n)));
  };
  traffic.beyond_l2 =
      std::max(traffic.compulsory, traffic.requested * fetched(resident / machine.dies));
  const double device = std::max(traffic.compulsory, traffic.requested * fetched(resident));
  double lost = 1;  // share of a second fetch that the last-level cache does not hold
  if (machine.llc_bytes > 0)
    lost = std::clamp(1 - machine.llc_bytes * kLlcForOperands / traffic.compulsory, 0.0, 1.0);
  if (kernel.non_temporal) lost = 0;
  traffic.from_hbm = traffic.compulsory + (device - traffic.compulsory) * lost;
  return traffic;
}

// How one way to launch a tile loads the busiest unit.
struct Load {
  double workgroups = 0, waves = 0, resident = 1;
  double rounded = 1;    // workgroups of the busiest unit
  double own_steps = 0;  // k steps of a workgroup
  double seams = 0;      // cycles of tiles begun by one workgroup and ended by another
  double steps = 0;      // of a tile's part of K
};
inline Load LoadOf(const CdnaMachine& machine, const KernelFamilyTraits& traits, double k,
                   const CdnaKernel& kernel, const CdnaBlock& block, const CdnaTask& task) {
  Load load;
  load.steps = kernel.split_k == 1 ? task.steps : CeilOf(k / (kernel.split_k * kernel.tile_k));
  load.waves = task.waves * kernel.split_k;
  if (kernel.stream_k) {
    load.workgroups = machine.units;
    load.rounded = std::max(1.0, load.waves);
    // With fewer tiles than units each does a part of one.
    load.own_steps = CeilOf(load.steps * std::min(1.0, load.waves));
    load.seams = traits.prologue.value;
    return load;
  }
  const double whole = CeilOf(load.waves);
  load.workgroups = task.tiles * kernel.split_k;
  load.resident = std::min(std::max(1.0, block.occupancy), whole);
  load.rounded = std::max(1.0, kRounding * whole + (1 - kRounding) * load.waves);
  load.own_steps = load.steps;
  return load;
}

// `partial`: seconds of a partial sum.
double Reduction(const KernelFamilyTraits& traits, const CdnaKernel& kernel, double partial,
                 double units, double elements) {
  if (kernel.split_k > 1) return traits.reduction_start.value + partial * kernel.split_k * elements;
  if (kernel.stream_k)  // one tile a unit is shared with a neighbour
    return traits.reduction_start.value + partial * units * kernel.tile_m * kernel.tile_n;
  return 0;
}

// Chords of the sixth root, which lie below it.
class RootFloor {
 public:
  RootFloor() {
    for (size_t i = 0; i <= kChords; ++i)
      at_[i] = std::cbrt(std::sqrt(static_cast<double>(i) / static_cast<double>(kChords)));
  }
  double operator()(double x) const {
    const double place = std::min(x, 1.0) * static_cast<double>(kChords);
    const size_t i = std::min(static_cast<size_t>(place), kChords - 1);
    return at_[i] + (place - static_cast<double>(i)) * (at_[i + 1] - at_[i]);
  }

 private:
  static constexpr size_t kChords = 64;
  std::array<double, kChords + 1> at_{};
};

}  // namespace

Result<CdnaMachine> CdnaMachineOf(const Device& device, DType dtype, int units) {
  if (!device.arch.starts_with("gfx"))
    return BadInput(fmt::format("{} is no AMD GPU", device.id), "device");
  const auto rate = std::find_if(device.matrix.begin(), device.matrix.end(),
                                 [&](const Rate& entry) { return entry.dtype == dtype; });
  if (rate == device.matrix.end())
    return BadInput(fmt::format("{} has no matrix instruction for {}", device.id, Name(dtype)),
                    "problem.dtype");
  constexpr double kLdsRate = 128;  // 32 banks of 4 bytes, CDNA ISA
  CdnaMachine machine;
  machine.units = units > 0 ? std::min(units, device.units) : device.units;
  machine.dies = std::max(1.0, std::ceil(device.dies * machine.units / device.units));
  machine.boost = device.boost_clock.value;
  machine.sustained = kClockShare * device.sustained_clock.value;
  machine.matrix_rate = rate->flops_per_unit_clock;
  machine.lds_bytes = device.shared_memory.value;
  machine.lds_rate = device.shared_bytes_per_clock > 0 ? device.shared_bytes_per_clock : kLdsRate;
  machine.load_rate = device.arch == "gfx950" ? kLoadRateGfx950 : kLoadRate;
  const MemoryLevel& hbm = device.MainMemory();
  machine.hbm_rate =
      hbm.peak_bandwidth.value > 0 ? kReadShare * hbm.peak_bandwidth.value : hbm.bandwidth.value;
  if (const MemoryLevel* llc = device.FindMemory("llc")) {
    machine.llc_bytes = llc->capacity.value;
    machine.llc_rate = std::max(kLlcRate, llc->bandwidth.value);
  } else if (const MemoryLevel* l2 = device.FindMemory("l2")) {
    machine.llc_bytes = l2->capacity.value;
    machine.llc_rate = l2->bandwidth.value;
  }
  machine.size = SizeOf(dtype);
  return machine;
}

double CdnaOccupancy(const CdnaMachine& machine, const CdnaKernel& kernel) {
  const double lds = static_cast<double>(kernel.tile_m + kernel.tile_n) * kernel.tile_k *
                     machine.size * kernel.buffers;
  const double accumulators =
      static_cast<double>(kernel.tile_m) * kernel.tile_n / (kWaveLanes * kernel.waves);
  const double registers = (accumulators + kOtherRegisters) * std::max(1.0, kernel.waves / kSimds);
  if (lds > machine.lds_bytes || registers > kLaneRegisters) return 0;
  return std::min(
      {std::floor(machine.lds_bytes / lds), std::floor(kLaneRegisters / registers), kMostResident});
}

double CdnaOperands::RowsOfTiles(int tile_m) const {
  if (groups.empty()) return CeilOf(m / tile_m) * batch;
  double rows = 0;
  for (const std::int64_t group : groups) rows += CeilOf(static_cast<double>(group) / tile_m);
  return rows;
}

CdnaOperands CdnaOperandsOf(const Problem& problem) {
  CdnaOperands out;
  out.m = static_cast<double>(problem.m);
  out.n = static_cast<double>(problem.n);
  out.k = static_cast<double>(problem.k);
  out.longest = out.m;
  out.batch = static_cast<double>(problem.Products());
  if (problem.grouped()) {
    out.groups = problem.group_m;
    out.longest = static_cast<double>(*std::max_element(out.groups.begin(), out.groups.end()));
    out.m /= out.batch;
  }
  out.a_by_k = !problem.a_transposed();
  out.b_by_k = problem.b_transposed();
  out.size_out = SizeOf(problem.dtype_out);
  const double size = SizeOf(problem.dtype);
  const Access a = AccessOf(problem.LeadingA(), size), b = AccessOf(problem.LeadingB(), size),
               c = AccessOf(problem.LeadingC(), out.size_out);
  out.narrow_a = a.narrow;
  out.narrow_b = b.narrow;
  out.narrow_c = c.narrow;
  out.crossed_a = a.crossed;
  out.crossed_b = b.crossed;
  out.crossed_c = c.crossed;
  out.conflict_a = a.conflict;
  out.conflict_b = b.conflict;
  return out;
}

CdnaBlock CdnaBlockOf(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                      const CdnaKernel& kernel) {
  const double tile_m = kernel.tile_m, tile_n = kernel.tile_n, tile_k = kernel.tile_k;
  CdnaBlock block;
  block.matrix = 2 * tile_m * tile_n * tile_k / (machine.matrix_rate * traits.matrix_efficiency);
  double waves_n = kernel.waves / 2.0, waves_m = 2;  // each reads its rows of A, columns of B
  if (tile_m <= kSkinnySide) {
    waves_n = kernel.waves;
    waves_m = 1;
  } else if (tile_n <= kSkinnySide) {
    waves_n = 1;
    waves_m = kernel.waves;
  }
  block.lds = (waves_n * tile_m + waves_m * tile_n) * tile_k * machine.size / machine.lds_rate;
  block.load = (tile_m + tile_n) * tile_k * machine.size / machine.load_rate;
  block.share_a = tile_m / (tile_m + tile_n);
  const double step = tile_k * machine.size;
  block.piece_a_by_k = block.share_a / step;
  block.piece_a_by_m = block.share_a / (tile_m * machine.size);
  block.piece_b_by_k = (1 - block.share_a) / step;
  block.piece_b_by_n = (1 - block.share_a) / (tile_n * machine.size);
  block.per_column = 1 / tile_n;
  block.per_stored_byte = 1 / (traits.store_share * machine.hbm_rate);
  block.occupancy = CdnaOccupancy(machine, kernel);
  return block;
}

CdnaTask CdnaTaskOf(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                    const CdnaOperands& operands, const CdnaKernel& kernel,
                    const CdnaBlock& block) {
  CdnaTask task;
  task.rows = operands.RowsOfTiles(kernel.tile_m);
  task.columns = CeilOf(operands.n / kernel.tile_n);
  task.tiles = task.rows * task.columns;
  task.waves = task.tiles / machine.units;
  task.steps = CeilOf(operands.k / kernel.tile_k);

  const double share_a = block.share_a, share_b = 1 - share_a;
  const double narrow = share_a * operands.narrow_a + share_b * operands.narrow_b;
  const double lines =
      1 + operands.crossed_a * (operands.a_by_k ? block.piece_a_by_k : block.piece_a_by_m) +
      operands.crossed_b * (operands.b_by_k ? block.piece_b_by_k : block.piece_b_by_n);
  const double conflict = share_a * operands.conflict_a + share_b * operands.conflict_b;
  const double load =
      block.load * (1 + kConflictLoad * conflict) * (1 + kNarrowLoad * narrow) * lines;
  task.busy = Max4(block.matrix, block.lds, load);
  task.exposed = traits.exposed.value * (1 + kConflictWait * conflict);
  task.stores = operands.m * operands.n * operands.batch *
                (operands.size_out + operands.crossed_c * block.per_column) *
                block.per_stored_byte * (1 + kNarrowStore * operands.narrow_c);
  return task;
}

CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const CdnaOperands& operands, const CdnaKernel& kernel, const CdnaBlock& block,
                   const CdnaTask& task) {
  const double m = operands.m, n = operands.n, batch = operands.batch;
  const double busy = task.busy, exposed = task.exposed;
  const Load load = LoadOf(machine, traits, operands.k, kernel, block, task);
  CdnaTime time;
  time.workgroups = load.workgroups;
  time.waves = load.waves;
  time.resident = load.resident;

  // The busiest unit.
  const double own_steps = load.own_steps, seams = load.seams;
  time.utilisation = 2 * m * n * operands.k * batch /
                     (machine.matrix_rate * machine.units * load.rounded * own_steps * busy);
  time.clock = ClockUnder(machine, time.utilisation);
  const double alone = own_steps * (busy + exposed) + traits.prologue.value;
  const double pace = Max6(alone / time.resident, own_steps * busy);
  const double exact_cycles = (std::max(1.0, time.waves) - 1) * pace + alone + seams;
  const double cycles = (load.rounded - 1) * pace + alone + seams;

  // Memory.
  const double active = std::min(time.workgroups, machine.units * time.resident);
  const Traffic traffic = TrafficOf(machine, operands, kernel, task, active, load.steps);
  const double loads =
      Max4(traffic.from_hbm / machine.hbm_rate, traffic.beyond_l2 / machine.llc_rate);
  const double stores = task.stores;
  time.stored = m * n * batch * operands.size_out;

  const double units = cycles / time.clock;
  const double body =
      Max4(units + (1 - traits.hidden_loads) * loads + (1 - traits.hidden_stores) * stores,
           loads + stores);
  time.reduction = Reduction(traits, kernel, 2 * kAccumulator / traits.reduction_rate.value,
                             machine.units, m * n * batch);

  // By cause: the busiest unit's time in the proportions of a workgroup alone, then what memory
  // adds.
  const double scale = exact_cycles / time.clock / (alone + seams);
  time.start = traits.start.value;
  time.prologue = (traits.prologue.value + seams) * scale;
  time.main_loop = own_steps * busy * scale;
  time.exposed = own_steps * exposed * scale;
  time.last_wave = (cycles - exact_cycles) / time.clock;
  time.loads = (body - units) * loads / (loads + stores);
  time.stores = (body - units) * stores / (loads + stores);
  time.total = time.start + body + time.reduction;
  time.beyond_l2 = traffic.beyond_l2;
  time.from_hbm = traffic.from_hbm;
  time.l2_hit =
      std::max(0.0, 1 - traffic.beyond_l2 / std::max(traffic.requested, traffic.beyond_l2));
  time.llc_hit = std::max(0.0, 1 - traffic.from_hbm / traffic.beyond_l2);
  time.idle = kernel.stream_k ? 0 : 1 - time.waves / std::ceil(time.waves);
  return time;
}

CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const CdnaOperands& operands, const CdnaKernel& kernel) {
  const CdnaBlock block = CdnaBlockOf(machine, traits, kernel);
  return PriceCdna(machine, traits, operands, kernel, block,
                   CdnaTaskOf(machine, traits, operands, kernel, block));
}

CdnaTime PriceCdna(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                   const Problem& problem, const CdnaKernel& kernel) {
  return PriceCdna(machine, traits, CdnaOperandsOf(problem), kernel);
}

bool OutgrowsCache(const CdnaMachine& machine, const CdnaOperands& operands) {
  return OperandBytes(machine, operands) > machine.llc_bytes * kLlcForOperands;
}

CdnaFloors::CdnaFloors(const CdnaMachine& machine, const KernelFamilyTraits& traits,
                       const CdnaOperands& operands)
    : machine_(machine),
      traits_(traits),
      loads_(OperandBytes(machine, operands) / machine.hbm_rate),
      exposed_loads_((1 - traits.hidden_loads) * loads_),
      k_(operands.k),
      elements_(operands.m * operands.n * operands.batch),
      peak_(2 * elements_ * operands.k / (machine.matrix_rate * machine.units)),
      per_boost_(1 / machine.boost),
      per_sustained_(1 / machine.sustained),
      throttled_(Square(Cubed(machine.sustained / machine.boost))),
      per_partial_(2 * kAccumulator / traits.reduction_rate.value) {}

// As PriceCdna with maxima for the round ones, reads of compulsory bytes, and the sixth root of the
// utilisation from below.
double CdnaFloors::Of(const CdnaKernel& kernel, const CdnaBlock& block,
                      const CdnaTask& task) const {
  static constexpr std::array<double, 5> kPerResident = {1, 1, 1.0 / 2, 1.0 / 3, 1.0 / 4};
  static_assert(kPerResident.size() > kMostResident);
  const Load load = LoadOf(machine_, traits_, k_, kernel, block, task);
  const double busy = load.own_steps * task.busy;
  const double alone = busy + load.own_steps * task.exposed + traits_.prologue.value;
  const double pace = std::max(alone * kPerResident[static_cast<size_t>(load.resident)], busy);
  const double cycles = (load.rounded - 1) * pace + alone + load.seams;
  double per_cycle = per_boost_;
  if (const double whole = load.rounded * busy; peak_ > throttled_ * whole) {
    static const RootFloor root;
    per_cycle = std::max(per_boost_, root(peak_ / whole) * per_sustained_);
  }
  const double units = cycles * per_cycle;
  const double body = std::max(units + exposed_loads_ + (1 - traits_.hidden_stores) * task.stores,
                               loads_ + task.stores);
  return (traits_.start.value + body +
          Reduction(traits_, kernel, per_partial_, machine_.units, elements_)) *
         kMargin;
}

Prediction ExplainCdna(const CdnaMachine& machine, const CdnaTime& time, const CdnaKernel& kernel) {
  Prediction out;
  out.time = {time.total};
  const auto add = [&](std::string name, double seconds, std::string why) {
    if (seconds > 0) out.terms.push_back({std::move(name), {seconds}, std::move(why)});
  };
  constexpr double kMega = 1e6, kPercent = 100;
  add("start", time.start, "until the first workgroup runs, and the end is seen");
  add("prologue", time.prologue, "workgroups fetch their first operands and write out");
  add("main loop", time.main_loop,
      fmt::format("tile {}x{}x{}, {:.3g} workgroups a unit, {:.3g} at once, {:.0f} MHz, matrix "
                  "units {:.0f}% used",
                  kernel.tile_m, kernel.tile_n, kernel.tile_k, time.waves, time.resident,
                  time.clock / kMega, kPercent * time.utilisation));
  add("latency", time.exposed, "k steps wait and no other workgroup fills in");
  add("last wave", time.last_wave,
      fmt::format("{:.0f}% of its {:.0f} places are empty", kPercent * time.idle, machine.units));
  add("loads", time.loads,
      fmt::format("{:.3g} MB from HBM, {:.3g} MB beyond L2; hits: L2 {:.0f}%, last-level {:.0f}%",
                  time.from_hbm / kMega, time.beyond_l2 / kMega, kPercent * time.l2_hit,
                  kPercent * time.llc_hit));
  add("stores", time.stores, fmt::format("{:.3g} MB of C", time.stored / kMega));
  add("reduction", time.reduction,
      kernel.stream_k ? std::string("tiles that two workgroups share")
                      : fmt::format("{} parts of K added", kernel.split_k));
  const auto figure = [&](std::string name, double value, std::string unit, std::string why) {
    out.figures.push_back({std::move(name), value, std::move(unit), std::move(why)});
  };
  const std::string tile = fmt::format("{}x{}x{}", kernel.tile_m, kernel.tile_n, kernel.tile_k);
  figure("workgroups", time.workgroups, "",
         kernel.split_k > 1 ? fmt::format("tiles of {}, {} parts of K each", tile, kernel.split_k)
                            : fmt::format("tiles of {}", tile));
  figure("occupancy", time.resident, "", "workgroups resident in a unit at once");
  figure("waves", time.waves, "", fmt::format("workgroups a unit, of {:.0f} units", machine.units));
  figure("last wave idle", time.idle, "share", "places that no workgroup takes");
  figure("matrix units busy", time.utilisation, "share", "of their peak at the clock below");
  figure("clock", time.clock, "hertz", "falls as the matrix units fill");
  figure("L2 hits", time.l2_hit, "share", "of what workgroups read");
  figure("last-level hits", time.llc_hit, "share",
         fmt::format("of {:.3g} MB beyond L2", time.beyond_l2 / kMega));
  figure("read from HBM", time.from_hbm, "bytes", "operands, and what the caches lost of them");
  figure("stored", time.stored, "bytes", "C");
  const double compute = time.main_loop + time.last_wave;
  const double memory = time.loads + time.stores;
  const double latency = time.prologue + time.exposed + time.reduction;
  const double most = std::max({compute, memory, latency, time.start});
  out.bound = most == compute   ? Bound::kCompute
              : most == memory  ? Bound::kMemory
              : most == latency ? Bound::kLatency
                                : Bound::kLaunch;
  return out;
}

}  // namespace gnomon
