#!/bin/bash
# Everything that needs a GPU, in one go of about nine minutes at most: the tests, the cost of a launch, and what machine it was.
# For a build/ made here or carried from elsewhere; needs pytest. Results go to the folder $1:
#
#     tests/gpu/collect.sh RESULTS [pytest arguments]
#
# machine.txt, pytest.txt, report.md, report.times.md, launch.txt, traces.tar.gz; the exit status is the tests'. CUSTREAM_GPU_FULL=1 also compares the cost of
# a launch with that under profilers, some two minutes more. CUSTREAM_GPU_TESTS names test files to run instead, and leaves the cost of a launch out:
#
#     CUSTREAM_GPU_TESTS=test_gpu_policy tests/gpu/collect.sh RESULTS                  # policies, on one GPU, some four minutes
#     CUSTREAM_GPU_TESTS=test_gpu_policy tests/gpu/collect.sh RESULTS -k nccl          # of them what takes two
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit
[ $# -ge 1 ] || { echo "usage: $0 RESULTS [pytest arguments]" >&2; exit 2; }
results=$1
shift
mkdir -p "$results"
build=$(cd "${BUILD_DIR:-build}" && pwd) || exit 2
shim=$build/libcustream_shim.so
python=${PYTHON:-python3}
files=${CUSTREAM_GPU_TESTS:-test_gpu test_gpu_times test_gpu_profilers test_gpu_hard test_gpu_graphs test_gpu_sample}
# libcjson, for a machine that has none.
[ ! -e "$build/carry/libcjson.so.1" ] || export LD_LIBRARY_PATH=$build/carry${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

{
    date -u +%Y-%m-%d
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    nvidia-smi | grep -o 'CUDA Version: [0-9.]*'
    nvcc --version | grep release
    git rev-parse --short HEAD 2>/dev/null
    nproc
    "$python" -c 'import sys; from importlib.metadata import version
for p in ("torch", "triton", "cupy-cuda13x", "cuda-core", "cuda-bindings", "jax", "pandas", "nvidia-nccl-cu13"):
    try: print(p, version(p))
    except Exception: print(p, "-")'
} > "$results/machine.txt" 2>&1
cat "$results/machine.txt"

# The cost of a launch first, while nothing else has warmed or filled anything. Its trace is large and of no further use.
trace=$(mktemp -d)
[ -n "${CUSTREAM_GPU_TESTS:-}" ] || {
    for _ in 1 2 3; do
        CUSTREAM_GPU=off CUSTREAM_TRACE=$trace/launch-%p.json LD_PRELOAD=$shim timeout 60 "$build/gpu/launch_ratio"
        CUSTREAM_GPU=off CUSTREAM_TRACE=$trace/launch-%p.json LD_PRELOAD=$shim timeout 60 "$build/gpu/launch_runtime"
    done
    "$python" - "$trace" << 'PY'
import glob, sys
for path in glob.glob(sys.argv[1] + "/launch-*.json"):
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - 2000))
        end = file.read().decode("utf-8", "replace")
    print("trace totals" + end.rpartition('"totals"')[2].strip())
PY
    echo "the shim absent (noise of the method):"
    timeout 60 "$build/gpu/launch_ratio"
    [ -z "${CUSTREAM_GPU_FULL:-}" ] || timeout 300 "$python" tests/gpu/launch_full.py
} 2>&1 | tee "$results/launch.txt"
rm -rf "$trace"

# shellcheck disable=SC2086
# shellcheck disable=SC2046  # names of files, one word each
CUSTREAM_GPU_REPORT=$results/report.md timeout -s INT 540 "$python" -m pytest -q --tb=short -ra --durations=15 $(printf 'tests/gpu/%s.py ' $files) "$@" 2>&1 |
    tee "$results/pytest.txt"
status=$?
cat "$results/report.md" "$results/report.times.md" 2>/dev/null
tar -czf "$results/traces.tar.gz" --exclude=traces/many -C "$build/gpu" traces 2>/dev/null
ls -l "$results"
exit $status
