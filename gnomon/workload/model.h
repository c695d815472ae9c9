#pragma once

/// Model: a recommendation model as its TOML file describes it (docs/model-schema.md): named blocks
/// with inputs, embedding tables, optimiser, and how samples-to-quality grows with batch.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gnomon/base/result.h"
#include "gnomon/device/device.h"

namespace gnomon {

struct Table {
  std::int64_t rows = 0;
  double hot = 1;  ///< lookups per sample
};

struct Block {
  enum class Type { kMlp, kDotInteraction, kDcnV2 };
  std::string name;
  Type type = Type::kMlp;
  std::vector<std::string> inputs;           ///< block names, "dense" or "embedding"
  std::vector<std::int64_t> widths;          ///< kMlp: output width of each layer
  bool last_relu = true;                     ///< kMlp: ReLU after the last layer (others always)
  std::int64_t layers = 0, rank = 0;         ///< kDcnV2: x ← x0 ⊙ (W(V x) + b) + x
  std::int64_t in_width = 0, out_width = 0;  ///< filled by the reader
};

struct Model {
  std::string id, name, source;
  std::int64_t dense_features = 0;
  std::int64_t embedding_dim = 0;
  std::vector<Table> tables;
  double zipf_exponent = 0;   ///< of the index distribution; 0: uniform
  std::vector<Block> blocks;  ///< in order; the last one gives the logit

  double learning_rate =
      0.01;  ///< at every batch: Adagrad divides by the size of the gradients it has seen
  double epsilon = 1e-8;
  std::int64_t dataset_samples = 0;
  double critical_batch =
      0;  ///< samples to quality ∝ 1 + batch/critical_batch (McCandlish et al. 2018)

  std::map<std::string, Fact> facts;  ///< sourced numbers by TOML path ("quality.critical_batch")

  std::int64_t TotalRows() const;
  double LookupsPerSample() const;
  /// Samples to a fixed quality at `batch`, over the same at a vanishing batch; 1 where nothing is
  /// known.
  double SamplesFactor(std::int64_t batch) const;
  const Block* FindBlock(const std::string& block) const;
};

Result<Model> ReadModel(const std::string& path);
/// Ids under ./models, GNOMON_MODELS or the installed data folder.
std::vector<std::string> ModelIds();
/// A path to a TOML file, or an id. Error lists the ids.
Result<Model> FindModel(const std::string& path_or_id);

}  // namespace gnomon
