#pragma once

/// The instructions of sm_90a that the kernels use, one function each (PTX ISA: mbarrier,
/// cp.async.bulk.tensor, wgmma, stmatrix, setmaxnreg). Shared memory is addressed by 32-bit
/// addresses of the shared window.

#include <cuda.h>

#include <cstdint>

namespace gnomon::cuda {

__device__ inline std::uint32_t SharedAddress(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Barriers that TMA and threads arrive at (mbarrier): 8 bytes each.

__device__ inline void InitBarrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
/// Makes initialised barriers visible to the cluster and to TMA.
__device__ inline void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void ExpectBytes(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ inline void Arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// The barrier at the same address of CTA `rank` of the cluster. Without .release.cluster, which
/// would flush the writes of a whole GPU: what is handed back is shared memory that was read.
__device__ inline void ArriveAt(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// Waits until the phase of that parity has completed. A new barrier passes for parity 1.
__device__ inline void Wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ inline std::uint32_t ClusterRank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void SyncCluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}
/// Barrier `id` (1 to 15) of `threads` threads; 0 is __syncthreads.
__device__ inline void SyncThreads(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// TMA: boxes of up to three dimensions between global and shared memory.

__device__ inline void PrefetchMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ inline void LoadBox(std::uint32_t shared, const CUtensorMap* map, std::uint32_t barrier,
                               int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}
/// To the same address of every CTA in `mask`; each one's barrier counts the bytes.
__device__ inline void LoadBoxToAll(std::uint32_t shared, const CUtensorMap* map,
                                    std::uint32_t barrier, std::uint16_t mask, int x, int y,
                                    int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(shared),
      "l"(map), "r"(barrier), "h"(mask), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void StoreBox(const CUtensorMap* map, std::uint32_t shared, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(shared), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ inline void CommitStores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Until at most kPending groups of stores still read shared memory.
template <int kPending>
__device__ inline void WaitStoresRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
__device__ inline void WaitStores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
/// Orders ordinary writes to shared memory before reads by TMA or the matrix unit.
__device__ inline void FenceAsync() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Four 8x8 matrices of 16-bit values; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void StoreMatrices(std::uint32_t shared, std::uint32_t a, std::uint32_t b,
                                     std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
__device__ inline void StoreShared(std::uint32_t shared, float a, float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared), "f"(a), "f"(b) : "memory");
}
__device__ inline uint4 LoadShared16(std::uint32_t shared) {
  uint4 value;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(shared)
               : "memory");
  return value;
}
__device__ inline std::uint32_t LoadShared4(std::uint32_t shared) {
  std::uint32_t value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared) : "memory");
  return value;
}

/// Registers of every thread of the calling warpgroup from here on.
template <int kRegisters>
__device__ inline void RaiseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void LowerRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Kernels that were launched as programmatic dependents may start; and such a kernel waits until
/// what it depends on has finished and its writes are seen.
__device__ inline void LetDependentsStart() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ inline void WaitForDependency() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace gnomon::cuda
