"""GPU times that can't be had, or not all of them: the program does what it did, one line says why, and the trace is good and says what it lacks."""
import collections
import os

import pytest

from tests.apprun import both, notes_of, said
from tests.gputrace import CUPTI, check_works, works
from tests.trace import Trace, check_file

STREAMS = 3 + 3 * 20 + 5 + 3  # pieces of work that `works streams` makes


def gaps(trace):
    return [e for e in trace.slices if e["cat"] == "cs_loss"]


def refused(function, code, nth=None):
    return {"CUSTREAM_FAKE_CUPTI": f"{function}:{code}" + (f":{nth}" if nth else "")}


# What goes wrong, and what is said of it.
UNUSABLE = [
    ("missing", {"CUSTREAM_CUPTI": "/nowhere/libcupti.so"}, "/nowhere/libcupti.so: cannot open shared object file: No such file or directory"),
    ("garbage", {"CUSTREAM_CUPTI": "{garbage}"}, "{garbage}: invalid ELF header"),
    ("fifo", {"CUSTREAM_CUPTI": "{fifo}"}, "{fifo}: not a file"),
    ("broken", {"CUSTREAM_CUPTI": "{build}/fakecuda/broken/libcupti.so.13"}, "the library has no cuptiGetVersion"),
    ("too old", {"CUSTREAM_FAKE_CUPTI_VERSION": 17}, "its version 17 is not one that custream reads (CUDA 12 and 13)"),
    ("too new", {"CUSTREAM_FAKE_CUPTI_VERSION": 140000}, "its version 140000 is not one that custream reads (CUDA 12 and 13)"),
    ("no version", refused("cuptiGetVersion", 1), "its version 0 is not one that custream reads (CUDA 12 and 13)"),
    ("no privileges", refused("cuptiActivityEnable", 35), "CONCURRENT_KERNEL: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"),
    ("half-way", refused("cuptiActivityEnable", 1, 2), "MEMCPY: CUPTI_ERROR_INVALID_PARAMETER (1)"),
    ("nearly", refused("cuptiActivityEnable", 1, 3), "MEMSET: CUPTI_ERROR_INVALID_PARAMETER (1)"),
    ("no buffers", refused("cuptiActivityRegisterCallbacks", 35), "cuptiActivityRegisterCallbacks: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"),
    ("no clock", refused("cuptiActivityRegisterTimestampCallback", 1), "cuptiActivityRegisterTimestampCallback: CUPTI_ERROR_INVALID_PARAMETER (1)"),
]


def filled(text, build, tmp_path):
    (tmp_path / "garbage.so").write_bytes(bytes(range(256)) * 20)
    if not (tmp_path / "fifo").exists():
        os.mkfifo(tmp_path / "fifo")  # which nobody writes to
    return str(text).format(garbage=tmp_path / "garbage.so", fifo=tmp_path / "fifo", build=build)


@pytest.mark.parametrize("env,why", [case[1:] for case in UNUSABLE], ids=[case[0] for case in UNUSABLE])
def test_cupti_that_cannot_be_used(run_app, build, tmp_path, env, why):
    """Asked for by name: one line, and the trace has the reason from the first call on."""
    env, why = {k: filled(v, build, tmp_path) for k, v in env.items()}, filled(why, build, tmp_path)
    run, trace = both(run_app, ["works", "streams"], env=dict(CUPTI, **env))
    assert said(run) == [f"custream: warning: no GPU times from cupti: {why}"]
    assert trace.metadata["gpu_time_source"] == "none" and not works(trace)
    assert (trace.totals["gpu"]["source"], trace.totals["gpu"]["cause"]) == ("none", why)
    (gap,) = gaps(trace)
    assert (gap["name"], gap["args"]) == ("no GPU times", {"gpu_work": 0, "cause": why}) and gap["ts"] < trace.host("cuStreamCreate")[0]["ts"]


@pytest.mark.parametrize("how, after", [("return", 0), ("atexit", 0), ("_exit", 0), ("destructor", 3)])
def test_enqueued_after_the_last_flush(run_app, how, after):
    """Launches of which no times can come any more: the timeline says so, and says nothing where there are none."""
    _, trace = both(run_app, ["ending", how], env=CUPTI)
    launches, kernels = trace.host("cuLaunchKernel"), {w["args"]["correlation"] for w in works(trace)}
    alone = [e for e in launches if e["args"]["correlation"] not in kernels]
    assert len(launches) - len(alone) == len(kernels) == (101 if how == "atexit" else 100) and len(alone) == after
    assert [(e["name"], e["args"]) for e in gaps(trace)] == [("no GPU times", {"gpu_work": 0, "cause": "the process was ending"})] * (after > 0)
    assert all(gap["ts"] < e["ts"] < gap["ts"] + gap["dur"] for gap in gaps(trace) for e in alone)


@pytest.mark.parametrize("env,why", [case[1:] for case in UNUSABLE], ids=[case[0] for case in UNUSABLE])
def test_the_next_source_is_taken(run_app, build, tmp_path, env, why):
    """Not asked for by name: events are used instead, and nobody is told but the trace."""
    env = {k: filled(v, build, tmp_path) for k, v in env.items()}
    run, trace = both(run_app, ["works", "streams"], env=dict(env, CUSTREAM_GPU="auto"))
    assert not said(run) and not gaps(trace)
    assert trace.metadata["gpu_time_source"] == "events" and len(works(trace)) == STREAMS
    assert trace.totals["gpu"]["cause"] == filled(why, build, tmp_path)


def test_auto_takes_cupti(run_app):
    run, trace = both(run_app, ["works", "streams"], env={"CUSTREAM_GPU": "auto"})
    assert not said(run) and len(check_works(trace, run)) == STREAMS


@pytest.mark.parametrize("env", [
    refused("cuptiActivityEnable", 1, 5), refused("cuptiActivityEnable", 1, 7), refused("cuptiGetStreamIdEx", 2), refused("cuptiFinalize", 999),
    refused("cuptiActivityEnableDriverApi", 1), refused("cuptiGetCallbackName", 1), refused("cuptiActivitySetAttribute", 1),
    refused("cuptiActivityGetNumDroppedRecords", 1)], ids=lambda env: env["CUSTREAM_FAKE_CUPTI"])
def test_what_can_be_done_without(run_app, env):
    """Kinds that are no work, numbers of streams, single calls: each has a substitute."""
    run, trace = both(run_app, ["works", "streams"], env=dict(CUPTI, **env))
    assert not said(run) and len(check_works(trace, run)) == STREAMS


@pytest.mark.parametrize("mode", ["streams", "contexts", "ends", "peers", "threads"])
def test_lanes_without_numbers_of_streams(run_app, mode):
    """Where CUPTI can't say which stream is which, its first record with the call tells."""
    argv = ["works", mode] + (["7"] if mode == "threads" else [])
    run, trace = both(run_app, argv, env=dict(CUPTI, CUSTREAM_FAKE_DEVICES=2, **refused("cuptiGetStreamIdEx", 2)))
    check_works(trace, run)
    assert not [name for name in trace.lanes.values() if "the driver's own" in name]


def test_flushes_that_fail(run_app):
    run, trace = both(run_app, ["works", "streams"], env=dict(CUPTI, **refused("cuptiActivityFlushAll", 999)))
    assert said(run) == ["custream: warning: GPU times may be missing: cuptiActivityFlushAll: CUPTI_ERROR_UNKNOWN (999)"]
    assert not works(trace)


def test_lost_records(run_app):
    """What CUPTI lost is a slice where the gap is, and in the totals; what came stands with or without its call."""
    run, trace = both(run_app, ["works", "streams"], env=dict(CUPTI, CUSTREAM_FAKE_CUPTI_LOSE=5))
    totals = trace.totals["gpu"]
    lost = sum(e["args"]["gpu_work"] for e in gaps(trace))
    assert lost == totals["lost"] > 10 and trace.totals["lost_records"] == 0
    assert {e["args"]["cause"] for e in gaps(trace)} == {"CUPTI had no buffer to write to"}
    assert STREAMS - lost <= len(works(trace)) < STREAMS
    without = [w for w in works(trace) if "correlation" not in w["args"]]
    assert len(without) == totals["without_call"] and len(trace.flows("ac2g")) == len(works(trace)) - len(without)


def test_lost_records_behind_the_end_of_the_file(run_app):
    """They are among what is not in this file."""
    run = run_app(["burst", 2, 20000], env=dict(CUPTI, CUSTREAM_FAKE_CUPTI_LOSE=5, CUSTREAM_TRACE_MAX="1M")).check()
    assert [line for line in run.stderr.splitlines() if "reached CUSTREAM_TRACE_MAX=1M" in line]
    trace = run.load()
    lost = [e["args"] for e in trace.slices if e["cat"] == "cs_loss"]
    assert sum(e.get("count", 0) for e in lost) == trace.totals["lost_records"]
    assert sum(e.get("gpu_work", 0) for e in lost) == trace.totals["gpu"]["lost"] + trace.totals["not_written"]["gpu_work"] > 0
    check_file(run.trace)


@pytest.mark.parametrize("lose", [0, 5])
def test_launches_without_a_kernel(run_app, lose):
    """Counted where something behind them on their stream has come; a copy that is lost is none, nor is what nothing came behind."""
    _, trace = both(run_app, ["works", "streams"], env=dict(CUPTI, CUSTREAM_FAKE_CUPTI_LOSE=lose))
    arrived = {f.id for f in trace.flows("ac2g")}
    calls = [e for e in trace.host(cat="cuda_driver") if "correlation" in e["args"]]
    last = {e["args"]["cs.stream"]: e["ts"] for e in sorted(calls, key=lambda e: e["ts"]) if e["args"]["correlation"] in arrived}
    expected = sum(e["name"].startswith("cuLaunchKernel") and e["args"]["correlation"] not in arrived and e["ts"] < last.get(e["args"]["cs.stream"], 0) for e in calls)
    assert trace.totals["gpu"]["launches_without_kernel"] == expected and bool(expected) == bool(lose)


def test_work_whose_call_is_lost_keeps_its_place(run_app):
    """It waits for its call for some time, and what followed it on its stream waits with it: nothing overlaps, so no extra lane is needed."""
    _, trace = both(run_app, ["works", "many", 20000], env=dict(CUPTI, CUSTREAM_FULL="block", CUSTREAM_FAKE_CUPTI_LOSE=1000, CUSTREAM_FAKE_KERNEL_NS=50000))
    assert trace.totals["gpu"]["without_call"] > 5 and trace.verdict == "incomplete"
    assert {w["args"]["stream"] for w in works(trace)} == {13}


def test_records_without_times(run_app):
    run, trace = both(run_app, ["works", "streams"], env=dict(CUPTI, CUSTREAM_FAKE_CUPTI_ZERO=4))
    assert trace.totals["gpu"]["without_times"] == STREAMS // 4
    assert len(works(trace)) == STREAMS - STREAMS // 4


# ---- The process ----

@pytest.mark.parametrize("how", ["return", "exit", "thread", "_exit"])
def test_ends_with_work_under_way(run_app, how):
    """What had ended has its times; of the kernel that still runs there are none."""
    run, trace = both(run_app, ["works", "leave", how], env=CUPTI)
    assert len(works(trace)) == 10 and len(trace.flows("ac2g")) == 10
    assert trace.totals["gpu"]["without_times"] == 1 and trace.totals["complete"]


def test_killed(run_app):
    run = run_app(["works", "leave", "kill"], env=CUPTI)
    assert run.rc == -9
    trace = run.load()
    assert len(works(trace)) == 10 and len(trace.flows("ac2g")) == 10 and not trace.totals["complete"]


def test_exec(run_app):
    run, trace = both(run_app, ["works", "leave", "exec"], env=CUPTI)
    assert len(works(trace)) == 10 and len(trace.flows("ac2g")) == 10


def test_fork(run_app, tmp_path):
    """The child has no profiler, and its trace says so; the parent goes on."""
    pattern = tmp_path / "of-%p.json"
    run = run_app(["works", "fork"], env=dict(CUPTI, CUSTREAM_TRACE=pattern)).check()
    child = notes_of(run.stderr)["child"]
    traces = {path.stem.split("-")[1]: path for path in tmp_path.glob("of-*.json")}
    assert child in traces and len(traces) == 2 and not said(run)
    for pid, path in traces.items():
        trace = Trace(path)
        if pid == child:
            assert trace.totals["gpu"]["cause"] == "the process was forked from one that used CUDA"
            assert trace.metadata["gpu_time_source"] == "none" and not works(trace) and len(gaps(trace)) == 1
        else:
            assert len(works(trace)) == 7 and "cause" not in trace.totals["gpu"] and not gaps(trace)


@pytest.mark.timeout(300)
def test_memory_stays_bounded_with_many_kernels(run_app):
    """All with their arrows, in bounded memory: what the writer holds back does not grow with their number. They are more than it remembers calls."""
    def peak(count):
        run = run_app(["works", "many", count], env=dict(CUPTI, CUSTREAM_FULL="block"), timeout=250).check()
        check_file(run.trace)
        return run, int(notes_of(run.stderr)["peak_kb"])
    _, small = peak(100000)
    run, large = peak(300000)
    counts, tail = collections.Counter(), b""
    with open(run.trace, "rb") as file:
        for line in file:
            for mark in (b'"cat":"kernel"', b'"flow_in":true'):
                counts[mark] += mark in line
            tail = line if b'"totals"' in line else tail
    os.unlink(run.trace)
    assert counts == {b'"cat":"kernel"': 300000, b'"flow_in":true': 300000}
    assert b'"without_call":0,"without_times":0,"lost":0' in tail
    assert large < small + 80000
