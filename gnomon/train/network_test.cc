// One training step of every lever against the same step in fp64.
//
//   fp64 state, rounded to fp32  ->  fp64 step   ->  loss, parameters, optimiser state
//                                \-> lever's step ->  the same, within what fp32 sums can lose
//
// Whole fp32 trajectories cannot be compared closely. A unit within a rounding of ReLU's kink takes
// one branch or the other, and where no gradient came before, Adagrad's step is a learning rate
// long however small the gradient: at batch 256 one such unit (z = -5e-8 in fp64, +6e-8 in fp32)
// moved the losses of the steps after it by 1e-5, and of the 17th by 3e-4. So each step starts from
// the reference's state, on a batch that leaves no unit on its kink.

#include "gnomon/train/network.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "gnomon/train/data_synthetic.h"

namespace gnomon::train {
namespace {

constexpr std::int64_t kRows = 2000, kBatch = 32, kSteps = 4, kMostBatches = 50, kPad = 16;
constexpr std::uint64_t kSeed = 1;
constexpr double kRate = 0.001;
const double kRounding = std::ldexp(1.0, -24);  // fp32, to nearest

// By name, as Network::Buffers and without padding; "tables" and "tables_state" are the merged
// tables. Doubles that fp32 can hold.
using State = std::map<std::string, at::Tensor>;

double Largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

// A sum of k rounded products in any order loses about √k roundings of its size (Higham and Mary
// 2019). A layer's sums see the losses of the layers before them, so these add up: relative to the
// largest value of a tensor.
double SumLoss(std::int64_t k) { return kRounding * std::sqrt(static_cast<double>(k)); }

// What the fp64 step gives, and how far a step in fp32 may be from it.
struct Reference {
  State before, after, tolerance;
  double loss = 0, loss_tolerance = 0;
  bool on_a_kink = false;  // some unit is so close to zero that fp32 may take the other branch
};

class Fp64Step {
 public:
  Fp64Step(const Model& model, const SampleShape& shape) : model_(model), shape_(shape) {}

  Reference Run(const State& before, const Batch& batch) {
    out_ = {};
    out_.before = before;
    leaves_.clear();
    forward_loss_ = 0;
    for (const auto& [name, values] : before) {
      if (!name.ends_with("_state")) leaves_[name] = values.clone().set_requires_grad(true);
    }
    const at::Tensor logits = Mlp("top", Interaction(Mlp("bottom", Dense(batch)), Bags(batch)));
    const at::Tensor labels = at::tensor(batch.labels).to(at::kDouble);
    const at::Tensor z = logits.reshape({batch.size});
    const at::Tensor loss = at::binary_cross_entropy_with_logits(z, labels);
    loss.backward();
    out_.loss = loss.item<double>();
    // The loss has slope 1 at most in each logit; its own exp, log and mean are a few roundings.
    out_.loss_tolerance = forward_loss_ * Largest(z) + SumLoss(batch.size) * out_.loss;
    for (const auto& [name, leaf] : leaves_) Update(name, leaf.detach(), leaf.grad());
    return out_;
  }

 private:
  at::Tensor Dense(const Batch& batch) const {
    return at::tensor(batch.dense).to(at::kDouble).view({batch.size, shape_.dense_features});
  }

  at::Tensor Bags(const Batch& batch) const {
    std::vector<at::Tensor> pooled;
    std::int64_t base = 0;
    const at::Tensor rows = at::tensor(batch.indices, at::kLong).view({-1, batch.size});
    for (std::int64_t t = 0; t < shape_.tables(); ++t) {
      pooled.push_back(at::index_select(leaves_.at("tables"), 0, rows[t] + base));
      base += shape_.table_rows[static_cast<std::size_t>(t)];
    }
    return at::stack(pooled, 1);
  }

  at::Tensor Interaction(const at::Tensor& dense, const at::Tensor& bags) {
    forward_loss_ += SumLoss(dense.size(1));
    const at::Tensor vectors = at::cat({dense.unsqueeze(1), bags}, 1);
    std::vector<at::Tensor> columns = {dense};
    for (std::int64_t i = 1; i < vectors.size(1); ++i) {
      const at::Tensor dots = (vectors.slice(1, 0, i) * vectors.slice(1, i, i + 1)).sum(2);
      columns.push_back(dots);
    }
    return at::cat(columns, 1);
  }

  at::Tensor Mlp(const std::string& name, at::Tensor x) {
    const Block& block = *model_.FindBlock(name);
    for (std::size_t i = 0; i < block.widths.size(); ++i) {
      const std::string layer = fmt::format("{}{}", name, i);
      const at::Tensor z =
          at::addmm(leaves_.at(layer + ".bias"), x, leaves_.at(layer + ".weight").t());
      forward_loss_ += SumLoss(x.size(1));
      if (i + 1 == block.widths.size() && !block.last_relu) return z;
      const double nearest = z.abs().min().item<double>();
      if (nearest < forward_loss_ * Largest(z)) out_.on_a_kink = true;
      x = at::relu(z);
    }
    return x;
  }

  // Adagrad in fp64: s ← s + g², w ← w - rate·g/(√s + ε); a table's row has the mean of g² in s.
  void Update(const std::string& name, const at::Tensor& weight, const at::Tensor& gradient) {
    const bool row_wise = name == "tables";
    const auto size = [&](const at::Tensor& g) {
      return row_wise ? g.square().mean(1) : g.square();
    };
    const auto each = [&](const at::Tensor& s) { return row_wise ? s.unsqueeze(1) : s; };
    const std::string state_name = name + "_state";
    const at::Tensor& state = out_.before.at(state_name);
    const at::Tensor new_state = state + size(gradient);
    const at::Tensor divisor = each(new_state.sqrt() + model_.epsilon);
    out_.after[name] = weight - kRate * gradient / divisor;
    out_.after[state_name] = new_state;

    // The backward passes through as many sums again, and one over the batch: `off` bounds the
    // gradient's error. It moves √s by no more than `off`, and g/√s by off/√s (a row: 1 + √dim
    // times that, as |g| ≤ √dim·√s) — or by all of g/√s twice over, where g is no more than error.
    const double off = (2 * forward_loss_ + SumLoss(kBatch)) * Largest(gradient);
    const double reach = row_wise ? std::sqrt(static_cast<double>(weight.size(1))) : 1;
    const at::Tensor least =
        each((state + at::clamp_min(size(gradient).sqrt() - off, 0).square()).sqrt()) +
        model_.epsilon;
    const at::Tensor touched = gradient.ne(0).to(at::kDouble);
    const at::Tensor step = at::clamp_max((row_wise ? 1 + reach : 1) * off / least, 2 * reach);
    // The update itself: quotient, product, difference.
    const at::Tensor rounding = 4 * kRounding * (weight.abs() + kRate * reach);
    out_.tolerance[name] = touched * (kRate * step + rounding);
    const at::Tensor touched_state = row_wise ? touched.amax(1) : touched;
    out_.tolerance[state_name] =
        touched_state * (2 * off * size(gradient).sqrt() + off * off + 4 * kRounding * new_state);
  }

  const Model& model_;
  const SampleShape& shape_;
  std::map<std::string, at::Tensor> leaves_;
  double forward_loss_ = 0;  // of the sums so far
  Reference out_;
};

// A network with its tables, whose whole state can be set and read.
class Trainer {
 public:
  Trainer(const Plan& plan, const SampleShape& shape) : shape_(shape) {
    auto tables = TableStorage::Allocate(shape, plan.model.embedding_dim);
    GNOMON_CHECK(tables.ok(), "{}", tables.error().Text());
    tables_ = std::move(*tables);
    tables_->Reset(kSeed, plan.recipe.threads);
    auto network = BuildNetwork(plan, shape, *tables_, kSeed);
    GNOMON_CHECK(network.ok(), "{}", network.error().Text());
    network_ = std::move(*network);
  }

  State Read() {
    State state;
    for (auto& [name, values] : Views())
      state[name] = Logical(name, values).to(at::kDouble).clone();
    return state;
  }
  void Write(const State& state) {
    for (auto& [name, values] : Views()) Logical(name, values).copy_(state.at(name));
    network_->Refresh();
  }
  // Largest value in the columns that only pad.
  double Padding() {
    double largest = 0;
    for (auto& [name, values] : Views()) {
      const std::int64_t width = Logical(name, values).size(-1);
      if (values.size(-1) > width) largest = std::max(largest, Largest(values.slice(-1, width)));
    }
    return largest;
  }
  double Step(const Samples& samples) {
    Batch batch;
    MakeBatch(shape_, samples, 0, kBatch, network_->layout(), batch);
    return network_->Step(batch);
  }

 private:
  // The memory itself, padding included.
  std::map<std::string, at::Tensor> Views() {
    std::map<std::string, at::Tensor> views;
    std::map<std::string, std::int64_t> width_of;
    for (const NamedBuffer& buffer : network_->Buffers()) {
      const auto size = static_cast<std::int64_t>(buffer.values.size());
      const std::string layer = buffer.name.substr(0, buffer.name.find('.'));
      at::Tensor values = at::from_blob(buffer.values.data(), {size}, at::kFloat);
      if (buffer.name.find(".weight") != std::string::npos) values = values.view({-1, In(layer)});
      views[buffer.name] = values;
    }
    views["tables"] =
        at::from_blob(tables_->weight(), {tables_->total_rows(), tables_->dim()}, at::kFloat);
    views["tables_state"] = at::from_blob(tables_->state(), {tables_->total_rows()}, at::kFloat);
    return views;
  }
  std::int64_t In(const std::string& layer) {
    std::int64_t weights = 0, out = 0;
    for (const NamedBuffer& buffer : network_->Buffers()) {
      if (buffer.name == layer + ".weight") weights = std::ssize(buffer.values);
      if (buffer.name == layer + ".bias") out = std::ssize(buffer.values);
    }
    return weights / out;
  }
  at::Tensor Logical(const std::string& name, const at::Tensor& values) const {
    const std::int64_t pairs = shape_.tables() * (shape_.tables() + 1) / 2;
    if (name.starts_with("bottom0.weight")) return values.slice(1, 0, shape_.dense_features);
    if (name.starts_with("top0.weight")) return values.slice(1, 0, tables_->dim() + pairs);
    return values;
  }

  const SampleShape& shape_;
  std::unique_ptr<TableStorage> tables_;
  std::unique_ptr<Network> network_;
};

struct Lever {
  const char* name;
  void (*change)(Recipe&);
};

class NetworkStep : public testing::TestWithParam<Lever> {
 protected:
  struct Run {
    Plan plan;
    SampleShape shape;
    std::vector<Samples> samples;
    std::vector<Reference> steps;
  };

  // The reference's steps, the same for every lever.
  static const Run& Fp64() {
    static const Run run = MakeRun();
    return run;
  }

 private:
  static Run MakeRun() {
    Run run;
    const auto model = ReadModel(GNOMON_SOURCE_DIR "/models/dlrm_kaggle.toml");
    GNOMON_CHECK(model.ok(), "{}", model.error().Text());
    run.plan.model = *model;
    run.plan.device = "host-x86-64-avx2";
    run.plan.recipe.batch = kBatch;
    run.plan.recipe.learning_rate = kRate;
    run.plan.recipe.threads = 2;
    run.shape = MakeSampleShape(*model, kRows).value();
    const auto source = MakeSyntheticSource(run.shape, model->zipf_exponent, kSeed, 2);
    State state = Trainer(run.plan, run.shape).Read();
    Fp64Step step(run.plan.model, run.shape);
    for (std::int64_t first = 0; std::ssize(run.steps) < kSteps; first += kBatch) {
      GNOMON_CHECK(first < kMostBatches * kBatch, "every batch leaves a unit on its kink");
      Samples samples;
      GNOMON_CHECK(source->Read(first, kBatch, samples).ok(), "no samples");
      Batch batch;
      MakeBatch(run.shape, samples, 0, kBatch, {IndexLayout::kPerTable, run.shape.dense_features},
                batch);
      const Reference reference = step.Run(state, batch);
      if (reference.on_a_kink) continue;
      run.samples.push_back(samples);
      run.steps.push_back(reference);
      for (auto& [name, values] : state)
        values = reference.after.at(name).to(at::kFloat).to(at::kDouble);
    }
    return run;
  }
};

TEST_P(NetworkStep, GivesTheFp64LossParametersAndState) {
  const Run& run = Fp64();
  Plan plan = run.plan;
  GetParam().change(plan.recipe);
  Trainer trainer(plan, run.shape);
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    SCOPED_TRACE(fmt::format("step {}", i));
    const Reference& reference = run.steps[i];
    trainer.Write(reference.before);
    const double loss = trainer.Step(run.samples[i]);
    EXPECT_NEAR(loss, reference.loss, reference.loss_tolerance);
    const State after = trainer.Read();
    ASSERT_EQ(after.size(), reference.after.size());
    for (const auto& [name, values] : after) {
      const at::Tensor over =
          (values - reference.after.at(name)).abs() - reference.tolerance.at(name);
      EXPECT_LE(over.max().item<double>(), 0) << name;
    }
    EXPECT_EQ(trainer.Padding(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Levers, NetworkStep,
    testing::Values(Lever{"Stock", [](Recipe&) {}},
                    Lever{"Dense", [](Recipe& r) { r.embedding_update = EmbeddingUpdate::kDense; }},
                    Lever{"DenseMergedTables",
                          [](Recipe& r) {
                            r.embedding_update = EmbeddingUpdate::kDense;
                            r.fused_tables = true;
                          }},
                    Lever{"MergedTables", [](Recipe& r) { r.fused_tables = true; }},
                    Lever{"FusedUpdate",
                          [](Recipe& r) { r.embedding_update = EmbeddingUpdate::kFused; }},
                    Lever{"Padding", [](Recipe& r) { r.pad_to = kPad; }},
                    Lever{"FusedInteraction", [](Recipe& r) { r.fused_interaction = true; }},
                    Lever{"FusedOptimizer", [](Recipe& r) { r.fused_optimizer = true; }},
                    Lever{"OurGemm", [](Recipe& r) { r.gemm_backend = GemmBackend::kGnomon; }},
                    Lever{"OurGemmFusedLinear",
                          [](Recipe& r) {
                            r.gemm_backend = GemmBackend::kGnomon;
                            r.fused_linear = true;
                          }},
                    Lever{"All",
                          [](Recipe& r) {
                            r.embedding_update = EmbeddingUpdate::kFused;
                            r.fused_tables = r.fused_linear = r.fused_interaction =
                                r.fused_optimizer = true;
                            r.gemm_backend = GemmBackend::kGnomon;
                            r.pad_to = kPad;
                          }}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace gnomon::train
