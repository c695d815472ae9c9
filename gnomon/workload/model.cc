// Reads a model description (docs/model-schema.md) and works out the width of every block.
//
//   mlp:    out = the last width
//   dot:    out = dim + F·(F−1)/2        F = tables + 1 vectors, the dense one first
//   dcn_v2: out = in = F·dim
//
// A block may take "dense" (the counts), "embedding" (all pooled rows) or an earlier block. The
// file is refused where widths do not fit together, so that lowering can trust them. Samples to a
// fixed quality follow 1 + batch/critical_batch (McCandlish et al., arXiv 1812.06162).

#include "gnomon/workload/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "gnomon/base/nearest.h"
#include "gnomon/workload/toml_reader.h"

namespace gnomon {
namespace {

// Limits of what a file may ask for: counts beyond them are typing errors, and products of two stay
// far below 2^63.
constexpr std::int64_t kMaxRows = 1LL << 40;
constexpr std::int64_t kMaxWidth = 1LL << 20;
constexpr std::int64_t kMaxLayers = 1000;
constexpr double kMaxHot = 1e6;
constexpr double kMaxZipf = 4;

constexpr std::array<std::string_view, 3> kBlockTypes = {"mlp", "dot", "dcn_v2"};

Status ReadEmbedding(const TomlTable& root, Model& model) {
  GNOMON_ASSIGN(const TomlTable table, root.Table("embedding"));
  constexpr std::array<std::string_view, 5> kKeys = {"dim", "rows", "hot", "pooling",
                                                     "zipf_exponent"};
  GNOMON_TRY(table.AllowKeys(kKeys));
  GNOMON_ASSIGN(model.embedding_dim, table.Integer("dim", {1, kMaxWidth}));
  constexpr std::array<std::string_view, 1> kPooling = {"sum"};
  GNOMON_TRY(table.Choice("pooling", kPooling));
  GNOMON_ASSIGN(const std::vector<std::int64_t> rows, table.Integers("rows", {1, kMaxRows}));
  std::vector<double> hot(rows.size(), 1);
  if (table.Has("hot")) {
    GNOMON_ASSIGN(hot, table.Numbers("hot", {0, kMaxHot}));
    if (hot.size() != rows.size())
      return BadInput(
          fmt::format("'embedding.hot' has {} values for {} tables", hot.size(), rows.size()),
          table.Where("hot"));
  }
  for (size_t i = 0; i < rows.size(); ++i) model.tables.push_back({rows[i], hot[i]});
  if (table.Has("zipf_exponent")) {
    GNOMON_ASSIGN(const Fact fact, table.SourcedNumber("zipf_exponent", {0, kMaxZipf}));
    model.zipf_exponent = fact.value;
    model.facts["embedding.zipf_exponent"] = fact;
  }
  return Done{};
}

// Inputs by `input = "x"` or `inputs = ["x", "y"]`; each must be "dense", "embedding" or an earlier
// block.
Status ReadInputs(const TomlTable& table, const Model& model, Block& block) {
  if (table.Has("input") == table.Has("inputs"))
    return BadInput(fmt::format("block '{}' needs either 'input' or 'inputs'", block.name),
                    table.Where());
  const std::string_view key = table.Has("input") ? "input" : "inputs";
  if (table.Has("input")) {
    GNOMON_ASSIGN(const std::string input, table.String("input"));
    block.inputs = {input};
  } else {
    GNOMON_ASSIGN(block.inputs, table.Strings("inputs"));
  }
  std::vector<std::string_view> known = {"dense", "embedding"};
  for (const Block& earlier : model.blocks) known.push_back(earlier.name);
  for (const std::string& input : block.inputs)
    if (std::find(known.begin(), known.end(), input) == known.end())
      return BadInput(UnknownName("input", input, known), table.Where(key));
  return Done{};
}

std::int64_t WidthOf(const Model& model, const std::string& input) {
  if (input == "dense") return model.dense_features;
  if (input == "embedding")
    return model.embedding_dim * static_cast<std::int64_t>(model.tables.size());
  const Block* block = model.FindBlock(input);
  GNOMON_CHECK(block != nullptr, "input {}", input);
  return block->out_width;
}

// An interaction takes one vector of the embedding's width and all pooled rows.
Status CheckInteractionInputs(const TomlTable& table, const Model& model, const Block& block) {
  const bool shaped =
      block.inputs.size() == 2 && block.inputs[0] != "embedding" && block.inputs[1] == "embedding";
  if (!shaped)
    return BadInput(fmt::format("block '{}' needs inputs = [BLOCK, \"embedding\"]", block.name),
                    table.Where(table.Has("inputs") ? "inputs" : "input"));
  const std::int64_t width = WidthOf(model, block.inputs[0]);
  if (width != model.embedding_dim)
    return BadInput(fmt::format("input '{}' of block '{}' is {} wide, but embedding.dim is {}",
                                block.inputs[0], block.name, width, model.embedding_dim),
                    table.Where("inputs"));
  return Done{};
}

Status ReadMlp(const TomlTable& table, const Model& model, Block& block) {
  constexpr std::array<std::string_view, 6> kKeys = {"name",   "type",   "input",
                                                     "inputs", "widths", "last"};
  GNOMON_TRY(table.AllowKeys(kKeys));
  GNOMON_TRY(ReadInputs(table, model, block));
  if (block.inputs.size() != 1)
    return BadInput(fmt::format("mlp '{}' takes one input", block.name), table.Where("inputs"));
  GNOMON_ASSIGN(block.widths, table.Integers("widths", {1, kMaxWidth}));
  constexpr std::array<std::string_view, 2> kLast = {"relu", "none"};
  if (table.Has("last")) {
    GNOMON_ASSIGN(const size_t last, table.Choice("last", kLast));
    block.last_relu = last == 0;
  }
  block.in_width = WidthOf(model, block.inputs[0]);
  block.out_width = block.widths.back();
  return Done{};
}

Status ReadInteraction(const TomlTable& table, const Model& model, Block& block) {
  constexpr std::array<std::string_view, 4> kDotKeys = {"name", "type", "input", "inputs"};
  constexpr std::array<std::string_view, 6> kDcnKeys = {"name",   "type",   "input",
                                                        "inputs", "layers", "rank"};
  const auto vectors = static_cast<std::int64_t>(model.tables.size()) + 1;
  block.in_width = vectors * model.embedding_dim;
  if (block.type == Block::Type::kDotInteraction) {
    GNOMON_TRY(table.AllowKeys(kDotKeys));
    block.out_width = model.embedding_dim + vectors * (vectors - 1) / 2;
  } else {
    GNOMON_TRY(table.AllowKeys(kDcnKeys));
    GNOMON_ASSIGN(block.layers, table.Integer("layers", {1, kMaxLayers}));
    GNOMON_ASSIGN(block.rank, table.Integer("rank", {1, kMaxWidth}));
    block.out_width = block.in_width;
  }
  GNOMON_TRY(ReadInputs(table, model, block));
  return CheckInteractionInputs(table, model, block);
}

Status ReadBlocks(const TomlTable& root, Model& model) {
  GNOMON_ASSIGN(const std::vector<TomlTable> tables, root.Tables("block"));
  for (const TomlTable& table : tables) {
    Block block;
    GNOMON_ASSIGN(block.name, table.String("name"));
    if (block.name == "dense" || block.name == "embedding" ||
        model.FindBlock(block.name) != nullptr)
      return BadInput(fmt::format("block name '{}' is taken", block.name), table.Where("name"));
    GNOMON_ASSIGN(const size_t type, table.Choice("type", kBlockTypes));
    block.type = static_cast<Block::Type>(type);
    if (block.type == Block::Type::kMlp) {
      GNOMON_TRY(ReadMlp(table, model, block));
    } else {
      GNOMON_TRY(ReadInteraction(table, model, block));
    }
    model.blocks.push_back(std::move(block));
  }
  const Block& last = model.blocks.back();
  if (last.type != Block::Type::kMlp || last.out_width != 1 || last.last_relu)
    return BadInput(
        fmt::format("the last block '{}' must be an mlp that ends in width 1 with last = \"none\": "
                    "it gives the logit",
                    last.name),
        tables.back().Where());
  for (size_t i = 0; i + 1 < model.blocks.size(); ++i) {
    const std::string& name = model.blocks[i].name;
    const auto readers =
        std::count_if(model.blocks.begin(), model.blocks.end(), [&](const Block& block) {
          return std::find(block.inputs.begin(), block.inputs.end(), name) != block.inputs.end();
        });
    if (readers != 1)
      return BadInput(fmt::format("block '{}' feeds {} blocks; each block but the last feeds one",
                                  name, readers),
                      tables[i].Where("name"));
  }
  return Done{};
}

Status ReadTraining(const TomlTable& root, Model& model) {
  GNOMON_ASSIGN(const TomlTable optimizer, root.Table("optimizer"));
  constexpr std::array<std::string_view, 3> kOptimizerKeys = {"dense", "embedding", "epsilon"};
  GNOMON_TRY(optimizer.AllowKeys(kOptimizerKeys));
  constexpr std::array<std::string_view, 1> kDense = {"adagrad"}, kEmbedding = {"rowwise_adagrad"};
  GNOMON_TRY(optimizer.Choice("dense", kDense));
  GNOMON_TRY(optimizer.Choice("embedding", kEmbedding));
  GNOMON_ASSIGN(model.epsilon, optimizer.Number("epsilon", {0, 1}));

  GNOMON_ASSIGN(const TomlTable training, root.Table("training"));
  constexpr std::array<std::string_view, 2> kKeys = {"learning_rate", "dataset_samples"};
  GNOMON_TRY(training.AllowKeys(kKeys));
  GNOMON_ASSIGN(model.learning_rate, training.Number("learning_rate", {0, kMaxHot}));
  GNOMON_ASSIGN(model.dataset_samples, training.Integer("dataset_samples", {1, kMaxRows}));

  if (root.Has("quality")) {
    GNOMON_ASSIGN(const TomlTable quality, root.Table("quality"));
    constexpr std::array<std::string_view, 1> kQuality = {"critical_batch"};
    GNOMON_TRY(quality.AllowKeys(kQuality));
    GNOMON_ASSIGN(const Fact fact,
                  quality.SourcedNumber("critical_batch", {1, static_cast<double>(kMaxRows)}));
    model.critical_batch = fact.value;
    model.facts["quality.critical_batch"] = fact;
  }
  return Done{};
}

std::vector<std::filesystem::path> ModelFolders() {
  std::vector<std::filesystem::path> folders;
  if (const char* folder = std::getenv("GNOMON_MODELS"); folder != nullptr && *folder != '\0')
    folders.emplace_back(folder);
  folders.emplace_back("models");
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) folders.push_back(program.parent_path() / "../share/gnomon/models");
  folders.emplace_back(GNOMON_DATA_DIR "/models");
  folders.emplace_back(GNOMON_SOURCE_DATA_DIR "/models");
  return folders;
}

}  // namespace

std::int64_t Model::TotalRows() const {
  std::int64_t total = 0;
  for (const Table& table : tables) total += table.rows;
  return total;
}

double Model::LookupsPerSample() const {
  double total = 0;
  for (const Table& table : tables) total += table.hot;
  return total;
}

double Model::SamplesFactor(std::int64_t batch) const {
  return critical_batch > 0 ? 1 + static_cast<double>(batch) / critical_batch : 1;
}

const Block* Model::FindBlock(const std::string& block) const {
  const auto found =
      std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.name == block; });
  return found == blocks.end() ? nullptr : &*found;
}

Result<Model> ReadModel(const std::string& path) {
  GNOMON_ASSIGN(const TomlTable root, TomlTable::Read(path));
  constexpr std::array<std::string_view, 9> kKeys = {
      "id", "name", "source", "dense", "embedding", "block", "optimizer", "training", "quality"};
  GNOMON_TRY(root.AllowKeys(kKeys));
  Model model;
  GNOMON_ASSIGN(model.id, root.String("id"));
  GNOMON_ASSIGN(model.name, root.String("name"));
  GNOMON_ASSIGN(model.source, root.String("source"));
  GNOMON_ASSIGN(const TomlTable dense, root.Table("dense"));
  constexpr std::array<std::string_view, 1> kDenseKeys = {"features"};
  GNOMON_TRY(dense.AllowKeys(kDenseKeys));
  GNOMON_ASSIGN(model.dense_features, dense.Integer("features", {1, kMaxWidth}));
  GNOMON_TRY(ReadEmbedding(root, model));
  GNOMON_TRY(ReadBlocks(root, model));
  GNOMON_TRY(ReadTraining(root, model));
  return model;
}

std::vector<std::string> ModelIds() {
  std::vector<std::string> ids;
  for (const std::filesystem::path& folder : ModelFolders()) {
    std::error_code ignored;  // an absent folder holds no models
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      if (entry.path().extension() == ".toml") ids.push_back(entry.path().stem().string());
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Result<Model> FindModel(const std::string& path_or_id) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path_or_id, ignored)) return ReadModel(path_or_id);
  for (const std::filesystem::path& folder : ModelFolders()) {
    const std::filesystem::path path = folder / (path_or_id + ".toml");
    if (std::filesystem::is_regular_file(path, ignored)) return ReadModel(path.string());
  }
  const std::vector<std::string> ids = ModelIds();
  const std::vector<std::string_view> names(ids.begin(), ids.end());
  return BadInput(UnknownName("model", path_or_id, names));
}

}  // namespace gnomon
