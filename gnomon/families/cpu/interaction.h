#pragma once

/// DLRM's dot interaction in one kernel: the pairwise dot products of a sample's feature vectors,
/// its lower triangle and the concatenation with the dense vector, forward and backward.

#include <cstdint>

#include "gnomon/base/dtype.h"

namespace gnomon::cpu {

struct InteractionShape {
  std::int64_t batch = 0, tables = 0, dim = 0;
  std::int64_t out_stride =
      0;  ///< elements between output rows, ≥ dim + (tables+1)·tables/2; the rest is zeroed
  DType dtype = DType::kFp32;  ///< of all operands: fp32 or bf16; sums are fp32
};

/// Features are z_0 = dense [batch, dim] and z_1.. = embedding [batch, tables, dim].
/// out[b] = (z_0, then z_i·z_j for i = 1..tables, j < i in that order, then zeros).
void InteractionForward(const InteractionShape& shape, const void* dense, const void* embedding,
                        void* out, int threads);

/// d_dense[b] = d_out's first dim values + Σ_j d_0j z_j;  d_z_i = Σ_{j≠i} d_ij z_j.
void InteractionBackward(const InteractionShape& shape, const void* dense, const void* embedding,
                         const void* d_out, void* d_dense, void* d_embedding, int threads);

}  // namespace gnomon::cpu
