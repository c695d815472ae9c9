// Speed of the recommendation kernels on tables of real size: embedding forward and fused backward
// of DLRM Kaggle (26 tables, 33.76 M rows of 16) and of DLRM-DCNv2's shape (dim 128, 214 lookups a
// sample, tables capped so that they fit into 2 GiB), the dot interaction, and dense Adagrad.
//
// Batches are cut from one pool of samples and never repeat within a pass over it, so that a row is
// in a cache only because the distribution makes it hot. The backward follows an untimed forward of
// its batch, as in training. Every result is checked once before it is timed.
//
// Counters: ns per lookup or sample; GB/s of table lines: those of every lookup in the forward,
// those of every distinct row and its state in the backward; `of_random_lines`: the same lines over
// those that as many threads read from random places of the same memory. It passes 1 where hot rows
// stay in a cache or a row has several lines.

#include <benchmark/benchmark.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gnomon/families/cpu/dense_adagrad.h"
#include "gnomon/families/cpu/embedding_bag.h"
#include "gnomon/families/cpu/interaction.h"

namespace gnomon::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct TableSet {
  std::int64_t dim = 0;
  std::vector<std::int64_t> rows, hot;
};

/// Rows: facebookresearch/dlrm on Criteo Kaggle without a cap.
TableSet Kaggle() {
  return {16,
          {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
           93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
           2173,  4,    7046547,  18,      15,  286181, 105,     142572},
          std::vector<std::int64_t>(26, 1)};
}

/// Rows and hot counts: mlcommons/training recommendation_v2, rows capped at half a million.
TableSet DcnV2() {
  TableSet set{128,
               {40000000, 39060,    17295,    7424,     20265,  3,     7122, 1543, 63,
                40000000, 3067956,  405282,   10,       2209,   11938, 155,  4,    976,
                14,       40000000, 40000000, 40000000, 590152, 12973, 108,  36},
               {3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1}};
  for (std::int64_t& rows : set.rows) rows = std::min<std::int64_t>(rows, 500000);
  return set;
}

/// Zeroed memory on huge pages, for all benches: 2.2 GB of weights and the states of the longest
/// set.
struct TableMemory {
  static constexpr std::size_t kWeights = std::size_t{545} * 1000 * 1000,
                               kStates = 34 * 1000 * 1000;
  float *weights = Map(kWeights), *states = Map(kStates);

  static float* Map(std::size_t floats) {
    void* memory = mmap(nullptr, floats * sizeof(float), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    madvise(memory, floats * sizeof(float), MADV_HUGEPAGE);
    auto* values = static_cast<float*>(memory);
#pragma omp parallel for
    for (std::size_t i = 0; i < floats; ++i) values[i] = static_cast<float>(i % 1021) * 1e-3f;
    return values;
  }
  static TableMemory& Get() {
    static TableMemory memory;
    return memory;
  }
  std::vector<EmbeddingTable> Tables(const TableSet& set) const {
    std::vector<EmbeddingTable> tables;
    std::int64_t first = 0;
    for (const std::int64_t rows : set.rows) {
      tables.push_back({weights + first * set.dim, states + first, rows});
      first += rows;
    }
    return tables;
  }
};

/// Lines a second that `threads` read from random places of the weights, requested far ahead.
double RandomLinesPerSecond(int threads) {
  static std::map<int, double> known;
  if (known.contains(threads)) return known[threads];
  constexpr std::size_t kReads = 1 << 20, kAhead = 48, kFloatsPerLine = 16;
  const float* weights = TableMemory::Get().weights;
  std::mt19937_64 random(3);
  std::vector<std::size_t> at(kReads + kAhead);
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (std::size_t& a : at)
      a = random() % (TableMemory::kWeights / kFloatsPerLine) * kFloatsPerLine;
    const auto start = Clock::now();
    float total = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : total)
    for (std::size_t i = 0; i < kReads; ++i) {
      __builtin_prefetch(weights + at[i + kAhead], 0, 2);
      total += weights[at[i]];
    }
    benchmark::DoNotOptimize(total);
    best = std::max(best, static_cast<double>(kReads) / SecondsSince(start));
  }
  return known[threads] = best;
}

/// Batches of one distribution: rank by a continuous power law, ranks scattered over the rows.
struct Batches {
  static constexpr std::int64_t kSamples = 1 << 18;
  std::int64_t batch = 0;
  std::vector<std::vector<std::int64_t>> indices;  // of each batch, table-major
  std::vector<std::int64_t> offsets;               // the same for all
  double distinct_rows = 0;                        // of the first batch

  std::size_t count() const { return indices.size(); }
  EmbeddingLookups At(std::size_t i) const { return {batch, indices[i % count()], offsets}; }

  Batches(const TableSet& set, std::int64_t size, double exponent) : batch(size) {
    const std::int64_t per_sample =
        std::accumulate(set.hot.begin(), set.hot.end(), std::int64_t{0});
    const std::int64_t samples = std::max(size, kSamples * 26 / per_sample);
    offsets = {0};
    for (const std::int64_t hot : set.hot)
      for (std::int64_t b = 0; b < size; ++b) offsets.push_back(offsets.back() + hot);
    indices.resize(static_cast<std::size_t>(samples / size));
#pragma omp parallel for schedule(dynamic)
    for (std::size_t i = 0; i < indices.size(); ++i) {
      std::mt19937_64 random(i);
      for (std::size_t t = 0; t < set.rows.size(); ++t)
        for (std::int64_t p = 0; p < size * set.hot[t]; ++p)
          indices[i].push_back(Row(set.rows[t], exponent, random));
    }
    for (std::size_t t = 0; t < set.rows.size(); ++t) {
      const auto begin = indices[0].begin() + offsets[t * static_cast<std::size_t>(size)];
      std::vector<std::int64_t> rows(begin, begin + size * set.hot[t]);
      std::sort(rows.begin(), rows.end());
      distinct_rows += static_cast<double>(std::unique(rows.begin(), rows.end()) - rows.begin());
    }
  }

  static std::int64_t Row(std::int64_t rows, double exponent, std::mt19937_64& random) {
    const double u = std::uniform_real_distribution<double>()(random),
                 n = static_cast<double>(rows);
    const double rank =
        exponent == 0
            ? u * n
            : std::pow(1 + (std::pow(n + 1, 1 - exponent) - 1) * u, 1 / (1 - exponent)) - 1;
    constexpr std::uint64_t kPrime = 2654435761;  // no row count here shares a factor with it
    const auto whole = std::min<std::uint64_t>(static_cast<std::uint64_t>(rank),
                                               static_cast<std::uint64_t>(rows - 1));
    return static_cast<std::int64_t>(whole * kPrime % static_cast<std::uint64_t>(rows));
  }
};

/// One bench's tables and batches; the last one made is kept, since making them takes longer than a
/// bench.
struct Case {
  TableSet set;
  std::vector<EmbeddingTable> tables;
  Batches batches;
  std::vector<float> pooled, grad;

  Case(TableSet s, std::int64_t batch, double exponent)
      : set(std::move(s)),
        tables(TableMemory::Get().Tables(set)),
        batches(set, batch, exponent),
        pooled(static_cast<std::size_t>(batch * set.dim) * set.rows.size()),
        grad(pooled.size()) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> value(-0.01f, 0.01f);
    for (float& g : grad) g = value(random);
  }
  static Case& Get(bool dcn, std::int64_t batch, double exponent) {
    static std::map<std::string, std::unique_ptr<Case>> kept;
    const std::string key =
        std::to_string(dcn) + " " + std::to_string(batch) + " " + std::to_string(exponent);
    if (!kept.contains(key)) {
      kept.clear();
      kept[key] = std::make_unique<Case>(dcn ? DcnV2() : Kaggle(), batch, exponent);
    }
    return *kept[key];
  }
  double lookups() const { return static_cast<double>(batches.offsets.back()); }
  double lines_per_row() const { return std::ceil(static_cast<double>(set.dim) * 4 / 64); }

  bool Forward(std::size_t i, int threads) {
    return EmbeddingForward(tables, set.dim, batches.At(i), pooled.data(), DType::kFp32, threads)
        .ok();
  }
  void Backward(std::size_t i, int threads) {
    EmbeddingBackwardAdagrad(tables, set.dim, batches.At(i), grad.data(), DType::kFp32, {},
                             threads);
  }
};

/// Is element 0 of every bag the sum of its rows' elements?
bool ForwardHolds(Case& c, int threads) {
  if (!c.Forward(0, threads)) return false;
  const EmbeddingLookups lookups = c.batches.At(0);
  const auto batch = static_cast<std::size_t>(lookups.batch),
             dim = static_cast<std::size_t>(c.set.dim);
  for (std::size_t t = 0; t < c.tables.size(); ++t)
    for (std::size_t b = 0; b < batch; ++b) {
      double sum = 0, size = 1e-30;
      for (auto p = lookups.offsets[t * batch + b]; p < lookups.offsets[t * batch + b + 1]; ++p) {
        const double w =
            c.tables[t].weight[lookups.indices[static_cast<std::size_t>(p)] * c.set.dim];
        sum += w;
        size += std::abs(w);
      }
      if (std::abs(c.pooled[(b * c.tables.size() + t) * dim] - sum) > 1e-5 * size) return false;
    }
  return true;
}

/// Does the first row that every table looks up get the state and element 0 of its definition?
bool BackwardHolds(Case& c, int threads) {
  const EmbeddingLookups lookups = c.batches.At(0);
  const auto batch = static_cast<std::size_t>(lookups.batch),
             dim = static_cast<std::size_t>(c.set.dim);
  std::vector<double> states, weights;
  std::vector<std::int64_t> rows;
  for (std::size_t t = 0; t < c.tables.size(); ++t) {
    const std::int64_t row = lookups.indices[static_cast<std::size_t>(lookups.offsets[t * batch])];
    std::vector<double> g(dim, 0.0);
    for (std::size_t b = 0; b < batch; ++b)
      for (auto p = lookups.offsets[t * batch + b]; p < lookups.offsets[t * batch + b + 1]; ++p)
        if (lookups.indices[static_cast<std::size_t>(p)] == row)
          for (std::size_t d = 0; d < dim; ++d) g[d] += c.grad[(b * c.tables.size() + t) * dim + d];
    double square = 0;
    for (const double x : g) square += x * x;
    rows.push_back(row);
    states.push_back(c.tables[t].state[row] + square / static_cast<double>(dim));
    weights.push_back(c.tables[t].weight[row * c.set.dim] -
                      AdagradParams().learning_rate * g[0] /
                          (std::sqrt(states[t]) + AdagradParams().epsilon));
  }
  c.Backward(0, threads);
  for (std::size_t t = 0; t < c.tables.size(); ++t) {
    const double state = c.tables[t].state[rows[t]],
                 weight = c.tables[t].weight[rows[t] * c.set.dim];
    if (std::abs(state - states[t]) > 1e-4 * states[t] + 1e-9 ||
        std::abs(weight - weights[t]) > 1e-5)
      return false;
  }
  return true;
}

void Report(benchmark::State& state, const Case& c, double lines, int threads) {
  const double steps = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["lookups/s"] = Counter(c.lookups() * steps, Counter::kIsRate);
  state.counters["ns/lookup"] =
      Counter(c.lookups() * steps * 1e-9, Counter::kIsRate | Counter::kInvert);
  state.counters["GB/s"] = Counter(lines * 64e-9 * steps, Counter::kIsRate);
  state.counters["distinct"] = c.batches.distinct_rows / c.lookups();
  state.counters["of_random_lines"] =
      Counter(lines * steps / RandomLinesPerSecond(threads), Counter::kIsRate);
}

void EmbeddingForwardBench(benchmark::State& state, bool dcn) {
  Case& c = Case::Get(dcn, state.range(0), static_cast<double>(state.range(1)) * 0.01);
  const int threads = static_cast<int>(state.range(2));
  if (!ForwardHolds(c, threads)) return state.SkipWithError("wrong result");
  std::size_t i = 1;
  for (auto _ : state) {
    if (!c.Forward(i++, threads)) return state.SkipWithError("refused");
    benchmark::DoNotOptimize(c.pooled.data());
  }
  Report(state, c, c.lookups() * c.lines_per_row(), threads);
}

void EmbeddingBackwardBench(benchmark::State& state, bool dcn) {
  Case& c = Case::Get(dcn, state.range(0), static_cast<double>(state.range(1)) * 0.01);
  const int threads = static_cast<int>(state.range(2));
  if (!BackwardHolds(c, threads)) return state.SkipWithError("wrong result");
  std::size_t i = 1;
  for (auto _ : state) {
    if (!c.Forward(i, threads)) return state.SkipWithError("refused");
    const auto start = Clock::now();
    c.Backward(i++, threads);
    state.SetIterationTime(SecondsSince(start));
  }
  Report(state, c, c.batches.distinct_rows * (c.lines_per_row() + 1), threads);
}

/// Operands of the interaction on one pool of memory, as two-byte or four-byte values.
struct InteractionCase {
  InteractionShape shape;
  std::vector<float> dense, embedding, out, d_dense, d_embedding;

  explicit InteractionCase(const benchmark::State& state) {
    shape = {state.range(0), 26, state.range(1), 0,
             state.range(2) == 0 ? DType::kFp32 : DType::kBf16};
    shape.out_stride = (shape.dim + 351 + 15) / 16 * 16;
    const auto batch = static_cast<std::size_t>(shape.batch),
               dim = static_cast<std::size_t>(shape.dim);
    dense.resize(batch * dim);
    embedding.resize(batch * dim * 26);
    d_dense = dense;
    d_embedding = embedding;
    out.resize(batch * static_cast<std::size_t>(shape.out_stride));
    // Every bit pattern here is a small number in both formats.
    const std::uint32_t small = 0x3d803d80u;
    for (auto* values : {&dense, &embedding})
      for (std::size_t i = 0; i < values->size(); ++i)
        std::memcpy(&(*values)[i], &small, sizeof small);
  }
  /// All elements are equal, so every product is dim times their square.
  bool Holds(int threads) {
    InteractionForward(shape, dense.data(), embedding.data(), out.data(), threads);
    std::uint16_t half = 0;
    std::memcpy(&half, out.data() + (shape.dtype == DType::kBf16 ? shape.dim / 2 : shape.dim), 2);
    float product = out[static_cast<std::size_t>(shape.dim)];
    if (shape.dtype == DType::kBf16) {
      const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
      std::memcpy(&product, &bits, sizeof bits);
    }
    return std::abs(product - static_cast<float>(shape.dim) * 0.00390625f) < 0.02f * product;
  }
};

void InteractionBench(benchmark::State& state, bool backward) {
  InteractionCase c(state);
  const int threads = static_cast<int>(state.range(3));
  if (!c.Holds(threads)) return state.SkipWithError("wrong result");
  for (auto _ : state) {
    if (backward) {
      InteractionBackward(c.shape, c.dense.data(), c.embedding.data(), c.out.data(),
                          c.d_dense.data(), c.d_embedding.data(), threads);
    } else {
      InteractionForward(c.shape, c.dense.data(), c.embedding.data(), c.out.data(), threads);
    }
  }
  using benchmark::Counter;
  const double samples = static_cast<double>(c.shape.batch * state.iterations());
  state.counters["ns/sample"] = Counter(samples * 1e-9, Counter::kIsRate | Counter::kInvert);
  state.counters["GFLOP/s"] =
      Counter(samples * 351 * 2e-9 * static_cast<double>(c.shape.dim) * (backward ? 2 : 1),
              Counter::kIsRate);
}

void DenseAdagradBench(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<float> weight(size, 1.0f), grad(size, 0.5f), sum(size, 0.0f);
  std::vector<std::uint16_t> copy(size);
  const DenseParameter parameter{weight.data(), grad.data(), sum.data(), copy.data(),
                                 state.range(0)};
  for (auto _ : state) DenseAdagrad({&parameter, 1}, {}, static_cast<int>(state.range(1)));
  if (std::abs(sum[size / 2] - 0.25f * static_cast<float>(state.iterations())) >
      1e-3f * sum[size / 2])
    return state.SkipWithError("wrong result");
  using benchmark::Counter;
  const double elements = static_cast<double>(state.range(0) * state.iterations());
  state.counters["ns/element"] = Counter(elements * 1e-9, Counter::kIsRate | Counter::kInvert);
  state.counters["GB/s"] = Counter(elements * 22e-9, Counter::kIsRate);
}

void KaggleArgs(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"batch", "zipf%", "threads"})
      ->ArgsProduct({{512, 1024, 2048, 8192}, {0, 105, 120}, {1, 2}});
}
void DcnArgs(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"batch", "zipf%", "threads"})->ArgsProduct({{512, 2048}, {0, 105}, {1, 2}});
}
void InteractionArgs(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"batch", "dim", "bf16", "threads"})
      ->ArgsProduct({{128, 2048}, {16, 64, 128}, {0, 1}, {1, 2}});
}

BENCHMARK_CAPTURE(EmbeddingForwardBench, kaggle, false)
    ->Apply(KaggleArgs)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK_CAPTURE(EmbeddingBackwardBench, kaggle, false)
    ->Apply(KaggleArgs)
    ->UseManualTime()
    ->MinTime(0.1);
BENCHMARK_CAPTURE(EmbeddingForwardBench, dcnv2, true)->Apply(DcnArgs)->UseRealTime()->MinTime(0.1);
BENCHMARK_CAPTURE(EmbeddingBackwardBench, dcnv2, true)
    ->Apply(DcnArgs)
    ->UseManualTime()
    ->MinTime(0.1);
BENCHMARK_CAPTURE(InteractionBench, forward, false)
    ->Apply(InteractionArgs)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK_CAPTURE(InteractionBench, backward, true)
    ->Apply(InteractionArgs)
    ->UseRealTime()
    ->MinTime(0.1);
BENCHMARK(DenseAdagradBench)
    ->ArgNames({"size", "threads"})
    ->ArgsProduct({{100000, 500000, 16000000}, {1, 2}})
    ->UseRealTime()
    ->MinTime(0.1);

}  // namespace
}  // namespace gnomon::cpu
