// The search for a plan.
//
//   maximise  samples/s(recipe) / (1 + batch/critical batch)      subject to memory ≤ capacity
//
// Coordinate descent: each lever in turn takes its best choice with the others held, until a round
// changes nothing; from several starts (stock, everything of ours, and both at small and large
// batch), because two levers can be worth pulling only together. A few hundred recipes of the tens
// of thousands are costed, in well under a second. The learning rate is the
// model's at every batch.
//
// The direct port is the best stock recipe of the source device, run unchanged on the target: same
// batch, dtype, padding and update, the target's vendor library, all units. tf32 is a mode of fp32
// and stays one where the target lacks it. Left out: several devices, quality effects other than
// the batch's.

#include "gnomon/codesign/search.h"

#include <fmt/format.h>

#include <algorithm>

#include "gnomon/base/text_table.h"
#include "gnomon/codesign/next_steps.h"

namespace gnomon {
namespace {

constexpr int kMaxRounds = 8;  // of coordinate descent; three are usual
constexpr double kWorthChanging =
    1e-6;  // relative gain below which a choice is a tie: the earlier one stays

class Search {
 public:
  Search(const Model& model, const Device& device, std::vector<Lever> levers)
      : model_(model), step_(model, device), levers_(std::move(levers)) {}

  Result<ArmPrediction> Evaluate(Recipe recipe) {
    recipe.learning_rate = model_.learning_rate;
    // A fused update looks all tables up in one call: the two settings are one recipe.
    if (recipe.embedding_update == EmbeddingUpdate::kFused) recipe.fused_tables = true;
    ++costed_;
    ArmPrediction arm;
    GNOMON_ASSIGN(arm.cost, step_.Cost(recipe));
    arm.recipe = recipe;
    arm.samples_factor = model_.SamplesFactor(recipe.batch);
    const Status fits = CheckCapacity(arm.cost.memory, step_.device());
    if (!fits.ok()) arm.refused = fits.error();
    return arm;
  }

  // Best of descents from several starts. Error: nothing fits the memory.
  Result<ArmPrediction> Best() {
    std::optional<ArmPrediction> best;
    for (const Recipe& start : Starts()) {
      GNOMON_ASSIGN(ArmPrediction arm, Descend(start));
      if (!best || Better(arm, *best)) best = std::move(arm);
    }
    if (best->refused) return *best->refused;
    return std::move(*best);
  }

  int costed() const { return costed_; }
  const std::vector<Lever>& levers() const { return levers_; }

 private:
  // What fits is better than what does not; of two that do not, the smaller is.
  static bool Better(const ArmPrediction& a, const ArmPrediction& b) {
    if (a.refused.has_value() != b.refused.has_value()) return !a.refused;
    if (a.refused) return a.cost.memory.total() < b.cost.memory.total();
    return a.QualityRate() > b.QualityRate() * (1 + kWorthChanging);
  }

  // Every lever at its first choice (stock) or at its last, with the batch at the first, middle and
  // last.
  std::vector<Recipe> Starts() const {
    std::vector<Recipe> starts;
    for (const bool ours : {false, true}) {
      Recipe recipe;
      for (const Lever& lever : levers_) {
        const bool ordered = lever.name == "padded inputs" || lever.name == "threads";
        lever.copy(ours && !ordered ? lever.choices.back() : lever.choices.front(), recipe);
      }
      const Lever& batch = BatchLever();
      for (const size_t at : {size_t{0}, batch.choices.size() / 2, batch.choices.size() - 1}) {
        batch.copy(batch.choices[at], recipe);
        starts.push_back(recipe);
      }
    }
    return starts;
  }

  const Lever& BatchLever() const {
    const auto found = std::find_if(levers_.begin(), levers_.end(),
                                    [](const Lever& lever) { return lever.name == "batch"; });
    GNOMON_CHECK(found != levers_.end());
    return *found;
  }

  Result<ArmPrediction> Descend(const Recipe& start) {
    GNOMON_ASSIGN(ArmPrediction best, Evaluate(start));
    for (int round = 0; round < kMaxRounds; ++round) {
      bool changed = false;
      for (const Lever& lever : levers_) {
        for (const Recipe& choice : lever.choices) {
          Recipe recipe = best.recipe;
          lever.copy(choice, recipe);
          if (recipe == best.recipe) continue;
          GNOMON_ASSIGN(ArmPrediction arm, Evaluate(recipe));
          if (!Better(arm, best)) continue;
          best = std::move(arm);
          changed = true;
        }
      }
      if (!changed) break;
    }
    return best;
  }

  const Model& model_;
  StepModel step_;
  std::vector<Lever> levers_;
  int costed_ = 0;
};

// Keeps only the choices that show as `text`; error: the device does not offer it.
Status FixLever(std::vector<Lever>& levers, const Device& device, std::string_view name,
                const Recipe& fixed) {
  for (Lever& lever : levers) {
    if (lever.name != name) continue;
    const std::string wanted = lever.show(fixed);
    std::string offered;
    std::vector<Recipe> kept;
    for (const Recipe& choice : lever.choices) {
      offered += (offered.empty() ? "" : ", ") + lever.show(choice);
      if (lever.show(choice) == wanted) kept = {choice};
    }
    if (kept.empty())
      return BadInput(fmt::format("{} '{}' is not offered on {} (there is: {})", name, wanted,
                                  device.id, offered));
    lever.choices = kept;
  }
  return Done{};
}

Result<std::vector<Lever>> TargetLevers(const Device& target, const CodesignOptions& options,
                                        const LeverOptions& lever_options) {
  std::vector<Lever> levers = Levers(target, Stack::kGnomon, lever_options);
  Recipe fixed;
  if (options.dtype) {
    fixed.dtype = *options.dtype;
    GNOMON_TRY(FixLever(levers, target, "dtype", fixed));
  }
  if (options.embedding_update) {
    fixed.embedding_update = *options.embedding_update;
    GNOMON_TRY(FixLever(levers, target, "embedding update", fixed));
  }
  if (options.pad_to) {
    fixed.pad_to = *options.pad_to;
    GNOMON_TRY(FixLever(levers, target, "padded inputs", fixed));
  }
  return levers;
}

// The source's recipe as it starts on the target.
Recipe Ported(const Recipe& source, const Device& target, std::vector<std::string>& notes) {
  Recipe recipe = source;
  if (recipe.dtype == DType::kTf32 && target.FindRate(DType::kTf32) == nullptr) {
    recipe.dtype = DType::kFp32;
    notes.push_back(fmt::format("tf32 is a mode of fp32; {} multiplies in fp32", target.id));
  } else if (target.FindRate(recipe.dtype) == nullptr) {
    const bool cpu = target.kind == Device::Kind::kCpu;
    notes.push_back(fmt::format("{} is not native to {}: products run {}, the casts stay",
                                Name(recipe.dtype), target.id,
                                cpu ? "in the framework's reference loop" : "at the fp32 rate"));
  }
  return recipe;
}

// The direct port with the fastest dtype that the target multiplies natively.
Result<ArmPrediction> WithNativeDtype(Search& search, const ArmPrediction& direct) {
  std::optional<ArmPrediction> best;
  for (const Lever& lever : search.levers()) {
    if (lever.name != "dtype") continue;
    for (const Recipe& choice : lever.choices) {
      Recipe recipe = direct.recipe;
      lever.copy(choice, recipe);
      GNOMON_ASSIGN(ArmPrediction arm, search.Evaluate(recipe));
      if (!best || arm.cost.time < best->cost.time) best = std::move(arm);
    }
  }
  GNOMON_CHECK(best.has_value(), "no dtype lever");
  return std::move(*best);
}

// Gains of the levers that differ: each alone on the direct port, then together, largest first.
Result<std::vector<LeverGain>> Gains(Search& search, const ArmPrediction& direct,
                                     const ArmPrediction& plan) {
  struct Pulled {
    const Lever* lever;
    LeverGain gain;
  };
  std::vector<Pulled> pulled;
  for (const Lever& lever : search.levers()) {
    if (lever.show(direct.recipe) == lever.show(plan.recipe)) continue;
    Recipe recipe = direct.recipe;
    lever.copy(plan.recipe, recipe);
    GNOMON_ASSIGN(const ArmPrediction arm, search.Evaluate(recipe));
    LeverGain gain{lever.name, lever.show(direct.recipe), lever.show(plan.recipe), lever.risk,
                   lever.source};
    gain.gain = arm.cost.samples_per_second / direct.cost.samples_per_second;
    gain.gain_to_quality = arm.QualityRate() / direct.QualityRate();
    pulled.push_back({&lever, gain});
  }
  std::stable_sort(pulled.begin(), pulled.end(), [](const Pulled& a, const Pulled& b) {
    return a.gain.gain_to_quality > b.gain.gain_to_quality;
  });
  std::vector<LeverGain> gains;
  Recipe recipe = direct.recipe;
  for (Pulled& p : pulled) {
    p.lever->copy(plan.recipe, recipe);
    GNOMON_ASSIGN(const ArmPrediction arm, search.Evaluate(recipe));
    p.gain.cumulative = arm.cost.samples_per_second / direct.cost.samples_per_second;
    p.gain.cumulative_to_quality = arm.QualityRate() / direct.QualityRate();
    gains.push_back(std::move(p.gain));
  }
  return gains;
}

}  // namespace

Result<CodesignResult> Codesign(const Model& model, const Device& source, const Device& target,
                                const CodesignOptions& options) {
  LeverOptions lever_options{options.batches};
  if (options.batch) lever_options.batches = {*options.batch};
  Device used = target;
  if (options.units > 0 && options.units < used.units) used.units = options.units;

  Search source_search(model, source, Levers(source, Stack::kStock, lever_options));
  GNOMON_ASSIGN(ArmPrediction on_source, source_search.Best());

  GNOMON_ASSIGN(std::vector<Lever> levers, TargetLevers(used, options, lever_options));
  Search search(model, used, std::move(levers));
  CodesignResult result;
  result.model = model.id;
  result.source = source.id;
  result.target = target.id;
  std::vector<std::string> notes;
  GNOMON_ASSIGN(result.direct_port, search.Evaluate(Ported(on_source.recipe, used, notes)));
  result.direct_port.notes = std::move(notes);
  result.on_source = std::move(on_source);
  GNOMON_ASSIGN(result.native_dtype, WithNativeDtype(search, result.direct_port));
  GNOMON_ASSIGN(result.plan, search.Best());
  GNOMON_ASSIGN(result.levers, Gains(search, result.direct_port, result.plan));
  result.next = NextSteps(model, used, result.plan);
  result.speedup_predicted =
      result.plan.cost.samples_per_second / result.direct_port.cost.samples_per_second;
  result.speedup_to_quality_predicted =
      result.plan.QualityRate() / result.direct_port.QualityRate();
  result.speedup_over_native_dtype =
      result.plan.cost.samples_per_second / result.native_dtype.cost.samples_per_second;
  result.recipes_costed = source_search.costed() + search.costed();
  return result;
}

Plan MakePlan(const Model& model, const std::string& model_path, const Device& device,
              const ArmPrediction& arm) {
  Plan plan;
  plan.model = model;
  plan.model_path = model_path;
  plan.device = device.id;
  plan.recipe = arm.recipe;
  plan.predicted_step = arm.cost.time;
  plan.predicted_memory = arm.cost.memory.total();
  if (arm.recipe.gemm_backend == GemmBackend::kGnomon)
    for (const OpCost& op : arm.cost.ops)
      if (op.kind == Op::Kind::kGemm && op.kernel != "library") plan.kernels[op.name] = op.kernel;
  return plan;
}

}  // namespace gnomon
