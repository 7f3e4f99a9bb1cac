"""CUSTREAM_WINDOW: calls are recorded in the window and nowhere else, with what they put on the GPU, and objects are what they are when it opens."""
import collections
import json
import re
import time

import pytest

from tests.apprun import calls_in, read, said
from tests.gputrace import CUPTI, check_depth, check_works, contexts, end_of, works
from tests.perfetto import assert_clean
from tests.remote import Remote, until
from tests.trace import cut

PROFILER = {"CUSTREAM_WINDOW": "profiler"}
SOURCES = ["cupti", "events", "off"]


def gaps(trace):
    """The spans in which nothing was recorded, in order; they do not overlap."""
    found = sorted((e for e in trace.slices if e["cat"] == "cs_window"), key=lambda e: e["ts"])
    assert all(end_of(a) <= b["ts"] for a, b in zip(found, found[1:])) and {e["name"] for e in found} <= {"not recorded"}
    return found


def causes(trace):
    return [e["args"]["cause"] for e in gaps(trace)]


def inside(trace, event):
    return not any(e["ts"] <= event["ts"] < end_of(e) for e in gaps(trace))


# ---- cuProfilerStart and Stop ----

@pytest.mark.parametrize("gpu", SOURCES)
def test_calls_between_start_and_stop(tmp_path, trace_processor, gpu):
    with Remote(tmp_path, PROFILER | {"CUSTREAM_GPU": gpu}) as program:
        program.do("create 1", "launch 1 3", "all")
        for n in range(3):
            program.do("profiler start", f"launch 1 {n + 1}", "copy 1", "profiler stop", "launch 1 5", "copy 1", "all")
    trace = program.load()
    assert calls_in(trace) == {"cuLaunchKernel": 6, "cuModuleGetFunction": 3, "cuMemAlloc_v2": 3, "cuMemcpyHtoDAsync_v2": 3, "cuProfilerStop": 3}
    assert causes(trace) == ["before cuProfilerStart"] + ["after cuProfilerStop"] * 3
    assert all(inside(trace, e) for e in trace.host(cat="cuda_driver"))
    assert trace.totals["recorded"] == sum(calls_in(trace).values()) and trace.totals["complete"] and trace.metadata["gpu_time_source"] == gpu.replace("off", "none")
    windows = trace.totals["windows"]
    assert (windows["opened"], windows["open"], windows["cause"], len(windows["last"])) == (3, False, "after cuProfilerStop", 3)
    assert windows["recorded_us"] == pytest.approx(sum(w["to_us"] - w["from_us"] for w in windows["last"]), abs=0.1)
    assert [(end_of(a), b["ts"]) for a, b in zip(gaps(trace), gaps(trace)[1:])] == [(w["from_us"], w["to_us"]) for w in windows["last"]]
    found = works(trace)
    if gpu == "cupti":
        check_works(trace)
        check_depth(trace)
    if gpu != "off":
        assert collections.Counter(w["cat"] for w in found) == {"kernel": 6, "gpu_memcpy": 3} and trace.totals["gpu"]["without_call"] == 0
        assert not [e for e in trace.slices if e["cat"] == "cs_loss"]
    trace_processor.load(program.trace)
    assert_clean(trace_processor)
    assert trace_processor.value("SELECT count(*) FROM slice WHERE category = 'cs_window'") == 4


@pytest.mark.parametrize("lines, shown", [
    (["profiler start", "launch 1", "profiler start", "launch 1", "profiler stop", "launch 1", "profiler stop", "launch 1"], 2),
    (["profiler stop", "launch 1", "profiler stop", "profiler start", "launch 1", "profiler stop"], 1),
    (["profiler start", "launch 1", "launch 1"], 2),
], ids=["nested", "unbalanced", "never stopped"])
def test_start_and_stop_do_not_count(tmp_path, lines, shown):
    """As CUDA has it: a second start does nothing, and one stop ends them all."""
    with Remote(tmp_path, PROFILER) as program:
        program.do("create 1", *lines)
    assert calls_in(program.load())["cuLaunchKernel"] == shown


def test_refused_start_opens_nothing(tmp_path):
    with Remote(tmp_path, PROFILER | {"CUSTREAM_FAKE_FAIL": "cuProfilerStart:1=999"}) as program:
        program.send("profiler start")
    assert program.rc == 9 and not program.trace.exists()


@pytest.mark.parametrize("env, line", [
    (PROFILER, r"nothing was recorded: CUSTREAM_WINDOW=profiler, and cuProfilerStart \(cudaProfilerStart\) was never called"),
    ({"CUSTREAM_WINDOW": "delay=1000"}, r"nothing was recorded: CUSTREAM_WINDOW=delay=1000, and the program ended before the delay was over"),
])
@pytest.mark.parametrize("end", ["return 0", "leave 0"])
def test_a_window_that_never_opens_is_one_line(tmp_path, env, line, end):
    with Remote(tmp_path, env) as program:
        program.do("create 1", "launch 1 10")
        program.send(end)
    assert program.rc == 0 and [re.fullmatch("custream: warning: " + line, one) is not None for one in program.said()] == [True]
    assert list(tmp_path.glob("*.json")) == []


def test_the_whole_run_has_no_windows(run_app):
    run = run_app(["burst", 1, 50], env={"CUSTREAM_WINDOW": "all"}).check()
    trace = read(run.trace)
    assert gaps(trace) == [] and "windows" not in trace.totals and not said(run)


# ---- By time ----

def test_delay_and_duration(tmp_path):
    with Remote(tmp_path, {"CUSTREAM_WINDOW": "delay=0.5,duration=4"}) as program:
        program.do("create 1", "launch 1 2")
        assert program.status()["recording"] == "off (before the delay was over)"
        until(lambda: program.status()["recording"] == "on")
        program.do("launch 1 3")
        until(lambda: program.status()["recording"] == "off (the duration was over)")
        program.do("launch 1 5")
    trace = program.load()
    assert calls_in(trace)["cuLaunchKernel"] == 3 and causes(trace) == ["before the delay was over", "the duration was over"]
    (window,) = trace.totals["windows"]["last"]
    assert (window["opened_by"], window["cause"]) == ("the delay was over", "the duration was over") and window["to_us"] > window["from_us"]


def told_closed(path):
    """The file says so by now; it may be in the middle of a write."""
    try:
        return not json.loads(path.read_text(encoding="utf-8"))["totals"]["windows"]["open"]
    except (FileNotFoundError, KeyError, ValueError):
        return False


def test_duration_from_the_start_without_a_listener(tmp_path):
    """Also where custream ctl is not wanted: the first calls are there, later ones are not."""
    with Remote(tmp_path, {"CUSTREAM_WINDOW": "duration=0.5", "CUSTREAM_CTL": "off"}) as program:
        program.do("create 1")
        until(lambda: told_closed(program.trace))
        program.do("launch 1 5")
    trace = program.load()
    assert calls_in(trace)["cuDevicePrimaryCtxRetain"] == 1 and calls_in(trace)["cuLaunchKernel"] == 0 and causes(trace) == ["the duration was over"]
    assert trace.totals["windows"]["last"][0]["opened_by"] == "the start"


# ---- GPU times ----

@pytest.mark.parametrize("gpu", ["cupti", "events"])
def test_work_belongs_to_its_call(tmp_path, gpu):
    """What was enqueued in the window and ran after it is shown whole; what was enqueued before and ran in it is not, nor what came after."""
    with Remote(tmp_path, PROFILER | {"CUSTREAM_GPU": gpu, "CUSTREAM_FAKE_KERNEL_NS": 2000}) as program:
        program.do("create 1", "create 2", "gate 1", "launch 1 4", "profiler start", "open", "sync 1", "gate 2", "launch 2 3", "copy 2", "profiler stop",
                   "launch 2 5", "open", "sync 2")
        until(lambda: program.status()["gpu"].endswith("at rest"))
    trace = program.load()
    found = works(trace)
    assert collections.Counter(w["cat"] for w in found) == {"kernel": 3, "gpu_memcpy": 1}
    assert all(end_of(w) > gaps(trace)[1]["ts"] for w in found)
    assert (trace.totals["gpu"]["without_call"], trace.totals["gpu"]["without_times"], trace.totals["gpu"]["lost"]) == (0, 0, 0)
    assert len(trace.flows("ac2g")) == 4
    if gpu == "cupti":
        check_works(trace)


@pytest.mark.parametrize("gpu", ["cupti", "events"])
def test_closed_costs_nothing_and_opens_at_once(tmp_path, gpu):
    """The source of GPU times is at rest while the window is closed, and has the first launch after the start."""
    counts = tmp_path / "counts"
    with Remote(tmp_path, PROFILER | {"CUSTREAM_GPU": gpu, "CUSTREAM_FAKE_COUNTS": counts}) as program:
        program.do("create 1", "launch 1 100")
        for _n in range(3):
            program.do("profiler start", "launch 1", "profiler stop")
            until(lambda: program.status()["gpu"] == f"{gpu}, at rest")
            program.do("launch 1 200", "all")
    trace = program.load()
    assert len(works(trace, "kernel")) == 3 == len(trace.flows("ac2g"))
    assert int(re.search(r"^cuEventRecord (\d+)", counts.read_text() + "\ncuEventRecord 0", re.M).group(1)) < 100


def must_not(name):
    return {"CUSTREAM_FAKE_CUPTI": f"{name}:1000"}


@pytest.mark.parametrize("how", ["profiler", "duration=0.2", "off"])
def test_cupti_is_not_taken_out_of_a_process_at_work(tmp_path, how):
    """cuptiFinalize races with threads that are in CUDA. A window that closes, and the end, do without."""
    window = {} if how == "off" else {"CUSTREAM_WINDOW": how}
    with Remote(tmp_path, CUPTI | window | must_not("cuptiFinalize")) as program:
        program.do("create 1", "profiler start", "launch 1 2", "all", "profiler stop")
        if how == "off":
            program.ctl("off")
        until(lambda: program.status()["gpu"] == "cupti, at rest")
        program.do("launch 1 3", "all")
        time.sleep(1)  # it rests for some rounds
        program.ctl("on")
        program.do("launch 1 2", "all")
    trace = program.load()
    check_works(trace)
    assert len(works(trace)) == 4


@pytest.mark.parametrize("program", [["late_graph", "1"], ["works", "streams"]])
def test_cupti_ends_before_the_driver_though_no_window_opened(run_app, program):
    """Which goes down in a function that it has registered by atexit."""
    run_app(program, env=CUPTI | {"CUSTREAM_WINDOW": "delay=1000", "CUSTREAM_FAKE_CUPTI_DOWN": 1}).check()


def test_a_context_that_ends_after_the_window(tmp_path):
    """Its events are read before it goes, as while the window is open."""
    slots = range(1, 6)
    with Remote(tmp_path, {**PROFILER, "CUSTREAM_GPU": "events"}) as program:
        for i in slots:
            program.do(f"context new {i}", f"context set {i}", f"create {i}")
        program.do("profiler start")
        for i in slots:
            program.do(f"context set {i}", f"gate {i}", f"launch {i} 3")
        program.do("profiler stop")
        until(lambda: program.status()["gpu"] == "events, at rest")
        program.do("open")
        for i in slots:
            program.do(f"context set {i}", f"sync {i}", f"context end {i}")
    trace = program.load()
    assert len(works(trace, "kernel")) == 3 * len(slots) and trace.totals["gpu"]["lost"] == 0


@pytest.mark.parametrize("away", [False, True], ids=["paused", "away"])
def test_calls_of_the_runtime(tmp_path, away):
    """CUPTI that comes or goes on once there is a context gives the runtime's work the runtime's numbers."""
    with Remote(tmp_path, PROFILER | CUPTI) as program:
        program.do("create 1", "runtime 1 5", "launch 1", "all")
        for _ in range(2):
            program.do("profiler start", "runtime 1 4", "launch 1 2", "copy 1", "sync 1", "profiler stop", "runtime 1 3", "all")
            until(lambda: not away or program.status()["gpu"] == "cupti, at rest")
    trace = program.load()
    check_works(trace)
    found = works(trace)
    assert collections.Counter(w["cat"] for w in found) == {"gpu_memset": 8, "kernel": 4, "gpu_memcpy": 2} and trace.totals["gpu"]["without_call"] == 0


def test_reopened_while_work_is_under_way(tmp_path):
    with Remote(tmp_path, PROFILER | CUPTI) as program:
        program.do("create 1", "create 2", "profiler start", "gate 1", "launch 1 2", "profiler stop", "launch 2 4", "profiler start", "launch 2 3", "profiler stop",
                   "launch 2 4", "open", "all")
    trace = program.load()
    check_works(trace)
    assert len(works(trace)) == 5


@pytest.mark.parametrize("gpu", ["cupti", "events"])
def test_ends_while_work_from_outside_is_under_way(tmp_path, gpu):
    """It is unfinished, and none of ours: nothing is missing."""
    with Remote(tmp_path, PROFILER | {"CUSTREAM_GPU": gpu}) as program:
        program.do("create 1", "profiler start", "launch 1 2", "sync 1", "profiler stop", "gate 1", "launch 1 50")
        program.send("leave 0")
    trace = program.load()
    assert len(works(trace)) == 2 and trace.totals["gpu"]["without_call"] == trace.totals["gpu"]["without_times"] == trace.totals["gpu"]["lost"] == 0


def test_another_client_of_cupti_goes_on(tmp_path):
    """It gets its records through us, so we go on for it while nothing is recorded; of what came then we show nothing. When it has left we rest."""
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "launch 1 2", "all", "client on", "launch 1 3")
        program.ctl("off")
        program.do("launch 1 40", "all")
        assert program.status()["gpu"] == "cupti"
        assert program.do("client off") == ["43"]
        until(lambda: program.status()["gpu"] == "cupti, at rest")
        program.do("launch 1 5", "all")
        program.ctl("on")
        program.do("launch 1 4", "all")
    trace = program.load()
    check_works(trace)
    assert len(works(trace)) == 2 + 3 + 4


def test_another_client_of_cupti_comes_while_we_rest(tmp_path):
    with Remote(tmp_path, CUPTI) as program:
        program.do("create 1", "gate 1", "launch 1 2")
        program.ctl("off")
        until(lambda: program.status()["gpu"] == "cupti, at rest")
        program.do("client on", "create 2", "launch 2 7", "sync 2")
        assert program.do("client off") == ["7"]
        program.do("open", "all")
    trace = program.load()
    check_works(trace)
    assert len(works(trace)) == 2


# ---- Objects ----

def launches(trace):
    """In the order in which they were made, by whatever thread."""
    return sorted(trace.host("cuLaunchKernel"), key=lambda e: e["ts"])


def lanes_of_launches(trace):
    return [(e["args"].get("cs.device", 0), e["args"]["cs.stream"]) for e in launches(trace)]


@pytest.mark.parametrize("gpu", SOURCES)
def test_handle_is_another_stream_by_the_next_window(tmp_path, gpu):
    with Remote(tmp_path, PROFILER | {"CUSTREAM_GPU": gpu}) as program:
        first = program.do("create 1")
        program.do("profiler start", "launch 1", "profiler stop", "destroy 1")
        second = program.do("create 1")
        program.do("profiler start", "launch 1", "profiler stop", "destroy 1", "create 2", "destroy 2", "create 3")
        program.do("profiler start", "destroy 3", "create 4", "launch 4", "profiler stop")
    trace = program.load()
    assert first == second, "the simulated driver did not give the handle out again: this shows nothing"
    lanes = lanes_of_launches(trace)
    assert len(set(lanes)) == 3
    shown = {(e["pid"], e["tid"]): e for e in trace.lives if e["cat"] == "cs_stream"}
    assert len(shown) == 4, "the stream that lived and died while nothing was recorded is not shown; that which ended in a window is"
    assert [shown[lane]["args"]["destroyed"] for lane in lanes] == [True, True, False]
    closed = gaps(trace)
    assert closed[1]["ts"] < end_of(shown[lanes[0]]) < end_of(closed[1])
    assert closed[1]["ts"] < shown[lanes[1]]["ts"] < end_of(closed[1])
    if gpu == "cupti":
        check_works(trace)


def test_contexts_and_threads_are_as_they_are(tmp_path):
    """Context switches, a new context and its end, on several threads, while nothing is recorded: each launch stands in the right context and thread."""
    with Remote(tmp_path, PROFILER | CUPTI) as program:
        program.do("launch legacy", "on 1 context set 0", "on 1 launch own", "on 2 context new 1", "on 2 create 5")
        program.do("profiler start", "launch legacy", "on 1 launch own", "on 2 launch legacy", "on 2 launch 5", "on 3 context set 0", "on 3 launch own", "profiler stop")
        program.do("on 2 context set 0", "on 1 context new 2", "on 4 context set 0", "on 2 context end 1", "on 3 context none", "context new 3", "create 6")
        program.do("profiler start", "launch legacy", "launch 6", "on 1 launch own", "on 2 launch legacy", "on 4 launch own", "profiler stop")
    trace = program.load()
    check_works(trace)
    by_call = contexts(trace)
    found = [by_call[e["args"]["correlation"]] for e in launches(trace)]
    first, second = found[:5], found[5:]
    assert len(found) == 10
    assert first[0] == first[1] == first[4] and first[2] == first[3] != first[0]
    assert second[0] == second[1] and second[3] == second[4] == first[0] and len({second[0], second[2], first[0], first[2]}) == 4
    assert all(trace.streams[lane].endswith(" · remote") or "legacy" in trace.streams[lane] for lane in lanes_of_launches(trace))
    assert len(set(lanes_of_launches(trace))) == 9, "thread 2 and the main thread share the legacy stream of the first context"


def test_event_recorded_outside_is_no_cause(tmp_path):
    """The last record that was seen is not the last there was: no arrow. In the window there is one."""
    with Remote(tmp_path, PROFILER) as program:
        program.do("create 1", "create 2", "event 1", "profiler start", "record 1 1", "wait 2 1", "profiler stop", "record 1 2",
                   "profiler start", "wait 1 1", "record 1 2", "wait 1 1", "profiler stop", "drop 1", "event 1", "profiler start", "wait 2 1", "profiler stop")
    trace = program.load()
    waits, records = trace.host("cuStreamWaitEvent"), trace.host("cuEventRecord")
    assert len(waits) == 4 and len(records) == 2
    assert [(f.start["ts"], f.finish["ts"]) for f in trace.flows("cs_dep")] == [(records[0]["ts"], waits[0]["ts"]), (records[1]["ts"], waits[2]["ts"])]
    assert len({e["args"]["event"] for e in waits}) == 2


@pytest.mark.parametrize("gpu", ["cupti", "events"])
def test_captures_over_the_edge(tmp_path, gpu):
    """One that ends while nothing is recorded, and one that begins then: what is called later on the stream is work again."""
    with Remote(tmp_path, PROFILER | {"CUSTREAM_GPU": gpu}) as program:
        program.do("create 1", "profiler start", "capture 1", "launch 1 2", "profiler stop", "captured 1")
        program.do("profiler start", "launch 1 3", "profiler stop", "capture 1", "launch 1", "profiler start", "launch 1", "captured 1", "launch 1 4", "profiler stop", "all")
    trace = program.load()
    assert len(works(trace, "kernel")) == 3 + 4 and calls_in(trace)["cuLaunchKernel"] == 2 + 3 + 1 + 4
    assert trace.totals["gpu"]["without_call"] == 0
    assert len(trace.gpu("capture")) == 1
    check_depth(trace)


# ---- Host functions and ranges ----

def test_host_functions(tmp_path):
    """Those that were enqueued in the window, whenever they run."""
    with Remote(tmp_path, PROFILER) as program:
        program.do("create 1", "create 2", "gate 1", "host 1", "host 1", "profiler start", "open", "sync 1", "host 1", "sync 1", "gate 2", "host 2", "profiler stop",
                   "host 2", "open", "all", "host 1", "all")
        assert program.do("functions") == ["6"]
    trace = program.load()
    shown = [e for e in trace.host(cat="cs_callback")]
    assert [inside(trace, e) for e in shown] == [True, False] and calls_in(trace)["cuLaunchHostFunc"] == 2


def test_ranges_over_the_edges(tmp_path):
    with Remote(tmp_path, PROFILER) as program:
        program.do("create 1", "push before", "launch 1", "profiler start", "launch 1", "push within", "launch 1", "pop", "push over", "launch 1", "profiler stop",
                   "mark unseen", "push unseen", "pop", "pop", "push again", "profiler start", "launch 1", "pop", "pop", "launch 1")
    trace = program.load()
    ranges = {e["name"]: e for e in trace.slices if e["cat"] == "user_annotation"}
    assert set(ranges) == {"before", "within", "over", "again"} and not [e for e in trace.events if e.get("name") == "unseen"]
    holds = {name: [i for i, e in enumerate(launches(trace)) if r["ts"] <= e["ts"] < end_of(r)] for name, r in ranges.items()}
    assert holds == {"before": [0, 1, 2, 3], "within": [1], "over": [2], "again": [3]}
    first, second = gaps(trace)
    assert ranges["before"]["ts"] < end_of(first) and ranges["before"]["args"] == cut("began_unrecorded")
    assert second["ts"] < end_of(ranges["over"]) < end_of(second) and ranges["over"]["args"] == {}
    assert second["ts"] < ranges["again"]["ts"] < end_of(second)


def test_range_of_another_thread_that_came_too_late(tmp_path):
    """Its thread has recorded calls before it could be told of: it is a span beside them, with its own times."""
    with Remote(tmp_path, PROFILER) as program:
        program.do("create 1", "on 1 context set 0", "on 1 push outside", "profiler start", "on 1 launch 1", "on 1 push inside", "on 1 launch 1", "on 1 pop", "on 1 pop",
                   "on 1 launch 1")
    trace = program.load()
    ((name, _, begin, end),) = trace.spans()
    (inner,) = (e for e in trace.slices if e["cat"] == "user_annotation")
    assert (name, inner["name"]) == ("outside", "inside") and begin < end_of(gaps(trace)[0]) < end
    assert begin < inner["ts"] and end_of(inner) <= end
    assert [e["args"] for e in trace.events if e.get("name") == "outside"] == [cut("began_unrecorded"), {}]


# ---- Files and processes ----

def test_windows_in_the_parts_of_a_rotated_trace(tmp_path):
    with Remote(tmp_path, PROFILER | {"CUSTREAM_TRACE_MAX": "1M,rotate:20"}) as program:
        program.do("create 1")
        for _n in range(4):
            program.do("profiler start", "launch 1 4000", "profiler stop")
            program.ctl("flush")
        program.do("profiler start", "launch 1 10")
    program.load()
    parts = sorted((read(path) for path in tmp_path.glob("remote*.json")), key=lambda trace: trace.totals["part"])
    assert len(parts) > 2 and sum(calls_in(part)["cuLaunchKernel"] for part in parts) == 16010
    together = [e for part in parts for e in gaps(part)]
    assert all(end_of(a) <= b["ts"] for a, b in zip(together, together[1:]))
    assert [e["args"]["cause"] for e in together if e["dur"] > 0.001][:1] == ["before cuProfilerStart"]
    opened = [part.totals["windows"]["opened"] for part in parts]
    assert opened == sorted(opened) and opened[-1] == 5 and all(part.totals["windows"]["last"] for part in parts)
    for part in parts:
        assert all(not (g["ts"] < e["ts"] < end_of(g)) for g in gaps(part) for e in part.host(cat="cuda_driver"))


def test_child_has_windows_of_its_own(tmp_path):
    """Nobody starts the profiler in the child: it records nothing, though the parent's window is open."""
    with Remote(tmp_path, PROFILER) as program:
        program.do("create 0", "profiler start", "launch 0")
        _, status = program.do("fork")
        program.do("launch 0 2", "profiler stop", "launch 0")
    trace = program.load()
    assert status == "11" and calls_in(trace)["cuLaunchKernel"] == 3 and [p.name for p in tmp_path.glob("*.json")] == [program.trace.name]


@pytest.mark.parametrize("gpu", SOURCES)
def test_windows_while_four_threads_launch(tmp_path, trace_processor, gpu):
    with Remote(tmp_path, PROFILER | {"CUSTREAM_GPU": gpu, "CUSTREAM_FULL": "block"}) as program:
        program.do("loop on")
        for _n in range(8):
            program.do("profiler start", "profiler stop")
        program.do("loop off")
    trace = program.load()
    assert len(gaps(trace)) == 9 and trace.totals["windows"]["opened"] == 8
    assert trace.totals["recorded"] == sum(calls_in(trace).values())
    if gpu == "cupti":
        check_works(trace)
    trace_processor.load(program.trace)
    assert_clean(trace_processor)


@pytest.mark.parametrize("audit", ["keep", "audit"])
@pytest.mark.parametrize("most", ["1G", "1M,rotate:9"])
def test_windows_that_fill_the_file(run_app, most, audit):
    """The file is written on in the middle of a window's step, and its trailer asks about windows."""
    times = 20000
    run = run_app(["windows", times], env=PROFILER | {"CUSTREAM_DEFAULT_STREAM": audit, "CUSTREAM_TRACE_MAX": most}).check()
    trace = run.load()
    last = trace.totals["windows"]
    untold = last.get("untold", 0)  # where the writer was kept waiting
    assert times - untold <= last["opened"] <= times and (untold or not last["open"])
    if most == "1G":
        assert calls_in(trace)["cuProfilerStop"] == trace.totals["recorded"] == times and (untold or len(gaps(trace)) == times + 1)
