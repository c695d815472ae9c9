#!/usr/bin/env bash
# Everything that is measured on an H200, in one call: bench/h200.sh BIN SHAPES OUT [what…]
# BIN: folder of a CUDA build's programs; SHAPES: folder of shape files; OUT: folder for the results.
# what: check, calibrate, sweep, bench, sanitize (default: check calibrate sweep bench).
set -uo pipefail
bin=$(realpath "$1") shapes=$2 out=$3
shift 3
export GNOMON_DEVICES=${GNOMON_DEVICES:-$PWD/devices}
[ $# -gt 0 ] || set -- check calibrate sweep bench

# A faulty kernel ends the process (exit 3); the same command goes on behind it.
resumed() {
  local try
  for try in 1 2 3 4 5; do
    "$@" && return
    [ $? = 3 ] || return
    echo "again ($try)"
  done
}
sweep() {
  resumed "$bin/gnomon" gemm sweep --on cuda:0 --family cuda --dtype "$1" --shapes "$shapes/$2.csv" \
    -o "$out/h200_cuda_$1.csv" 2>>"$out/progress.txt" | tail -12
}

for what in "$@"; do
  date +"%T $what"
  case $what in
    check) "$bin/gnomon_cuda_test" --gtest_brief=1 2>&1 | tail -30 ;;
    calibrate)
      "$bin/gnomon" device calibrate --on cuda:0 -o "$out/h200-measured.toml" 2>>"$out/progress.txt" | tail -40
      "$bin/gnomon" device check "$out/h200-measured.toml"
      ;;
    sweep)
      sweep bf16 recsys_open
      sweep bf16 odd_open
      sweep fp16 recsys_20
      sweep fp8_e4m3 recsys_20_nt
      sweep tf32 recsys_20_nt
      ;;
    bench)
      for file in recsys_open odd_open known; do
        "$bin/gnomon" gemm bench --on cuda:0 --dtype bf16 --shapes "$shapes/$file.csv" --json \
          >"$out/h200_cuda_bench_$file.json" 2>>"$out/progress.txt"
      done
      for dtype in fp16 fp8_e4m3 tf32; do
        "$bin/gnomon" gemm bench --on cuda:0 --dtype "$dtype" --shapes "$shapes/recsys_20_nt.csv" --json \
          >"$out/h200_cuda_bench_$dtype.json" 2>>"$out/progress.txt"
      done
      ;;
    sanitize)
      for tool in memcheck racecheck; do
        compute-sanitizer --tool "$tool" "$bin/gnomon_cuda_test" --gtest_filter=*OneRunOfEachKind 2>&1 | tail -6
      done
      ;;
    *) echo "no such step: $what"; exit 2 ;;
  esac
done
date +"%T done"
