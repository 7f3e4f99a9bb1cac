"""CUSTREAM_WINDOW=every=S,for=S: the first part of each span of time is recorded, for good; in between a call costs what it costs without tracing."""
import os
import signal

import pytest

from tests.apprun import calls_in, read
from tests.cases.test_window import causes, gaps
from tests.gputrace import CUPTI, check_works, works
from tests.handmade import custream
from tests.perfetto import assert_clean
from tests.remote import Remote, ctl, until

BETWEEN = "off (between two windows)"


def every(span, part, **env):
    return {"CUSTREAM_WINDOW": f"every={span}s,for={part}s"} | env


def recorded(program):
    return program.status()["recording"]


def windows(trace):
    return trace.totals["windows"]["last"]


@pytest.mark.parametrize("gpu", ["cupti", "events", "off"])
def test_each_window_has_what_was_called_in_it(tmp_path, trace_processor, gpu):
    """What is launched between is not there. The source of GPU times rests then."""
    with Remote(tmp_path, every(1.5, 0.5, CUSTREAM_GPU=gpu)) as program:
        program.do("create 1", "launch 1 20")
        for _ in range(3):
            until(lambda: recorded(program) == BETWEEN)
            if gpu != "off":
                until(lambda: program.status()["gpu"] == f"{gpu}, at rest")
            program.do("launch 1 20", "copy 1")
            until(lambda: recorded(program) == "on")
            program.do("launch 1 20", "all")
    trace = program.load()
    opened = windows(trace)
    assert len(opened) >= 4 and {w["opened_by"] for w in opened} == {"the start", "CUSTREAM_WINDOW=every"} and opened[0]["opened_by"] == "the start"
    assert set(causes(trace)) == {"between two windows"} and not [e for e in trace.host("cuLaunchKernel") for g in gaps(trace) if g["ts"] <= e["ts"] < g["ts"] + g["dur"]]
    assert calls_in(trace)["cuLaunchKernel"] > 0 and trace.totals["complete"]
    if gpu == "cupti":
        check_works(trace)
    trace_processor.load(program.trace)
    assert_clean(trace_processor)


def test_windows_keep_to_the_phase(tmp_path):
    """None begins before its time, counted from the first, whenever the ones before it began."""
    with Remote(tmp_path, every(0.4, 0.1)) as program:
        program.do("create 1")
        until(lambda: int(program.status()["recorded"]) >= 0 and len(gaps_so_far(program)) >= 6)
    opened = windows(program.load())
    starts = [w["from_us"] for w in opened]
    phases = [(start - starts[0]) % 400000 for start in starts[1:]]
    # The first begins with the process and the phase with the first call, some ms later. A window that is opened late may not be opened at all.
    first_call = min(phases)
    assert all(phase - first_call < 100000 for phase in phases), phases
    assert len({int((start - starts[0]) // 400000) for start in starts[1:]}) == len(starts) - 1


def gaps_so_far(program):
    program.ctl("flush")
    return gaps(read(program.trace))


def test_first_window_is_at_once(tmp_path):
    with Remote(tmp_path, every(1000, 500)) as program:
        program.do("create 1", "launch 1 3")
        assert recorded(program) == "on"
    assert calls_in(program.load())["cuLaunchKernel"] == 3 and "windows" not in program.load().totals


def test_nothing_of_cupti_stays_on_between(tmp_path):
    """Whole graphs would need a kind that can not be let go; nodes do not."""
    with Remote(tmp_path, every(1000, 0.2) | CUPTI) as program:
        program.do("create 1", "launch 1 3", "all")
        until(lambda: program.status()["gpu"] == "cupti, at rest")
    trace = program.load()
    assert trace.metadata["options"]["CUSTREAM_GRAPH"] == "node" and len(works(trace)) <= 3
    with Remote(tmp_path, every(1000, 500) | {"CUSTREAM_GRAPH": "graph"}, trace="2.json") as program:
        program.do("create 1")
    assert program.load().metadata["options"]["CUSTREAM_GRAPH"] == "graph", "who asks for it has it"


def test_graphs_from_before_a_window(run_app):
    run_app(["late_graph", "200"], env=every(0.02, 0.01) | CUPTI).check().load()


def test_child_has_a_phase_of_its_own(tmp_path):
    """Its first window is at once, though the parent is between two."""
    with Remote(tmp_path, every(1000, 0.3)) as program:
        program.do("create 0")
        until(lambda: recorded(program) == BETWEEN)
        (child,) = program.do("fork 600000")
        own = tmp_path / f"remote-{child}.json"
        try:
            until(own.exists)
            until(lambda: BETWEEN in ctl(child, "status")[1])
            ctl(child, "flush")
            assert [w["opened_by"] for w in windows(read(own))] == ["the start"] and calls_in(read(own))["cuCtxSetCurrent"] == 1
        finally:
            os.kill(int(child), signal.SIGKILL)
    program.load()


def test_ctl_beats_it(tmp_path):
    with Remote(tmp_path, every(1000, 0.2)) as program:
        program.do("create 1")
        until(lambda: recorded(program) == BETWEEN)
        program.ctl("on")
        program.do("launch 1 4")
        program.ctl("off")
        program.do("launch 1 5")
    assert calls_in(program.load())["cuLaunchKernel"] == 4


def test_parts(tmp_path):
    """For good: the newest parts stay, each with its windows."""
    with Remote(tmp_path, every(0.6, 0.3) | {"CUSTREAM_TRACE_MAX": "1M,rotate:3", "CUSTREAM_FULL": "block"}) as program:
        program.do("create 1")
        while not (tmp_path / "remote.4.json").exists():
            until(lambda: recorded(program) == "on")
            program.do("launch 1 1500")
            until(lambda: recorded(program) == BETWEEN)
    program.load()
    parts = sorted((read(path) for path in tmp_path.glob("remote*.json")), key=lambda part: part.totals["part"])
    assert [part.totals["part"] for part in parts] == list(range(parts[0].totals["part"], parts[0].totals["part"] + 3))
    assert parts[-1].totals["windows"]["opened"] > 1 and all(calls_in(part)["cuLaunchKernel"] > 0 for part in parts)


@pytest.mark.parametrize("value", ["every=60", "for=1s", "every=1,for=1", "every=1,for=2", "every=60,for=1,delay=5", "every=60,for=1,duration=9", "profiler,every=60,for=1",
                                   "every=60,for=1,ctl", "every=60,for=0", "every=60 for=1", "ctl,profiler"])
def test_refused(value):
    result = custream("run", f"--window={value}", "true")
    assert (result.returncode, result.stdout) == (2, "") and result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"custream run: --window={value} is not valid: allowed is all, profiler, ctl, delay=S and duration=S (or one of them), or every=S,for=S")
