// Picks for one device again and again.
//
//   cold     the two fastest of each family, ready for the device; the fastest of those; how sure
//   cached   one of the few slots that the problem's hash names, if it holds the very same problem
//
// The cache is the thread's own: no lock, no sharing, and what a thread gets does not depend on
// what others ask for. A slot holds the whole problem, so that a hash that two problems share costs
// time only. A grouped problem is not remembered: its key is a list of any length.

#include "gnomon/gemm/selector.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace gnomon {
namespace {

// A problem without its groups, comparable at once.
struct Key {
  std::int64_t m = 0, n = 0, k = 0, batch = 0, lda = 0, ldb = 0, ldc = 0;
  std::uint64_t selector = 0;  // 0: an empty slot
  Layout layout = Layout::kNT;
  DType dtype = DType::kFp32, dtype_out = DType::kFp32;
  Epilogue epilogue = Epilogue::kNone;
  std::optional<Bytes> workspace;
  friend bool operator==(const Key&, const Key&) = default;
};

Key KeyOf(const Problem& p, std::uint64_t selector) {
  return {p.m,      p.n,      p.k,     p.batch,     p.lda,      p.ldb,      p.ldc,
          selector, p.layout, p.dtype, p.dtype_out, p.epilogue, p.workspace};
}

// Multiply and fold, one field after the other: every field reaches every bit of the result.
size_t Hash(const Key& key) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  constexpr int kHalf = 32, kByte = 8;
  std::uint64_t hash = key.selector;
  const auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * kOdd;
    hash ^= hash >> kHalf;
  };
  for (const std::int64_t side : {key.m, key.n, key.k, key.batch, key.lda, key.ldb, key.ldc})
    add(static_cast<std::uint64_t>(side));
  std::uint64_t kinds = 0;
  for (const auto kind : {static_cast<int>(key.layout), static_cast<int>(key.dtype),
                          static_cast<int>(key.dtype_out), static_cast<int>(key.epilogue)})
    kinds = kinds << kByte | static_cast<std::uint64_t>(kind);
  add(kinds);
  if (key.workspace) add(std::bit_cast<std::uint64_t>(key.workspace->value));
  return hash;
}

struct Slot {
  Key key;
  Pick pick;
};

// The slot that holds the key, or the one to put it into: problems whose hashes meet have a few.
Slot& SlotOf(const Key& key) {
  constexpr size_t kSets = 128, kWays = 4;
  struct Set {
    std::array<Slot, kWays> slots;
    size_t oldest = 0;
  };
  thread_local std::array<Set, kSets> sets;
  Set& set = sets[Hash(key) % kSets];
  for (Slot& slot : set.slots)
    if (slot.key == key) return slot;
  set.oldest = (set.oldest + 1) % kWays;
  return set.slots[set.oldest];
}

std::uint64_t NextId() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

Selector::Selector(const Device& device, std::span<const Family* const> families, int units)
    : device_(device), units_(units), id_(NextId()) {
  for (const Family* family : families)
    members_.push_back({family, family->Ready(device_, units), family->PairError(device_)});
}

Result<Pick> Selector::SelectCold(const Problem& problem) const {
  GNOMON_TRY(CheckProblem(problem));
  GNOMON_TRY(CheckUnits(device_, units_));
  struct Rival {
    const Member* member = nullptr;
    TimedConfig timed;
  };
  std::array<Rival, 2> rivals;
  size_t rivals_found = 0;
  std::string reasons;
  for (const Member& member : members_) {
    std::array<TimedConfig, 2> fastest;
    const Result<size_t> found = member.ready->Fastest(problem, fastest);
    if (!found.ok()) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", member.family->name(),
                             found.error().Text());
      continue;
    }
    if (*found == 0)
      reasons += fmt::format("{}{}: no config's grid can be launched", reasons.empty() ? "" : "; ",
                             member.family->name());
    for (size_t i = 0; i < *found; ++i) {
      const Rival rival{&member, fastest[i]};
      if (rivals_found > 0 && rival.timed.time < rivals[0].timed.time) {
        rivals[1] = rivals[0];
        rivals[0] = rival;
      } else if (rivals_found == 0) {
        rivals[0] = rival;
      } else if (rivals_found == 1 || rival.timed.time < rivals[1].timed.time) {
        rivals[1] = rival;
      } else {
        continue;
      }
      rivals_found = std::min(rivals_found + 1, rivals.size());
    }
  }
  if (rivals_found == 0)
    return BadInput(fmt::format("no family can do {} on {}{}{}", problem.Text(), device_.id,
                                reasons.empty() ? "" : ": ", reasons));
  Pick pick{rivals[0].member->family, rivals[0].timed.config, rivals[0].timed.time, std::nullopt};
  if (rivals_found == 2)
    pick.sure = Sureness(rivals[0].timed.time, rivals[1].timed.time, rivals[0].member->pair_error,
                         rivals[1].member->pair_error);
  return pick;
}

Result<Pick> Selector::Select(const Problem& problem) const {
  if (problem.grouped()) return SelectCold(problem);
  const Key key = KeyOf(problem, id_);
  Slot& slot = SlotOf(key);
  if (slot.key == key) return slot.pick;
  GNOMON_ASSIGN(const Pick pick, SelectCold(problem));
  slot = {key, pick};
  return pick;
}

Seconds Selector::TimeOf(const Problem& problem, const Pick& pick) const {
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& m) { return m.family == pick.family; });
  GNOMON_CHECK(member != members_.end(), "a pick of another selector");
  return member->ready->TimeOf(problem, pick.config);
}

}  // namespace gnomon
