"""Graphs with copies, replayed while GPU times are taken: CUPTI breaks them where GRAPH_TRACE and MEMCPY2 are on and somebody flushes (docs/gpu.md)."""
import collections

import pytest

from tests.apprun import both, read
from tests.gputrace import works
from tests.patience import patience
from tests.remote import Remote, until

AUTO = {"CUSTREAM_GPU": "auto"}
TWO = dict(AUTO, CUSTREAM_FAKE_DEVICES=2, CUSTREAM_FAKE_COPY_NS=2000)
LONG_ENOUGH = 0.45  # seconds: for one of our flushes, and graphs after it
MODES = {
    "default": {},
    "nodes": {"CUSTREAM_GRAPH": "node"},
    "events": {"CUSTREAM_GPU": "events"},
    "per-thread": {"CUSTREAM_DEFAULT_STREAM": "per-thread"},
    "windows": {"CUSTREAM_WINDOW": f"delay=0.05,duration={patience(0.3):.2f}"},
}


@pytest.mark.parametrize("mode", MODES)
def test_graphs_with_copies(run_app, mode):
    run = run_app(["graph_copies", f"{patience(LONG_ENOUGH):.2f}"], env={**AUTO, **MODES[mode]}).check()
    trace = read(run.trace)
    assert run.stdout == "all right\n"
    assert works(trace, "gpu_memcpy" if mode == "nodes" else "gpu_graph")


@pytest.mark.parametrize("window", ["profiler", "all"])
@pytest.mark.parametrize("mode", ["default", "nodes", "events", "per-thread"])
def test_graphs_from_before_the_window(run_app, mode, window):
    """A graph from before the window is launched in it, and one from within after it, in the next window too. Windows come faster than the writer reads."""
    rounds = 100 if window == "profiler" else 20
    run = run_app(["late_graph", str(rounds), "300"], env={**AUTO, **MODES[mode], "CUSTREAM_WINDOW": window}).check()
    trace = read(run.trace)
    assert run.stdout == "all right\n"
    assert not works(trace, "gpu_graph" if mode == "nodes" else "kernel") and trace.totals["gpu"]["without_call"] == trace.totals["gpu"]["lost"] == 0
    if window == "profiler":
        assert len(trace.host("cuGraphLaunch")) == rounds * 2 * 4 * 5 and len(works(trace, "gpu_graph")) == (0 if mode == "nodes" else rounds * 2 * 4 * 5)


def test_graphs_from_before_cupti_has_come(run_app):
    """Threads wait two seconds for it. That there was no context when it began says nothing about when it comes to graphs."""
    slow = "cuptiActivityDisable:3100,cuptiActivityEnable:1200:5"  # before kinds are enabled, and after the fourth, which is that of graphs
    run = run_app(["late_graph", "4000"], env={**AUTO, "CUSTREAM_WINDOW": "delay=1000", "CUSTREAM_FAKE_CUPTI": slow}).check()
    assert run.stdout == "all right\n"


THREE_NODES = ("capture 1", "launch 1 3")


def test_graphs_from_a_window_to_the_next(tmp_path):
    with Remote(tmp_path, {**AUTO, "CUSTREAM_WINDOW": "profiler"}) as program:
        program.do("create 1", *THREE_NODES, "graph 1 0", "profiler start", "replay 0 1", "all", "profiler stop")
        until(lambda: program.status()["gpu"] == "cupti, at rest")
        program.do(*THREE_NODES, "graph 1 1", "replay 0 1", "replay 1 1", "profiler start", "replay 0 1", "replay 1 1", "all", "profiler stop")
    assert collections.Counter(w["cat"] for w in works(program.load())) == {"gpu_graph": 3}


def test_copies_between_gpus(run_app):
    run = run_app(["graph_copies", f"{LONG_ENOUGH}", "2"], env=dict(TWO, CUSTREAM_GRAPH="node")).check()
    assert {(w["args"]["fromDevice"], w["args"]["toDevice"]) for w in works(read(run.trace), "gpu_memcpy") if "fromDevice" in w["args"]} == {(0, 1), (1, 0)}


@pytest.mark.parametrize("program", ["profiled", "profiled_linked"])
def test_client_that_asks_for_memcpy2(run_app, program):
    """It gets what it gets alone: the copies of graphs as well. Graphs are whole before it, and node by node from then on. Both flush."""
    run, trace = both(run_app, [program, "peers"], env=TWO)
    run.check()
    assert "peers: kind 1 3 kind 22 3," in run.stdout, run.stdout
    assert collections.Counter((w["cat"], "fromDevice" in w["args"]) for w in works(trace)) == {
        ("gpu_graph", False): 2, ("gpu_memcpy", False): 3 + 2, ("gpu_memcpy", True): 3}


def test_client_that_asks_for_everything(run_app):
    """Alone CUPTI breaks it."""
    alone = run_app(["profiled", "everything"], env=TWO, shim=False)
    assert alone.rc and "gave 719" in alone.stderr
    run = run_app(["profiled", "everything"], env=TWO).check()
    assert "everything: kind 22 3 kind 51 3," in run.stdout, run.stdout  # copies between GPUs, and whole graphs
    assert collections.Counter(w["cat"] for w in works(read(run.trace)) if w["cat"] != "gpu_memcpy" or "graph node" in w["args"]) == {"gpu_graph": 2 + 3, "gpu_memcpy": 2}


def test_client_that_asked_before_we_began(run_app):
    run, trace = both(run_app, ["profiled", "peers_early"], env=AUTO)
    run.check()
    assert len(works(trace, "gpu_graph")) == 3
