// Whether this machine runs the AMX kernels: what CPUID lists, what the system saves on a context
// switch (XCR0), and the system's permission to use tile data, which Linux wants to be asked for
// once a process. This file is compiled for any x86-64, because it runs before the answer is known.

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>

#include "gnomon/families/cpu/amx.h"

namespace gnomon::cpu {
namespace {

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf ReadLeaf(unsigned leaf, unsigned part) {
  Leaf result;
  __get_cpuid_count(leaf, part, &result.eax, &result.ebx, &result.ecx, &result.edx);
  return result;
}

constexpr bool HasBits(std::uint64_t value, std::initializer_list<int> bits) {
  for (const int bit : bits)
    if (((value >> bit) & 1) == 0) return false;
  return true;
}

// Intel SDM vol. 2A, CPUID: leaf 1 ECX.OSXSAVE; leaf 7 EBX AVX512 F, DQ, BW, VL; EDX AMX-BF16,
// AMX-TILE; leaf 7.1 EAX AVX512_BF16.
bool CpuHasThem() {
  const Leaf features = ReadLeaf(7, 0);
  return HasBits(ReadLeaf(1, 0).ecx, {27}) && HasBits(features.ebx, {16, 17, 30, 31}) &&
         HasBits(features.edx, {22, 24}) && HasBits(ReadLeaf(7, 1).eax, {5});
}

// XCR0 bits of SSE, AVX, the three parts of AVX-512, tile configuration and tile data.
bool SystemSavesThem() {
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return HasBits(low, {1, 2, 5, 6, 7, 17, 18});
}

// Linux, Documentation/arch/x86/xstate.rst.
bool SystemPermitsTileData() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool AmxUsable() {
  static const bool usable = CpuHasThem() && SystemSavesThem() && SystemPermitsTileData();
  return usable;
}

}  // namespace gnomon::cpu
