#include "gnomon/families/triton/compiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnomon/base/csv.h"
#include "gnomon/gemm/test_problems.h"

namespace gnomon::triton {
namespace {

Device Card(const std::string& id) {
  return ReadDevice(GNOMON_SOURCE_DIR "/devices/" + id + ".toml").value();
}

TEST(Specialisation, AsksForMultiplesOfSixteen) {
  EXPECT_EQ(SpecialisationOf(Gemm(64, 64, 64, DType::kBf16, Layout::kNT)), Specialisation());
  EXPECT_FALSE(SpecialisationOf(Gemm(64, 64, 72, DType::kBf16, Layout::kNT)).wide_a);
  EXPECT_FALSE(SpecialisationOf(Gemm(64, 64, 72, DType::kBf16, Layout::kNT)).wide_b);
  EXPECT_TRUE(SpecialisationOf(Gemm(65, 64, 64, DType::kBf16, Layout::kNT)).wide_a);
  EXPECT_FALSE(SpecialisationOf(Gemm(65, 64, 64, DType::kBf16, Layout::kTN)).wide_a);
  EXPECT_FALSE(SpecialisationOf(Gemm(64, 65, 64, DType::kBf16, Layout::kNT)).wide_c);
  Problem padded = Gemm(64, 64, 64, DType::kBf16, Layout::kNT);
  padded.lda = 65;
  padded.ldc = 72;
  EXPECT_FALSE(SpecialisationOf(padded).wide_a);
  EXPECT_TRUE(SpecialisationOf(padded).wide_b);
  EXPECT_FALSE(SpecialisationOf(padded).wide_c);
}

TEST(Specialisation, ScattersNarrowRowsOfBAlongN) {
  EXPECT_TRUE(SpecialisationOf(Gemm(64, 65, 64, DType::kBf16, Layout::kNN)).scattered_b);
  EXPECT_FALSE(SpecialisationOf(Gemm(64, 65, 64, DType::kBf16, Layout::kNT)).scattered_b);
  EXPECT_FALSE(SpecialisationOf(Gemm(64, 64, 64, DType::kBf16, Layout::kNN)).scattered_b);
}

// 8,112 kernels as Triton 3.6 and ptxas built them.
class CompiledRows : public testing::Test {
 protected:
  struct Row {
    CompiledKernel predicted;
    double occupancy = 0, predicted_occupancy = 0;
    double registers = 0, spilled = 0, shared = 0;
    bool warpgroup = false, split = false, narrow = false;
  };

  static const std::vector<Row>& Rows() {
    static const std::vector<Row> rows = Read();
    return rows;
  }

 private:
  static std::vector<Row> Read() {
    const CsvTable table =
        ReadCsv(GNOMON_SOURCE_DIR "/bench/results/h200_triton_compiled.csv").value();
    const Device card = Card("h200");
    const TileMachine machine = TileMachineOf(card, DType::kBf16, 0).value();
    const auto column = [&](std::string_view name) { return table.Column(name).value(); };
    const int layout = column("layout"), m = column("m"), n = column("n"), k = column("k"),
              config = column("config"), registers = column("registers"), spills = column("spills"),
              shared = column("shared"), wgmma = column("wgmma");
    std::vector<Row> rows;
    for (const CsvTable::Row& cells : table.rows) {
      const auto number = [&](int at) { return table.Number(cells, at).value(); };
      const auto side = [&](int at) { return static_cast<std::int64_t>(number(at)); };
      const Specialisation spec =
          SpecialisationOf(Gemm(side(m), side(n), side(k), DType::kBf16,
                                ParseLayout(cells.cells[static_cast<size_t>(layout)]).value()));
      const TritonConfig c = ParseConfig(cells.cells[static_cast<size_t>(config)]).value();
      Row row;
      row.predicted = Compile(machine, card.arch, spec, c, SizeOf(DType::kBf16));
      row.registers = number(registers);
      row.spilled = number(spills);
      row.shared = number(shared);
      row.warpgroup = number(wgmma) > 0;
      row.split = c.split_k > 1;
      row.narrow = row.predicted.narrow_a + row.predicted.narrow_b > 0;
      row.occupancy = Occupancy(machine, c.warps, row.registers, row.shared);
      row.predicted_occupancy =
          Occupancy(machine, c.warps, row.predicted.registers, row.predicted.shared_bytes);
      rows.push_back(row);
    }
    return rows;
  }
};

template <class Rows, class Of, class Is>
double Share(const Rows& rows, Of of, Is is) {
  double all = 0, right = 0;
  for (const auto& row : rows) {
    if (!of(row)) continue;
    ++all;
    right += is(row);
  }
  return right / all;
}

TEST_F(CompiledRows, HaveThePredictedNumberOfResidentWorkgroups) {
  const auto right = [](const Row& r) { return r.occupancy == r.predicted_occupancy; };
  const double wide = Share(
      Rows(), [](const Row& r) { return !r.narrow; }, right);
  const double narrow = Share(
      Rows(), [](const Row& r) { return r.narrow; }, right);
  std::printf("occupancy right: wide %.3f, narrow %.3f\n", wide, narrow);
  EXPECT_GE(wide, 0.94);
  EXPECT_GE(narrow, 0.85);
}

TEST_F(CompiledRows, HaveThePredictedSharedMemory) {
  const auto right = [](const Row& r) { return r.shared == r.predicted.shared_bytes; };
  const double whole = Share(
      Rows(), [](const Row& r) { return !r.split; }, right);
  const double split = Share(
      Rows(), [](const Row& r) { return r.split; }, right);
  std::printf("shared memory exact: not split %.3f, split %.3f\n", whole, split);
  EXPECT_GE(whole, 0.95);
}

TEST_F(CompiledRows, UseThePredictedMatrixInstruction) {
  for (const Row& row : Rows())
    EXPECT_EQ(row.warpgroup, row.predicted.path == MatrixPath::kWarpgroup);
}

TEST_F(CompiledRows, SpillWhereItIsPredicted) {
  const double told = Share(
      Rows(), [](const Row& r) { return r.spilled > 0; },
      [](const Row& r) { return r.predicted.spilled > 0; });
  const double spared = Share(
      Rows(), [](const Row& r) { return r.spilled == 0; },
      [](const Row& r) { return r.predicted.spilled == 0; });
  std::printf("spills foreseen %.3f, none foreseen %.3f\n", told, spared);
  EXPECT_GE(told, 0.85);
  EXPECT_GE(spared, 0.85);
}

TEST(Compile, ChoosesTheMatrixPathOfTheArchitecture) {
  TritonConfig c;
  const auto path = [&](const char* id) {
    const Device card = Card(id);
    return Compile(TileMachineOf(card, DType::kBf16, 0).value(), card.arch, {}, c,
                   SizeOf(DType::kBf16))
        .path;
  };
  EXPECT_EQ(path("h200"), MatrixPath::kWarpgroup);
  EXPECT_EQ(path("b200"), MatrixPath::kTensorMemory);
  EXPECT_EQ(path("a100"), MatrixPath::kSync);
  c.block_m = 32;  // warpgroup instructions have 64 rows
  EXPECT_EQ(path("h200"), MatrixPath::kSync);
  EXPECT_EQ(path("b200"), MatrixPath::kSync);
}

TEST(Compile, NeverAsksForLessWithANarrowOperand) {
  const Device card = Card("h200");
  const TileMachine machine = TileMachineOf(card, DType::kBf16, 0).value();
  Specialisation narrow_c;
  narrow_c.wide_c = false;
  for (const std::int32_t m : {32, 64, 128})
    for (const std::int32_t n : {32, 64, 128}) {
      TritonConfig c;
      c.block_m = m;
      c.block_n = n;
      const CompiledKernel wide = Compile(machine, card.arch, {}, c, 2);
      const CompiledKernel narrow = Compile(machine, card.arch, narrow_c, c, 2);
      EXPECT_GE(narrow.registers, wide.registers);
      EXPECT_GE(narrow.spilled, wide.spilled);
      EXPECT_EQ(narrow.shared_bytes, wide.shared_bytes);
    }
}

}  // namespace
}  // namespace gnomon::triton
