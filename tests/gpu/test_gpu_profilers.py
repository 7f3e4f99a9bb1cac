"""On a real GPU: profilers inside a traced program see what they see alone, and HolisticTraceAnalysis reads our traces. See docs/check-gpu.md."""
import collections
import functools
import importlib.util
import json
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from known import known_run  # noqa: E402
from programs import BUILD, HERE  # noqa: E402
from times import gpu_only, needs, real_only, report, run, run_well, script  # noqa: E402

pytestmark = gpu_only


# --- profilers in the program ---

def window(trace, begin, end, *categories):
    """The work that ran between two times of day."""
    return [e for e in times.work_of(trace, *categories) if begin <= times.begin_ns(trace, e) <= end]


def read_profiles(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# Calls of the runtime by symbols, or by CUPTI's callbacks, whose one place a profiler in the program wants for itself.
BY = pytest.mark.parametrize("by", ["on", "cupti"])


@functools.lru_cache(maxsize=None)
def torch_run(how, shim, by="on"):
    """The training loop (python/torch_profile.py): (trace or None, the profiles that it took)."""
    name = f"torch-{how}-{by if shim else 'alone'}"
    out = os.path.join(observe.TRACES, name + ".profiles.json")
    os.makedirs(observe.TRACES, exist_ok=True)
    env = {"CUSTREAM_GPU": "cupti", "CUSTREAM_RUNTIME": by} if shim else {}
    _, trace = run_well(name, script("torch_profile", how, out), timeout=150, shim=shim, CUBLAS_WORKSPACE_CONFIG=":4096:8", **env)
    return trace, read_profiles(out)


@real_only
@needs("torch")
@BY
def test_torch_profiler_counts_the_same_under_the_shim(by):
    """Each profile (CUDA only and CPU+CUDA, each twice, and one of all work) has the same events, name by name, as without the shim."""
    _, alone = torch_run("profiled", False)
    _, under = torch_run("profiled", True, by)
    assert [p["name"] for p in under] == [p["name"] for p in alone] and len(alone) == 5
    for a, u in zip(alone, under):
        before, now = (collections.Counter((cat, n) for cat, n, _, _ in p["events"]) for p in (a, u))
        report("torch.profiler " + a["name"], "GPU events alone / under the shim", f"{sum(before.values())} / {sum(now.values())}")
        assert sum(before.values()) > 100
        assert now == before, f"{a['name']}: under the shim / alone\n" + times.differing(now, before)


@real_only
@needs("torch")
@BY
def test_the_trace_has_what_torch_profiler_has(by):
    """In the time of each profile the trace has the same work by name; and at the same times."""
    trace, profiles = torch_run("profiled", True, by)
    for p in profiles:
        ours = window(trace, p["begin_ns"], p["end_ns"], "kernel", "gpu_memcpy", "gpu_memset")
        a, b = by_category(ours), collections.Counter((cat, times.plain_name(n)) for cat, n, _, _ in p["events"])
        assert a == b, f"{p['name']}: trace / torch.profiler\n" + times.differing(a, b)
        theirs = sorted(start for cat, _, start, _ in p["events"] if cat == "kernel")
        apart = [(times.begin_ns(trace, e) - start) / 1000 for e, start in zip((e for e in ours if e["cat"] == "kernel"), theirs)]
        report("torch.profiler " + p["name"], "kernels in the trace and in the profile", len(theirs))
        report("torch.profiler " + p["name"], "begin of a kernel, trace less profile: the farthest apart", max(apart, key=abs), "us")
    unlike = {n for p in profiles for _, n, _, _ in p["events"]} - {e["name"] for e in times.work_of(trace)}
    report("torch.profiler", "names that are written otherwise", len(unlike))
    assert times.gpu_totals(trace)["lost"] == 0
    times.assert_checked(trace)


def by_category(slices):
    return collections.Counter((e["cat"], times.plain_name(e["name"])) for e in slices)


@real_only
@needs("torch")
def test_the_whole_loop_counts_as_torch_profiler_does():
    """The loop traced without a profiler, and profiled without the shim: the same work by name."""
    trace, plain = torch_run("plain", True)
    _, alone = torch_run("profiled", False)
    ours = by_category(window(trace, plain[0]["begin_ns"], plain[0]["end_ns"], "kernel", "gpu_memcpy", "gpu_memset"))
    theirs = collections.Counter((cat, times.plain_name(n)) for cat, n, _, _ in alone[0]["events"])
    report("the training loop", "work outside of it", len(times.work_of(trace, "kernel", "gpu_memcpy", "gpu_memset")) - sum(ours.values()))
    report("the training loop", "kernels by the trace / by torch.profiler",
           f"{sum(n for k, n in ours.items() if k[0] == 'kernel')} / {sum(n for k, n in theirs.items() if k[0] == 'kernel')}")
    assert ours == theirs, "trace / torch.profiler\n" + times.differing(ours, theirs)
    times.assert_whole(trace)
    times.assert_checked(trace)


@real_only
@needs("cupy")
def test_cupy():
    """Kernels, copies and memsets that a CuPy program says it made."""
    done, trace = run_well("cupy-known", script("cupy_known"), timeout=120, CUSTREAM_GPU="cupti")
    for said in times.lines_of(done.stdout):
        if said["what"] == "kernel":
            found = [e for e in times.work_of(trace, "kernel") if e["name"] == said["name"] and e["args"]["grid"][0] == said["grid"]]
        elif said["what"] == "graph":
            found = times.work_of(trace, "gpu_graph")
        else:
            found = [e for e in times.work_of(trace, said["what"]) if e["args"]["bytes"] == said["bytes"] and said["name"] in e["name"]]
        report("cupy", f"{said['what']} {said['name']}: in the trace / by the program", f"{len(found)} / {said['count']}")
        assert len(found) == said["count"], said
    times.assert_whole(trace)
    times.assert_checked(trace)


@functools.lru_cache(maxsize=None)
def jax_run(shim, by="on"):
    name = "jax-profile-" + (by if shim else "alone")
    os.makedirs(observe.TRACES, exist_ok=True)
    out = os.path.join(observe.TRACES, name + ".profiles.json")
    env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_FLAGS": "--xla_gpu_autotune_level=0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if shim:
        env.update(CUSTREAM_GPU="cupti", CUSTREAM_RUNTIME=by)
    _, trace = run_well(name, script("jax_profile", out), timeout=150, shim=shim, **env)
    return trace, read_profiles(out)


@real_only
@needs("jax")
@BY
def test_jax_profiler(by):
    """Two profiles in a row: the same events as without the shim; and the kernels that ran on streams are in the trace as often."""
    _, alone = jax_run(False)
    trace, under = jax_run(True, by)
    for number, (a, u) in enumerate(zip(alone, under)):
        before, now = (collections.Counter(n for n, _ in p["events"]) for p in (a, u))
        report(f"jax profile {number}", "GPU events alone / under the shim", f"{sum(before.values())} / {sum(now.values())}")
        assert before and now == before, "under the shim / alone\n" + times.differing(now, before)
        on_streams = times.by_name(n for n, stream in u["events"] if stream)
        ours = times.by_name(e["name"] for e in window(trace, u["begin_ns"], u["end_ns"], "kernel"))
        report(f"jax profile {number}", "kernels in the trace", sum(ours.values()))
        kernels = collections.Counter({n: count for n, count in on_streams.items() if not n.startswith(("Memcpy", "Memset"))})
        report(f"jax profile {number}", "names that are written otherwise", len(set(ours) - set(kernels)))
        # By name; where names are written otherwise, at least as many in all.
        assert ours and (ours == kernels or (set(ours) - set(kernels) and sum(ours.values()) == sum(kernels.values()))), (
            "trace / JAX's profile\n" + times.differing(ours, kernels))
    times.assert_checked(trace)


@real_only
@needs("jax")
def test_jax_annotates_its_own_profiles():
    """XLA's names of operators are in the profile from which it optimizes (FDO), as without the shim. With CUSTREAM_NVTX=all they are in the trace instead."""
    env = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_FLAGS": "--xla_gpu_autotune_level=0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    alone, _ = run_well("jax-fdo-alone", script("jax_fdo"), timeout=120, shim=False, **env)
    under, trace = run_well("jax-fdo", script("jax_fdo"), timeout=120, **env)
    assert "operators of the profile: copy" in alone.stdout and under.stdout == alone.stdout
    assert not [e for e in trace.host(cat="user_annotation") if e["args"].get("domain") == "TSL"]
    _, trace = run_well("jax-fdo-all", script("jax_fdo"), timeout=120, CUSTREAM_NVTX="all", **env)
    assert [e for e in trace.host(cat="user_annotation") if e["args"].get("domain") == "TSL"]
    times.assert_checked(trace)


# --- HolisticTraceAnalysis ---

HTA = os.environ.get("CUSTREAM_HTA", os.path.join(BUILD, "carry-hta"))


@needs("pandas")
@pytest.mark.skipif(not os.path.isdir(HTA) and importlib.util.find_spec("hta") is None, reason="no HolisticTraceAnalysis: make gpu-hta")
@pytest.mark.parametrize("of", ["known-driver"] if observe.SIMULATED else ["known-driver", "torch"])
def test_hta_agrees(of):
    """HTA reads the trace, and its sums are those of the trace's slices."""
    if of == "torch":
        if importlib.util.find_spec("torch") is None:
            pytest.skip("not installed: torch")
        trace = torch_run("plain", True)[0]
    else:
        trace = known_run("driver", "cupti", "graph").trace
    paths = [HTA] + os.environ.get("PYTHONPATH", "").split(os.pathsep)
    done, _ = run("hta", [sys.executable, os.path.join(HERE, "hta_check.py"), str(trace.path)], timeout=120, shim=False,
                  PYTHONPATH=os.pathsep.join(p for p in paths if p))
    assert done.status == 0, done.tail()
    for line in done.stdout.splitlines():
        if line.startswith("hta_"):
            figure, value, unit = line.split()
            report("HTA on " + of, figure, value, unit)
