// Adagrad over all dense parameters in one pass.
//
//   state += g²;  weight -= lr · g / (√state + ε);  bf16_copy = bf16(weight)
//
// What is done beyond it: all parameters form one range of blocks that the threads share by size,
// so that neither a hundred biases nor one large matrix leaves a thread idle; the copy that the
// GEMMs read is written while the weight is still in a register. A block's last, partial vector
// goes through the same vector instructions, so that results do not depend on where blocks or
// threads begin.
//
// Entry point: DenseAdagrad.

#include "gnomon/families/cpu/dense_adagrad.h"

#include <algorithm>
#include <vector>

#include "gnomon/families/cpu/parallel_units.h"

// foreach_target.h includes this file again and has to come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gnomon/families/cpu/dense_adagrad.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "gnomon/families/cpu/float_rows-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gnomon::cpu {
namespace HWY_NAMESPACE {

/// The new weights of one vector; `state` is updated.
HWY_INLINE FloatVector Step(const AdagradParams& params, FloatVector weight, FloatVector grad,
                            FloatVector& state) {
  const Floats df;
  state = hn::MulAdd(grad, grad, state);
  const FloatVector root = hn::Add(hn::Sqrt(state), hn::Set(df, params.epsilon));
  return hn::Sub(weight, hn::Div(hn::Mul(hn::Set(df, params.learning_rate), grad), root));
}

/// Elements [begin, end) of one parameter.
void AdagradBlock(const DenseParameter& parameter, const AdagradParams& params, std::size_t begin,
                  std::size_t end) {
  float* weights = parameter.weight;
  float* states = parameter.state;
  std::uint16_t* copies = parameter.bf16_copy;
  std::size_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    FloatVector state = LoadRow(states + i);
    const FloatVector weight =
        Step(params, LoadRow(weights + i), LoadRow(parameter.grad + i), state);
    StoreRow(state, states + i);
    StoreRow(weight, weights + i);
    if (copies != nullptr) StoreRow(weight, copies + i);
  }
  if (i == end) return;
  const std::size_t part = end - i;
  FloatVector state = LoadPart(states + i, part);
  const FloatVector weight =
      Step(params, LoadPart(weights + i, part), LoadPart(parameter.grad + i, part), state);
  StorePart(state, states + i, part);
  StorePart(weight, weights + i, part);
  if (copies != nullptr) StorePart(weight, copies + i, part);
}

}  // namespace HWY_NAMESPACE
}  // namespace gnomon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace gnomon::cpu {
namespace {

HWY_EXPORT(AdagradBlock);

/// Elements a block: large enough that handing it out costs nothing beside it.
constexpr std::int64_t kBlock = 16384;

}  // namespace

void DenseAdagrad(std::span<const DenseParameter> parameters, const AdagradParams& params,
                  int threads) {
  // Blocks before each parameter: block b of all belongs to the last parameter that starts at or
  // below.
  std::vector<std::int64_t> first(parameters.size() + 1, 0);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    first[p + 1] = first[p] + (parameters[p].size + kBlock - 1) / kBlock;
  const auto run = [&](std::int64_t block) {
    const auto after = std::upper_bound(first.begin(), first.end(), block);
    const auto p = static_cast<std::size_t>(after - first.begin() - 1);
    const std::int64_t begin = (block - first[p]) * kBlock;
    const std::int64_t end = std::min(begin + kBlock, parameters[p].size);
    HWY_DYNAMIC_DISPATCH(AdagradBlock)
    (parameters[p], params, static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
  };
  // One block is done sooner than another thread wakes up.
  ForEachUnit(first.back(), first.back() <= 1 ? 1 : ThreadCount(threads), run);
}

}  // namespace gnomon::cpu

#endif  // HWY_ONCE
