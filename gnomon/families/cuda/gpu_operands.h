#pragma once

/// Operands of a GEMM in the memory of a CUDA device: copies for cold runs, values that every run
/// repeats, a poisoned result, and the check of a whole result on the device. Include from any C++.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gnomon/base/result.h"
#include "gnomon/families/cuda/gemm.h"

namespace gnomon::cuda {

/// A piece of device memory that grows; its content is lost when it does.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() { Release(); }
  Status Reserve(std::size_t bytes);
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Leaves the memory to the end of the process: freeing waits for kernels, and one may hang.
  void Abandon() { data_ = nullptr, bytes_ = 0; }

 private:
  void Release();
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// All calls enqueue on the stream and do not wait, but for Prepare, which does.
class GpuOperands {
 public:
  /// Operands of bf16, fp16, fp8_e4m3, fp8_e5m2 or tf32; C of bf16, fp16, fp32 or tf32. Copies
  /// together exceed twice the L2, three at least; one where it exceeds four times the L2 alone.
  Status Prepare(const Problem& problem, std::size_t l2_bytes, CUstream_st* stream);

  /// Without workspace. Copy 0 is the one that Poison and Check mean.
  Operands At(int copy) const;
  int copies() const { return copies_; }
  /// The first copy to time on: copy 0 has other values where they must be exact (fp8).
  int first_timed() const { return first_timed_; }

  Status Poison(CUstream_st* stream);
  Status EnqueueCheck(CUstream_st* stream);
  /// Of the check, once the stream has come so far: empty, or what is wrong.
  Result<std::string> Verdict() const;

  void Abandon();

 private:
  struct Sizes {
    std::int64_t elements = 0;  ///< of one copy
    std::size_t stride = 0;     ///< bytes between copies
  };
  struct Tolerance {
    double absolute = 0, relative = 0;
  };
  Status Fill(CUstream_st* stream);
  Status Expect(CUstream_st* stream);
  Tolerance ToleranceOf() const;
  /// Values of the checked copy are whole numbers up to this; 0: any in [-1, 1).
  int Whole() const;
  void* Base(int operand, int copy) const;

  Problem problem_;
  Sizes sizes_[3];
  int copies_ = 0, first_timed_ = 0;
  bool every_element_ = false;  ///< else C·x against A·(B·x)
  DeviceMemory memory_, check_memory_;
  double* expected_ = nullptr;  ///< of every element, or of every row's C·x
  double* got_ = nullptr;       ///< C·x
  double* x_ = nullptr;         ///< N values
  double* bx_ = nullptr;        ///< B·x, K values a product
  /// The first that is wrong, from 1; 0: none.
  unsigned long long* first_wrong_ = nullptr;
  std::int64_t checked_ = 0;  ///< values in expected_
};

}  // namespace gnomon::cuda
