/* GEMM on Hopper GPUs for programs in C: C[M,N] = A[M,K]*B[K,N], row-major, with Gnomon's kernels.
   No CUDA header is needed: a stream is a cudaStream_t, addresses are device addresses. */

#ifndef GNOMON_CUDA_H
#define GNOMON_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gnomon_gemm_problem {
  int64_t m, n, k, batch; /* batch: 0 means 1 */
  const char* layout;     /* "nt", "nn", "tn"; t: stored transposed. NULL: "nt" */
  const char* dtype;      /* "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "tf32" */
  const char* dtype_out;  /* NULL: that of A and B; bf16 for fp8, fp32 for tf32 */
  const char* epilogue;   /* "none", "bias", "bias_relu", "relu", "gelu", "bias_gelu",
                             "bias_gradient". NULL: "none" */
  int64_t lda, ldb, ldc;  /* elements between stored rows; 0: dense */
} gnomon_gemm_problem;

typedef struct gnomon_gemm_operands {
  const void* a;
  const void* b;
  void* c;
  const void* bias;     /* N values of dtype_out, or NULL */
  float* bias_gradient; /* M values, or NULL */
  void* workspace;      /* zeroed once before its first use, or NULL */
  size_t workspace_bytes;
} gnomon_gemm_operands;

/* Enqueues the product on the stream; does not wait. `device`: a device id of Gnomon ("h200") or a
   TOML file, by which the kernel is picked; `config`: NULL for the pick, else a string that
   `gnomon gemm select` prints. Returns 0, or an exit code of Gnomon (2: bad input, 3: a fault);
   then gnomon_cuda_last_error() says what. Safe to call from several threads. */
int gnomon_cuda_gemm(const char* device, const gnomon_gemm_problem* problem, const char* config,
                     const gnomon_gemm_operands* operands, void* stream);

/* The pick for the problem, as a string into `config`; its workspace into `workspace_bytes`. */
int gnomon_cuda_select(const char* device, const gnomon_gemm_problem* problem, char* config,
                       size_t config_bytes, size_t* workspace_bytes);

/* Of the calling thread's last call that failed; valid until its next one. Never NULL. */
const char* gnomon_cuda_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
