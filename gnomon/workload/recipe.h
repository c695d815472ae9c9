#pragma once

/// Recipe: how to train a model. Each field is a lever of codesign; the defaults are stock
/// LibTorch.

#include <cstdint>
#include <string>

#include "gnomon/base/dtype.h"

namespace gnomon {

enum class EmbeddingUpdate {
  kDense,   ///< gradient of the whole table, optimiser over every row
  kSparse,  ///< gradient of the looked-up rows, coalesced, then the optimiser on those rows
  kFused,   ///< optimiser applied inside the backward, no gradient in memory
};

enum class GemmBackend {
  kLibrary,  ///< the framework's vendor library: cuBLAS, hipBLASLt, OpenBLAS, oneDNN
  kGnomon,   ///< the family's kernel that `select` picks for each GEMM
};

struct Recipe {
  DType dtype = DType::kFp32;  ///< of the GEMM operands; master weights stay fp32
  std::int64_t batch = 128;
  double learning_rate = 0.01;
  EmbeddingUpdate embedding_update = EmbeddingUpdate::kSparse;
  bool fused_tables = false;       ///< all tables in one lookup, or an operator a table
  std::int64_t pad_to = 1;         ///< inner dimensions of GEMMs rounded up to a multiple
  int threads = 0;                 ///< CPU cores used; 0: all
  bool fused_linear = false;       ///< bias and ReLU inside the GEMM
  bool fused_interaction = false;  ///< pairwise dots, triangle and concat in one kernel
  bool fused_optimizer = false;    ///< one pass over all dense parameters
  GemmBackend gemm_backend = GemmBackend::kLibrary;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

}  // namespace gnomon
