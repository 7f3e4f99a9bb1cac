"""On a real GPU: CUSTREAM_GPU=sample:N times one call in N of each thread, and its times are those of the kernel. See docs/check-gpu.md.

    CUSTREAM_GPU_SIMULATED=1 python3 -m pytest tests/gpu/test_gpu_sample.py    # what a simulated GPU can show
"""
import collections
import json
import os
import statistics
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from times import gpu_only, program, report, run_well  # noqa: E402

pytestmark = gpu_only

COMMAND = os.path.join(times.BUILD, "custream")
US = 100


def sums(done):
    """How often a kernel ran, by the program's own count."""
    return [line["sum"] for line in times.lines_of(done.stdout) if line["what"] == "sum"]


def mean_us(done):
    """How long a kernel took, by the program's own events around all of them: with what lies between two."""
    (line,) = [line for line in times.lines_of(done.stdout) if line["what"] == "mean"]
    return line["us"]


@pytest.mark.parametrize("threads, launches, n", [(1, 10000, 50), (2, 5000, 50), (1, 1001, 10)])
def test_one_in_n_is_timed(threads, launches, n):
    name, argv = f"sampled-{threads}-{launches}-{n}", [program("sampled"), str(threads), str(launches), str(US)]
    alone, _ = run_well(name + "-alone", argv, shim=False)
    done, trace = run_well(name, argv, CUSTREAM_GPU=f"sample:{n}")
    assert sums(done) == sums(alone) and (observe.SIMULATED or sums(alone) == [threads * launches])
    times.assert_checked(trace)

    by_thread = collections.defaultdict(list)
    for call in sorted((e for e in trace.host() if e["name"] == "cuLaunchKernel"), key=lambda e: e["ts"]):
        by_thread[call["tid"]].append("correlation" in call["args"])
    assert sorted(map(len, by_thread.values())) == [launches] * threads
    for timed in by_thread.values():  # one more or none in what is left over of N, and the copies of the program are of another thread or count
        assert abs(sum(timed) - launches / n) <= 1 and any(timed[:n])

    kernels = [e["dur"] for e in times.work_of(trace, "kernel")]
    middle, known = statistics.median(kernels), mean_us(alone)
    report(name, "kernels timed, of", f"{len(kernels)} of {threads * launches}")
    report(name, "median of the sampled kernels, and the mean by the program's events alone", f"{middle:.2f}, {known:.2f}", "us")
    assert len(kernels) == sum(sum(timed) for timed in by_thread.values())
    assert abs(middle - known) <= 0.1 * known + 5, (middle, known)
    gpu = times.gpu_totals(trace)
    assert (gpu["source"], gpu["sample"], gpu["without_call"]) == ("events", n, 0)
    assert gpu["lost"] <= 0.01 * len(kernels) + 1, gpu


def test_what_the_report_estimates():
    """All launches are counted, and the total is about what the GPU was busy for."""
    run_well("sampled-report", [program("sampled"), "1", "5000", str(US)], CUSTREAM_GPU="sample:50")
    path = os.path.join(observe.TRACES, "sampled-report.json")
    done = subprocess.run([COMMAND, "report", "--json", path], capture_output=True, text=True, check=True)
    (row,) = json.loads(done.stdout)["tables"]["kernels"]
    report("sampled-report", "all launches; total of the kernels, about", f"{row['times']}; {row['about_total_ns'] / 1e6:.1f}", "ms")
    assert row["times"] == 5000 and abs(row["sampled"] - 100) <= 1
    assert abs(row["about_total_ns"] - 5000 * US * 1e3) <= 0.15 * 5000 * US * 1e3
