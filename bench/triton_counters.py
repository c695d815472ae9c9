"""Runs single kernels of triton_sweep.py once each, to be read by ncu: why one config beats another.

usage: ncu --clock-control none --kernel-name gemm --csv --page raw --metrics … python3 triton_counters.py
"""
import torch
import triton

from triton_sweep import GROUP_M, gemm, strides

CASES = [(layout, m, n, k, config)
         for layout, m, n, k in (("nt", 8192, 1024, 3456), ("nn", 8192, 1024, 3456), ("tn", 8192, 1024, 3456), ("nt", 4096, 4096, 4096), ("nn", 4096, 4096, 4096))
         for config in ((128, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 4), (64, 128, 64, 4, 3))]
CASES += [("nt", 2048, 512, 415, c) for c in ((64, 64, 64, 4, 3), (128, 128, 64, 4, 3), (128, 64, 32, 4, 4), (32, 32, 64, 4, 3))]
CASES += [("tn", 32, 39, 2097152, (32, 32, 128, 4, 3)), ("nt", 2097152, 32, 39, (128, 32, 32, 4, 4))]

for layout, m, n, k, (bm, bn, bk, warps, stages) in CASES:
    a = torch.randn((m, k) if layout[0] == "n" else (k, m), device="cuda", dtype=torch.bfloat16)
    b = torch.randn((k, n) if layout[1] == "n" else (n, k), device="cuda", dtype=torch.bfloat16)
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    gemm[(triton.cdiv(m, bm) * triton.cdiv(n, bn), 1)](a, b, c, m, n, k, *strides(layout, m, n, k), n, 1, m * n, BLOCK_M=bm, BLOCK_N=bn,
                                                      BLOCK_K=bk, GROUP=GROUP_M, SPLIT=1, num_warps=warps, num_stages=stages)
    torch.cuda.synchronize()
    print(layout, m, n, k, bm, bn, bk, warps, stages, flush=True)
