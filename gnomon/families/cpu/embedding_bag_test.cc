// Embedding bags and their fused update against the fp64 oracle: dims that are and are not whole
// vectors, empty and multi-hot bags, repeated rows, both dtypes, any number of threads, bad input.

#include "gnomon/families/cpu/embedding_bag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "oracle/bf16.h"
#include "oracle/embedding.h"
#include "oracle/vector_level.h"

namespace gnomon::cpu {
namespace {

using oracle::Array;
using oracle::Bounded;
using ::testing::HasSubstr;

// Every kernel test runs on every vector level.
class EmbeddingForwardTest : public oracle::VectorLevel {};
class EmbeddingBackwardTest : public oracle::VectorLevel {};
GNOMON_ON_EACH_LEVEL(EmbeddingForwardTest);
GNOMON_ON_EACH_LEVEL(EmbeddingBackwardTest);

enum class Bags { kOneHot, kMixed, kSameRow };

/// Tables with random weights and states, and a batch of lookups in them.
class Batch {
 public:
  Batch(std::vector<std::int64_t> rows, std::int64_t dim, std::int64_t batch, Bags bags)
      : rows_(std::move(rows)), dim_(dim) {
    std::uniform_real_distribution<float> weight(-1, 1), state(0.01f, 1);
    for (const std::int64_t count : rows_) {
      weights_.emplace_back(DType::kFp32, static_cast<std::size_t>(count * dim));
      states_.emplace_back(DType::kFp32, static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < weights_.back().size(); ++i)
        weights_.back().Set(i, weight(random_));
      for (std::size_t i = 0; i < states_.back().size(); ++i) states_.back().Set(i, state(random_));
    }
    offsets_ = {0};
    for (const std::int64_t count : rows_) {
      std::uniform_int_distribution<std::int64_t> row(0, count - 1);
      for (std::int64_t b = 0; b < batch; ++b) {
        const std::int64_t size =
            bags == Bags::kMixed ? static_cast<std::int64_t>(random_() % 4) : 1;
        for (std::int64_t p = 0; p < size; ++p) {
          // The product of two draws is skewed towards the first rows, as real lookups are.
          const std::int64_t skewed = row(random_) * row(random_) / count;
          indices_.push_back(bags == Bags::kSameRow ? count / 2 : skewed);
        }
        offsets_.push_back(static_cast<std::int64_t>(indices_.size()));
      }
    }
    lookups_ = {batch, indices_, offsets_};
  }

  std::vector<EmbeddingTable> Tables() {
    std::vector<EmbeddingTable> tables;
    for (std::size_t t = 0; t < rows_.size(); ++t)
      tables.push_back({static_cast<float*>(weights_[t].data()),
                        static_cast<float*>(states_[t].data()), rows_[t]});
    return tables;
  }
  std::size_t OutSize() const {
    return static_cast<std::size_t>(lookups_.batch * dim_) * rows_.size();
  }
  Array Gradient(DType dtype) {
    std::uniform_real_distribution<float> value(-1, 1);
    std::vector<float> values(OutSize());
    for (float& v : values) v = value(random_);
    return Array(dtype, values);
  }

  std::int64_t dim() const { return dim_; }
  EmbeddingLookups& lookups() { return lookups_; }
  std::vector<std::int64_t>& indices() { return indices_; }
  std::vector<std::int64_t>& offsets() { return offsets_; }
  std::vector<Array>& weights() { return weights_; }
  std::vector<Array>& states() { return states_; }

 private:
  std::mt19937_64 random_{7};
  std::vector<std::int64_t> rows_;
  std::int64_t dim_;
  std::vector<Array> weights_, states_;
  std::vector<std::int64_t> indices_, offsets_;
  EmbeddingLookups lookups_;
};

/// Index of the first value that is further from the reference than its bound; -1 if none.
std::ptrdiff_t FirstWrong(const Array& values, const std::vector<Bounded>& reference) {
  EXPECT_EQ(values.size(), reference.size());
  for (std::size_t i = 0; i < reference.size(); ++i)
    if (!(std::abs(values[i] - reference[i].value) <= reference[i].error)) {
      ADD_FAILURE() << "element " << i << " is " << values[i] << ", not " << reference[i].value
                    << " within " << reference[i].error;
      return static_cast<std::ptrdiff_t>(i);
    }
  return -1;
}

constexpr std::int64_t kDims[] = {1, 3, 4, 8, 13, 16, 24, 31, 32, 48, 64, 100, 128, 144, 256};
constexpr DType kDTypes[] = {DType::kFp32, DType::kBf16};
const std::vector<std::int64_t> kRows = {50, 1, 7, 2000, 300};

void ExpectForward(Batch batch, DType dtype, int threads) {
  Array out(dtype, batch.OutSize());
  const auto tables = batch.Tables();
  ASSERT_TRUE(
      EmbeddingForward(tables, batch.dim(), batch.lookups(), out.data(), dtype, threads).ok());
  EXPECT_EQ(FirstWrong(out, oracle::EmbeddingForward(tables, batch.dim(), batch.lookups(), dtype)),
            -1)
      << "dim " << batch.dim() << ", " << Name(dtype) << ", threads " << threads;
  EXPECT_TRUE(out.GuardsHold());
}

TEST_P(EmbeddingForwardTest, CopiesTheRowOfEachOneHotBag) {
  for (const std::int64_t dim : kDims)
    for (const DType dtype : kDTypes) ExpectForward({kRows, dim, 70, Bags::kOneHot}, dtype, 1);
}

TEST_P(EmbeddingForwardTest, SumsMultiHotBagsAndGivesZerosForEmptyOnes) {
  for (const std::int64_t dim : kDims)
    for (const DType dtype : kDTypes) ExpectForward({kRows, dim, 70, Bags::kMixed}, dtype, 1);
}

TEST_P(EmbeddingForwardTest, HandlesOneTableOneSampleAndMoreThreadsThanBags) {
  for (const int threads : {1, 2, 5, 0}) {
    ExpectForward({{9}, 16, 1, Bags::kOneHot}, DType::kFp32, threads);
    ExpectForward({{9}, 4, 3, Bags::kMixed}, DType::kFp32, threads);
    ExpectForward({kRows, 16, 33, Bags::kMixed}, DType::kBf16, threads);
  }
}

TEST_P(EmbeddingForwardTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const Bags bags : {Bags::kOneHot, Bags::kMixed}) {
    Batch batch(kRows, 16, 5000, bags);  // enough for the parallel check of indices as well
    Array one(DType::kFp32, batch.OutSize());
    ASSERT_TRUE(
        EmbeddingForward(batch.Tables(), 16, batch.lookups(), one.data(), DType::kFp32, 1).ok());
    for (const int threads : {2, 3, 7}) {
      Array out(DType::kFp32, batch.OutSize());
      ASSERT_TRUE(
          EmbeddingForward(batch.Tables(), 16, batch.lookups(), out.data(), DType::kFp32, threads)
              .ok());
      EXPECT_TRUE(out == one) << threads;
    }
  }
}

TEST_P(EmbeddingForwardTest, AcceptsAnEmptyBatchAndNoTables) {
  const std::vector<std::int64_t> offsets = {0};
  EXPECT_TRUE(EmbeddingForward({}, 16, {4, {}, offsets}, nullptr, DType::kFp32, 1).ok());
  std::vector<EmbeddingTable> tables(3);
  EXPECT_TRUE(EmbeddingForward(tables, 16, {0, {}, offsets}, nullptr, DType::kFp32, 2).ok());
}

TEST_P(EmbeddingForwardTest, ReadsOnlyTheIndicesThatTheOffsetsName) {
  Batch batch({50, 60}, 16, 4, Bags::kOneHot);
  // The same bags behind two indices that no table has.
  batch.indices().insert(batch.indices().begin(), {-5, 1000});
  for (std::int64_t& offset : batch.offsets()) offset += 2;
  batch.lookups() = {4, batch.indices(), batch.offsets()};
  ExpectForward(batch, DType::kFp32, 1);
}

TEST_P(EmbeddingForwardTest, NamesTableSampleAndIndexOutsideItsTableAndWritesNothing) {
  for (const std::int64_t bad :
       {std::int64_t{300}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()})
    for (const int threads : {1, 2})
      for (const std::size_t sample : {0u, 63u, 69u}) {
        Batch batch(kRows, 16, 70, Bags::kOneHot);
        batch.indices()[4 * 70 + sample] = bad;
        Array out(DType::kFp32, batch.OutSize());
        const Status status = EmbeddingForward(batch.Tables(), 16, batch.lookups(), out.data(),
                                               DType::kFp32, threads);
        ASSERT_FALSE(status.ok());
        const std::string text = status.error().Text();
        EXPECT_THAT(text, HasSubstr("index " + std::to_string(bad) + " of sample " +
                                    std::to_string(sample) + " is outside table 4 of 300 rows"));
        EXPECT_THAT(text,
                    HasSubstr(bad < 0 ? "nearest valid index is 0" : "nearest valid index is 299"));
        EXPECT_TRUE(out.Untouched());
      }
}

TEST_P(EmbeddingForwardTest, RefusesOffsetsThatDescendOrLeaveTheIndices) {
  const auto text_of = [](Batch& batch) {
    Array out(DType::kFp32, batch.OutSize());
    const Status status =
        EmbeddingForward(batch.Tables(), 16, batch.lookups(), out.data(), DType::kFp32, 1);
    EXPECT_TRUE(out.Untouched());
    return status.ok() ? "accepted" : status.error().Text();
  };
  Batch descending(kRows, 16, 70, Bags::kOneHot);
  descending.offsets()[100] = 7;
  EXPECT_THAT(text_of(descending), HasSubstr("do not ascend"));
  Batch wrapping(kRows, 16, 70, Bags::kOneHot);  // each step looks positive in 64 bits
  wrapping.offsets()[20] = std::numeric_limits<std::int64_t>::max();
  wrapping.offsets()[21] = std::numeric_limits<std::int64_t>::min();
  wrapping.offsets()[22] = -1;
  EXPECT_THAT(text_of(wrapping), HasSubstr("do not ascend"));
  Batch beyond(kRows, 16, 70, Bags::kOneHot);
  beyond.offsets().back() += 1;
  EXPECT_THAT(text_of(beyond),
              HasSubstr("at most 350, the number of indices: they run from 0 to 351"));
  Batch short_one(kRows, 16, 70, Bags::kOneHot);
  short_one.offsets().pop_back();
  short_one.lookups().offsets = short_one.offsets();
  EXPECT_THAT(text_of(short_one),
              HasSubstr("350 offsets for 5 tables and a batch of 70; there must be 351"));
}

TEST_P(EmbeddingForwardTest, RefusesOtherDTypesAndDims) {
  Batch batch({9}, 16, 1, Bags::kOneHot);
  Array out(DType::kFp32, batch.OutSize());
  const Status half =
      EmbeddingForward(batch.Tables(), 16, batch.lookups(), out.data(), DType::kFp16, 1);
  ASSERT_FALSE(half.ok());
  EXPECT_THAT(half.error().Text(), HasSubstr("valid: fp32, bf16"));
  EXPECT_FALSE(
      EmbeddingForward(batch.Tables(), 0, batch.lookups(), out.data(), DType::kFp32, 1).ok());
}

void ExpectUpdate(Batch batch, DType dtype, int threads) {
  const AdagradParams params{0.05f, 1e-6f};
  Array grad = batch.Gradient(dtype);
  const auto tables = batch.Tables();
  std::vector<oracle::AdagradReference> references;
  for (std::size_t t = 0; t < tables.size(); ++t)
    references.push_back(oracle::RowWiseAdagrad(tables[t], t, tables.size(), batch.dim(),
                                                batch.lookups(), grad, params));
  EmbeddingBackwardAdagrad(tables, batch.dim(), batch.lookups(), grad.data(), dtype, params,
                           threads);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    EXPECT_EQ(FirstWrong(batch.weights()[t], references[t].weight), -1)
        << "weight of table " << t << ", dim " << batch.dim() << ", " << Name(dtype);
    EXPECT_EQ(FirstWrong(batch.states()[t], references[t].state), -1)
        << "state of table " << t << ", dim " << batch.dim() << ", " << Name(dtype);
    EXPECT_TRUE(batch.weights()[t].GuardsHold() && batch.states()[t].GuardsHold());
  }
}

TEST_P(EmbeddingBackwardTest, UpdatesEachRowOnceWithItsWholeGradient) {
  for (const std::int64_t dim : kDims)
    for (const DType dtype : kDTypes)
      for (const Bags bags : {Bags::kOneHot, Bags::kMixed})
        ExpectUpdate({kRows, dim, 70, bags}, dtype, 1);
}

TEST_P(EmbeddingBackwardTest, AddsAllGradientsWhereEverySampleHitsTheSameRow) {
  for (const int threads : {1, 2})
    ExpectUpdate({{1000, 40, 1}, 16, 6000, Bags::kSameRow}, DType::kFp32, threads);
}

TEST_P(EmbeddingBackwardTest, HandlesOneTableAndOneSample) {
  ExpectUpdate({{5}, 16, 1, Bags::kOneHot}, DType::kFp32, 0);
  ExpectUpdate({{5}, 13, 1, Bags::kOneHot}, DType::kBf16, 2);
}

TEST_P(EmbeddingBackwardTest, LeavesTablesAloneWithoutLookups) {
  Batch batch({20, 30}, 16, 3, Bags::kOneHot);
  batch.offsets().assign(7, 0);
  const Array weight = batch.weights()[0], state = batch.states()[1];
  Array grad = batch.Gradient(DType::kFp32);
  EmbeddingBackwardAdagrad(batch.Tables(), 16, batch.lookups(), grad.data(), DType::kFp32, {}, 2);
  EXPECT_TRUE(batch.weights()[0] == weight);
  EXPECT_TRUE(batch.states()[1] == state);
}

TEST_P(EmbeddingBackwardTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  // A dominating table of many rows, which more threads split into shards, beside small ones.
  for (const Bags bags : {Bags::kOneHot, Bags::kMixed, Bags::kSameRow}) {
    const std::vector<std::int64_t> rows = {60000, 3};
    Batch one(rows, 16, 12000, bags);
    Array grad = one.Gradient(DType::kFp32);
    EmbeddingBackwardAdagrad(one.Tables(), 16, one.lookups(), grad.data(), DType::kFp32, {}, 1);
    for (const int threads : {2, 3, 8}) {
      Batch many(rows, 16, 12000, bags);
      EmbeddingBackwardAdagrad(many.Tables(), 16, many.lookups(), grad.data(), DType::kFp32, {},
                               threads);
      for (std::size_t t = 0; t < rows.size(); ++t) {
        EXPECT_TRUE(many.weights()[t] == one.weights()[t]) << threads << " threads, table " << t;
        EXPECT_TRUE(many.states()[t] == one.states()[t]) << threads << " threads, table " << t;
      }
    }
  }
}

TEST_P(EmbeddingBackwardTest, IsNotDisturbedByTheBatchBefore) {
  Batch fresh({5000, 10}, 16, 400, Bags::kMixed), used({5000, 10}, 16, 400, Bags::kMixed);
  Array grad = fresh.Gradient(DType::kFp32);
  EmbeddingBackwardAdagrad(fresh.Tables(), 16, fresh.lookups(), grad.data(), DType::kFp32, {}, 1);
  Batch other({70000, 3}, 16, 3000, Bags::kOneHot);
  Array other_grad = other.Gradient(DType::kFp32);
  EmbeddingBackwardAdagrad(other.Tables(), 16, other.lookups(), other_grad.data(), DType::kFp32, {},
                           1);
  EmbeddingBackwardAdagrad(used.Tables(), 16, used.lookups(), grad.data(), DType::kFp32, {}, 1);
  EXPECT_TRUE(used.weights()[0] == fresh.weights()[0]);
  EXPECT_TRUE(used.states()[1] == fresh.states()[1]);
}

TEST(EmbeddingBackwardDeathTest, RefusesAnIndexOutsideItsTable) {
  Batch batch({50}, 16, 4, Bags::kOneHot);
  batch.indices()[2] = 50;
  Array grad = batch.Gradient(DType::kFp32);
  EXPECT_DEATH(EmbeddingBackwardAdagrad(batch.Tables(), 16, batch.lookups(), grad.data(),
                                        DType::kFp32, {}, 1),
               "index 50 of sample 2");
}

}  // namespace
}  // namespace gnomon::cpu
