"""On a real GPU: slices of a shared cudart's calls around the driver's. See docs/runtime-level.md and docs/check-gpu.md."""
import collections
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from times import program, real_only, report, run_well, script  # noqa: E402

pytestmark = [times.gpu_only, real_only]


def check_nesting(name, trace, launches_by="runtime"):
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
    assert calls and bool(kernels) == (launches_by == "runtime")
    assert all(launches[id(e)] == 1 for e in kernels), [e["name"] for e in kernels if launches[id(e)] != 1][:5]


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


def test_two_copies_of_the_runtime():
    """A library with its own copy of cudart and its own kernels: its calls go there, those of others do not, and all are shown."""
    command = [sys.executable, "-c", "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).two_cudart(sys.argv[2].encode()))",
               program("libtwo_cudart.so"), program("libown_cudart.so")]
    alone, _ = run_well("two-cudart-shared-alone", command, shim=False)
    assert alone.stdout.splitlines() == ["runtimes: libcudart.so.13, libcudart-own.so.13", "1: done", "2: done", "ours 1, theirs 0, ours again 1",
                                         "theirs 1, ours 0, theirs again 1", "their kernel by our runtime: 400", "and then 400"], alone.stdout
    for name, env in (("two-cudart-shared", {}), ("two-cudart-shared-cupti", {"CUSTREAM_GPU": "cupti", "CUSTREAM_RUNTIME": "cupti"})):
        done, trace = run_well(name, command, **env)
        assert done.stdout == alone.stdout, observe.differing_lines(alone.stdout, done.stdout)
        check_nesting(name, trace)
        calls = collections.Counter(e["name"] for e in trace.host(cat="cuda_runtime"))
        assert (calls["cudaLaunchKernel"], calls["cudaMemcpyAsync"], calls["cudaStreamCreateWithFlags"]) == (61, 40, 24), calls
        kernels = collections.Counter(e["name"].split("(")[0] for e in times.work_of(trace, "kernel"))
        assert kernels == {"fill": 20, "square": 20, "add_up": 20}, kernels
        assert {e["args"]["cs.result"] for e in trace.host(cat="cuda_runtime") if "cs.result" in e["args"]} == {1, 400}
        times.assert_whole(trace)
        times.assert_checked(trace)


@pytest.mark.parametrize("name", ["streams-static", "streams-static-ptds", "jax-small", "torch-streams"])
def test_by_cupti(name):
    """Of a runtime that is linked into the program or a library, calls have their slices by CUPTI; what the driver did is the same with and without."""
    wanted = next((p for p in PROGRAMS if p.name == name), None)
    command, more = (wanted.command, {**wanted.env, "CUSTREAM_RUNTIME": "cupti"}) if wanted and wanted.modules else ([program(name)], {})
    more = {"CUSTREAM_GPU": "cupti", **more}
    alone, _ = run_well(f"by-cupti-{name}-alone", command, timeout=150, shim=False)
    done, trace = run_well(f"by-cupti-{name}", command, timeout=150, **more)
    assert done.stdout == alone.stdout, observe.differing_lines(alone.stdout, done.stdout)
    off, without = run_well(f"by-cupti-{name}-off", command, timeout=150, **{**more, "CUSTREAM_RUNTIME": "off"})
    check_nesting(f"by-cupti-{name}", trace, launches_by="driver" if name == "jax-small" else "runtime")
    assert not without.host(cat="cuda_runtime")
    a, b = (t.work_by_call() for t in (trace, without))
    report(f"by-cupti-{name}", "pieces of work by call, those without one", f"{sum(a.values())}, {sum(n for (_, call), n in a.items() if not call)}")
    assert a == b, times.differing(a, b)
    if name != "jax-small":  # whose threads wait for each other now more, now less often
        pinned = {"cuMemHostAlloc", "cuMemFreeHost"}  # PyTorch keeps pinned memory, and takes more while its copies are under way
        a, b = (collections.Counter(e["name"] for e in t.host(cat="cuda_driver") if e["name"] not in pinned) for t in (trace, without))
        assert a == b, times.differing(a, b)
    if name.startswith("streams-static"):  # the same source
        shared = name.replace("static", "shared")
        _, by_symbols = run_well(f"by-symbols-{shared}", [program(shared)])
        a, b = (collections.Counter(e["name"] for e in t.host(cat="cuda_runtime")) for t in (trace, by_symbols))
        assert a == b, times.differing(a, b)
        times.assert_whole(trace)
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


def missing(trace, name):
    """Stretches of time in which something could not be had: (begin, end, why)."""
    return [(e["ts"], times.end(e), e["args"]["cause"]) for e in trace.slices if e["cat"] == "cs_loss" and e["name"] == name]


def test_another_subscriber_comes_and_leaves():
    """Calls of a static cudart have no slices while somebody else has CUPTI's callbacks, which the timeline says, and have them again."""
    _, trace = run_well("subscriber", script("subscriber", program("liblauncher.so")), CUSTREAM_GPU="cupti")
    ((begin, end, why),) = missing(trace, "no runtime calls")
    assert why == "another client subscribes to CUPTI's callbacks"
    launches, calls = trace.host("cuLaunchKernel"), trace.host("cudaLaunchKernel")
    assert len(launches) == 1500 and sum(begin < e["ts"] < end for e in launches) == 500
    assert len(calls) in (999, 1000) and not [e for e in calls if begin < e["ts"] < end]  # the first is under way when CUPTI is asked
    report("subscriber", "calls of the runtime, of as many launches", f"{len(calls)}, {len(launches)}")
    assert len(times.work_of(trace, "kernel")) == 1500
    times.assert_whole(trace)
    times.assert_checked(trace)


@pytest.mark.parametrize("how", ["return", "_exit"])
def test_threads_launch_while_the_process_ends(how):
    """What was enqueued before the last flush has its kernels, but for what was on its way; what came later stands in a stretch that says so."""
    name = f"ends-at-work-{how}"
    _, trace = run_well(name, script("ends_at_work", program("liblauncher.so"), how), CUSTREAM_GPU="cupti")
    kernels, origin = times.work_of(trace, "kernel"), times.arrows(trace)
    with_kernel = {id(origin[id(k)]) for k in kernels if id(k) in origin}
    alone = [e for e in trace.host("cuLaunchKernel") if id(e) not in with_kernel and "cs.result" not in e["args"]]
    gaps = missing(trace, "no GPU times")
    report(name, "kernels, those without a call, launches without a kernel, of which before the last flush",
           f"{len(kernels)}, {len(kernels) - len(with_kernel)}, {len(alone)}, {sum(not gaps or e['ts'] < gaps[0][0] for e in alone)}")
    assert len(kernels) > 1000 and len(kernels) - len(with_kernel) <= 3 and trace.totals["complete"] is True
    assert [why for _, _, why in gaps] in ([], ["the process was ending"])
    last = max(e["ts"] for e in trace.host())
    assert all(last - e["ts"] < 1e6 for e in alone)
    times.assert_checked(trace)
