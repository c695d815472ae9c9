#pragma once

/// Workload: the op graph of one training step, lowered from a Model and a Recipe. Forward,
/// backward (dgrad and wgrad apart) and optimiser; every op says its shapes, its bytes and how many
/// framework operators carry it out.

#include <string>
#include <vector>

#include "gnomon/base/units.h"
#include "gnomon/gemm/problem.h"
#include "gnomon/workload/model.h"
#include "gnomon/workload/recipe.h"

namespace gnomon {

struct Op {
  enum class Kind {
    kGemm,             ///< problem
    kEmbeddingLookup,  ///< gather and pool
    kEmbeddingUpdate,  ///< gradient and optimiser of the tables
    kElementwise,      ///< bytes read and written
    kOptimizer,        ///< dense parameters
    kInputCopy,        ///< host to device
  };
  enum class Pass { kForward, kBackward, kOptimizer };
  /// Which part of the embedding work a kEmbedding… op does.
  enum class Stage {
    kNone,
    kGather,        ///< rows read and pooled
    kLookupGrads,   ///< pooled gradients spread to one gradient a lookup
    kCoalesce,      ///< sorted by row, equal rows added
    kUpdateRows,    ///< row-wise Adagrad on the rows of a coalesced gradient
    kTableGrads,    ///< zeroed gradient of whole tables, lookups accumulated into it
    kUpdateTables,  ///< row-wise Adagrad over every row
    kFusedUpdate,   ///< kLookupGrads … kUpdateRows in one kernel
  };

  std::string name;  ///< "bottom1.fwd", "bottom1.wgrad", "embedding.update"
  Kind kind = Kind::kElementwise;
  Pass pass = Pass::kForward;
  std::vector<int> inputs;  ///< ops that must end before
  Problem problem;          ///< kGemm
  Bytes read, write;        ///< kElementwise, kOptimizer, kInputCopy: streamed traffic
  Flops flops;              ///< beside GEMM: what the vector units do
  int framework_ops = 1;    ///< eager operators (0: part of another op's kernel)
  bool fused = false;       ///< one of our kernels rather than a chain of stock operators

  int layer = 0;  ///< among ops that share a name and a shape (layers of a cross network)
  Stage stage = Stage::kNone;
  double lookups = 0;     ///< kEmbedding…: table rows asked for, repeats counted
  int lookup_groups = 1;  ///< operators these are shared out over: one a table, or one for all
  double dim = 0;         ///< kEmbedding…: values a row
  Bytes bag_bytes;        ///< kEmbedding…: pooled values (or their gradients), all bags
  std::string
      primitive;  ///< stock operator bound by items rather than bytes (gnomon/cost/primitives.h)
  double items = 0;
  Bytes keep;  ///< kept until the backward has used it
};

struct Workload {
  std::string model;
  std::vector<Op> ops;          ///< in an order that respects inputs
  double dense_parameters = 0;  ///< values, padding included
  int parameter_tensors = 0;
};

/// Width in which the GEMMs of an mlp block see its input: in_width rounded up to recipe.pad_to.
std::int64_t PaddedInput(const Block& block, const Recipe& recipe);

/// Lowers a model under a recipe. Error: a recipe the model cannot take (names the field).
Result<Workload> Lower(const Model& model, const Recipe& recipe);

}  // namespace gnomon
