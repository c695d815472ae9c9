// Builds a plan's model and runs its training step.
//
//   step = forward, loss, backward, dense optimiser, embedding optimiser (unless the backward was
//   it)
//
// Every lever of the recipe is a choice made here at build time between LibTorch's operators
// (stock_path.h) and ours (ops.h); any combination works, so that each lever can be timed alone.
// Under bf16 the stock operators run in CPU autocast; ours read bf16 weight copies and pass bf16
// activations on. Master weights, weight gradients, logits and loss are fp32 in both.

#include "gnomon/train/network.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <map>

#include "gnomon/train/dense_layer.h"
#include "gnomon/train/ops.h"
#include "gnomon/train/stock_path.h"
#include "gnomon/workload/workload.h"

namespace gnomon::train {
namespace {

std::int64_t RoundUp(std::int64_t value, std::int64_t multiple) {
  multiple = std::max<std::int64_t>(1, multiple);
  return (value + multiple - 1) / multiple * multiple;
}

struct BuiltBlock {
  const Block* block = nullptr;
  std::vector<DenseLayer> layers;
  std::int64_t padded_in = 0;
};

class LibTorchNetwork final : public Network {
 public:
  LibTorchNetwork(const Plan& plan, const SampleShape& shape, TableStorage& tables)
      : plan_(plan), shape_(shape), storage_(tables), threads_(ThreadsOf(plan.recipe)) {}

  Status Build(std::uint64_t seed);

  BatchLayout layout() const override {
    const Recipe& r = plan_.recipe;
    BatchLayout layout;
    layout.dense_stride = RoundUp(shape_.dense_features, r.pad_to);  // the data's reader pads
    layout.index = r.embedding_update == EmbeddingUpdate::kFused ? IndexLayout::kTableMajor
                   : r.fused_tables                              ? IndexLayout::kMergedSampleMajor
                                                                 : IndexLayout::kPerTable;
    return layout;
  }
  double Step(const Batch& batch) override;
  void Predict(const Batch& batch, std::span<float> logits) override;
  std::vector<NamedBuffer> Buffers() override;
  void Refresh() override;
  void Activate() override {
    // Setting it makes LibTorch build its second thread pool anew, whether it changes or not.
    if (at::get_num_threads() != threads_) at::set_num_threads(threads_);
  }

 private:
  void BuildTables();
  Result<BuiltBlock> BuildBlock(const Block& block, bool last, std::uint64_t seed);
  at::Tensor Forward(const Batch& batch);
  std::vector<at::Tensor> Lookup(const Batch& batch);
  at::Tensor Mlp(const BuiltBlock& block, at::Tensor x) const;
  at::Tensor Interaction(const BuiltBlock& block, const std::vector<at::Tensor>& inputs) const;
  at::Tensor Cross(const BuiltBlock& block, const at::Tensor& x0) const;
  void Optimize();
  template <class Visit>
  void ForEachLayer(Visit visit) {
    for (BuiltBlock& block : blocks_)
      for (DenseLayer& layer : block.layers) visit(layer);
  }

  bool ours() const { return plan_.recipe.gemm_backend == GemmBackend::kGnomon; }
  bool bf16() const { return plan_.recipe.dtype == DType::kBf16; }
  bool autocast() const { return bf16() && !ours(); }

  Plan plan_;
  SampleShape shape_;
  TableStorage& storage_;
  int threads_;
  std::vector<BuiltBlock> blocks_;
  std::vector<at::Tensor> table_weights_, table_states_;  // one a table, or one merged
  EmbeddingArguments fused_bag_;
  std::vector<at::Tensor> triangle_;
  // The dense parameters in one row, for the optimiser.
  std::vector<at::Tensor> weights_, states_, copies_;
};

Status LibTorchNetwork::Build(std::uint64_t seed) {
  const Recipe& recipe = plan_.recipe;
  if (recipe.dtype != DType::kFp32 && recipe.dtype != DType::kBf16)
    return BadInput(fmt::format("the trainer runs fp32 and bf16, not {}", Name(recipe.dtype)),
                    "recipe.dtype");
  if (recipe.batch < 1) return BadInput("the batch must be positive", "recipe.batch");
  if (plan_.model.blocks.empty()) return BadInput("the model has no blocks", plan_.model.id);
  Activate();
  BuildTables();
  for (std::size_t i = 0; i < plan_.model.blocks.size(); ++i) {
    const bool last = i + 1 == plan_.model.blocks.size();
    GNOMON_ASSIGN(BuiltBlock built, BuildBlock(plan_.model.blocks[i], last, seed));
    blocks_.push_back(std::move(built));
  }
  ForEachLayer([&](DenseLayer& layer) {
    weights_.push_back(layer.arguments.weight);
    states_.push_back(layer.weight_state);
    copies_.push_back(layer.arguments.weight_copy);
    if (!layer.arguments.bias.defined()) return;
    weights_.push_back(layer.arguments.bias);
    states_.push_back(layer.bias_state);
    copies_.push_back(at::Tensor());
  });
  return Done{};
}

void LibTorchNetwork::BuildTables() {
  const Recipe& recipe = plan_.recipe;
  const std::int64_t dim = storage_.dim();
  const bool merged = recipe.fused_tables || recipe.embedding_update == EmbeddingUpdate::kFused;
  const std::int64_t count = merged ? 1 : storage_.tables();
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t base = merged ? 0 : storage_.base(t);
    const std::int64_t rows = merged ? storage_.total_rows() : storage_.rows(t);
    table_weights_.push_back(at::from_blob(storage_.weight() + base * dim, {rows, dim}, at::kFloat)
                                 .set_requires_grad(true));
    table_states_.push_back(at::from_blob(storage_.state() + base, {rows}, at::kFloat));
  }
  fused_bag_.weight = table_weights_.front();
  fused_bag_.state = table_states_.front();
  fused_bag_.table_rows = shape_.table_rows;
  fused_bag_.out = bf16() && ours() ? at::kBFloat16 : at::kFloat;
  fused_bag_.learning_rate = recipe.learning_rate;
  fused_bag_.epsilon = plan_.model.epsilon;
}

Result<BuiltBlock> LibTorchNetwork::BuildBlock(const Block& block, bool last, std::uint64_t seed) {
  BuiltBlock built;
  built.block = &block;
  built.padded_in =
      block.type == Block::Type::kMlp ? PaddedInput(block, plan_.recipe) : block.in_width;
  const bool raw_input = block.inputs.size() == 1 && block.inputs.front() == "dense";
  const auto add = [&](const LayerSpec& spec) -> Status {
    GNOMON_ASSIGN(DenseLayer layer, BuildLayer(spec, plan_, seed, threads_));
    built.layers.push_back(std::move(layer));
    return Done{};
  };
  if (block.type == Block::Type::kMlp) {
    std::int64_t in = block.in_width;
    for (std::size_t i = 0; i < block.widths.size(); ++i) {
      const bool end = i + 1 == block.widths.size();
      LayerSpec spec;
      spec.name = spec.op = fmt::format("{}{}", block.name, i);
      spec.in = in;
      spec.out = block.widths[i];
      spec.padded_in = i == 0 ? built.padded_in : in;
      spec.relu = end ? block.last_relu : true;
      spec.logit = end && last;
      spec.input_gradient = i > 0 || !raw_input;
      GNOMON_TRY(add(spec));
      in = spec.out;
    }
  } else if (block.type == Block::Type::kDcnV2) {
    for (std::int64_t i = 0; i < block.layers; ++i) {
      const std::string layer = fmt::format(".{}", i);
      LayerSpec down{.name = block.name + "_v" + layer, .op = block.name + "_v"};
      down.in = down.padded_in = block.in_width;
      down.out = block.rank;
      down.bias = false;
      GNOMON_TRY(add(down));
      LayerSpec up{.name = block.name + "_u" + layer, .op = block.name + "_u"};
      up.in = up.padded_in = block.rank;
      up.out = block.in_width;
      GNOMON_TRY(add(up));
    }
  } else {
    if (block.inputs.size() != 2 || block.inputs[1] != "embedding")
      return BadInput("a dot interaction takes one dense block and \"embedding\"", block.name);
    triangle_ = TriangleIndex(shape_.tables() + 1);
  }
  return built;
}

// Embedding output: one [batch, tables, dim], or a [batch, dim] a table.
std::vector<at::Tensor> LibTorchNetwork::Lookup(const Batch& batch) {
  const auto view = [](const std::vector<std::int64_t>& values, std::int64_t begin,
                       std::int64_t size) {
    return at::from_blob(const_cast<std::int64_t*>(values.data() + begin), {size}, at::kLong);
  };
  const auto indices = static_cast<std::int64_t>(batch.indices.size());
  const auto offsets = static_cast<std::int64_t>(batch.offsets.size());
  const bool sparse = plan_.recipe.embedding_update == EmbeddingUpdate::kSparse;
  std::vector<at::Tensor> pooled;
  if (plan_.recipe.embedding_update == EmbeddingUpdate::kFused) {
    pooled.push_back(EmbeddingBagAdagrad(view(batch.indices, 0, indices),
                                         view(batch.offsets, 0, offsets), fused_bag_));
  } else if (plan_.recipe.fused_tables) {
    pooled.push_back(StockBag(table_weights_.front(), view(batch.indices, 0, indices),
                              view(batch.offsets, 0, offsets - 1), sparse)
                         .view({batch.size, shape_.tables(), storage_.dim()}));
  } else {
    std::int64_t begin = 0;
    for (std::size_t t = 0; t < table_weights_.size(); ++t) {
      const std::int64_t count = batch.size * shape_.hot[t];
      pooled.push_back(StockBag(
          table_weights_[t], view(batch.indices, begin, count),
          view(batch.offsets, static_cast<std::int64_t>(t) * batch.size, batch.size), sparse));
      begin += count;
    }
  }
  if (bf16() && ours())
    for (at::Tensor& vectors : pooled) vectors = vectors.to(at::kBFloat16);
  return pooled;
}

at::Tensor LibTorchNetwork::Mlp(const BuiltBlock& block, at::Tensor x) const {
  x = PadColumns(x, block.padded_in);
  for (const DenseLayer& layer : block.layers) x = Apply(layer, plan_.recipe, x);
  return x;
}

at::Tensor LibTorchNetwork::Interaction(const BuiltBlock& block,
                                        const std::vector<at::Tensor>& inputs) const {
  // Our kernel writes the zeros that the next MLP wants behind its input; a stock step pads there.
  const std::int64_t width = RoundUp(block.block->out_width, plan_.recipe.pad_to);
  if (!plan_.recipe.fused_interaction) return StockInteraction(inputs, triangle_);
  const at::Tensor& dense = inputs.front();
  at::Tensor embedding = inputs.back();
  if (inputs.size() > 2 || embedding.dim() == 2) {
    embedding = at::cat(at::TensorList(inputs).slice(1), 1)
                    .view({dense.size(0), shape_.tables(), storage_.dim()});
  }
  return DotInteraction(dense, embedding.to(dense.scalar_type()), width);
}

// x ← x0 ⊙ (U(V x) + b) + x, layer by layer (Wang et al. 2021).
at::Tensor LibTorchNetwork::Cross(const BuiltBlock& block, const at::Tensor& x0) const {
  at::Tensor x = x0;
  for (std::size_t i = 0; i + 1 < block.layers.size(); i += 2) {
    const at::Tensor low = Apply(block.layers[i], plan_.recipe, x);
    x = at::add(at::mul(x0, Apply(block.layers[i + 1], plan_.recipe, low)), x);
  }
  return x;
}

at::Tensor LibTorchNetwork::Forward(const Batch& batch) {
  AutocastScope cast(autocast());
  at::Tensor dense = at::from_blob(const_cast<float*>(batch.dense.data()),
                                   {batch.size, layout().dense_stride}, at::kFloat);
  if (bf16() && ours()) dense = dense.to(at::kBFloat16);
  const std::vector<at::Tensor> embedding = Lookup(batch);
  std::map<std::string, at::Tensor> outputs;
  at::Tensor last;
  for (const BuiltBlock& block : blocks_) {
    std::vector<at::Tensor> inputs;
    for (const std::string& input : block.block->inputs) {
      if (input == "dense")
        inputs.push_back(dense);
      else if (input == "embedding")
        inputs.insert(inputs.end(), embedding.begin(), embedding.end());
      else
        inputs.push_back(outputs.at(input));
    }
    if (block.block->type == Block::Type::kDotInteraction) {
      last = Interaction(block, inputs);
    } else {
      for (at::Tensor& input : inputs) input = input.reshape({batch.size, -1});
      at::Tensor x = inputs.size() == 1 ? inputs.front() : at::cat(inputs, 1);
      last = block.block->type == Block::Type::kMlp ? Mlp(block, x) : Cross(block, x);
    }
    outputs[block.block->name] = last;
  }
  return last.reshape({batch.size});
}

double LibTorchNetwork::Step(const Batch& batch) {
  for (at::Tensor& weight : weights_) weight.mutable_grad() = at::Tensor();
  for (at::Tensor& weight : table_weights_) weight.mutable_grad() = at::Tensor();
  const at::Tensor logits = Forward(batch);
  const at::Tensor labels =
      at::from_blob(const_cast<float*>(batch.labels.data()), {batch.size}, at::kFloat);
  const at::Tensor loss = ours()
                              ? ClickLoss(logits, labels)
                              : at::binary_cross_entropy_with_logits(logits.to(at::kFloat), labels);
  loss.backward();
  Optimize();
  return static_cast<double>(loss.item<float>());
}

void LibTorchNetwork::Optimize() {
  const double rate = plan_.recipe.learning_rate, epsilon = plan_.model.epsilon;
  if (plan_.recipe.fused_optimizer) {
    DenseAdagrad(weights_, states_, copies_, rate, epsilon);
  } else {
    for (std::size_t i = 0; i < weights_.size(); ++i)
      StockAdagrad(weights_[i], states_[i], rate, epsilon);
    Refresh();
  }
  if (plan_.recipe.embedding_update == EmbeddingUpdate::kFused) return;
  for (std::size_t t = 0; t < table_weights_.size(); ++t)
    StockRowwiseAdagrad(table_weights_[t], table_states_[t], rate, epsilon);
}

void LibTorchNetwork::Predict(const Batch& batch, std::span<float> logits) {
  at::NoGradGuard no_grad;
  const at::Tensor z = Forward(batch).to(at::kFloat).contiguous();
  std::copy_n(z.data_ptr<float>(), std::min<std::int64_t>(z.numel(), std::ssize(logits)),
              logits.data());
}

std::vector<NamedBuffer> LibTorchNetwork::Buffers() {
  std::vector<NamedBuffer> buffers;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (tensor.defined())
      buffers.push_back(
          {name, {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())}});
  };
  ForEachLayer([&](DenseLayer& layer) {
    add(layer.spec.name + ".weight", layer.arguments.weight);
    add(layer.spec.name + ".bias", layer.arguments.bias);
    add(layer.spec.name + ".weight_state", layer.weight_state);
    add(layer.spec.name + ".bias_state", layer.bias_state);
  });
  return buffers;
}

void LibTorchNetwork::Refresh() {
  ForEachLayer([](DenseLayer& layer) { RefreshCopy(layer); });
}

}  // namespace

int ThreadsOf(const Recipe& recipe) {
  if (recipe.threads > 0) return recipe.threads;
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

Result<std::unique_ptr<Network>> BuildNetwork(const Plan& plan, const SampleShape& shape,
                                              TableStorage& tables, std::uint64_t seed) {
  auto network = std::make_unique<LibTorchNetwork>(plan, shape, tables);
  GNOMON_TRY(network->Build(seed));
  return std::unique_ptr<Network>(std::move(network));
}

}  // namespace gnomon::train
