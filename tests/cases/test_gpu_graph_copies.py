"""Graphs with copies, replayed while GPU times are taken: CUPTI breaks them where GRAPH_TRACE and MEMCPY2 are on and somebody flushes (docs/gpu.md)."""
import collections

import pytest

from tests.apprun import both, read
from tests.gputrace import works

AUTO = {"CUSTREAM_GPU": "auto"}
TWO = dict(AUTO, CUSTREAM_FAKE_DEVICES=2, CUSTREAM_FAKE_COPY_NS=2000)
LONG_ENOUGH = "0.45"  # for one of our flushes, and graphs after it
MODES = {
    "default": {},
    "nodes": {"CUSTREAM_GRAPH": "node"},
    "events": {"CUSTREAM_GPU": "events"},
    "per-thread": {"CUSTREAM_DEFAULT_STREAM": "per-thread"},
    "windows": {"CUSTREAM_WINDOW": "delay=0.05,duration=0.3"},
}


@pytest.mark.parametrize("mode", MODES)
def test_graphs_with_copies(run_app, mode):
    run = run_app(["graph_copies", LONG_ENOUGH], env={**AUTO, **MODES[mode]}).check()
    trace = read(run.trace)
    assert run.stdout == "all right\n"
    assert works(trace, "gpu_memcpy" if mode == "nodes" else "gpu_graph")


def test_copies_between_gpus(run_app):
    run = run_app(["graph_copies", LONG_ENOUGH, "2"], env=dict(TWO, CUSTREAM_GRAPH="node")).check()
    assert {(w["args"]["fromDevice"], w["args"]["toDevice"]) for w in works(read(run.trace), "gpu_memcpy") if "fromDevice" in w["args"]} == {(0, 1), (1, 0)}


@pytest.mark.parametrize("program", ["profiled", "profiled_linked"])
def test_client_that_asks_for_memcpy2(run_app, program):
    """It gets what it gets alone: the copies of graphs as well, so we have whole graphs before and after it. Both flush."""
    run, trace = both(run_app, [program, "peers"], env=TWO)
    run.check()
    assert "peers: kind 1 3 kind 22 3," in run.stdout, run.stdout
    assert collections.Counter((w["cat"], "fromDevice" in w["args"]) for w in works(trace)) == {
        ("gpu_graph", False): 2 + 2, ("gpu_memcpy", False): 3, ("gpu_memcpy", True): 3}


def test_client_that_asks_for_everything(run_app):
    """Alone CUPTI breaks it."""
    alone = run_app(["profiled", "everything"], env=TWO, shim=False)
    assert alone.rc and "gave 719" in alone.stderr
    run = run_app(["profiled", "everything"], env=TWO).check()
    assert "everything: kind 22 3 kind 51 3," in run.stdout, run.stdout  # copies between GPUs, and whole graphs
    assert len(works(read(run.trace), "gpu_graph")) == 7


def test_client_that_asked_before_we_began(run_app):
    run, trace = both(run_app, ["profiled", "peers_early"], env=AUTO)
    run.check()
    assert len(works(trace, "gpu_graph")) == 3
