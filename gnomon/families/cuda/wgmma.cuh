#pragma once

/// wgmma: a warpgroup multiplies 64 rows of A by kColumns columns of B, both in shared memory, and
/// adds the product to registers. One instruction takes 32 bytes of K.
///
/// Thread t of the warpgroup holds, of the 64 x kColumns block, for every 8 columns j four values:
/// d[4j], d[4j+1] at row 16·(t / 32) + t % 32 / 4, columns 8j + 2·(t % 4) and the next; d[4j+2],
/// d[4j+3] eight rows below (PTX ISA, wgmma, accumulator fragment).

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace gnomon::cuda {

/// fp32 in memory; the matrix unit reads its upper 19 bits.
struct Tf32 {
  float value;
};

/// Orders the registers and shared memory that come next with those before.
__device__ inline void OrderMultiplies() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void CommitMultiplies() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ inline void WaitMultiplies() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Descriptor of an operand with 128-byte swizzle. Distances in bytes: `atoms` between groups of
/// eight rows (K innermost: rows of M or N; K outermost: rows of K); `boxes` between groups of 64
/// elements of M or N where K is outermost, else unused.
__device__ inline std::uint64_t OperandOf(std::uint32_t shared, int boxes, int atoms) {
  constexpr std::uint64_t kSwizzle128 = 1;
  const auto field = [](std::uint32_t bytes) {
    return static_cast<std::uint64_t>((bytes & 0x3FFFF) >> 4);
  };
  return field(shared) | field(static_cast<std::uint32_t>(boxes)) << 16 |
         field(static_cast<std::uint32_t>(atoms)) << 32 | kSwizzle128 << 62;
}

// The names and the values of the first so many registers, each list the one before and more.
// clang-format off
#define GNOMON_NAMES_4 \
  "%0, %1, %2, %3"
#define GNOMON_VALUES_4 \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define GNOMON_NAMES_8 GNOMON_NAMES_4 \
  ", %4, %5, %6, %7"
#define GNOMON_VALUES_8 GNOMON_VALUES_4, \
  "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define GNOMON_NAMES_16 GNOMON_NAMES_8 \
  ", %8, %9, %10, %11, %12, %13, %14, %15"
#define GNOMON_VALUES_16 GNOMON_VALUES_8, \
  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), \
  "+f"(d[14]), "+f"(d[15])
#define GNOMON_NAMES_32 GNOMON_NAMES_16 \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29" \
  ", %30, %31"
#define GNOMON_VALUES_32 GNOMON_VALUES_16, \
  "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), \
  "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), \
  "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define GNOMON_NAMES_48 GNOMON_NAMES_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45" \
  ", %46, %47"
#define GNOMON_VALUES_48 GNOMON_VALUES_32, \
  "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), \
  "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), \
  "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define GNOMON_NAMES_64 GNOMON_NAMES_48 \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61" \
  ", %62, %63"
#define GNOMON_VALUES_64 GNOMON_VALUES_48, \
  "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), \
  "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), \
  "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define GNOMON_NAMES_96 GNOMON_NAMES_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77" \
  ", %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91" \
  ", %92, %93, %94, %95"
#define GNOMON_VALUES_96 GNOMON_VALUES_64, \
  "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), \
  "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), \
  "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), \
  "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
  "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), \
  "+f"(d[94]), "+f"(d[95])
#define GNOMON_NAMES_128 GNOMON_NAMES_96 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107" \
  ", %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119" \
  ", %120, %121, %122, %123, %124, %125, %126, %127"
#define GNOMON_VALUES_128 GNOMON_VALUES_96, \
  "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), \
  "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), \
  "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), \
  "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
  "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), \
  "+f"(d[126]), "+f"(d[127])
// clang-format on

/// d += A·B, or d = A·B where `add` is 0. kAOuter, kBOuter: K is the outer dimension of the
/// operand.
template <class Element, int kColumns, bool kAOuter, bool kBOuter>
struct Multiply;

#define GNOMON_WGMMA(columns, registers, a_at, b_at, add_at, a_outer_at, b_outer_at)           \
  template <class Element, bool kAOuter, bool kBOuter>                                         \
  struct Multiply<Element, columns, kAOuter, kBOuter> {                                        \
    static __device__ inline void Run(float (&d)[registers], std::uint64_t a, std::uint64_t b, \
                                      int add) {                                               \
      if constexpr (std::is_same_v<Element, __nv_bfloat16>) {                                  \
        GNOMON_WGMMA_16(columns, registers, a_at, b_at, add_at, a_outer_at, b_outer_at,        \
                        "16.f32.bf16.bf16")                                                    \
      } else if constexpr (std::is_same_v<Element, __half>) {                                  \
        GNOMON_WGMMA_16(columns, registers, a_at, b_at, add_at, a_outer_at, b_outer_at,        \
                        "16.f32.f16.f16")                                                      \
      } else if constexpr (std::is_same_v<Element, __nv_fp8_e4m3>) {                           \
        GNOMON_WGMMA_OTHER(columns, registers, a_at, b_at, add_at, "32.f32.e4m3.e4m3")         \
      } else if constexpr (std::is_same_v<Element, __nv_fp8_e5m2>) {                           \
        GNOMON_WGMMA_OTHER(columns, registers, a_at, b_at, add_at, "32.f32.e5m2.e5m2")         \
      } else {                                                                                 \
        static_assert(std::is_same_v<Element, Tf32>);                                          \
        GNOMON_WGMMA_OTHER(columns, registers, a_at, b_at, add_at, "8.f32.tf32.tf32")          \
      }                                                                                        \
    }                                                                                          \
  };
#define GNOMON_WGMMA_16(columns, registers, a_at, b_at, add_at, a_outer_at, b_outer_at, kind)      \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                                        \
               ", 0;\n"                                                                            \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k" kind " {" GNOMON_NAMES_##registers \
               "}, %" #a_at ", %" #b_at ", p, 1, 1, %" #a_outer_at ", %" #b_outer_at ";\n}"        \
               : GNOMON_VALUES_##registers                                                         \
               : "l"(a), "l"(b), "r"(add), "n"(int(kAOuter)), "n"(int(kBOuter)));
#define GNOMON_WGMMA_OTHER(columns, registers, a_at, b_at, add_at, kind)                           \
  static_assert(!kAOuter && !kBOuter, "only 16-bit operands may have K outermost");                \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add_at                                        \
               ", 0;\n"                                                                            \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k" kind " {" GNOMON_NAMES_##registers \
               "}, %" #a_at ", %" #b_at ", p, 1, 1;\n}"                                            \
               : GNOMON_VALUES_##registers                                                         \
               : "l"(a), "l"(b), "r"(add));

GNOMON_WGMMA(8, 4, 4, 5, 6, 7, 8)
GNOMON_WGMMA(16, 8, 8, 9, 10, 11, 12)
GNOMON_WGMMA(32, 16, 16, 17, 18, 19, 20)
GNOMON_WGMMA(64, 32, 32, 33, 34, 35, 36)
GNOMON_WGMMA(96, 48, 48, 49, 50, 51, 52)
GNOMON_WGMMA(128, 64, 64, 65, 66, 67, 68)
GNOMON_WGMMA(192, 96, 96, 97, 98, 99, 100)
GNOMON_WGMMA(256, 128, 128, 129, 130, 131, 132)

}  // namespace gnomon::cuda
