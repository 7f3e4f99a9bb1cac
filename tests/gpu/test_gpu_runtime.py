"""On a real GPU: slices of a shared cudart's calls around the driver's. See docs/runtime-level.md and docs/check-gpu.md."""
import collections
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from times import program, real_only, report, run_well, script  # noqa: E402

pytestmark = [times.gpu_only, real_only]


def check_nesting(name, trace):
    """Each call of the driver is in a call of the runtime or in none, never half; a launch of the runtime holds one of the driver's."""
    by_thread = collections.defaultdict(list)
    for e in trace.host(cat="cuda_runtime"):
        by_thread[e["tid"]].append((e["ts"], times.end(e), e))
    inside, launches = 0, collections.Counter()
    for e in trace.host(cat="cuda_driver"):
        around = [r for begin, end, r in by_thread[e["tid"]] if begin <= e["ts"] and times.end(e) <= end]
        half = [r["name"] for begin, end, r in by_thread[e["tid"]] if (begin < e["ts"] < end) != (begin < times.end(e) <= end + 0.001) and r not in around]
        assert not half, f"{e['name']} is half in {half}"
        inside += bool(around)
        if e["name"].startswith("cuLaunchKernel") and around:
            launches[id(around[-1])] += 1
    calls = trace.host(cat="cuda_runtime")
    kernels = [e for e in calls if e["name"].startswith("cudaLaunchKernel") and "cs.result" not in e["args"]]
    report(name, "calls of the runtime, calls of the driver, those inside", f"{len(calls)}, {len(trace.host(cat='cuda_driver'))}, {inside}")
    assert kernels and all(launches[id(e)] == 1 for e in kernels), [e["name"] for e in kernels if launches[id(e)] != 1][:5]


@pytest.mark.parametrize("name", ["streams-shared", "streams-shared-ptds"])
def test_shared_runtime(name):
    alone, _ = run_well(f"runtime-{name}-alone", [program(name)], shim=False)
    done, trace = run_well(f"runtime-{name}", [program(name)])
    assert done.stdout == alone.stdout, observe.differing_lines(alone.stdout, done.stdout)
    check_nesting(f"runtime-{name}", trace)
    off, without = run_well(f"runtime-{name}-off", [program(name)], CUSTREAM_RUNTIME="off")
    assert off.stdout == alone.stdout and not without.host(cat="cuda_runtime")
    a, b = (collections.Counter(e["name"] for e in t.host(cat="cuda_driver")) for t in (trace, without))
    assert a == b, times.differing(a, b)
    times.assert_checked(trace)


def test_torchvision():
    """Operators of a library with kernels of its own, and with a cudart of its own where its wheel has one: the same results, also of what it refuses."""
    alone, _ = run_well("torchvision-alone", script("torch_vision"), timeout=120, shim=False)
    done, trace = run_well("torchvision", script("torch_vision"), timeout=120)
    assert done.stdout == alone.stdout, observe.differing_lines(alone.stdout, done.stdout)
    report("torchvision", "says", alone.stdout.splitlines()[-1])
    check_nesting("torchvision", trace)
    assert [e for e in times.work_of(trace, "kernel") if "nms" in e["name"]]
    times.assert_whole(trace)
    times.assert_checked(trace)
