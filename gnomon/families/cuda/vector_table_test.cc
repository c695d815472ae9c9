#include "gnomon/families/cuda/vector_table.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace gnomon::cuda {
namespace {

Problem Of(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout,
           DType dtype = DType::kBf16) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.layout = layout;
  p.dtype = dtype;
  p.dtype_out = UsualOutput(dtype);
  return p;
}

TEST(VectorTable, ListsEveryInstanceEitherWayRound) {
  std::set<std::pair<int, int>> listed, made;
  for (const VectorTile tile : kVectorTiles) listed.insert({tile.tile_m, tile.tile_n});
#define GNOMON_CUDA_INSERT(l, s) made.insert({l, s}), made.insert({s, l});
  GNOMON_CUDA_DOT_TILES(GNOMON_CUDA_INSERT)
  GNOMON_CUDA_SUM_TILES(GNOMON_CUDA_INSERT)
#undef GNOMON_CUDA_INSERT
  EXPECT_EQ(listed, made);
  EXPECT_EQ(listed.size(), kVectorTiles.size());
}

TEST(VectorTable, TheStreamedOperandAndItsStorageDecideTheWay) {
  const struct {
    Problem problem;
    VectorWay way;
    bool long_is_m;
  } cases[] = {
      {Of(65536, 1, 256, Layout::kNT), VectorWay::kDot, true},   // rows of A
      {Of(1, 4096, 4096, Layout::kNT), VectorWay::kDot, false},  // rows of B
      {Of(1, 4096, 4096, Layout::kNN), VectorWay::kSum, false},  // lines of B
      {Of(1, 256, 65536, Layout::kTN), VectorWay::kSum, false},  // lines of B
      {Of(28583, 3, 8524, Layout::kTN), VectorWay::kSum, true},  // lines of A
      {Of(65536, 256, 1, Layout::kNN), VectorWay::kSum, false},  // an outer product
      {Of(8192, 512, 13, Layout::kNT), VectorWay::kSum, false},
      {Of(37, 8, 88, Layout::kNN), VectorWay::kDot, true},
  };
  for (const auto& c : cases) {
    const VectorPlan plan = VectorWayOf(c.problem);
    EXPECT_EQ(plan.way, c.way) << c.problem.Text();
    EXPECT_EQ(plan.long_is_m, c.long_is_m) << c.problem.Text();
    EXPECT_EQ(plan.long_side, c.long_is_m ? c.problem.m : c.problem.n);
  }
}

TEST(VectorTable, ASkinnyProblemHasATileAndAnotherHasNone) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    const auto side = [&] { return static_cast<std::int64_t>(random() % 40 + 1) << random() % 9; };
    const DType dtypes[] = {DType::kBf16, DType::kFp16, DType::kTf32, DType::kFp8E4m3};
    const Layout layouts[] = {Layout::kNN, Layout::kNT, Layout::kTN, Layout::kTT};
    const Problem p = Of(side(), side(), side(), layouts[random() % 4], dtypes[random() % 4]);
    int fitting = 0;
    for (const VectorTile tile : kVectorTiles) {
      if (!VectorFits(p, tile)) continue;
      ++fitting;
      for (const int parts : {1, 2, 7, 64}) {
        if (!VectorSplitFits(p, tile, parts)) continue;
        const VectorPlan plan = VectorPlanOf(p, tile, parts);
        // All of C is covered, and no tile is for nothing.
        EXPECT_GE(plan.long_tiles * plan.warp_long, plan.long_side);
        EXPECT_LT((plan.long_tiles - 1) * plan.warp_long, plan.long_side);
        EXPECT_GE(plan.short_tiles * plan.short_tile, plan.short_side);
        EXPECT_LT((plan.short_tiles - 1) * plan.short_tile, plan.short_side);
        EXPECT_GE(plan.chunks * plan.chunk, p.k);
        EXPECT_LT((plan.chunks - 1) * plan.chunk, p.k);
        EXPECT_GE(plan.ctas * (plan.together ? 1 : kVectorWarps), plan.tiles * parts);
        EXPECT_GE(plan.sums, plan.warp_long * plan.short_tile);
        EXPECT_EQ(plan.sums % 4, 0);
        EXPECT_EQ(VectorWorkspaceBytes(plan) > 0, parts > 1);
      }
    }
    EXPECT_EQ(fitting > 0, VectorDoes(p)) << p.Text();
    if (std::min({p.m, p.n, p.k}) > kSkinny) {
      EXPECT_EQ(fitting, 0) << p.Text();
    }
  }
}

TEST(VectorTable, TilesNoWiderThanTheShortSideNeeds) {
  const Problem p = Of(65536, 3, 256, Layout::kNT);
  EXPECT_TRUE(VectorFits(p, {4, 1}));
  EXPECT_TRUE(VectorFits(p, {4, 4}));
  EXPECT_FALSE(VectorFits(p, {4, 8}));
  EXPECT_FALSE(VectorFits(p, {8, 4}));  // a tile of way sum
}

TEST(VectorTable, SplitsOnlyWhatHasWorkForAllWarps) {
  const Problem tall = Of(1, 256, 65536, Layout::kTN), flat = Of(1, 256, 128, Layout::kTN);
  EXPECT_TRUE(VectorSplitFits(tall, {1, 8}, 132));
  EXPECT_TRUE(VectorSplitFits(flat, {1, 8}, 16));
  EXPECT_FALSE(VectorSplitFits(flat, {1, 8}, 17));
  EXPECT_FALSE(VectorSplitFits(tall, {1, 8}, 0));
  EXPECT_FALSE(VectorSplitFits(tall, {1, 8}, kMostVectorParts + 1));
}

TEST(VectorTable, RefusesWhatItsKernelsCannotDo) {
  Problem grouped = Of(64, 8, 64, Layout::kNT);
  grouped.group_m = {32, 32};
  EXPECT_FALSE(VectorDoes(grouped));
  EXPECT_FALSE(VectorDoes(Of(64, 8, 64, Layout::kNN, DType::kFp8E4m3)));
  EXPECT_FALSE(VectorDoes(Of(64, 64, 8, Layout::kNT, DType::kFp8E4m3)));
  EXPECT_FALSE(VectorDoes(Of(64, 8, 64, Layout::kNT, DType::kInt8)));
  EXPECT_FALSE(VectorDoes(Of(64, 64, 64, Layout::kNT)));
  EXPECT_FALSE(VectorDoes(Of(std::int64_t{1} << 33, 8, 64, Layout::kNT)));
}

}  // namespace
}  // namespace gnomon::cuda
