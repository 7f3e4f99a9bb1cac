"""CUSTREAM_DEFAULT_STREAM=audit: which orders a program owes to the legacy default stream alone, and how long it waited for them."""
import collections
import re

import pytest

from tests.apprun import both, calls_in, notes_of, read, said
from tests.gputrace import CUPTI, end_of, lane_of, works
from tests.perfetto import assert_clean
from tests.trace import AUDIT as AUDIT_ROW, stream_of, tid_of

AUDIT = {"CUSTREAM_DEFAULT_STREAM": "audit"}

# Why the audit cannot tell: words of each reason.
MEMORY, TIME, ANSWER, DENIED, THREADS, ELSEWHERE = ("different memory", "a time between two events", "a query found the work done", "a query found work under way",
                                                    "several threads make calls", "events are used in graphs")

def audited(run_app, argv, **options):
    """The program does the same with the audit as without the shim. (run, trace, what the audit found)"""
    run, trace = both(run_app, argv, env=dict(AUDIT, **options.pop("env", {})), **options)
    run.check()
    return run, trace, trace.json["defaultStreamAudit"]


def function_of(side):
    """The function of the program that made the call."""
    return re.fullmatch(r"[\w.]+\+0x[0-9a-f]+ \((\w+)\+0x[0-9a-f]+\)", side["site"])[1]


def pairs(found):
    """(function of the first, function of the second) to the hazard."""
    named = [((function_of(h["first"]), function_of(h["second"])), h) for h in found["hazards"]]
    assert len(dict(named)) == len(named) and found["hazards_not_listed"] == 0
    assert found["verdict"] == ("not safe" if named else "cannot tell" if found.get("doubts") else "safe")
    assert sum(h["count"] for h in found["hazards"]) == found["lost_orders"]
    return dict(named)


def kernels(found):
    """(kernel or call of the first, of the second) to how often."""
    def name(side):
        return side.get("kernel", side["operation"])
    return {(name(h["first"]), name(h["second"])): h["count"] for h in found["hazards"]}


def report(run):
    """What the shim said, without its head."""
    lines = said(run)
    assert all(line.startswith("custream: audit: ") for line in lines), lines
    return [line.removeprefix("custream: audit: ") for line in lines]


def slices(trace):
    return [e for e in trace.events if e.get("cat") == "cs_audit"]


PLANTED = {("before_default", "on_default"), ("set_on_default", "after_default"), ("by_one_thread", "by_another_thread")}


# ---- Hazards, and the same programs mended ----

@pytest.mark.parametrize("passes", [1, 40])
def test_three_planted_hazards(run_app, passes):
    run, trace, found = audited(run_app, ["audit_hazards", "planted", passes])
    hazards = pairs(found)
    assert set(hazards) == PLANTED
    assert {h["count"] for h in hazards.values()} == {passes}
    stream, main = lane_of(trace, run, "stream"), int(notes_of(run.stderr)["main"])
    one, two, three = (hazards[key] for key in sorted(PLANTED, key=lambda pair: hazards[pair]["first_us"]))
    assert [(h["first"]["stream"], h["second"]["stream"]) for h in (one, two, three)] == [(stream, 7), (7, stream), (7, 7)]
    assert [h["first"]["thread"] for h in (one, two, three)] == [main] * 3 and three["second"]["thread"] != main
    assert (one["first"]["operation"], one["first"]["kernel"], two["first"]["operation"]) == ("cuLaunchKernel", "first_kernel", "cuMemsetD8_v2")
    assert {h["memory"] for h in hazards.values()} == {"unknown"}
    calls = {e["ts"] for e in trace.host(cat="cuda_driver")}
    assert {h["first_us"] for h in hazards.values()} <= calls, "the time is that of the second operation's call"
    assert (found["complete"], found["unneeded"]["count"], found["unseen"], found["late"]) == (True, 0, 0, 0)


def test_what_is_said_of_hazards(run_app):
    run, _, _ = audited(run_app, ["audit_hazards", "planted", 3], env={"CUSTREAM_GPU": "off"})  # what is said without GPU times
    head, *lines, times = report(run)
    assert head.startswith("NOT SAFE for per-thread default streams: 3 pairs ")
    assert len(lines) == 3 and times.startswith("how long was waited is not known")
    assert re.fullmatch(r"1\. cuLaunchKernel first_kernel on stream 13 \(thread \d+, audit_hazards\+0x\w+ \(before_default\+0x\w+\)\) -> "
                        r"cuLaunchKernel second_kernel on stream 7 \(thread \d+, audit_hazards\+0x\w+ \(on_default\+0x\w+\)\): 3 times, memory unknown", lines[0])


@pytest.mark.parametrize("how, by", [("events", "event"), ("waits", "host"), ("queries", "host")])
@pytest.mark.parametrize("threads", ["one", "two"])
def test_the_program_mended_is_safe(run_app, how, by, threads):
    """If one thread makes all calls, and no query decides. Two threads may be in order by chance."""
    run, trace, found = audited(run_app, ["audit_hazards", how, 20, threads])
    assert pairs(found) == {} and found["complete"] and not slices(trace)
    assert found["ordered_anyway"][by] >= 2 * 20 and found["ordered_anyway"]["stream"] == 0
    doubts = [ANSWER] * (how == "queries") + [THREADS] * (threads == "two")
    assert len(found.get("doubts", [])) == len(doubts) and all(doubt in told for doubt, told in zip(doubts, found.get("doubts", [])))
    head, *more = report(run)
    assert head.startswith("cannot tell for per-thread default streams: " if doubts else "safe for per-thread default streams: nothing depends on the ")
    assert [line.removeprefix("cannot tell: ") for line in more] == found.get("doubts", [])[1:]


def test_nonblocking_streams_are_not_concerned(run_app):
    run, _, found = audited(run_app, ["audit_hazards", "nonblocking"])
    assert pairs(found) == {} and found["ordered_anyway"] == {"event": 0, "host": 0, "stream": 0}
    assert report(run) == ["safe for per-thread default streams: nothing waits through the legacy default stream"]


# ---- What it has to tell apart ----

def test_the_legacy_stream_by_its_own_handle_stays(run_app):
    run, _, found = audited(run_app, ["audit_streams", "legacy"])
    assert found["verdict"] == "nothing on the default stream" and not found["hazards"]
    assert report(run) == ["nothing on the default stream: per-thread default streams would change nothing"]


def test_nothing_on_the_default_stream(run_app):
    _, _, found = audited(run_app, ["audit_streams", "none"])
    assert found["verdict"] == "nothing on the default stream"


def test_a_threads_own_stream(run_app):
    """What a thread does on its per-thread stream and by handle 0 would be on one stream; what another thread does would not."""
    _, _, found = audited(run_app, ["audit_streams", "own"])
    assert kernels(found) == {("kernel_b", "kernel_c"): 1}
    assert found["ordered_anyway"]["stream"] == 3


def test_captured_work_is_no_work(run_app):
    """The launch of a graph is one operation."""
    _, _, found = audited(run_app, ["audit_streams", "capture"])
    assert kernels(found) == {("cuGraphLaunch", "kernel_b"): 1, ("cuGraphLaunch", "kernel_c"): 1}


def test_contexts_are_apart(run_app):
    """A context's default stream has nothing to do with another's, and waiting for one context is not waiting for the other."""
    _, _, found = audited(run_app, ["audit_streams", "contexts"])
    assert kernels(found) == {("kernel_there", "kernel_there"): 1}
    assert len({found["hazards"][0][side]["stream"] for side in ("first", "second")} & {7}) == 0


def test_memory(run_app):
    """Different memory is a wait that nobody needed, but an operation behind it may."""
    _, _, found = audited(run_app, ["audit_streams", "copies"])
    assert kernels(found) == {("cuMemsetD8_v2", "cuMemcpyDtoDAsync_v2"): 1, ("cuMemsetD8Async", "kernel_a"): 1}
    assert [h["memory"] for h in found["hazards"]] == ["same", "unknown"]
    assert found["unneeded"]["count"] == 3


def test_waits_of_the_host(run_app):
    """To wait for the default stream, or to ask whether it is through, is to wait for blocking streams."""
    run, _, found = audited(run_app, ["audit_streams", "host"])
    assert kernels(found) == {("kernel_a", "cuStreamSynchronize"): 1, ("kernel_b", "cuStreamQuery"): 1}
    assert all("stream" not in h["second"] for h in found["hazards"])
    assert "-> return of cuStreamSynchronize (" in report(run)[1]


def test_a_copy_that_may_return_early(run_app):
    run, _, found = audited(run_app, ["audit_streams", "early"])
    assert kernels(found) == {("kernel_a", "cuMemcpyDtoH_v2"): 1}
    assert found["by_copy_from_host"] == 1 and found["ordered_anyway"]["host"] == 2
    assert report(run)[-1].startswith("1 of the waits are only for a synchronous copy from host memory")


def test_an_event_that_stands_for_others(run_app):
    _, _, found = audited(run_app, ["audit_streams", "marker"])
    assert kernels(found) == {("kernel_a", "kernel_b"): 1, ("kernel_a", "cuEventSynchronize"): 1}


# ---- Many threads, long calls, many pairs ----

@pytest.mark.parametrize("threads, turns", [(2, 2000), (8, 400)])
def test_threads_that_take_turns(run_app, threads, turns):
    """Each launch waits for an event of the one before, whichever thread made it: rings are read one after the other, and that must not show."""
    _, trace, found = audited(run_app, ["audit_streams", "turns", threads, turns])
    assert pairs(found) == {} and trace.count()["cuLaunchKernel"] == threads * turns
    assert found["ordered_anyway"]["event"] > 0 and (found["late"], found["unseen"], found["complete"]) == (0, 0, True)


def test_a_call_that_lasts_keeps_its_place(run_app):
    """The record of a copy that waits comes long after that of a launch which another thread made meanwhile, and which waits for the copy."""
    _, _, found = audited(run_app, ["audit_streams", "blocked"])
    assert kernels(found) == {("cuMemcpyDtoH_v2", "kernel_b"): 1} and found["late"] == 0


def test_many_times_the_same(run_app, trace_processor):
    """All are counted; the timeline has a thousand slices of a pair."""
    run, trace, found = audited(run_app, ["audit_streams", "many", 3000])
    assert kernels(found) == {("kernel_a", "kernel_b"): 3000, ("kernel_b", "kernel_a"): 2999}
    assert collections.Counter(e["args"]["operation"] for e in slices(trace)) == {"cuLaunchKernel kernel_a": 1000, "cuLaunchKernel kernel_b": 1000}
    trace_processor.load(run.trace)
    assert_clean(trace_processor)


@pytest.mark.parametrize("limit", ["2M,rotate:3", "2M"])
def test_files_with_a_limit(run_app, limit):
    run = run_app(["audit_streams", "many", 40000], env=dict(AUDIT, CUSTREAM_TRACE_MAX=limit, CUSTREAM_BUFFER="64M")).check()
    found = read(run.trace).json["defaultStreamAudit"]
    for path in run.trace.parent.glob("*.json"):
        audit = read(path).json["defaultStreamAudit"]
        assert not audit["complete"] or audit == found  # the last arrows may need a part after all calls have been judged
    assert kernels(found).keys() == {("kernel_a", "kernel_b"), ("kernel_b", "kernel_a")}
    assert found["complete"] is ("rotate" in limit)
    assert (found["lost_orders"] == 2 * 40000 - 1) is found["complete"]


def test_more_waits_than_there_is_room_for(run_app):
    """Times of some kernels never come, so that waits pile up: those that find no room have no times, and the audit is as complete as ever."""
    _, _, found = audited(run_app, ["audit_streams", "many", 45000], env=dict(CUPTI, CUSTREAM_BUFFER="64M", CUSTREAM_FAKE_CUPTI_LOSE="5000"))
    assert found["complete"] and found["lost_orders"] == 2 * 45000 - 1
    assert 0 < found["without_times"] < found["lost_orders"]


# ---- Places ----

def test_places_behind_a_runtime(run_app):
    """The program's own function, be the CUDA runtime a library or linked in, and not nvcc's stubs."""
    run = run_app(["audit_places"], env=AUDIT).check()
    assert set(pairs(read(run.trace).json["defaultStreamAudit"])) == {(f"{way}_on_stream", f"{way}_on_default") for way in ("shared", "likeThe", "linked", "launch")}


# ---- Times ----

def test_times_of_waits(run_app, trace_processor):
    """From when the second operation could have started (its call, what is before it on its own stream, its events) to the end of the first."""
    run, trace, found = audited(run_app, ["audit_streams", "times"], env=CUPTI)
    a, b, beside = (lane_of(trace, run, key) for key in ("a", "b", "beside"))
    work = {(stream_of(w["tid"]), n): w for lane in (a, b, beside, 7) for n, w in enumerate(w for w in works(trace) if stream_of(w["tid"]) == lane) for w in [w]}
    call = {e["args"]["correlation"]: e for e in trace.host(cat="cuda_driver") if "correlation" in e["args"]}

    def waited(second, first, *before):
        ready = max([call[second["args"]["correlation"]]["ts"]] + [end_of(w) for w in before])
        return round(end_of(first) - ready, 3)
    on_default = [work[7, n] for n in range(3)]
    expected = [waited(on_default[0], work[a, 0]), waited(on_default[1], work[a, 1], on_default[0], work[beside, 0]), waited(on_default[2], work[b, 0], on_default[1]), 0]
    assert [h["waited_us"] for h in found["hazards"]] == expected
    assert min(expected[:3]) > 0, "the program was so slow that nothing waited: nothing is tested"
    assert found["waited_us"] == pytest.approx(sum(expected), abs=0.002) and found["unneeded"]["waited_us"] == 0
    assert found["gpu_times"] and found["without_times"] == 0
    timed = [e for e in slices(trace) if e["ph"] == "X"]
    assert sorted(e["args"]["waited_us"] for e in timed) == sorted(expected[:3])
    for e in timed:
        assert e["tid"] == tid_of(7, AUDIT_ROW) and e["args"]["verdict"] == "hazard" and trace.lanes[0, e["tid"]] == "stream 7 (audit)" and e["name"].startswith("HAZARD sleep_us_")
    arrows = [f for f in trace.flows("cs_dep") if f.finish["tid"] == tid_of(7, AUDIT_ROW)]
    assert {f.finish["name"] for f in arrows} == {"wake-up"} and {(f.start["args"]["correlation"], end_of(f.finish)) for f in arrows} == {(w["args"]["correlation"], end_of(w)) for w in (work[a, 0], work[a, 1], work[b, 0])}
    assert report(run)[-1].endswith("0.000 us of it in waits that nobody needed")
    trace_processor.load(run.trace)
    assert_clean(trace_processor)


def test_times_of_waits_that_nobody_needed(run_app):
    run, trace, found = audited(run_app, ["audit_streams", "unneeded"], env=dict(CUPTI, CUSTREAM_FAKE_COPY_NS=20000000))
    assert pairs(found) == {} and found["unneeded"]["count"] == 10
    sets = works(trace, "gpu_memset")
    call = {e["args"]["correlation"]: e["ts"] for e in trace.host(cat="cuda_driver") if "correlation" in e["args"]}
    firsts, seconds = [w for w in sets if stream_of(w["tid"]) != 7], [w for w in sets if stream_of(w["tid"]) == 7]
    expected = sum(max(0, end_of(first) - call[second["args"]["correlation"]]) for first, second in zip(firsts, seconds))
    assert found["waited_us"] == found["unneeded"]["waited_us"] == pytest.approx(expected, abs=0.01) and expected > 0
    assert {e["args"]["verdict"] for e in slices(trace)} == {"nobody needed it"}
    assert report(run)[0].startswith("cannot tell for per-thread default streams: ") and MEMORY in report(run)[0]


def test_times_by_events(run_app):
    _, _, found = audited(run_app, ["audit_streams", "times"], env={"CUSTREAM_GPU": "events"})
    assert found["gpu_times"] and found["waited_us"] > 0 and len(found["hazards"]) == 4


# ---- What it does not know ----



@pytest.mark.parametrize("name, reason", [
    ("memset_pinned", MEMORY), ("copy_to_pinned", MEMORY), ("copy_from_pinned", MEMORY), ("copied_flag", MEMORY), ("set_flag", MEMORY),
    ("elapsed", None), ("measured", TIME), ("asked", ANSWER), ("denied", DENIED), ("denied_event", DENIED), ("watched", THREADS), ("graph_waits", ELSEWHERE)])
def test_a_program_that_breaks_is_never_called_safe(run_app, name, reason):
    """Each computes wrong data under per-thread default streams. The audit knows it (no reason), or says that it cannot tell, and why."""
    run, _, found = audited(run_app, ["audit_doubts", name, "late"], env={"CUSTREAM_FAKE_COPY_NS": "20000000", "CUSTREAM_FULL": "block"})
    assert run.stdout == "right\n"
    head = report(run)[0]
    if reason:
        assert (found["verdict"], found["lost_orders"]) == ("cannot tell", 0) and any(reason in doubt for doubt in found["doubts"])
        assert head == "cannot tell for per-thread default streams: " + found["doubts"][0]
    else:
        assert found["verdict"] == "not safe" and head.startswith("NOT SAFE ")
    # a thread that is held up between two calls is right all the same
    per_thread = (run_app(["audit_doubts", name], env={"CUSTREAM_FAKE_COPY_NS": ns, "CUSTREAM_DEFAULT_STREAM": "per-thread"}).check().stdout
                  for ns in ("20000000", "200000000", "1000000000"))
    assert "wrong\n" in per_thread


def test_each_answer_of_a_poll_is_looked_at(run_app):
    """The same query gets the same answer twice, of other work the second time."""
    run, _, found = audited(run_app, ["audit_doubts", "denied_later"])
    assert run.stdout == "right\n" and found["verdict"] == "cannot tell" and any(DENIED in doubt for doubt in found["doubts"])


def test_streams_of_a_policy_are_not_the_programs(run_app):
    _, _, found = audited(run_app, ["audit_doubts", "copy_to_pinned"], env={"CUSTREAM_STREAMS": "serial"})
    assert found["verdict"] == "cannot tell" and any("CUSTREAM_STREAMS" in doubt for doubt in found["doubts"])


def test_lost_calls_are_told(run_app):
    run = run_app(["audit_streams", "many", 60000], env=dict(AUDIT, CUSTREAM_BUFFER="64K")).check()
    trace = read(run.trace)
    found = trace.json["defaultStreamAudit"]
    assert trace.totals["lost_records"] > 0, "nothing was lost: nothing is tested"
    assert found["complete"] is False and any("ring of a thread was full" in gap for gap in found["gaps"])
    assert trace.totals["recorded"] + trace.totals["lost_records"] == sum(calls_in(trace).values()) + trace.totals["lost_records"]
    lines = report(run)
    assert "as far as was recorded" in lines[0] and lines[-1].startswith("not complete: calls were lost")
    assert kernels(found).keys() <= {("kernel_a", "kernel_b"), ("kernel_b", "kernel_a")}, "a place was taken for another call's"
    assert {function_of(h[side]) for h in found["hazards"] for side in ("first", "second") if "site" in h[side]} <= {"many", "main"}


def test_a_window_is_told(run_app):
    run = run_app(["audit_streams", "unneeded"], env=dict(AUDIT, CUSTREAM_WINDOW="delay=0.01", CUSTREAM_FAKE_COPY_NS=10000000)).check()
    found = read(run.trace).json["defaultStreamAudit"]
    assert found["complete"] is False and found["gaps"] == ["for some of the time nothing was recorded (CUSTREAM_WINDOW, custream ctl)"]
    assert (found["verdict"], found["doubts"][0]) == ("cannot tell", found["gaps"][0])
    assert report(run)[0] == "cannot tell for per-thread default streams: " + found["gaps"][0]


# ---- Off ----

def test_without_the_audit_nothing_changes(run_app):
    with_audit, trace, _ = audited(run_app, ["audit_hazards", "planted", 5])
    run = run_app(["audit_hazards", "planted", 5]).check()
    plain = read(run.trace)
    assert run.stdout == with_audit.stdout and not said(run)
    assert "defaultStreamAudit" not in plain.json and not slices(plain)
    assert calls_in(plain) == calls_in(trace) and plain.totals["recorded"] == trace.totals["recorded"]


def test_quiet(run_app):
    run = run_app(["audit_hazards", "planted"], env=dict(AUDIT, CUSTREAM_LOG="error")).check()
    assert not said(run) and len(read(run.trace).json["defaultStreamAudit"]["hazards"]) == 3


# ---- Any program ----

@pytest.mark.parametrize("argv", [["timeline"], ["timeline_linked"], ["callbacks"], ["capture"], ["contexts"], ["arrows"], ["handles"], ["reuse"], ["badcalls"],
                                  ["race", 4, 200], ["works", "streams"], ["works", "graphs"], ["works", "captures"], ["works", "green"], ["works", "ends"],
                                  ["works", "contexts"], ["works", "fork"]], ids=lambda argv: "-".join(map(str, argv)))
def test_programs_are_as_they_are(run_app, argv):
    """The same output and calls as without the shim, a good trace, and nothing but the audit's lines."""
    run, trace, found = audited(run_app, [str(a) for a in argv], env=CUPTI)
    assert report(run) and found["late"] == 0
    assert len(found["hazards"]) <= found["lost_orders"] and (found["verdict"] == "not safe") is bool(found["lost_orders"])
    assert trace.totals["recorded"] > 0


def test_two_devices(run_app):
    run, trace, found = audited(run_app, ["works", "peers"], env=dict(CUPTI, CUSTREAM_FAKE_DEVICES=2))
    assert found["verdict"] == "nothing on the default stream" and trace.gpus == {0, 1}


def test_a_program_that_is_killed(run_app):
    """What was found by the last flush stands in the trailer, which says that there may be more."""
    run = run_app(["works", "leave", "kill"], env=AUDIT)
    found = read(run.trace).json["defaultStreamAudit"]
    assert run.rc == -9 and not found["complete"] and found["gaps"] == ["the process had not ended when this was written"]


def test_without_a_trace_there_is_nothing_to_read(run_app):
    run = run_app(["audit_hazards", "planted"], env=dict(AUDIT, CUSTREAM_TRACE="off")).check()
    assert said(run) == ["custream: warning: CUSTREAM_DEFAULT_STREAM=audit reads what is recorded: with CUSTREAM_TRACE=off nothing is"]
