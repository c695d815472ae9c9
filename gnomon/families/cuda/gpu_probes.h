#pragma once

/// The kernels that a GPU's calibration times, behind plain functions: each enqueues one kernel on
/// the stream of the current device and returns CUDA's error code (0: none). Read by host compilers
/// and by nvcc. Internal to the calibration.

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace gnomon::cuda::probes {

inline constexpr std::size_t kLineBytes = 128;  ///< apart: the links of a chain

/// Does almost nothing: `blocks` blocks of 128 threads store a value each.
int Small(float* out, int blocks, CUstream_st* stream);
/// Overwrites the buffer.
int Write(void* to, std::size_t bytes, int blocks, CUstream_st* stream);
/// Reads the buffer once, all blocks together.
int ReadOnce(const void* from, std::size_t bytes, int blocks, int threads, void* sink,
             CUstream_st* stream);
/// Every block reads the whole buffer from a start of its own, `passes` times.
int ReadByAll(const void* from, std::size_t bytes, int blocks, int threads, int passes, void* sink,
              CUstream_st* stream);
int Copy(void* to, const void* from, std::size_t bytes, int blocks, CUstream_st* stream);
/// `rows` rows of 128 bytes at random places of the buffer (a power of two of lines).
int ReadRandomRows(const void* from, std::size_t bytes, std::size_t rows, int blocks, void* sink,
                   CUstream_st* stream);
/// Links every line of the buffer (a power of two of them, 4 or more) into one cycle in random
/// order.
int MakeChain(void* chain, std::size_t bytes, CUstream_st* stream);
/// One thread follows the chain past L1 for so many links.
int Chase(const void* chain, int steps, void* sink, CUstream_st* stream);
enum class Element { kFp32, kFp16, kBf16, kFp8E4m3, kFp8E5m2 };
/// Uniform in [−1, 1), rounded to the element.
int FillRandom(void* to, Element element, std::size_t count, std::uint32_t seed,
               CUstream_st* stream);

}  // namespace gnomon::cuda::probes
