"""Another client of CUPTI in the process: it gets what it would get alone, and we go on, or say from when to when we could not."""
import collections
import shutil

import pytest

from tests.apprun import both, notes_of, said
from tests.gputrace import CUPTI, check_works, end_of, works

PROGRAMS = ["profiled", "profiled_linked"]
WORK = dict(CUPTI, CUSTREAM_FAKE_COPY_NS=2000)
KERNEL, COPY, SET, DRIVER = 10, 1, 2, 4
WORKS = 7 + 4 + 2 + 1  # what the program does between its sessions: launches by two threads, copies, a set


def sessions(run):
    """What the client says of each session: its records by kind, and the rest."""
    told = {}
    for line in run.stdout.splitlines():
        name, _, rest = line.partition(": kind ")
        if rest:
            kinds, *others = rest.split(", ")
            pairs = [pair.split() for pair in kinds.split(" kind ")]
            told[name] = collections.Counter({int(kind): int(count) for kind, count in pairs}), others
    return told


def gaps(trace):
    return [e for e in trace.slices if e["cat"] == "cs_loss" and e["name"] == "no GPU times"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("mode", ["twice", "once", "small", "finalize"])
def test_client_gets_what_it_would_get_alone(run_app, program, mode):
    """Records by kind and call, times in its clock, buffers back once each. We have all work, before, between, during and after its sessions."""
    run, trace = both(run_app, [program, mode], env=WORK)
    found = check_works(trace, run)
    told = sessions(run)
    assert len(told) == 2 and not said(run)
    for kinds, others in told.values():
        assert set(kinds) == {KERNEL, COPY, SET, DRIVER} and kinds[COPY] == 2 and kinds[SET] == 1 and kinds[KERNEL] >= 7
        assert others == [f"of calls {kinds[KERNEL] + 3}", "nodes 0", "out of time 0", "odd 0", "out 0", "unknown 0"]
    alone = {"twice": 3, "small": 3, "once": 2, "finalize": 2}[mode]
    assert len(found) == alone * WORKS + sum(n for kinds, _ in told.values() for kind, n in kinds.items() if kind != DRIVER)
    assert not gaps(trace) and "cause" not in trace.totals["gpu"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_client_with_a_clock_of_its_own(run_app, program):
    run, trace = both(run_app, [program, "clock"], env=WORK)
    check_works(trace, run)
    kinds, others = sessions(run)["clocked"]
    assert "own clock 1" in run.stdout and kinds[KERNEL] == 13 and others[2:4] == ["out of time 0", "odd 0"]
    host = {e["args"]["correlation"]: e for e in trace.host(cat="cuda_driver") if "correlation" in e["args"]}
    for work in works(trace):  # ours stay in our clock
        assert host[work["args"]["correlation"]]["ts"] <= work["ts"] and end_of(work) <= end_of(trace.host("cuCtxSynchronize")[-1]) + 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_client_gets_nodes_while_we_take_whole_graphs(run_app, program):
    """From then on graphs are shown node by node: see the next."""
    run, trace = both(run_app, [program, "graphs"], env=WORK)
    kinds, others = sessions(run)["graphs"]
    assert (kinds[KERNEL], others[1]) == (12, "nodes 12")
    found = check_works(trace, run, whole_graphs=False)
    by_launch = collections.Counter((w["args"]["correlation"], w["cat"]) for w in found)
    assert [(cat, n) for (_, cat), n in sorted(by_launch.items())] == [("gpu_graph", 1)] * 2 + [("kernel", 3)] * (4 + 2)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_graph_that_was_instantiated_while_the_client_had_nodes(run_app, program):
    """CUPTI would let the process die, if it were to be shown whole."""
    run = run_app([program, "graphs_later"], env=WORK).check()
    assert collections.Counter(w["cat"] for w in works(run.load())) == {"gpu_graph": 2, "kernel": 3 * (4 + 2)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_client_that_wants_nodes_before_there_is_a_graph(run_app, program):
    """There is none when we begin, but GRAPH_TRACE does not come either: when the client has left it is too late."""
    run = run_app([program, "graphs_first"], env=WORK).check()
    assert collections.Counter(w["cat"] for w in works(run.load())) == {"kernel": 3 * (2 + 4 + 2)}


@pytest.mark.parametrize("window", ["all", "profiler"])
def test_client_with_many_sessions(run_app, window):
    """Also where our window is closed and there is no file yet, its records do not fill our buffers."""
    run = run_app(["profiled", "often"], env=dict(WORK, CUSTREAM_WINDOW=window)).check()
    assert sessions(run)["often"][0] == {SET: 150 * 3}


@pytest.mark.parametrize("program", PROGRAMS)
def test_client_without_buffers(run_app, program):
    """What it could not take it is told of; we lose nothing."""
    run, trace = both(run_app, [program, "dropped"], env=WORK)
    assert "dropped 6, then 0" in run.stdout
    assert len(check_works(trace, run)) == 6 + WORKS


@pytest.mark.parametrize("program", PROGRAMS)
def test_client_of_single_calls(run_app, program):
    run, trace = both(run_app, [program, "calls"], env=WORK)
    assert sessions(run)["calls"][0] == {DRIVER: 2}
    check_works(trace, run)


@pytest.mark.parametrize("program", PROGRAMS)
def test_client_that_was_there_first(run_app, program):
    """It keeps the records while it listens; the trace says what is missing and why, and goes on when it has left."""
    run = run_app([program, "early"], env=WORK).check()
    bare = run_app([program, "early"], env=WORK, shim=False).check()
    trace = run.load()
    with_us, alone = sessions(run), sessions(bare)
    for session in alone:  # alone it does not see the few calls that we make when a context or stream is new
        assert {k: n for k, n in with_us[session][0].items() if k != DRIVER} == {k: n for k, n in alone[session][0].items() if k != DRIVER}
        assert with_us[session][1] == alone[session][1]
    assert with_us["later"] == alone["later"]
    assert said(run) == ["custream: warning: no GPU times from cupti: another profiler is at work in this process"]
    (gap,) = gaps(trace)
    assert gap["args"]["cause"] == "another profiler is at work in this process"
    assert gap["ts"] < trace.host("cuStreamCreate")[0]["ts"]
    found = works(trace)
    assert len(found) == WORKS + (6 + 4 + 3) + WORKS and min(w["ts"] for w in found) > end_of(gap) - 1
    missed = [e for e in trace.host() if e["name"].startswith("cuLaunchKernel") and e["ts"] < gap["ts"] + gap["dur"]]
    assert len(missed) == 5 + 4
    assert trace.totals["gpu"]["source"] == "cupti" and "cause" not in trace.totals["gpu"]
    assert len(trace.flows("ac2g")) == len(found)


def test_another_copy_of_cupti(run_app, build, tmp_path):
    """Two copies can't both have the records: we let go while the other one is used, and come back after its cuptiFinalize."""
    other = tmp_path / "libcupti-other.so"
    shutil.copy(build / "fakecuda" / "libcupti.so.13", other)
    run, trace = both(run_app, ["profiled", "other", other], env=WORK)
    (gap,) = gaps(trace)
    assert gap["args"]["cause"] == f"another copy of CUPTI is at work: {other}"
    found = works(trace)
    assert len(found) == 2 * WORKS and len(trace.flows("ac2g")) == 2 * WORKS
    before, after = [w for w in found if end_of(w) <= gap["ts"]], [w for w in found if w["ts"] >= end_of(gap)]
    assert len(before) == len(after) == WORKS
    assert sessions(run)["other"][0] == sessions(run_app(["profiled", "other", other], env=WORK, shim=False))["other"][0]


@pytest.mark.parametrize("how", ["subscriber", "subscriber_v2"])
def test_another_copy_for_callbacks_alone(run_app, build, tmp_path, how):
    other = tmp_path / "libcupti-other.so"
    shutil.copy(build / "fakecuda" / "libcupti.so.13", other)
    run, trace = both(run_app, ["profiled", how, other], env=WORK)
    assert "called back 2" in run.stdout
    assert len(gaps(trace)) == 1 and len(works(trace)) == 2 * WORKS


def test_after_the_client_left_calls_are_still_found(run_app):
    """Its Disable(DRIVER) and Disable(RUNTIME) must not take our arrows."""
    _, trace = both(run_app, ["profiled", "twice"], env=WORK)
    last = max(e["ts"] for e in trace.host("cuMemsetD8Async"))
    after = [w for w in works(trace) if w["ts"] >= last]
    assert after and all("correlation" in w["args"] for w in after) and trace.totals["gpu"]["without_call"] == 0


def test_buffers_of_the_client(run_app):
    run, _ = both(run_app, ["profiled", "small"], env=WORK)
    assert int(notes_of(run.stderr)["buffers"]) > 5


@pytest.mark.parametrize("how, env", [([], {}), (["profiler"], {}), ([], {"CUDA_INJECTION64_PATH": "/of/the/user.so"}), (["profiler"], {"CUSTREAM_WINDOW": "profiler"}),
                                      ([], {"CUSTREAM_GPU": "off"}),  # no GPU times: CUPTI is not there then
                                      ([], {"CUSTREAM_GPU": "events"})], ids=["default", "profiler", "injection", "window", "off", "events"])
def test_what_a_library_sees_of_us(run_app, how, env):
    """Answers and environment are as without us. Two things are not: CUPTI is loaded, and NVTX has a tool (docs/gpu.md)."""
    run, trace = both(run_app, ["sees", *how], env={**CUPTI, **env})
    notes = notes_of(run.stderr)
    assert notes["nvtx"] == "1 1 0" and notes["cupti"] == ("0" if "CUSTREAM_GPU" in env else "1")
    assert notes_of(run_app(["sees", *how], shim=False, env={**CUPTI, **env}).stderr)["nvtx"] == "0 0 -2"
    assert "cuptiSubscribe 0\ncuptiSubscribe 39\n" in run.stdout and ("CUDA_INJECTION64_PATH is /of" in run.stdout) == ("CUDA_INJECTION64_PATH" in env)
    assert len(trace.host("cuLaunchKernel")) == (4 if "CUSTREAM_WINDOW" in env else 5)
