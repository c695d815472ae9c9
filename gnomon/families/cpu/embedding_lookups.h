#pragma once

/// What forward and backward both need to know of a batch of lookups before they touch a table.

#include <cstdint>
#include <span>

#include "gnomon/base/result.h"
#include "gnomon/families/cpu/embedding_bag.h"

namespace gnomon::cpu {

struct LookupFacts {
  std::int64_t lookups = 0;
  bool one_hot = false;  ///< every bag holds exactly one index: offsets[i] = offsets[0] + i
};

/// How the offsets advance from bag to bag.
struct BagSteps {
  bool all_one = true;    ///< every step is 1
  bool ascending = true;  ///< no offset is negative or below the one before
};

/// Checks shapes, offsets and every index against its table; vectorised, one pass over each array.
Result<LookupFacts> CheckLookups(std::span<const EmbeddingTable> tables, std::int64_t dim,
                                 const EmbeddingLookups& lookups, int threads);

}  // namespace gnomon::cpu
