// Rows of memory-bound operators → OperatorProblem.
//
// The operator is told by words: norms and softmax first, then moves, then the table of elementwise
// operators below, which says how many tensors of the output's size a pass reads and writes. A
// shape of plain sides is one operand, of which a binary operator has two; lists are the operands
// that a tracer saw, and one of another size than the output is a broadcast. Calls from Python
// ("torch …") are eager: the host is part of the time between two events. A row that states only a
// bandwidth is timed by the bytes of its shape. Rows that leave out what decides their time stand
// apart with the reason. Entry point: MapMemoryOp.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gnomon/cost/map_ops.h"
#include "gnomon/cost/op_text.h"
#include "gnomon/cost/operators.h"

namespace gnomon {
namespace {

using Kind = OperatorProblem::Kind;
using Pass = OperatorProblem::Pass;

constexpr double kMaskByte = 0.25;  // a byte of mask beside a value of fp32
// pow by exponent and logarithm: 52 vector instructions a value (A100, where it outlasts its
// traffic: NeuSight's powu takes 11.6 ms for 2.1 G values).
constexpr double kPowFlops = 105;
constexpr double kGiga = 1e9;
// Split-K decoding rescales its sums while the next keys load: share of the streaming rate that is
// left, in CUTLASS and in Triton (read off all rows of FBGEMM#5213, GB200).
constexpr double kDecodeShare = 0.90, kTritonDecodeShare = 0.75;
// Rotary embedding in plain PyTorch: half negated, halves joined, two products, their sum.
constexpr double kRotaryRead = 5.5, kRotaryWritten = 4.5, kRotaryKernels = 5;

struct Passes {
  double read = 1, written = 1, kernels = 1;
};

struct Named {
  std::string_view words;  ///< any of them
  std::string_view name;   ///< the operator's name
  int operands;            ///< tensors of a call; a list of operands in the shape overrules
  Passes backward;         ///< kernels as autograd writes them
  double flops = 0;        ///< vector operations a value
};

// Backward: mul and div of a scalar scale the gradient; pow computes x^(e−1), scales it,
// multiplies; dropout widens its mask, scales it, multiplies. add passes its gradient on.
constexpr std::array<Named, 15> kElementwise = {{
    {"addu|add scalar", "add", 1, {0, 0, 0}},
    {"mulu|mul scalar", "mul", 1, {1, 1, 1}},
    {"divu|div scalar", "div", 1, {1, 1, 1}},
    {"powu|pow scalar", "pow", 1, {4, 3, 3}, kPowFlops},
    {"add|sub", "add", 2, {0, 0, 0}},
    {"mul", "mul", 2, {4, 2, 2}},
    {"div|truediv", "div", 2, {1, 1, 1}},
    {"pow", "pow", 2, {4, 3, 3}, kPowFlops},
    {"relu", "relu", 1, {2, 1, 1}},
    {"gelu", "gelu", 1, {2, 1, 1}},
    {"silu|swish", "silu", 1, {2, 1, 1}},
    {"tanh|sigmoid", "tanh", 1, {2, 1, 1}},
    {"dropout", "dropout", 1, {2 + 1 + kMaskByte, 3, 3}},
    {"where|masked_fill", "where", 2, {1, 1, 1}},
    {"cumsum", "cumsum", 1, {1, 1, 1}},
}};

double Product(const std::vector<double>& sides) {
  double product = 1;
  for (const double side : sides) product *= side;
  return product;
}

// What the shapes of a call say together.
struct Operands {
  double output = 0;  // values of the output: each axis' longest side
  double read = 0;    // values of all operands
  bool broadcast = false;
  std::vector<double> sides;  // of the output
};

Operands Join(const ShapeText& shape) {
  Operands joined;
  for (const auto& operand : shape.operands) {
    if (operand.size() > joined.sides.size())
      joined.sides.insert(joined.sides.begin(), operand.size() - joined.sides.size(), 1);
    for (size_t i = 0; i < operand.size(); ++i) {
      double& side = joined.sides[joined.sides.size() - operand.size() + i];
      side = std::max(side, operand[i]);
    }
    joined.read += Product(operand);
  }
  joined.output = Product(joined.sides);
  for (const auto& operand : shape.operands) joined.broadcast |= Product(operand) != joined.output;
  return joined;
}

// A count as an integer; what no memory holds stays there instead of overflowing.
std::int64_t Elements(double count) {
  constexpr double kMost = 1125899906842624.0;  // 2^50
  return static_cast<std::int64_t>(std::clamp(count, 0.0, kMost));
}

void SetRows(OperatorProblem& problem, const std::vector<double>& sides) {
  problem.width = Elements(sides.back());
  problem.rows = Elements(Product(sides) / std::max(1.0, sides.back()));
}

// Bytes that a stated bandwidth counts: every operand once.
double CountedBytes(const OperatorProblem& problem) {
  return static_cast<double>(problem.rows) * static_cast<double>(problem.width) *
         problem.element_bytes * (problem.read_tensors + problem.written_tensors);
}

// An operator that a framework leaves out (dropout while it infers) still has a time in a trace.
bool Impossible(const Device& device, const OperatorProblem& problem, Seconds measured) {
  constexpr double kBeyond = 1.5;  // over what the nearest shared cache is known to reach
  BytesPerSecond most = device.MainMemory().bandwidth;
  for (const MemoryLevel& level : device.memory)
    if (level.scope != MemoryLevel::Scope::kUnit) most = std::max(most, level.bandwidth);
  return Bytes{CountedBytes(problem)} / (most * kBeyond) > measured;
}

struct Asked {
  OperatorProblem problem;
  std::string name;
  double streaming_share = 1;  // of an implementation against the best of its kind
};
using Answer = std::variant<Asked, std::string>;

Answer NormOrSoftmax(const OpsRow& row, const ShapeText& shape, Asked asked) {
  const std::string_view op = row.Text("op");
  const bool softmax = HasWord(op, "softmax");
  asked.problem.kind = softmax                                       ? Kind::kSoftmax
                       : HasAnyWord(op, "rmsnorm|rms norm|rms_norm") ? Kind::kRmsNorm
                                                                     : Kind::kLayerNorm;
  asked.name = Name(asked.problem.kind);
  SetRows(asked.problem, shape.operands.front());
  if (HasText(op, "residual")) {  // fused: x and the residual in, both out; unfused: one by one
    const bool unfused = HasText(op, "pytorch");
    asked.problem.kind = Kind::kElementwise;
    asked.problem.read_tensors = unfused ? 1 + 2 + 2 : 2;
    asked.problem.written_tensors = unfused ? 1 + 1 + 1 : 2;
    asked.problem.kernels = unfused ? 3 : 1;
    asked.name = unfused ? "dropout+residual+layer_norm, unfused" : "dropout+residual+layer_norm";
  }
  return asked;
}

Answer Streaming(const OpsRow& row, const ShapeText& shape, Asked asked) {
  const std::string_view op = row.Text("op");
  OperatorProblem& problem = asked.problem;
  problem.rows = 1;
  if (HasText(op, "decode")) {
    const auto at = [&](const char* key) {
      const auto found = shape.named.find(key);
      return found == shape.named.end() ? 0.0 : found->second;
    };
    const double values = at("b") * at("skv") * at("hkv") * at("d") * 2;  // keys and values
    if (values <= 0) return "sides of the key-value cache are not stated";
    problem.kind = Kind::kStream;
    problem.written_tensors = 0;
    problem.width = Elements(values);
    asked.name = "decode attention, KV stream";
    const bool triton = HasWord(op, "triton");
    if (triton) asked.name += " [triton]";
    asked.streaming_share = triton ? kTritonDecodeShare : kDecodeShare;
    return asked;
  }
  const auto bytes = shape.named.find("bytes");
  if (bytes == shape.named.end()) return "shape is not stated";
  problem.width = Elements(bytes->second / problem.element_bytes);
  if (HasAnyWord(op, "add|triad")) problem.read_tensors = 2;
  if (HasWord(op, "dot")) {
    problem.kind = Kind::kStream;
    problem.read_tensors = 2;
    problem.written_tensors = 0;
  }
  asked.name = HasWord(op, "dot") ? "stream read" : "stream copy";
  return asked;
}

Answer Elementwise(const OpsRow& row, const ShapeText& shape, Asked asked) {
  const std::string_view op = row.Text("op");
  for (const Named& named : kElementwise) {
    if (!HasAnyWord(op, named.words)) continue;
    const Operands operands = Join(shape);
    const bool traced = row.Text("shape").starts_with('[');
    OperatorProblem& problem = asked.problem;
    asked.name = named.name;
    SetRows(problem, operands.sides);
    problem.flops_per_element = named.flops;
    problem.read_tensors = traced ? operands.read / operands.output : named.operands;
    if (traced && named.name == "where")
      problem.read_tensors -= (1 - kMaskByte) * Product(shape.operands.front()) /
                              operands.output;  // its condition is of bytes
    if (named.name == "dropout") problem.written_tensors += kMaskByte;
    if (traced && operands.broadcast) problem.kind = Kind::kBroadcast;
    if (problem.pass == Pass::kForward) return asked;
    Passes passes = named.backward;
    if (traced && named.name == "mul" && shape.operands.size() == 1) passes = {1, 1, 1};
    if (passes.kernels <= 0) return "its backward is no kernel";
    problem.read_tensors = passes.read;
    problem.written_tensors = passes.written;
    problem.kernels = passes.kernels;
    problem.flops_per_element = 0;
    return asked;
  }
  return "names none of the operators that are modelled";
}

Answer Ask(const OpsRow& row, Asked asked) {
  const std::string_view op = row.Text("op");
  const auto shape = ParseShapeText(row.Text("shape"));
  if (!shape) return "shape is not stated";
  if (HasWord(op, "mla")) return "compute of many heads bounds it; no memory operator";
  if (HasAnyWord(op, "babelstream|stream|decode") || shape->named.contains("bytes"))
    return Streaming(row, *shape, asked);
  if (HasWord(op, "rotary")) {
    const bool unfused = HasText(op, "pytorch");
    asked.name = unfused ? "rotary, unfused" : "rotary";
    if (unfused) {
      asked.problem.read_tensors = kRotaryRead;
      asked.problem.written_tensors = kRotaryWritten;
      asked.problem.kernels = kRotaryKernels;
    }
    double values = 1;
    for (const auto& [letter, side] : shape->named) values *= side;
    asked.problem.width = Elements(values);
    return asked;
  }
  if (shape->operands.empty() || Product(shape->operands.front()) <= 0)
    return "shape is not stated";
  if (HasAnyWord(op, "softmax|layernorm|layer norm|layer_norm|ln|rmsnorm|rms norm|rms_norm"))
    return NormOrSoftmax(row, *shape, asked);
  if (HasAnyWord(op, "contiguous|permute|transpose|copy")) {
    asked.problem.kind = HasWord(op, "copy") ? Kind::kElementwise : Kind::kPermute;
    asked.name = HasWord(op, "copy") ? "copy" : "permute";
    SetRows(asked.problem, shape->operands.front());
    return asked;
  }
  if (HasAnyWord(op, "embedding|index_select|gather")) {
    if (shape->operands.size() < 2 || shape->operands[1].size() != 2)
      return "width of the table's rows is not stated";
    asked.problem.kind =
        asked.problem.pass == Pass::kForward ? Kind::kIndexSelect : Kind::kIndexAdd;
    asked.name = Name(Kind::kIndexSelect);
    asked.problem.rows = Elements(Product(shape->operands[0]));
    asked.problem.width = Elements(shape->operands[1][1]);
    return asked;
  }
  return Elementwise(row, *shape, asked);
}

}  // namespace

Mapping MapMemoryOp(const Device& device, const OpsRow& row) {
  const std::string_view op = row.Text("op");
  Asked asked;
  asked.problem.element_bytes = row.Text("dtype").empty()
                                    ? SizeOf(DType::kBf16)
                                    : ElementBytes(row.Text("dtype")).value_or(0);
  if (row.Text("dtype").ends_with('?')) return "its source does not state the dtype";
  if (asked.problem.element_bytes <= 0)
    return fmt::format("dtype '{}' is not known", row.Text("dtype"));
  const bool backward = HasAnyWord(op, "bwd|backward");
  if (backward && HasAnyWord(op, "fwd|forward")) return "forward and backward in one";
  if (backward) asked.problem.pass = Pass::kBackward;
  // Python's calls, one by one between two events.
  if (HasWord(op, "torch") || HasText(row.Text("source"), "LLMCompass"))
    asked.problem.caller = OperatorProblem::Caller::kEager;
  const Answer answer = Ask(row, asked);
  if (const auto* reason = std::get_if<std::string>(&answer)) return *reason;
  asked = std::get<Asked>(answer);

  MappedOp mapped;
  const auto us = row.Number("us"), gbps = row.Number("gbps");
  if (us && *us > 0) {
    mapped.measured = Microseconds(*us);
  } else if (gbps && *gbps > 0) {
    mapped.measured = Bytes{CountedBytes(asked.problem)} / BytesPerSecond{*gbps * kGiga};
  } else {
    return "neither time nor bandwidth is stated";
  }
  if (Impossible(device, asked.problem, mapped.measured))
    return "no pass over its data can be that short: it did nothing";
  asked.problem.read_tensors /= asked.streaming_share;
  mapped.prediction = PredictOperator(device, asked.problem);
  mapped.op = asked.name + (backward ? " bwd" : " fwd");
  mapped.shape = std::string(row.Text("shape"));
  return mapped;
}

}  // namespace gnomon
