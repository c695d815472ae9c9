// DLRM's dot interaction, forward and backward, one sample after the other.
//
//   forward:  out = (z_0, z_1·z_0, z_2·z_0, z_2·z_1, z_3·z_0, …, zeros)
//   backward: d_z_i = Σ_{j≠i} d_ij z_j,  plus d_out's first dim values for i = 0
//
// Forward: a square of kLanes features × kLanes elements is transposed into registers; then every
// later feature i takes its dot products with kLanes features at once, one broadcast element and
// one FMA a step. Only squares that touch the lower triangle are visited. A row of the triangle is
// stored as whole vectors: what spills past its end is part of the next rows, which are stored
// later (blocks of columns run from the last to the first, rows upwards), so only stores at the
// very end of the row need a mask. Backward: each d_ij is broadcast once and used twice, for d_z_i
// (in registers, a block of rows at a time) and for d_z_j (in the first-level cache). The symmetric
// matrix is never expanded.
//
// fp32 rows of whole vectors are read and written in place. Others (bf16, odd dims) go through a
// padded fp32 copy of the sample, a few KiB a thread. Samples are independent: results do not
// depend on threads.
//
// Entry points: InteractionForward, InteractionBackward.

#include "gnomon/families/cpu/interaction.h"

#include <algorithm>
#include <vector>

#include "gnomon/base/check.h"
#include "gnomon/families/cpu/parallel_units.h"

// foreach_target.h includes this file again and has to come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/interaction.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "gnomon/families/cpu/float_rows-inl.h"
// clang-format on

#ifndef GNOMON_FAMILIES_CPU_INTERACTION_JOB_
#define GNOMON_FAMILIES_CPU_INTERACTION_JOB_
namespace gnomon::cpu {

struct InteractionJob {
  InteractionShape shape;
  const void* dense = nullptr;
  const void* embedding = nullptr;
  void* out = nullptr;          ///< forward
  const void* d_out = nullptr;  ///< backward
  void* d_dense = nullptr;
  void* d_embedding = nullptr;
};

/// Where the fp32 features of a sample stand: the dense one apart from the others.
template <class T>
struct Features {
  T* dense = nullptr;
  T* rest = nullptr;
  std::size_t stride = 0;
  T* operator[](std::size_t i) const { return i == 0 ? dense : rest + (i - 1) * stride; }
};

/// Elements of the triangle before row i.
constexpr std::size_t TriangleBefore(std::size_t i) { return i * (i - 1) / 2; }

/// fp32 memory of one thread, kept from call to call.
struct InteractionScratch {
  std::vector<float> features, gradients, products;
  void Reserve(std::size_t feature_floats, std::size_t product_floats) {
    if (features.size() < feature_floats) {
      features.resize(feature_floats);
      gradients.resize(feature_floats);
    }
    if (products.size() < product_floats) products.resize(product_floats);
  }
};

}  // namespace gnomon::cpu
#endif  // GNOMON_FAMILIES_CPU_INTERACTION_JOB_

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {

template <class T>
void CopyAsFloat(const T* from, std::size_t count, std::size_t padded, float* to) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) StoreRow(LoadRow(from + i), to + i);
  if (i < count) {
    StoreRow(LoadPart(from + i, count - i), to + i);
    i += kLanes;
  }
  for (; i < padded; i += kLanes) StoreRow(hn::Zero(Floats()), to + i);
}

template <class T>
void CopyFromFloat(const float* from, std::size_t count, T* to) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) StoreRow(LoadRow(from + i), to + i);
  if (i < count) StorePart(LoadRow(from + i), to + i, count - i);
}

/// The sample's features as padded fp32: in place where they are that already.
template <class T>
Features<const float> FeaturesAsFloat(const T* dense, const T* embedding, std::size_t tables,
                                      std::size_t dim, std::size_t padded, float* scratch) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (dim == padded) return {dense, embedding, dim};
  }
  CopyAsFloat(dense, dim, padded, scratch);
  for (std::size_t t = 0; t < tables; ++t)
    CopyAsFloat(embedding + t * dim, dim, padded, scratch + (t + 1) * padded);
  return {scratch, scratch + padded, padded};
}

/// Elements [k, k + kLanes) of features [j0, j0 + kLanes): vector e holds element k + e of each.
HWY_INLINE void LoadTransposed(const Features<const float>& z, std::size_t count, std::size_t j0,
                               std::size_t k, FloatVector (&square)[kLanes]) {
  if (j0 + kLanes <= count) {
    HWY_UNROLL(16)
    for (std::size_t j = 0; j < kLanes; ++j) square[j] = LoadRow(z[j0 + j] + k);
  } else {
    HWY_UNROLL(16)
    for (std::size_t j = 0; j < kLanes; ++j)
      square[j] = j0 + j < count ? LoadRow(z[j0 + j] + k) : hn::Zero(Floats());
  }
  TransposeSquare(square);
}

/// One sample. `products` holds the partial sums of a column of squares where dim has several.
template <class T>
void ForwardSample(const InteractionShape& shape, const Features<const float>& z,
                   std::size_t padded, float* products, T* out) {
  const auto dim = static_cast<std::size_t>(shape.dim);
  const auto width = static_cast<std::size_t>(shape.out_stride);
  const std::size_t count = static_cast<std::size_t>(shape.tables) + 1;
  const std::size_t last_block = (std::max<std::size_t>(count, 2) - 2) / kLanes;
  for (std::size_t block = last_block + 1; block-- > 0 && count > 1;) {
    const std::size_t j0 = block * kLanes;
    for (std::size_t k = 0; k < padded; k += kLanes) {
      FloatVector square[kLanes];
      LoadTransposed(z, count, j0, k, square);
      const bool last = k + kLanes == padded;
      for (std::size_t i = j0 + 1; i < count; ++i) {
        const float* zi = z[i] + k;
        FloatVector even = k == 0 ? hn::Zero(Floats()) : LoadRow(products + i * kLanes);
        FloatVector odd = hn::Zero(Floats());
        HWY_UNROLL(8)
        for (std::size_t e = 0; e < kLanes; e += 2) {
          even = hn::MulAdd(hn::Set(Floats(), zi[e]), square[e], even);
          odd = hn::MulAdd(hn::Set(Floats(), zi[e + 1]), square[e + 1], odd);
        }
        const FloatVector sum = hn::Add(even, odd);
        const std::size_t at = dim + TriangleBefore(i) + j0;
        if (!last) {
          StoreRow(sum, products + i * kLanes);
        } else if (at + kLanes <= width) {
          StoreRow(sum, out + at);
        } else {
          StorePart(sum, out + at, std::min(i - j0, kLanes));
        }
      }
    }
  }
  std::fill(out + dim + TriangleBefore(count), out + width, T{0});
}

template <class T>
void ForwardSamples(const InteractionJob& job, std::int64_t begin, std::int64_t end) {
  const auto dim = static_cast<std::size_t>(job.shape.dim);
  const auto tables = static_cast<std::size_t>(job.shape.tables);
  const std::size_t padded = (dim + kLanes - 1) / kLanes * kLanes;
  thread_local InteractionScratch scratch;
  scratch.Reserve((tables + 1) * padded, (tables + 1) * kLanes);
  for (std::int64_t b = begin; b < end; ++b) {
    const T* dense = static_cast<const T*>(job.dense) + b * job.shape.dim;
    const T* embedding =
        static_cast<const T*>(job.embedding) + b * job.shape.tables * job.shape.dim;
    T* out = static_cast<T*>(job.out) + b * job.shape.out_stride;
    std::copy(dense, dense + dim, out);
    ForwardSample(job.shape,
                  FeaturesAsFloat(dense, embedding, tables, dim, padded, scratch.features.data()),
                  padded, scratch.products.data(), out);
  }
}

/// Rows i0 … i0 + R - 1 of the symmetric product against rows 0 … i0 + R - 1, in one vector of
/// columns. Rows before i0 already hold their own sums and take what these rows add to them.
template <std::size_t R>
HWY_INLINE void BackwardRows(const Features<const float>& z, const Features<float>& d_z,
                             const float* d_products, std::size_t i0, std::size_t k) {
  FloatVector zi[R], sum[R];
  const float* d[R];
  HWY_UNROLL(8)
  for (std::size_t r = 0; r < R; ++r) {
    zi[r] = LoadRow(z[i0 + r] + k);
    sum[r] = i0 + r == 0 ? LoadRow(d_z.dense + k) : hn::Zero(Floats());
    d[r] = d_products + TriangleBefore(i0 + r);
  }
  for (std::size_t j = 0; j < i0; ++j) {
    const FloatVector zj = LoadRow(z[j] + k);
    float* d_zj = d_z[j] + k;
    FloatVector even = LoadRow(d_zj), odd = hn::Zero(Floats());
    HWY_UNROLL(8)
    for (std::size_t r = 0; r < R; ++r) {
      const FloatVector weight = hn::Set(Floats(), d[r][j]);
      sum[r] = hn::MulAdd(weight, zj, sum[r]);
      if (r % 2 == 0) {
        even = hn::MulAdd(weight, zi[r], even);
      } else {
        odd = hn::MulAdd(weight, zi[r], odd);
      }
    }
    StoreRow(R == 1 ? even : hn::Add(even, odd), d_zj);
  }
  HWY_UNROLL(8)
  for (std::size_t r = 1; r < R; ++r) {
    HWY_UNROLL(8)
    for (std::size_t q = 0; q < r; ++q) {
      const FloatVector weight = hn::Set(Floats(), d[r][i0 + q]);
      sum[r] = hn::MulAdd(weight, zi[q], sum[r]);
      sum[q] = hn::MulAdd(weight, zi[r], sum[q]);
    }
  }
  HWY_UNROLL(8)
  for (std::size_t r = 0; r < R; ++r) StoreRow(sum[r], d_z[i0 + r] + k);
}

/// One sample; d_z.dense holds d_out's first values on entry.
HWY_INLINE void BackwardSample(std::size_t count, std::size_t padded,
                               const Features<const float>& z, const Features<float>& d_z,
                               const float* d_products) {
  constexpr std::size_t kRows = kLanes == 16 ? 8 : 4;  // what 32 and 16 vector registers hold
  for (std::size_t k = 0; k < padded; k += kLanes) {
    std::size_t i = 0;
    for (; i + kRows <= count; i += kRows) BackwardRows<kRows>(z, d_z, d_products, i, k);
    if (kRows > 4 && i + 4 <= count) {
      BackwardRows<4>(z, d_z, d_products, i, k);
      i += 4;
    }
    if (i + 2 <= count) {
      BackwardRows<2>(z, d_z, d_products, i, k);
      i += 2;
    }
    if (i < count) BackwardRows<1>(z, d_z, d_products, i, k);
  }
}

template <class T>
void BackwardSamples(const InteractionJob& job, std::int64_t begin, std::int64_t end) {
  const auto dim = static_cast<std::size_t>(job.shape.dim);
  const auto tables = static_cast<std::size_t>(job.shape.tables);
  const std::size_t count = tables + 1, pairs = TriangleBefore(count);
  const std::size_t padded = (dim + kLanes - 1) / kLanes * kLanes;
  thread_local InteractionScratch scratch;
  scratch.Reserve(count * padded, pairs + kLanes);
  const bool in_place = sizeof(T) == sizeof(float) && dim == padded;
  for (std::int64_t b = begin; b < end; ++b) {
    const T* dense = static_cast<const T*>(job.dense) + b * job.shape.dim;
    const T* embedding =
        static_cast<const T*>(job.embedding) + b * job.shape.tables * job.shape.dim;
    const T* d_out = static_cast<const T*>(job.d_out) + b * job.shape.out_stride;
    T* d_dense = static_cast<T*>(job.d_dense) + b * job.shape.dim;
    T* d_embedding = static_cast<T*>(job.d_embedding) + b * job.shape.tables * job.shape.dim;
    const Features<const float> z =
        FeaturesAsFloat(dense, embedding, tables, dim, padded, scratch.features.data());
    if constexpr (sizeof(T) == sizeof(float)) {
      if (in_place) {
        std::copy(d_out, d_out + dim, d_dense);
        BackwardSample(count, padded, z, {d_dense, d_embedding, dim}, d_out + dim);
        continue;
      }
    }
    float* gradients = scratch.gradients.data();
    CopyAsFloat(d_out, dim, padded, gradients);
    CopyAsFloat(d_out + dim, pairs, pairs, scratch.products.data());
    BackwardSample(count, padded, z, {gradients, gradients + padded, padded},
                   scratch.products.data());
    CopyFromFloat(gradients, dim, d_dense);
    for (std::size_t t = 0; t < tables; ++t)
      CopyFromFloat(gradients + (t + 1) * padded, dim, d_embedding + t * dim);
  }
}

void Forward(const InteractionJob& job, std::int64_t begin, std::int64_t end) {
  if (job.shape.dtype == DType::kBf16) {
    ForwardSamples<std::uint16_t>(job, begin, end);
  } else {
    ForwardSamples<float>(job, begin, end);
  }
}

void Backward(const InteractionJob& job, std::int64_t begin, std::int64_t end) {
  if (job.shape.dtype == DType::kBf16) {
    BackwardSamples<std::uint16_t>(job, begin, end);
  } else {
    BackwardSamples<float>(job, begin, end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gnomon::cpu {
namespace {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);

/// Parts per thread: samples cost the same, parts only absorb a thread that starts late.
constexpr std::int64_t kPartsPerThread = 2;

void CheckShape(const InteractionShape& shape) {
  GNOMON_CHECK(shape.dtype == DType::kFp32 || shape.dtype == DType::kBf16, "interaction in {}",
               Name(shape.dtype));
  GNOMON_CHECK(shape.batch >= 0 && shape.tables >= 0 && shape.dim > 0,
               "batch {}, tables {}, dim {}", shape.batch, shape.tables, shape.dim);
  GNOMON_CHECK(shape.out_stride >= shape.dim + (shape.tables + 1) * shape.tables / 2,
               "out_stride {} for dim {} and {} tables", shape.out_stride, shape.dim, shape.tables);
}

template <class Run>
void ForEachPart(std::int64_t batch, int threads, const Run& run) {
  threads = ThreadCount(threads);
  const std::int64_t parts = std::min(batch, threads == 1 ? 1 : threads * kPartsPerThread);
  ForEachUnit(parts, threads,
              [&](std::int64_t part) { run(batch * part / parts, batch * (part + 1) / parts); });
}

}  // namespace

void InteractionForward(const InteractionShape& shape, const void* dense, const void* embedding,
                        void* out, int threads) {
  CheckShape(shape);
  InteractionJob job;
  job.shape = shape;
  job.dense = dense;
  job.embedding = embedding;
  job.out = out;
  ForEachPart(shape.batch, threads, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(Forward)(job, begin, end);
  });
}

void InteractionBackward(const InteractionShape& shape, const void* dense, const void* embedding,
                         const void* d_out, void* d_dense, void* d_embedding, int threads) {
  CheckShape(shape);
  const InteractionJob job{shape, dense, embedding, nullptr, d_out, d_dense, d_embedding};
  ForEachPart(shape.batch, threads, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(Backward)(job, begin, end);
  });
}

}  // namespace gnomon::cpu

#endif  // HWY_ONCE
