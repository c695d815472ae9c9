// Operands on the device and the check of a result, as gemm/operands.cc has them on the host.
//
//   small products   every element against A·B in fp64
//   all others       C·x = A·(B·x) in fp64 for a fixed x without zeros (Freivalds): one pass over C
//                    that still sees each element
//   tolerance        |c| or its column sums · rounding of what is stored
//                    + size of a sum · (sqrt(k) roundings of fp32 + what the matrix unit cuts off)
//
// Values are uniform in [-1, 1), from a hash of their position, so that sums of k products have the
// size sqrt(k)/3. tf32 values have no more bits than the matrix unit uses. Hopper's matrix unit
// keeps about 14 bits of a running sum of fp8 products; a bound for that (2^-13 of Σ|a||b| or
// worse) would pass a tile that lacks a k step. The copy that is checked has therefore small whole
// numbers for fp8: every sum of them has less than 14 bits and must be exact. How far fp8 sums of
// other values are off is a property of the unit and not looked at here. Entry points: GpuOperands.

#include "gnomon/families/cuda/gpu_operands.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "gnomon/families/cuda/gpu_check.h"

namespace gnomon::cuda {
namespace {

constexpr std::size_t kAlignment = 1024;    // of a copy: more than any load asks for
constexpr double kMostMemory = 0.8;         // of what is free
constexpr double kSmallProducts = 1 << 30;  // multiplications that fp64 does in milliseconds
constexpr std::int64_t kSmallElements = 1 << 24;

Status Checked(cudaError_t code, std::string_view call) {
  if (code == cudaSuccess) return Done{};
  return Fault(fmt::format("{}: {}", call, cudaGetErrorString(code)));
}

std::size_t RoundUp(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool IsFp8(DType dtype) { return SizeOf(dtype) == 1; }

// What memory of the dtype holds; nothing: operands cannot be of it.
std::optional<Stored> StoredAs(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return Stored::kBf16;
    case DType::kFp16:
      return Stored::kFp16;
    case DType::kFp8E4m3:
      return Stored::kFp8E4m3;
    case DType::kFp8E5m2:
      return Stored::kFp8E5m2;
    case DType::kTf32:
      return Stored::kTf32;
    default:
      return std::nullopt;
  }
}

// C of tf32 has all bits of fp32.
std::optional<Stored> OutputAs(DType dtype) {
  if (dtype == DType::kFp32 || dtype == DType::kTf32) return Stored::kFp32;
  return IsFp8(dtype) ? std::nullopt : StoredAs(dtype);
}

Rows RowsOfA(const Problem& p) {
  const std::int64_t rows = p.a_transposed() ? p.k : p.m, columns = p.a_transposed() ? p.m : p.k;
  return {rows, columns, p.LeadingA(), rows * p.LeadingA(), p.batch};
}

Rows RowsOfB(const Problem& p) {
  const std::int64_t rows = p.b_transposed() ? p.n : p.k, columns = p.b_transposed() ? p.k : p.n;
  return {rows, columns, p.LeadingB(), rows * p.LeadingB(), p.batch};
}

Rows RowsOfC(const Problem& p) { return {p.m, p.n, p.LeadingC(), p.m * p.LeadingC(), p.batch}; }

}  // namespace

// --- memory ---

Status DeviceMemory::Reserve(std::size_t bytes) {
  if (bytes <= bytes_) return Done{};
  Release();
  if (cudaMalloc(&data_, bytes) != cudaSuccess) {
    (void)cudaGetLastError();
    data_ = nullptr;
    return BadInput(fmt::format("{} MiB of device memory are needed and not free", bytes >> 20));
  }
  bytes_ = bytes;
  return Done{};
}

void DeviceMemory::Release() {
  if (data_ != nullptr) (void)cudaFree(data_);
  data_ = nullptr;
  bytes_ = 0;
}

// --- operands ---

void GpuOperands::Abandon() {
  memory_.Abandon();
  check_memory_.Abandon();
}

void* GpuOperands::Base(int operand, int copy) const {
  std::size_t offset = 0;
  for (int before = 0; before < operand; ++before)
    offset += sizes_[before].stride * static_cast<std::size_t>(copies_);
  return static_cast<char*>(memory_.data()) + offset +
         sizes_[operand].stride * static_cast<std::size_t>(copy);
}

Operands GpuOperands::At(int copy) const {
  Operands operands;
  operands.a = Base(0, copy);
  operands.b = Base(1, copy);
  operands.c = Base(2, copy);
  return operands;
}

Status GpuOperands::Prepare(const Problem& problem, std::size_t l2_bytes, CUstream_st* stream) {
  GNOMON_TRY(CheckProblem(problem));
  if (!StoredAs(problem.dtype) || !OutputAs(problem.dtype_out))
    return BadInput(
        fmt::format("operands on a GPU can be bf16, fp16, fp8_e4m3, fp8_e5m2 or tf32, and C bf16, "
                    "fp16 or fp32; not {} to {}",
                    Name(problem.dtype), Name(problem.dtype_out)),
        "problem.dtype");
  if (problem.grouped() || problem.epilogue != Epilogue::kNone)
    return BadInput("only plain products are timed: no groups, no epilogue", "problem");
  constexpr std::int64_t kMostProducts = 65535;  // of a grid's z side
  if (problem.batch > kMostProducts)
    return BadInput(fmt::format("a batch of {} is beyond {}", problem.batch, kMostProducts),
                    "problem.batch");
  problem_ = problem;
  const std::int64_t rows_a = problem.a_transposed() ? problem.k : problem.m;
  const std::int64_t rows_b = problem.b_transposed() ? problem.n : problem.k;
  sizes_[0].elements = problem.batch * rows_a * problem.LeadingA();
  sizes_[1].elements = problem.batch * rows_b * problem.LeadingB();
  sizes_[2].elements = problem.batch * problem.m * problem.LeadingC();
  std::size_t each = 0;
  for (int operand = 0; operand < 3; ++operand) {
    const double size = SizeOf(operand == 2 ? problem.dtype_out : problem.dtype);
    sizes_[operand].stride =
        RoundUp(static_cast<std::size_t>(static_cast<double>(sizes_[operand].elements) * size));
    each += sizes_[operand].stride;
  }
  const bool fp8 = IsFp8(problem.dtype);
  if (each > 4 * l2_bytes)
    copies_ = fp8 ? 2 : 1;
  else
    copies_ = std::max<int>(3, static_cast<int>(2 * l2_bytes / each) + 1) + (fp8 ? 1 : 0);
  first_timed_ = fp8 ? 1 : 0;

  std::size_t free = 0, total = 0;
  GNOMON_TRY(Checked(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  const double room = kMostMemory * static_cast<double>(free + memory_.bytes());
  while (copies_ > first_timed_ + 1 && static_cast<double>(each) * copies_ > room) --copies_;
  GNOMON_TRY(memory_.Reserve(each * static_cast<std::size_t>(copies_)));

  const double products = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                          static_cast<double>(problem.k) * static_cast<double>(problem.batch);
  const std::int64_t elements = problem.batch * problem.m * problem.n;
  every_element_ = products <= kSmallProducts && elements <= kSmallElements;
  checked_ = every_element_ ? elements : problem.batch * problem.m;
  const std::int64_t doubles =
      2 * checked_ + 1 + (every_element_ ? 0 : problem.n + problem.batch * problem.k);
  GNOMON_TRY(check_memory_.Reserve(static_cast<std::size_t>(doubles) * sizeof(double)));
  expected_ = static_cast<double*>(check_memory_.data());
  got_ = expected_ + checked_;
  first_wrong_ = reinterpret_cast<unsigned long long*>(got_ + checked_);
  x_ = got_ + checked_ + 1;
  bx_ = x_ + problem.n;

  GNOMON_TRY(Fill(stream));
  GNOMON_TRY(Expect(stream));
  return Checked(cudaStreamSynchronize(stream), "filling operands");
}

// The largest whole number of a checked fp8 operand: sums of k products of -2 to 2 are about
// 2·sqrt(k), and must stay below 2^13 where they are six times that.
constexpr std::int64_t kDeepSum = 1 << 16;
int GpuOperands::Whole() const {
  if (!IsFp8(problem_.dtype)) return 0;
  return problem_.k <= kDeepSum ? 2 : 1;
}

GpuOperands::Tolerance GpuOperands::ToleranceOf() const {
  const double k = static_cast<double>(problem_.k), n = static_cast<double>(problem_.n);
  // Products of two values of variance 1/3; of whole numbers up to w, w(w+1)/3.
  const int whole = Whole();
  const double variance = whole > 0 ? whole * (whole + 1) / 3.0 : 1.0 / 3.0;
  const double size = variance * std::sqrt(k);  // of a sum
  // fp32 sums: sqrt(k) independent roundings of a half of 2^-23; a unit that cuts off what does not
  // fit loses up to 2^-23 of the sum with every instruction of 8 products or more, always towards
  // zero. Whole numbers lose nothing.
  constexpr double kFp32 = 0x1p-23, kInstruction = 8, kSafety = 4;
  const double sums =
      whole > 0 ? 0 : kSafety * size * kFp32 * (0.5 * std::sqrt(k) + k / kInstruction);
  // What is stored is off by `unit` of itself at most.
  const double unit = problem_.dtype_out == DType::kBf16   ? 0x1p-8
                      : problem_.dtype_out == DType::kFp16 ? 0x1p-11
                                                           : 0x1p-24;
  if (every_element_) return {sums + 0x1p-40, unit * (1 + 0x1p-10)};
  // Errors of a row's n elements are independent and weighted by x, 0.5 to 1.5. The second term is
  // for few columns, where one element may be ten times the usual size. fp64 sums add their own.
  constexpr double kFewColumns = 10, kFp64 = 0x1p-48;
  const double columns = kSafety * 1.05 * std::sqrt(n) + kFewColumns;
  return {columns * (unit * size + sums) + kFp64 * size * n * std::sqrt(n), 0};
}

Result<std::string> GpuOperands::Verdict() const {
  unsigned long long first = 0;
  GNOMON_TRY(Checked(cudaMemcpy(&first, first_wrong_, sizeof(first), cudaMemcpyDeviceToHost),
                     "reading the verdict"));
  if (first == ~0ULL) return std::string();
  const std::int64_t index = static_cast<std::int64_t>(first) - 1;
  double got = 0, expected = 0;
  GNOMON_TRY(Checked(cudaMemcpy(&got, got_ + index, sizeof(got), cudaMemcpyDeviceToHost),
                     "reading the verdict"));
  GNOMON_TRY(
      Checked(cudaMemcpy(&expected, expected_ + index, sizeof(expected), cudaMemcpyDeviceToHost),
              "reading the verdict"));
  const Tolerance tolerance = ToleranceOf();
  const double allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  const std::string difference =
      fmt::format("is {:.6g}, not {:.6g} (within {:.2g})", got, expected, allowed);
  if (!every_element_) return fmt::format("the weighted sum of row {} of C {}", index, difference);
  return fmt::format("row {} column {} of C {}", index / problem_.n, index % problem_.n,
                     difference);
}

Status GpuOperands::Fill(CUstream_st* stream) {
  constexpr std::uint64_t kSeeds[2] = {0, std::uint64_t{1} << 44};  // beyond any position of A
  const Stored type = *StoredAs(problem_.dtype);
  const auto size = static_cast<std::size_t>(SizeOf(problem_.dtype));
  for (int operand = 0; operand < 2; ++operand) {
    const auto each = static_cast<std::int64_t>(sizes_[operand].stride / size);
    void* first = Base(operand, 0);
    GNOMON_TRY(Checked(LaunchFill(type, first, each * copies_, kSeeds[operand], 0, stream),
                       "filling operands"));
    if (Whole() > 0)
      GNOMON_TRY(Checked(LaunchFill(type, first, each, kSeeds[operand], Whole(), stream),
                         "filling operands"));
  }
  return Done{};
}

Status GpuOperands::Expect(CUstream_st* stream) {
  const Problem& p = problem_;
  const Stored type = *StoredAs(p.dtype);
  const Rows a = RowsOfA(p), b = RowsOfB(p);
  GNOMON_TRY(Checked(cudaMemsetAsync(check_memory_.data(), 0, check_memory_.bytes(), stream),
                     "cudaMemsetAsync"));
  if (every_element_) {
    const Steps at_a = {p.a_transposed() ? 1 : a.leading, p.a_transposed() ? a.leading : 1,
                        a.product};
    const Steps at_b = {p.b_transposed() ? b.leading : 1, p.b_transposed() ? 1 : b.leading,
                        b.product};
    return Checked(LaunchProduct(type, Base(0, 0), at_a, Base(1, 0), at_b, {p.m, p.n, p.k, p.batch},
                                 expected_, stream),
                   "the product to compare with");
  }
  GNOMON_TRY(Checked(LaunchCheckVector(x_, p.n, stream), "the check's vector"));
  auto* const sum_b = p.b_transposed() ? &LaunchColumnSums : &LaunchRowSums;
  auto* const sum_a = p.a_transposed() ? &LaunchColumnSums : &LaunchRowSums;
  GNOMON_TRY(Checked(sum_b(type, Base(1, 0), b, x_, 0, bx_, stream), "B·x"));
  return Checked(sum_a(type, Base(0, 0), a, bx_, p.k, expected_, stream), "A·(B·x)");
}

Status GpuOperands::Poison(CUstream_st* stream) {
  return Checked(
      LaunchPoison(*OutputAs(problem_.dtype_out), Base(2, 0), sizes_[2].elements, stream),
      "poisoning C");
}

Status GpuOperands::EnqueueCheck(CUstream_st* stream) {
  const Stored type = *OutputAs(problem_.dtype_out);
  const Rows c = RowsOfC(problem_);
  const Tolerance tolerance = ToleranceOf();
  GNOMON_TRY(Checked(cudaMemsetAsync(first_wrong_, 0xFF, sizeof(*first_wrong_), stream),
                     "cudaMemsetAsync"));
  if (every_element_)
    return Checked(LaunchCompareElements(type, Base(2, 0), c, expected_, tolerance.absolute,
                                         tolerance.relative, got_, first_wrong_, stream),
                   "comparing elements");
  GNOMON_TRY(
      Checked(cudaMemsetAsync(got_, 0, static_cast<std::size_t>(checked_) * sizeof(double), stream),
              "cudaMemsetAsync"));
  GNOMON_TRY(Checked(LaunchRowSums(type, Base(2, 0), c, x_, 0, got_, stream), "C·x"));
  return Checked(
      LaunchCompareSums(got_, expected_, checked_, tolerance.absolute, first_wrong_, stream),
      "comparing sums");
}

}  // namespace gnomon::cuda
