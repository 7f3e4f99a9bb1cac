"""On a real GPU: graphs with copies, replayed while GPU times are taken. See docs/check-gpu.md."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import observe  # noqa: E402
import times  # noqa: E402
from programs import ROOT  # noqa: E402
from times import GPUS, gpu_only, needs, program, real_only, report, run, run_well, script  # noqa: E402

pytestmark = gpu_only

MODES = {
    "default": {},
    "nodes": {"CUSTREAM_GRAPH": "node"},
    "events": {"CUSTREAM_GPU": "events"},
    "per-thread": {"CUSTREAM_DEFAULT_STREAM": "per-thread"},
}
SECONDS = "0.5" if observe.SIMULATED else "3"  # a few of the library's flushes
DEVICES = ["1", "2"] if GPUS >= 2 else ["1"]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("mode", MODES)
def test_graphs_with_copies(mode, devices):
    """All results are right. On two GPUs copies between them have their times, where nodes of graphs are shown."""
    name = f"graph-copies-{mode}-{devices}"
    done, trace = run_well(name, [program("graph_copies"), SECONDS, devices], **MODES[mode])
    graphs, nodes = len(times.work_of(trace, "gpu_graph")), len([e for e in times.work_of(trace, "gpu_memcpy") if "graph node" in e["args"]])
    report(name, "rounds; launches shown whole, copies shown as nodes", f"{done.stderr.split('rounds ')[1].split()[0]}; {graphs}, {nodes}")
    assert done.stdout == "all right\n", done.tail()
    if mode != "events":
        assert (nodes if mode == "nodes" else graphs) > 100
        peers = {(e["args"]["fromDevice"], e["args"]["toDevice"]) for e in times.work_of(trace, "gpu_memcpy") if "fromDevice" in e["args"]}
        assert peers == ({(0, 1), (1, 0)} if mode == "nodes" and devices == "2" else set())
    times.assert_checked(trace)


@pytest.mark.parametrize("window", ["profiler", "delay=2.5,duration=1.5", "all"])
@pytest.mark.parametrize("mode", MODES)
def test_graphs_from_before_the_window(mode, window):
    """With GRAPH_TRACE on, CUPTI makes cuGraphLaunch of a graph from before it die. So it is on from the first context, or never."""
    name = f"late-graph-{mode}-{window.partition('=')[0]}"
    done, trace = run_well(name, [program("late_graph"), {"profiler": "100", "all": "400"}.get(window, "10"), "400", *["6"] * ("delay" in window)], CUSTREAM_WINDOW=window, **MODES[mode])
    report(name, "launches shown whole, kernels shown as nodes", f"{len(times.work_of(trace, 'gpu_graph'))}, {len(times.work_of(trace, 'kernel'))}")
    assert done.stdout == "all right\n", done.tail()
    assert gpu_whole(trace), times.gpu_totals(trace)
    assert mode != "nodes" or not times.work_of(trace, "gpu_graph")
    assert bool(times.work_of(trace, "gpu_graph")) == (mode != "nodes")
    times.assert_checked(trace)


def gpu_whole(trace):
    gpu = times.gpu_totals(trace)
    return gpu["lost"] == 0 and gpu["without_call"] == 0


@real_only
@needs("torch")
@pytest.mark.parametrize("window", ["profiler", "all"])
def test_graphs_of_torch_around_its_profiler(window):
    """Graphs from before torch.profiler, from within and from after it are replayed in each of these times, and in our window: the same results."""
    alone, _ = run_well("torch-graphs-alone", script("torch_graphs"), timeout=120, shim=False)
    done, trace = run_well(f"torch-graphs-{window}", script("torch_graphs"), timeout=120, CUSTREAM_WINDOW=window)
    assert done.stdout == alone.stdout, observe.differing_lines(alone.stdout, done.stdout)
    report(f"torch-graphs-{window}", "launches shown whole, kernels", f"{len(times.work_of(trace, 'gpu_graph'))}, {len(times.work_of(trace, 'kernel'))}")
    times.assert_checked(trace)


@real_only
@needs("jax")
@pytest.mark.parametrize("how", ["plain", "mended"])
def test_graphs_of_jax_in_a_window(how):
    """JAX makes graphs of its own accord before the window opens."""
    path = os.path.join(ROOT, "examples", "worked", "jax_train.py")
    done, trace = run_well(f"jax-window-{how}", [sys.executable, path, *[how] * (how != "plain")], timeout=120, CUSTREAM_WINDOW="profiler", TF_CPP_MIN_LOG_LEVEL="3",
                           XLA_PYTHON_CLIENT_PREALLOCATE="false")
    report(f"jax-window-{how}", "launches shown whole, kernels", f"{len(times.work_of(trace, 'gpu_graph'))}, {len(times.work_of(trace, 'kernel'))}")
    assert "loss of the last step" in done.stdout and gpu_whole(trace), times.gpu_totals(trace)
    times.assert_checked(trace)


# --- the fault itself, in a plain client of CUPTI ---

HARMLESS = ["kernel,copy,set,graph,flush", "kernel,copy,set,flush", "kernel,copy,set,peer,flush", "kernel,copy,set,graph,peer"]
REPORTED = ["kernel,copy,set,graph,peer,flush", "kernel,copy,set,turns,flush"]


def plain_client(kinds, devices="1"):
    library = os.path.dirname(observe.toolkit_library("libcupti.so.1[2-9]") or "")
    done, _ = run("cupti-kinds", [program("graph_copies"), SECONDS, devices], shim=False, CUDA_INJECTION64_PATH=os.path.join(times.GPU, "libcupti_kinds.so"),
                  CUPTI_KINDS=kinds, LD_LIBRARY_PATH=library)
    report("plain client of CUPTI", f"{kinds}, GPUs: {devices}", (f"ended with {done.status}: " + done.stdout.strip() + "; " + done.stderr.strip()).replace("\n", " "))
    return done


@real_only
@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("kinds", HARMLESS)
def test_what_the_library_asks_of_cupti_is_harmless(kinds, devices):
    assert plain_client(kinds, devices).stdout == "all right\n"


@real_only
@pytest.mark.parametrize("kinds", REPORTED)
def test_what_others_ask(kinds):
    """Only lines of the report: a later CUPTI may have been mended."""
    plain_client(kinds)


@real_only
@pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")
@pytest.mark.parametrize("kind, found", [("copy", 3), ("peer", 0)])
def test_copies_between_gpus_are_of_kind_memcpy(kind, found):
    """What lets us do without MEMCPY2: MEMCPY alone brings its records, MEMCPY2 alone does not."""
    done, _ = run("cupti-peers", [program("two_gpu")], shim=False, CUDA_INJECTION64_PATH=os.path.join(times.GPU, "libcupti_kinds.so"), CUPTI_KINDS=kind,
                  LD_LIBRARY_PATH=os.path.dirname(observe.toolkit_library("libcupti.so.1[2-9]") or ""))
    report("plain client of CUPTI", f"{kind}, copies between two GPUs", done.stderr.strip())
    assert done.status == 0 and (f"MEMCPY2 direction 10: {found}" in done.stderr) == bool(found), done.tail()
