"""How long rocm-origami takes to choose a config: the same problems as gnomon's select_bench (Shapes).

usage: select_bench.py SHAPES.csv        columns layout, m, n, k; bf16; gfx950 with 256 CUs

Configs: macro tiles with sides of 16 to 256 and depths of 32 to 128 elements, the matrix instruction that
origami recommends, one workgroup a CU: as many as family triton has. Origami's object of a problem is
made outside the timing, as gnomon's is; the call from Python is inside.
"""

import csv
import itertools
import sys
import time

import origami

ROUNDS = 20
SIDES, DEPTHS = (16, 32, 64, 128, 256), (32, 64, 128)
UNITS, LDS_BYTES, L2_BYTES, CLOCK_KHZ = 256, 160 * 1024, 4 * 1024 * 1024, 2_400_000


def problem_of(row):
    bf16, transpose = origami.data_type_t.BFloat16, origami.transpose_t
    problem = origami.problem_t()
    problem.size = origami.dim3_t(int(row["m"]), int(row["n"]), int(row["k"]))
    problem.batch = 1
    # Origami's T is a row along K, whichever operand.
    problem.a_transpose = transpose.T if row["layout"][0] == "n" else transpose.N
    problem.b_transpose = transpose.N if row["layout"][1] == "t" else transpose.T
    for name in ("a_dtype", "b_dtype", "c_dtype", "d_dtype", "mi_dtype"):
        setattr(problem, name, bf16)
    problem.a_mx_block_size = problem.b_mx_block_size = 0
    return problem


def configs_of(hardware):
    instruction = hardware.get_recommended_matrix_instruction(origami.data_type_t.BFloat16)
    configs = []
    for m, n, k in itertools.product(SIDES, SIDES, DEPTHS):
        if (m + n) * k * 2 > LDS_BYTES or m < instruction.m or n < instruction.n or k < instruction.k:
            continue
        config = origami.config_t()
        config.mt = origami.dim3_t(m, n, k)
        config.mi = instruction
        config.occupancy = 1
        config.workgroup_mapping = 8
        configs.append(config)
    return configs


def main():
    with open(sys.argv[1]) as file:
        problems = [problem_of(row) for row in csv.DictReader(file)]
    hardware = origami.get_hardware_for_arch(origami.architecture_t.gfx950, UNITS, LDS_BYTES, L2_BYTES, CLOCK_KHZ)
    configs = configs_of(hardware)
    times = []
    for problem in problems * ROUNDS:
        begin = time.perf_counter_ns()
        result = origami.select_config(problem, hardware, configs)
        times.append((time.perf_counter_ns() - begin) / 1e3)
        assert result.latency > 0
    times.sort()
    print(f"{len(problems)} problems, {len(configs)} configs: median {times[len(times) // 2]:.1f} us, "
          f"p99 {times[len(times) * 99 // 100]:.1f} us")


if __name__ == "__main__":
    main()
