// The dot interaction against the fp64 oracle: dims that are and are not whole vectors, more and
// fewer tables than a vector has lanes, padding, both dtypes, any number of threads.

#include "gnomon/families/cpu/interaction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "oracle/bf16.h"
#include "oracle/interaction.h"
#include "oracle/vector_level.h"

namespace gnomon::cpu {
namespace {

using oracle::Array;
using oracle::Bounded;

// Every kernel test runs on every vector level.
class Interaction : public oracle::VectorLevel {};
GNOMON_ON_EACH_LEVEL(Interaction);

struct Operands {
  Operands(const InteractionShape& shape)
      : dense(Random(shape.dtype, shape.batch * shape.dim)),
        embedding(Random(shape.dtype, shape.batch * shape.tables * shape.dim)),
        d_out(Random(shape.dtype, shape.batch * shape.out_stride)),
        out(shape.dtype, d_out.size()),
        d_dense(shape.dtype, dense.size()),
        d_embedding(shape.dtype, embedding.size()) {}

  Array Random(DType dtype, std::int64_t count) {
    std::uniform_real_distribution<float> value(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = value(random);
    return Array(dtype, values);
  }
  void Run(const InteractionShape& shape, int threads) {
    InteractionForward(shape, dense.data(), embedding.data(), out.data(), threads);
    InteractionBackward(shape, dense.data(), embedding.data(), d_out.data(), d_dense.data(),
                        d_embedding.data(), threads);
  }

  std::mt19937_64 random{11};
  Array dense, embedding, d_out, out, d_dense, d_embedding;
};

InteractionShape Shape(std::int64_t batch, std::int64_t tables, std::int64_t dim,
                       std::int64_t padding, DType dtype) {
  return {batch, tables, dim, dim + tables * (tables + 1) / 2 + padding, dtype};
}

testing::AssertionResult Within(double value, const Bounded& reference) {
  if (std::abs(value - reference.value) <= reference.error) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << value << " is not " << reference.value << " within " << reference.error;
}

void ExpectOracle(const InteractionShape& shape, int threads) {
  SCOPED_TRACE(testing::Message() << "batch " << shape.batch << ", tables " << shape.tables
                                  << ", dim " << shape.dim << ", stride " << shape.out_stride
                                  << ", " << Name(shape.dtype) << ", threads " << threads);
  Operands run(shape);
  run.Run(shape, threads);
  const auto forward = oracle::Interaction(shape, run.dense, run.embedding);
  for (std::size_t i = 0; i < forward.size(); ++i)
    ASSERT_TRUE(Within(run.out[i], forward[i])) << "out " << i;

  const auto gradient = oracle::InteractionGradient(shape, run.dense, run.embedding, run.d_out);
  const auto dim = static_cast<std::size_t>(shape.dim);
  const std::size_t count = static_cast<std::size_t>(shape.tables) + 1;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const std::size_t b = i / (count * dim), feature = i / dim % count, d = i % dim;
    const double value = feature == 0 ? run.d_dense[b * dim + d]
                                      : run.d_embedding[(b * (count - 1) + feature - 1) * dim + d];
    ASSERT_TRUE(Within(value, gradient[i])) << "feature " << feature << ", element " << d;
  }
  EXPECT_TRUE(run.out.GuardsHold() && run.d_dense.GuardsHold() && run.d_embedding.GuardsHold());
}

TEST_P(Interaction, FollowsItsDefinitionForEveryDim) {
  for (const std::int64_t dim : {1, 4, 8, 13, 16, 17, 32, 40, 64, 128})
    for (const DType dtype : {DType::kFp32, DType::kBf16})
      ExpectOracle(Shape(3, 26, dim, 1, dtype), 1);
}

TEST_P(Interaction, FollowsItsDefinitionForEveryNumberOfTables) {
  for (std::int64_t tables = 0; tables <= 40; ++tables)
    for (const std::int64_t padding : {0, 1, 17})
      for (const DType dtype : {DType::kFp32, DType::kBf16})
        ExpectOracle(Shape(2, tables, 16, padding, dtype), 1);
}

TEST_P(Interaction, SharesSamplesOverThreads) {
  for (const int threads : {0, 2, 3, 8}) {
    ExpectOracle(Shape(5, 26, 16, 1, DType::kFp32), threads);
    ExpectOracle(Shape(1, 26, 16, 1, DType::kBf16), threads);
  }
}

TEST_P(Interaction, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    const InteractionShape shape = Shape(101, 26, 16, 1, dtype);
    Operands one(shape);
    one.Run(shape, 1);
    for (const int threads : {2, 5}) {
      Operands many(shape);
      many.Run(shape, threads);
      EXPECT_TRUE(many.out == one.out);
      EXPECT_TRUE(many.d_dense == one.d_dense);
      EXPECT_TRUE(many.d_embedding == one.d_embedding);
    }
  }
}

TEST_P(Interaction, AcceptsAnEmptyBatch) {
  const InteractionShape shape = Shape(0, 26, 16, 1, DType::kFp32);
  InteractionForward(shape, nullptr, nullptr, nullptr, 2);
  InteractionBackward(shape, nullptr, nullptr, nullptr, nullptr, nullptr, 1);
}

TEST(InteractionDeathTest, RefusesARowThatCannotHoldItsTriangle) {
  InteractionShape shape = Shape(1, 26, 16, 0, DType::kFp32);
  --shape.out_stride;
  EXPECT_DEATH(InteractionForward(shape, nullptr, nullptr, nullptr, 1), "out_stride 366");
}

}  // namespace
}  // namespace gnomon::cpu
