#include "gnomon/train/ops.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gnomon/families/cpu/cpu_gemm.h"
#include "gnomon/gemm/select.h"
#include "gnomon/train/stock_path.h"

namespace gnomon::train {
namespace {

at::Tensor Leaf(at::Tensor values) { return values.detach().clone().set_requires_grad(true); }

double Distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kFloat) - b.to(at::kFloat)).abs().max().item<double>();
}

std::vector<std::int64_t> Picks(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  const auto device = FindDevice("host-x86-64-avx2");
  GNOMON_CHECK(device.ok(), "{}", device.error().Text());
  const Family* family = &cpu::GemmFamily();
  const auto pick = [&](Problem problem) {
    problem.dtype = dtype;
    return Select(*device, problem, {&family, 1}, 2).value().front().config;
  };
  return Flatten(LinearKernels{pick({.m = m, .n = n, .k = k, .layout = Layout::kNT}),
                               pick({.m = m, .n = k, .k = n, .layout = Layout::kNN}),
                               pick({.m = n, .n = k, .k = m, .layout = Layout::kTN})});
}

// The format a GEMM adds up in. LibTorch without bf16 instructions rounds each product and each
// partial sum to bf16, in the order of k.
enum class Sums { kFp32, kBf16 };
const double kRoundingFp32 = std::ldexp(1.0, -24), kRoundingBf16 = std::ldexp(1.0, -8);

double Rounding(at::ScalarType type) { return type == at::kFloat ? kRoundingFp32 : kRoundingBf16; }

// a · b in fp64, and how far from it each value may be when the sums are made in `sums`.
struct Product {
  at::Tensor value, tolerance;
};
Product Multiply(const at::Tensor& a, const at::Tensor& b, Sums sums) {
  const at::Tensor terms = a.to(at::kDouble).unsqueeze(2) * b.to(at::kDouble).unsqueeze(0);
  const auto k = static_cast<double>(a.size(1));
  Product product{.value = terms.sum(1), .tolerance = at::Tensor()};
  // fp32, any order: roundings of random sign (Higham and Mary 2019).
  product.tolerance = std::sqrt(k) * kRoundingFp32 * terms.abs().sum(1);
  if (sums == Sums::kBf16) {
    // One rounding a product and one a partial sum, each of which the later ones may grow.
    product.tolerance = kRoundingBf16 * std::pow(1 + kRoundingBf16, k) *
                        (terms.abs() + terms.cumsum(1).abs()).sum(1);
  }
  return product;
}

void ExpectWithin(const at::Tensor& values, const Product& expected, const char* what) {
  // The result's own rounding.
  const at::Tensor tolerance =
      expected.tolerance + Rounding(values.scalar_type()) * expected.value.abs();
  const at::Tensor over = (values.to(at::kDouble) - expected.value).abs() - tolerance;
  EXPECT_LE(over.max().item<double>(), 0) << what;
}

struct LinearCase {
  const char* name;
  bool library, bf16, relu, bias;
};

class LinearOp : public testing::TestWithParam<LinearCase> {};

TEST_P(LinearOp, MatchesFp64ForwardAndBackward) {
  const LinearCase& c = GetParam();
  constexpr std::int64_t kM = 83, kN = 37, kK = 29;
  at::manual_seed(1);
  at::set_num_threads(2);
  const auto type = c.bf16 ? at::kBFloat16 : at::kFloat;
  // The reference starts from the rounded values, so that only the computation differs.
  const at::Tensor x0 = at::randn({kM, kK}).to(type), d_out = at::randn({kM, kN}).to(type);
  const at::Tensor w0 = at::randn({kN, kK}).to(type).to(at::kFloat), b0 = at::randn({kN});

  LinearArguments arguments;
  arguments.weight = Leaf(w0);
  if (c.bias) arguments.bias = Leaf(b0);
  if (c.bf16) arguments.weight_copy = w0.to(at::kBFloat16);
  arguments.relu = c.relu;
  arguments.out = type;
  if (!c.library) arguments.kernels = Picks(kM, kN, kK, c.bf16 ? DType::kBf16 : DType::kFp32);
  const at::Tensor x = Leaf(x0);
  const at::Tensor y = Linear(x, arguments);
  y.backward(d_out);

  const Sums sums = c.library && c.bf16 ? Sums::kBf16 : Sums::kFp32;
  Product out = Multiply(x0, w0.t(), sums);
  if (c.bias) {
    // The library's operator wants the bias in the operands' format.
    const double bias_rounding = c.library ? Rounding(type) : kRoundingFp32;
    out.value = out.value + b0.to(at::kDouble);
    out.tolerance = out.tolerance + bias_rounding * (b0.abs() + out.value.abs());
  }
  if (c.relu) out.value = at::relu(out.value);
  EXPECT_EQ(y.scalar_type(), type);
  ExpectWithin(y, out, "output");

  // A sum near zero may fall on either side of ReLU's kink: the gradient is that of the side taken.
  const at::Tensor d_sum = c.relu ? d_out * y.detach().gt(0) : d_out;
  ExpectWithin(x.grad(), Multiply(d_sum, w0, sums), "input gradient");
  ExpectWithin(arguments.weight.grad(), Multiply(d_sum.t(), x0, sums), "weight gradient");
  if (c.bias) {
    const at::Tensor ones = at::ones({1, kM});
    Product d_bias = Multiply(ones, d_sum, Sums::kFp32);
    d_bias.value = d_bias.value.squeeze(0);
    d_bias.tolerance = d_bias.tolerance.squeeze(0);
    ExpectWithin(arguments.bias.grad(), d_bias, "bias gradient");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LinearOp,
    testing::Values(LinearCase{"OursFp32", false, false, true, true},
                    LinearCase{"OursFp32WithoutRelu", false, false, false, true},
                    LinearCase{"OursFp32WithoutBias", false, false, false, false},
                    LinearCase{"OursBf16", false, true, true, true},
                    LinearCase{"OursBf16WithoutRelu", false, true, false, true},
                    LinearCase{"LibraryFp32", true, false, true, true},
                    LinearCase{"LibraryBf16", true, true, true, true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(LinearOp, GivesFp32LogitsFromBf16Operands) {
  at::manual_seed(2);
  const at::Tensor x = Leaf(at::randn({64, 32}).to(at::kBFloat16));
  LinearArguments arguments;
  arguments.weight = Leaf(at::randn({1, 32}));
  arguments.bias = Leaf(at::randn({1}));
  arguments.weight_copy = arguments.weight.detach().to(at::kBFloat16);
  arguments.kernels = Picks(64, 1, 32, DType::kBf16);
  const at::Tensor y = Linear(x, arguments);
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  y.sum().backward();
  EXPECT_LT(Distance(x.grad(), arguments.weight_copy.expand({64, 32})), 1e-6);
  EXPECT_FLOAT_EQ(arguments.bias.grad().item<float>(), 64);
}

TEST(EmbeddingBagAdagradOp, UpdatesLikeSparseGradientsWithRowwiseAdagrad) {
  constexpr std::int64_t kBatch = 32, kDim = 16;
  const std::vector<std::int64_t> rows = {5, 40, 1};
  at::manual_seed(3);
  const at::Tensor start = at::randn({46, kDim});
  at::Tensor weight = Leaf(start), state = at::zeros({46});
  std::vector<at::Tensor> stock_weight, stock_state;
  std::int64_t base = 0;
  for (std::int64_t r : rows) {
    stock_weight.push_back(Leaf(start.slice(0, base, base + r)));
    stock_state.push_back(at::zeros({r}));
    base += r;
  }
  for (int step = 0; step < 3; ++step) {
    std::vector<at::Tensor> indices, pooled;
    // Two lookups a bag in table 1.
    const std::vector<std::int64_t> hot = {1, 2, 1};
    std::vector<std::int64_t> offsets;
    std::int64_t position = 0;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      indices.push_back(at::randint(rows[t], {kBatch * hot[t]}, at::kLong));
      pooled.push_back(StockBag(stock_weight[t], indices[t],
                                at::arange(0, kBatch * hot[t], hot[t], at::kLong), true));
      for (std::int64_t b = 0; b < kBatch; ++b, position += hot[t]) offsets.push_back(position);
    }
    offsets.push_back(position);
    const at::Tensor factor = at::randn({kBatch, 3, kDim});
    at::Tensor stock_out = at::stack(pooled, 1);
    for (at::Tensor& w : stock_weight) w.mutable_grad() = at::Tensor();
    (stock_out * factor).sum().backward();
    for (std::size_t t = 0; t < rows.size(); ++t)
      StockRowwiseAdagrad(stock_weight[t], stock_state[t], 0.1, 1e-8);

    EmbeddingArguments arguments;
    arguments.weight = weight;
    arguments.state = state;
    arguments.table_rows = rows;
    arguments.learning_rate = 0.1;
    const at::Tensor out =
        EmbeddingBagAdagrad(at::cat(indices), at::tensor(offsets, at::kLong), arguments);
    EXPECT_LT(Distance(out, stock_out), 1e-5);
    (out * factor).sum().backward();
    EXPECT_FALSE(weight.grad().defined()) << "no gradient of a table stands in memory";
  }
  EXPECT_LT(Distance(weight, at::cat(stock_weight)), 1e-5);
  EXPECT_LT(Distance(state, at::cat(stock_state)), 1e-4);
  EXPECT_GT(Distance(weight, start), 0.05);
}

TEST(EmbeddingBagAdagradOp, NamesAnIndexOutsideItsTable) {
  EmbeddingArguments arguments;
  arguments.weight = at::zeros({4, 16});
  arguments.state = at::zeros({4});
  arguments.table_rows = {4};
  EXPECT_THROW(
      EmbeddingBagAdagrad(at::tensor({4}, at::kLong), at::tensor({0, 1}, at::kLong), arguments),
      c10::Error);
}

TEST(DotInteractionOp, MatchesCatBmmTriangleForwardAndBackward) {
  constexpr std::int64_t kBatch = 19, kTables = 6, kDim = 16, kPairs = 21, kWidth = 40;
  at::manual_seed(4);
  const at::Tensor dense = Leaf(at::randn({kBatch, kDim})),
                   bags = Leaf(at::randn({kBatch, kTables, kDim}));
  const at::Tensor our_dense = Leaf(dense), our_bags = Leaf(bags);
  const at::Tensor factor = at::randn({kBatch, kWidth});
  const at::Tensor stock =
      PadColumns(StockInteraction({dense, bags}, TriangleIndex(kTables + 1)), kWidth);
  (stock * factor).sum().backward();
  const at::Tensor ours = DotInteraction(our_dense, our_bags, kWidth);
  (ours * factor).sum().backward();
  EXPECT_LT(Distance(ours, stock), 1e-4);
  EXPECT_EQ(ours.slice(1, kDim + kPairs).abs().max().item<float>(), 0);
  EXPECT_LT(Distance(our_dense.grad(), dense.grad()), 1e-4);
  EXPECT_LT(Distance(our_bags.grad(), bags.grad()), 1e-4);
}

TEST(ClickLossOp, MatchesBinaryCrossEntropyWithLogits) {
  at::manual_seed(5);
  const at::Tensor logits = Leaf(3 * at::randn({5000})),
                   labels = at::rand({5000}).lt(0.3).to(at::kFloat);
  const at::Tensor ours = Leaf(logits);
  const at::Tensor expected = at::binary_cross_entropy_with_logits(logits, labels);
  const at::Tensor loss = ClickLoss(ours, labels);
  expected.backward();
  loss.backward();
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-6);
  EXPECT_LT(Distance(ours.grad(), logits.grad()), 1e-9);
}

TEST(DenseAdagradOp, MatchesTheChainOfOperatorsAndRefreshesTheCopy) {
  at::manual_seed(6);
  at::Tensor stock = Leaf(at::randn({33, 7})), stock_state = at::zeros({33, 7});
  at::Tensor ours = Leaf(stock), state = at::zeros({33, 7}),
             copy = at::zeros({33, 7}, at::kBFloat16);
  for (int step = 0; step < 3; ++step) {
    stock.mutable_grad() = at::randn({33, 7});
    ours.mutable_grad() = stock.grad().clone();
    StockAdagrad(stock, stock_state, 0.1, 1e-8);
    DenseAdagrad({ours}, {state}, {copy}, 0.1, 1e-8);
  }
  EXPECT_LT(Distance(ours, stock), 1e-5);
  EXPECT_LT(Distance(state, stock_state), 1e-5);
  EXPECT_EQ(Distance(copy, ours.detach().to(at::kBFloat16)), 0);
}

}  // namespace
}  // namespace gnomon::train
