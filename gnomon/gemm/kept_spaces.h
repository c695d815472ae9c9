#pragma once

/// What a ready family makes once a kind of problem: a list that threads read without a lock and
/// that only grows.

#include <atomic>
#include <mutex>

#include "gnomon/base/result.h"

namespace gnomon {

template <class Kind, class Space>
class KeptSpaces {
 public:
  KeptSpaces() = default;
  ~KeptSpaces() {
    const Kept* kept = newest_.load();
    while (kept) {
      const Kept* older = kept->older;
      delete kept;
      kept = older;
    }
  }
  KeptSpaces(const KeptSpaces&) = delete;
  KeptSpaces& operator=(const KeptSpaces&) = delete;

  /// The space of the kind; `make()` gives a Result<Space> where there is none yet.
  template <class Make>
  Result<const Space*> Get(const Kind& kind, Make make) const {
    for (const Kept* kept = newest_.load(std::memory_order_acquire); kept; kept = kept->older)
      if (kept->kind == kind) return &kept->space;
    const std::lock_guard lock(making_);
    for (const Kept* kept = newest_.load(); kept; kept = kept->older)
      if (kept->kind == kind) return &kept->space;  // another thread made it meanwhile
    GNOMON_ASSIGN(Space space, make());
    const Kept* kept = new Kept{kind, std::move(space), newest_.load()};
    newest_.store(kept, std::memory_order_release);
    return &kept->space;
  }

 private:
  struct Kept {
    Kind kind;
    Space space;
    const Kept* older = nullptr;
  };
  mutable std::atomic<const Kept*> newest_ = nullptr;
  mutable std::mutex making_;
};

}  // namespace gnomon
