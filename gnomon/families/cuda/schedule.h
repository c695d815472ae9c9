#pragma once

/// Schedule: which k steps of which tiles a worker (a cluster of CTAs) multiplies. Every step of
/// every tile is done exactly once. Compiled for the host too, where it is tested.
///
///   whole tiles  worker w takes tiles w, w + workers, w + 2·workers, …
///   split-K      the same over parts · tiles: all first parts, then all second parts, …
///   stream-K     whole waves first; the last one to two waves of tiles are laid end to end and cut
///                into equal runs of k steps, one a worker

#include <cstdint>

#if defined(__CUDACC__)
#define GNOMON_BOTH __host__ __device__ inline
#else
#define GNOMON_BOTH inline
#endif

namespace gnomon::cuda {

/// Steps `first` up to `last` of a tile, part `part` of the `parts` it is cut into.
struct Unit {
  int tile = 0;
  int first = 0, last = 0;
  int part = 0, parts = 1;
};

struct Schedule {
  int tiles_m = 1, tiles_n = 1;  ///< of one product (grouped: tiles_m of all groups together)
  int tiles = 1;                 ///< of all products
  int steps = 1;                 ///< k steps of a tile; 1 at least
  int workers = 1;
  int split = 1;
  int group_m = 1;  ///< rows of tiles that are walked together
  int whole = 0;    ///< stream-K: tiles that are not cut
  bool stream = false;

  /// Stream-K: the worker that does step `at` of those that are cut.
  GNOMON_BOTH int WorkerOf(std::int64_t at) const {
    return static_cast<int>(((at + 1) * workers - 1) / Cut());
  }
  /// Stream-K: steps of all tiles that are cut.
  GNOMON_BOTH std::int64_t Cut() const { return static_cast<std::int64_t>(tiles - whole) * steps; }
  GNOMON_BOTH std::int64_t FirstOf(int worker) const { return Cut() * worker / workers; }
};

/// Where a tile stands in its product: walked in groups of group_m rows, column by column.
struct TilePlace {
  int product = 0, m = 0, n = 0;
};
GNOMON_BOTH TilePlace PlaceOf(const Schedule& schedule, int tile) {
  const int each = schedule.tiles_m * schedule.tiles_n;
  const int product = each == schedule.tiles ? 0 : tile / each;
  const int rest = tile - product * each;
  if (schedule.group_m == 1) {
    const int m = rest / schedule.tiles_n;
    return {product, m, rest - m * schedule.tiles_n};
  }
  const int width = schedule.group_m * schedule.tiles_n;
  const int group = rest / width, first = group * schedule.group_m;
  const int rows =
      schedule.tiles_m - first < schedule.group_m ? schedule.tiles_m - first : schedule.group_m;
  const int within = rest - group * width, column = within / rows;
  return {product, first + within - column * rows, column};
}

/// A worker's units, in the order in which it does them.
class Walk {
 public:
  GNOMON_BOTH Walk(const Schedule& schedule, int worker)
      : schedule_(schedule), worker_(worker), next_(worker) {
    if (schedule.stream) {
      at_ = schedule.FirstOf(worker);
      end_ = schedule.FirstOf(worker + 1);
    }
  }

  /// False: the worker is done.
  GNOMON_BOTH bool Next(Unit& unit) {
    const Schedule& s = schedule_;
    const int straight = s.stream ? s.whole : s.tiles * s.split;
    if (next_ < straight) {
      unit = {next_, 0, s.steps, 0, 1};
      if (s.split > 1) {
        unit.part = next_ / s.tiles;
        unit.parts = s.split;
        unit.tile = next_ - unit.part * s.tiles;
        unit.first = static_cast<int>(static_cast<std::int64_t>(s.steps) * unit.part / s.split);
        unit.last =
            static_cast<int>(static_cast<std::int64_t>(s.steps) * (unit.part + 1) / s.split);
      }
      next_ += s.workers;
      return true;
    }
    if (at_ >= end_) return false;
    const int cut = static_cast<int>(at_ / s.steps);
    const std::int64_t start = static_cast<std::int64_t>(cut) * s.steps;
    const std::int64_t stop = start + s.steps < end_ ? start + s.steps : end_;
    const int worker_first = s.WorkerOf(start), worker_last = s.WorkerOf(start + s.steps - 1);
    unit.tile = s.whole + cut;
    unit.first = static_cast<int>(at_ - start);
    unit.last = static_cast<int>(stop - start);
    unit.part = worker_ - worker_first;
    unit.parts = worker_last - worker_first + 1;
    at_ = stop;
    return true;
  }

 private:
  const Schedule& schedule_;
  int worker_;
  int next_;
  std::int64_t at_ = 0, end_ = 0;
};

/// Where part `part` of a tile leaves its partial sums. A worker of stream-K has two places: for
/// the end of a tile that others began, and for the beginning of one that others end.
GNOMON_BOTH int SlotOf(const Schedule& schedule, int tile, int part) {
  if (!schedule.stream) return part * schedule.tiles + tile;
  const std::int64_t start = static_cast<std::int64_t>(tile - schedule.whole) * schedule.steps;
  const int worker = schedule.WorkerOf(start) + part;
  return part == 0 ? 2 * worker + 1 : 2 * worker;
}

/// Slots of all parts; none where nothing is cut.
GNOMON_BOTH std::int64_t SlotsOf(const Schedule& schedule) {
  if (schedule.stream) return schedule.whole < schedule.tiles ? 2LL * schedule.workers : 0;
  return schedule.split > 1 ? static_cast<std::int64_t>(schedule.split) * schedule.tiles : 0;
}

}  // namespace gnomon::cuda
