"""The judge is judged: Perfetto 52, as tests/perfetto runs it, accepts a good trace, counts it right, and says what is wrong with a bad one.

The second half holds what Perfetto does not report, so that it is known that a test must count for itself: no statistic shows a lost flow.
"""
import gzip
import json

import pytest

from tests.perfetto import TraceError, assert_clean, problems
from tests.perfetto.screenshot import screenshot

HOST, GPU = 4242, 0
FLOWS = "SELECT a.name AS start, b.name AS finish FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in ORDER BY a.id, b.id"
SLICES = ("SELECT s.name, s.ts, s.dur, s.depth, t.tid, p.pid FROM slice s JOIN thread_track k ON k.id = s.track_id "
          "JOIN thread t ON t.utid = k.utid JOIN process p ON p.upid = t.upid ORDER BY s.ts, s.depth")


def x(name, ts, dur, tid=4250, pid=HOST, **args):
    return {"ph": "X", "cat": "cuda_driver", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def point(ph, ts, tid=4250, pid=HOST, **more):
    return {"ph": ph, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g", **more}


def start(number, ts, **where):
    return point("s", ts, id=number, **where)


def finish(number, ts, **where):
    return point("f", ts, id=number, bp="e", **{"tid": 13, "pid": GPU, **where})


def name_of(what, pid, tid, name):
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def trace(*events):
    """The file that we write, in small: members before and after the events."""
    return json.dumps({"schemaVersion": 1, "displayTimeUnit": "ns", "baseTimeNanoseconds": 1760000000000000000,
                       "distributedInfo": {"rank": 0, "world_size": 1}, "metadata": {"tool": "custream 0.1", "policy": {"rules": []}},
                       "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": list(events),
                       "traceName": "custream", "totals": {"recorded": 1}}).encode()


@pytest.fixture
def tp(trace_processor):
    return trace_processor


GOOD = [
    name_of("process_name", HOST, HOST, "app"), name_of("thread_name", HOST, 4250, "worker"),
    name_of("process_name", GPU, 7, "GPU 0 NVIDIA H200"), name_of("thread_name", GPU, 7, "stream 7 default (legacy)"),
    name_of("thread_name", GPU, 13, "stream 13 prio -5"),
    {"ph": "B", "cat": "user_annotation", "name": "step", "pid": HOST, "tid": 4250, "ts": 1},
    x("cuLaunchKernel", 2, 3.5, correlation=1), start(1, 2), x("k(float*)", 6, 20, 13, GPU, stream=13, correlation=1), finish(1, 6),
    x("cuMemcpyHtoDAsync_v2", 7, 1, correlation=2), start(2, 7), x("Memcpy HtoD", 8, 4, 7, GPU), finish(2, 8, tid=7),
    {"ph": "E", "pid": HOST, "tid": 4250, "ts": 30},
    {"ph": "b", "cat": "wait", "name": "wait", "id2": {"local": 1}, "pid": GPU, "tid": 13, "ts": 2},
    {"ph": "b", "cat": "wait", "name": "wait", "id2": {"local": 2}, "pid": GPU, "tid": 13, "ts": 3},
    {"ph": "e", "cat": "wait", "name": "wait", "id2": {"local": 1}, "pid": GPU, "tid": 13, "ts": 6},
    {"ph": "e", "cat": "wait", "name": "wait", "id2": {"local": 2}, "pid": GPU, "tid": 13, "ts": 9},
    {"ph": "C", "name": "stream 13 depth", "pid": GPU, "tid": 13, "ts": 2, "args": {"n": 1}},
    {"ph": "C", "name": "stream 13 depth", "pid": GPU, "tid": 13, "ts": 26, "args": {"n": 0}},
]


def check_good(tp):
    assert_clean(tp)
    rows = tp.query(SLICES)
    assert [(r["name"], r["ts"], r["dur"], r["depth"], r["tid"], r["pid"]) for r in rows] == [
        ("step", 1000, 29000, 0, 4250, HOST), ("cuLaunchKernel", 2000, 3500, 1, 4250, HOST), ("k(float*)", 6000, 20000, 0, 13, GPU),
        ("cuMemcpyHtoDAsync_v2", 7000, 1000, 1, 4250, HOST), ("Memcpy HtoD", 8000, 4000, 0, 7, GPU)]
    assert tp.query(FLOWS) == [{"start": "cuLaunchKernel", "finish": "k(float*)"}, {"start": "cuMemcpyHtoDAsync_v2", "finish": "Memcpy HtoD"}]
    threads = tp.query("SELECT t.name, t.tid, p.pid, p.name AS process FROM thread t JOIN process p USING (upid) WHERE t.name IS NOT NULL")
    assert sorted((r["name"], r["tid"], r["pid"], r["process"]) for r in threads) == [
        ("stream 13 prio -5", 13, GPU, "GPU 0 NVIDIA H200"), ("stream 7 default (legacy)", 7, GPU, "GPU 0 NVIDIA H200"),
        ("worker", 4250, HOST, "app")]
    waits = tp.query("SELECT s.ts, s.dur, p.pid FROM slice s JOIN process_track k ON k.id = s.track_id JOIN process p USING (upid) ORDER BY s.ts")
    assert waits == [{"ts": 2000, "dur": 4000, "pid": GPU}, {"ts": 3000, "dur": 6000, "pid": GPU}]
    depth = tp.query("SELECT c.ts, c.value, k.name FROM counter c JOIN counter_track k ON k.id = c.track_id ORDER BY c.ts")
    assert depth == [{"ts": 2000, "value": 1.0, "name": "stream 13 depth n"}, {"ts": 26000, "value": 0.0, "name": "stream 13 depth n"}]
    assert tp.value("SELECT count(*) FROM slice") == 7


def test_good_trace(tp, tmp_path):
    path = tmp_path / "good.json"
    path.write_bytes(trace(*GOOD))
    tp.load(path)
    check_good(tp)


def test_good_trace_in_gzip_members(tp):
    data = trace(*GOOD)
    tp.load(gzip.compress(data[:700]) + gzip.compress(data[700:-60]) + gzip.compress(data[-60:]))
    check_good(tp)


def test_loads_do_not_mix(tp):
    for _ in range(3):
        tp.load(trace(x("a", 1, 10), x("b", 2, 20)))
        assert problems(tp)
        tp.load(trace(*GOOD))
        check_good(tp)


# Events that Perfetto reports, and the statistic that does.
REPORTED = {
    "slices overlap partly": ([x("a", 1, 10), x("b", 2, 20)], "slice_drop_overlapping_complete_event"),
    "slices overlap by 1 ns": ([x("a", 1, 2.001), x("b", 3, 2)], "slice_drop_overlapping_complete_event"),
    "an E falls outside the X around its B": ([x("a", 1, 5), dict(x("b", 3, 0), ph="B"), dict(x("b", 9, 0), ph="E")], "misplaced_end_event"),
    "a flow starts outside any slice": ([start(1, 1), x("k", 2, 3, 13, GPU), finish(1, 2)], "flow_no_enclosing_slice"),
    "a flow ends outside any slice": ([x("a", 1, 5), start(1, 1), x("k", 6, 3, 13, GPU), finish(1, 4)], "flow_no_enclosing_slice"),
    "a flow starts in an async slice": ([dict(point("b", 1), id=1), start(1, 2), x("k", 6, 3, 13, GPU), finish(1, 6)], "flow_no_enclosing_slice"),
    "one flow id twice": ([x("a", 1, 5), start(1, 1), start(1, 2), x("k", 6, 3, 13, GPU), finish(1, 6)], "flow_duplicate_id"),
    "a flow id over 63 bits": ([x("a", 1, 5), start(2**63, 1), x("k", 6, 3, 13, GPU), finish(2**63, 6)], "flow_invalid_id"),
    "a negative time": ([x("a", -1, 5)], "trace_sorter_negative_timestamp_dropped"),
    "a counter that is no number": ([dict(point("C", 1), args={"n": "x"})], "json_parser_failure"),
    "an event without ph": ([{"name": "a", "pid": 1, "tid": 1, "ts": 1}], "json_tokenizer_failure"),
}


@pytest.mark.parametrize("events, statistic", REPORTED.values(), ids=REPORTED)
def test_reported(tp, events, statistic):
    tp.load(trace(*events))
    assert [p.split(" ")[0] for p in problems(tp)] == [statistic]
    with pytest.raises(AssertionError, match=statistic):
        assert_clean(tp)


# Files that Perfetto refuses as a whole. With a time of `null` it says that the file is incomplete.
REFUSED = {
    "cut inside the trailer": trace(*GOOD)[:-3],
    "cut after an event": trace(*GOOD).split(b', {"ph": "C"')[0],
    "cut inside an event": trace(*GOOD).split(b', "ts": 26')[0],
    "cut before the events": trace(*GOOD).split(b"[{")[0],
    "cut gzip": gzip.compress(trace(*GOOD))[:-20],
    "a time is null": trace(x("a", None, 1), x("b", 5, 1)),
    "a time is NaN": trace(x("a", float("nan"), 1)),
    "an unescaped quote": trace(x("a'b", 1, 2)).replace(b"'", b'"'),
    "an escaped surrogate pair beside an escaped quote": trace(x("a\U0001f600\"b", 1, 2)),
    "a byte order mark": b"\xef\xbb\xbf" + trace(*GOOD),
    "no JSON": b"hello, world",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_refused(tp, data):
    with pytest.raises(TraceError):
        tp.load(data)
    tp.load(trace(*GOOD))
    check_good(tp)


def test_wrong_query_raises(tp):
    tp.load(trace(*GOOD))
    with pytest.raises(TraceError, match="no such table"):
        tp.query("SELECT * FROM nothing_of_that_name")
    check_good(tp)


def flows(tp, *events):
    tp.load(trace(*events))
    assert_clean(tp)
    return [(r["start"], r["finish"]) for r in tp.query(FLOWS)]


def test_flows_are_lost_without_a_word(tp):
    """Tests of flows count them: one end alone, an end before its start (in time, or in the file at equal times), another category."""
    launch, kernel = x("a", 5, 10), x("k", 5, 3, 13, GPU)
    early = x("k", 1, 3, 13, GPU)
    assert flows(tp, launch, start(1, 5), kernel, finish(1, 5)) == [("a", "k")]
    assert flows(tp, launch, start(1, 5), kernel) == []
    assert flows(tp, launch, kernel, finish(1, 5)) == []
    assert flows(tp, launch, start(1, 5), early, finish(1, 1)) == []
    assert flows(tp, kernel, finish(1, 5), launch, start(1, 5)) == []
    assert flows(tp, launch, start(1, 5), kernel, dict(finish(1, 5), cat="other")) == []


def test_flows_bind_to_the_innermost_slice(tp):
    """At equal times the order in the file does not matter between slices and flows; the innermost slice that covers the time gets the flow."""
    kernel = [x("k", 9, 3, 13, GPU), finish(1, 9)]
    assert flows(tp, x("outer", 1, 20), start(1, 1), x("inner", 1, 5), *kernel) == [("inner", "k")]
    assert flows(tp, start(1, 1), x("a", 1, 5), *kernel) == [("a", "k")]
    assert flows(tp, x("a", 1, 5), start(1, 6), *kernel) == [("a", "k")]  # the very end belongs to the slice
    assert flows(tp, x("a", 1, 5), start(1, 1), x("k", 9, 3, 13, GPU), x("l", 12, 3, 13, GPU), finish(1, 12)) == [("a", "l")]
    assert flows(tp, x("a", 1, 5), start(2**63 - 1, 1), x("k", 9, 3, 13, GPU), finish(2**63 - 1, 9)) == [("a", "k")]


def test_what_is_unfinished_stays_open(tp):
    """A B or b that never ends is no error: a slice of length -1."""
    tp.load(trace(dict(x("open", 1, 0), ph="B"), x("inside", 2, 3), dict(point("b", 1), id=1, name="span")))
    assert_clean(tp)
    assert {(r["name"], r["dur"]) for r in tp.query("SELECT name, dur FROM slice")} == {("open", -1), ("inside", 3000), ("span", -1)}


def test_order_and_touching(tp):
    """Slices may come in any order, and touch; at equal start the longer one is the outer one; times keep their nanoseconds for days."""
    day = 86400e6
    tp.load(trace(x("last", 9, 1), x("short", 3, 1), x("long", 3, 4), x("before", 1, 2), x("late", day + 0.123, 0.001)))
    assert_clean(tp)
    assert [(r["name"], r["ts"], r["depth"]) for r in tp.query(SLICES)] == [
        ("before", 1000, 0), ("long", 3000, 0), ("short", 3000, 1), ("last", 9000, 0), ("late", 86400000000123, 0)]


def test_identifiers(tp):
    """tid 0 and tids over 32 bits turn into the pid; a pid of 0 is a process like any other."""
    tp.load(trace(x("zero", 1, 2, 0), x("large", 5, 1, 2**32), x("largest", 7, 1, 2**32 - 1), x("gpu", 1, 1, 7, GPU)))
    assert_clean(tp)
    assert {(r["name"], r["tid"], r["pid"]) for r in tp.query(SLICES)} == {
        ("zero", HOST, HOST), ("large", HOST, HOST), ("largest", 2**32 - 1, HOST), ("gpu", 7, GPU)}


def test_text(tp):
    """UTF-8 comes through as it is. Escapes are undone only in strings that have an escaped quote: anything else shows its backslashes."""
    def shown(text):
        data = trace(x("NAME", 1, 2)).replace(b"NAME", text)
        json.loads(data)
        tp.load(data)
        assert_clean(tp)
        return tp.value("SELECT name FROM slice")
    assert shown("µs 中文 \U0001f600".encode()) == "µs 中文 \U0001f600"
    assert shown(rb"say \"hi\" \\ \u00e9") == 'say "hi" \\ é'
    assert shown(rb"a\\b \u00e9 \n") == r"a\\b \u00e9 \n"


def test_large_trace(tp):
    """A trace larger than one request of the engine's is loaded in pieces."""
    events = [x(f"k{i % 10}", i * 2, 1.5, 100 + i % 4) for i in range(250000)]
    data = trace(*events)
    assert len(data) > 24 << 20
    tp.load(data)
    assert_clean(tp)
    assert tp.value("SELECT count(*) FROM slice") == len(events)
    assert len(tp.query("SELECT id, ts FROM slice WHERE name = 'k3'")) == len(events) // 10


def test_screenshot(tmp_path):
    """The complete UI opens a trace and shows its timeline: the picture has the size asked for, and more than one colour."""
    path, picture = tmp_path / "good.json", tmp_path / "good.png"
    path.write_bytes(trace(*GOOD))
    screenshot(path, picture, select="SELECT id FROM slice WHERE name = 'k(float*)'")
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (1600, 900)
    assert len(data) > 20000
