#pragma once

/// Table-batched embedding bags on the host: all tables in one call, and row-wise Adagrad fused
/// into the backward, so that no gradient of a table ever stands in memory.

#include <cstdint>
#include <span>

#include "gnomon/base/dtype.h"
#include "gnomon/base/result.h"

namespace gnomon::cpu {

struct EmbeddingTable {
  float* weight = nullptr;  ///< [rows, dim]
  float* state =
      nullptr;  ///< [rows]: row-wise Adagrad's running mean of squares; null for forward only
  std::int64_t rows = 0;
};

/// Lookups of a batch, table-major: bag (t, b) holds indices[offsets[t·batch + b] … offsets[t·batch
/// + b + 1]).
struct EmbeddingLookups {
  std::int64_t batch = 0;
  std::span<const std::int64_t> indices;
  std::span<const std::int64_t> offsets;  ///< tables · batch + 1 values
};

/// out[b, t, :] = Σ over the bag of table t's rows. `out` is [batch, tables, dim], fp32 or bf16.
/// Error: an index outside its table (names table, sample and index); nothing is written then.
Status EmbeddingForward(std::span<const EmbeddingTable> tables, std::int64_t dim,
                        const EmbeddingLookups& lookups, void* out, DType out_dtype, int threads);

struct AdagradParams {
  float learning_rate = 0.01f;
  float epsilon = 1e-8f;
};

/// Exact row-wise Adagrad: the gradients of a row that occurs several times in the batch are added
/// first, then state += mean(g²) and row −= lr·g / (√state + ε), once a row. `grad` is [batch,
/// tables, dim]. Deterministic for any number of threads.
void EmbeddingBackwardAdagrad(std::span<const EmbeddingTable> tables, std::int64_t dim,
                              const EmbeddingLookups& lookups, const void* grad, DType grad_dtype,
                              const AdagradParams& params, int threads);

}  // namespace gnomon::cpu
