"""Exhaustive sweep of one plain Triton GEMM on a CUDA device, losers included, so that regret can be computed.

usage: triton_sweep.py SHAPES.csv MEASURED.csv COMPILED.csv SECONDS

For every shape and every config of the space below: the median of 7 runs behind a flushed L2, checked against
torch.mm, in the schema of gnomon's measured files. COMPILED.csv says what the compiler made of each kernel
(registers, spills, shared memory, matrix instructions, global loads by width): the facts that gnomon's family
`triton` predicts. SECONDS bounds the whole run; shapes are taken in the order of the file. Split-K is two
launches: fp32 partial sums, then their sum, both inside the timing.
"""

import csv
import itertools
import multiprocessing
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import torch
import triton
import triton.language as tl

HEADER = "device,family,dtype,dtype_out,layout,m,n,k,batch,tile_m,tile_n,tile_k,mma_m,mma_n,mma_k,split_k,us,source,config"
GROUP_M = 8
SHARED_LIMIT = 225 * 1024
MULTIPROCESSORS = 132
REPEATS = 7
# The device waits this long before the first event: both launches are in its queue by then, or the events would
# time the host (a Python launch takes tens of microseconds).
HOST_LEAD_CYCLES = 600_000


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, stride_split,
         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, SPLIT: tl.constexpr):
    pid = tl.program_id(0)
    split = tl.program_id(1)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    group_size = GROUP * tiles_n
    group = pid // group_size
    first = group * GROUP
    rows = min(tiles_m - first, GROUP)
    tile_m = first + (pid % group_size) % rows
    tile_n = (pid % group_size) // rows
    offs_m = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    offs_n = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    offs_k = split * BLOCK_K + tl.arange(0, BLOCK_K)
    a = a_ptr + offs_m[:, None].to(tl.int64) * stride_am + offs_k[None, :] * stride_ak
    b = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :].to(tl.int64) * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(split, tl.cdiv(k, BLOCK_K), SPLIT):
        left = k - (step - split) * BLOCK_K
        acc = tl.dot(tl.load(a, mask=offs_k[None, :] < left, other=0.0),
                     tl.load(b, mask=offs_k[:, None] < left, other=0.0), acc)
        a += BLOCK_K * SPLIT * stride_ak
        b += BLOCK_K * SPLIT * stride_bk
    out_m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c = c_ptr + split * stride_split + out_m[:, None].to(tl.int64) * stride_cm + out_n[None, :] * stride_cn
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(out_m[:, None] < m) & (out_n[None, :] < n))


@triton.jit
def add_splits(partial_ptr, c_ptr, count, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(SPLIT):
        acc += tl.load(partial_ptr + s * count + i, mask=i < count, other=0.0)
    tl.store(c_ptr + i, acc.to(c_ptr.dtype.element_ty), mask=i < count)


def configs():
    """(block_m, block_n, block_k, num_warps, num_stages): the space of the public sweep of this card."""
    for bm, bn, bk, warps, stages in itertools.product((32, 64, 128, 256), (32, 64, 128, 256), (32, 64, 128), (4, 8), (3, 4, 5)):
        if bm * bn > 32768 or (bm + bn) * bk * 2 * stages > SHARED_LIMIT:
            continue
        if bm * bn != 16384 and (warps == 8) != (bm * bn > 16384):
            continue
        if (bk == 32 and stages != 4) or (bk == 128 and stages != 3) or (bk == 64 and stages == 5 and bm * bn > 8192):
            continue
        yield bm, bn, bk, warps, stages


def strides(layout, m, n, k):
    a = (k, 1) if layout[0] == "n" else (1, m)
    b = (n, 1) if layout[1] == "n" else (1, k)
    return a + b


def specialisation(value):
    """What Triton compiles for: divisible by 16, equal to 1."""
    return value % 16 == 0, value == 1


def compile_one(task):
    layout, m, n, k, (bm, bn, bk, warps, stages), split = task
    out = torch.float32 if split > 1 else torch.bfloat16
    try:
        kernel = gemm.warmup(torch.bfloat16, torch.bfloat16, out, m, n, k, *strides(layout, m, n, k), n, 1, m * n,
                             BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk, GROUP=GROUP_M, SPLIT=split,
                             num_warps=warps, num_stages=stages, grid=(1, 1))
        ptx = kernel.asm["ptx"]
        count = lambda pattern: len(re.findall(pattern, ptx))
        return [count(r"wgmma\.mma_async"), count(r"mma\.sync"), count(r"cp\.async\.c[ag]"), count(r"ld\.global"),
                count(r"ld\.global[^;]*\.b16"), count(r"st\.global"), count(r"ld\.shared|ldmatrix"), ptx.count("\n"), ""]
    except Exception as error:  # a config that does not compile is a fact too
        return [0] * 8 + [repr(error)[:120].replace(",", ";")]


def main():
    shapes_path, measured_path, compiled_path, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
    start = time.time()
    todo, kernels = [], {}
    for row in csv.DictReader(open(shapes_path)):
        layout, m, n, k = row["layout"], int(row["m"]), int(row["n"]), int(row["k"])
        for config in configs():
            bm, bn, bk, _, _ = config
            if bm > max(32, 2 * triton.next_power_of_2(m)) or bn > max(32, 2 * triton.next_power_of_2(n)):
                continue
            tiles, steps = -(-m // bm) * -(-n // bn), -(-k // bk)
            for split in (1, 2, 4, 8, 16, 32):
                if split > 1 and (tiles * split > 4 * MULTIPROCESSORS or steps < 2 * split or steps < 8):
                    continue
                task = (layout, m, n, k, config, split)
                key = (config, split, tuple(specialisation(x) for x in (m, n, k) + strides(layout, m, n, k) + (n, m * n)))
                kernels.setdefault(key, task)
                todo.append((task, key))
    print("timings", len(todo), "kernels", len(kernels), flush=True)
    with ProcessPoolExecutor(15, mp_context=multiprocessing.get_context("spawn")) as pool:
        compiled = dict(zip(kernels, pool.map(compile_one, kernels.values(), chunksize=4)))
    print("compiled in", round(time.time() - start), "s", flush=True)

    measured = csv.writer(open(measured_path, "w", newline=""))
    measured.writerow(HEADER.split(","))
    facts = csv.writer(open(compiled_path, "w", newline=""))
    facts.writerow("layout,m,n,k,config,registers,spills,shared,wgmma,mma_sync,cp_async,ld_global,ld_global_b16,st_global,ld_shared,ptx_lines,error".split(","))
    flush = torch.empty(64 * 2**20, dtype=torch.int32, device="cuda")
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)

    def time_us(run):
        run()
        run()
        times = []
        for _ in range(REPEATS):
            flush.zero_()
            torch.cuda._sleep(HOST_LEAD_CYCLES)
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 1e3)
        return sorted(times)[REPEATS // 2]

    source = "H200 " + time.strftime("%Y-%m-%d") + "; cold L2; median of 7"
    last, done, seen = None, 0, set()
    for task, key in todo:
        if time.time() - start > seconds:
            print("time is up after", done, flush=True)
            break
        layout, m, n, k, (bm, bn, bk, warps, stages), split = task
        if (layout, m, n, k) != last:
            last = (layout, m, n, k)
            a = torch.randn((m, k) if layout[0] == "n" else (k, m), device="cuda", dtype=torch.bfloat16)
            b = torch.randn((k, n) if layout[1] == "n" else (n, k), device="cuda", dtype=torch.bfloat16)
            a = a if layout[0] == "n" else a.t()
            b = b if layout[1] == "n" else b.t()
            c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            reference = (a @ b).float()
            us = time_us(lambda: torch.mm(a, b, out=c))
            measured.writerow(["h200", "cublas", "bf16", "bf16", layout, m, n, k, 1] + [""] * 7 + [f"{us:.3f}", source, "default"])
        name = f"{bm}x{bn}x{bk}.w{warps}.s{stages}.k{split}"
        row = ["h200", "triton", "bf16", "bf16", layout, m, n, k, 1, bm, bn, bk, "", "", "", split]
        if compiled[key][-1]:
            measured.writerow(row + ["nan", compiled[key][-1], name])
            continue
        out = torch.empty(split, m, n, device="cuda") if split > 1 else c
        handle = []

        def run():
            handle.append(gemm[(triton.cdiv(m, bm) * triton.cdiv(n, bn), split)](
                a, b, out, m, n, k, *strides(layout, m, n, k), n, 1, m * n, BLOCK_M=bm, BLOCK_N=bn, BLOCK_K=bk,
                GROUP=GROUP_M, SPLIT=split, num_warps=warps, num_stages=stages))
            if split > 1:
                add_splits[(triton.cdiv(m * n, 1024),)](out, c, m * n, SPLIT=split, BLOCK=1024)

        try:
            c.fill_(float("nan"))
            us = time_us(run)
            error = ((c.float() - reference).norm() / reference.norm()).item()
            measured.writerow(row + [f"{us:.3f}" if error < 2e-2 else "nan", source, name])
            if key not in seen:
                seen.add(key)
                kernel = handle[-1]
                facts.writerow([layout, m, n, k, name, kernel.n_regs, kernel.n_spills, kernel.metadata.shared] + compiled[key])
        except Exception as error:
            measured.writerow(row + ["nan", repr(error)[:60].replace(",", " "), name])
        done += 1
    print("timed", done, "in", round(time.time() - start), "s", flush=True)


if __name__ == "__main__":
    main()
