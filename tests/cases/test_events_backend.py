"""GPU times from events, where there is no profiler: each call's range, where and when it is, what is never done, and what is said to be missing."""
import collections

import pytest

from tests.apprun import both, calls_in, calls_of, faithful, notes_of, read
from tests.perfetto import assert_clean
from tests.trace import LOSSES, stream_of

EVENTS = {"CUSTREAM_GPU": "events"}
GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "gpu_range")


def works_of(trace):
    """Slices of GPU work, by time."""
    return sorted((e for e in trace.gpu() if e["cat"] in GPU_CATEGORIES), key=lambda e: e["ts"])


def error_of(*works):
    """What the times of these may be off together, in microseconds; one nanosecond each for rounding."""
    return sum(w["args"]["cs.error_us"] + 0.001 for w in works)


def end_of(work):
    return work["ts"] + work["dur"]


def lane_of(trace, run, key):
    """The lane of the stream whose handle the program noted."""
    (lane,) = {e["tid"] for e in trace.lives if e["args"].get("handle") == notes_of(run.stderr)[key]}
    return lane


def calls_for(work):
    """How many calls a slice stands for."""
    return work["args"].get("calls", 1)


def check_arrows(trace):
    """Each slice has its arrow, from the call whose number it has, which began no later."""
    flows = {f.id: f for f in trace.flows("ac2g")}
    for work in works_of(trace):
        host = flows[work["args"]["correlation"]].start
        assert host["args"]["correlation"] == work["args"]["correlation"] and host["ts"] <= work["ts"]
        assert host["args"]["cs.stream"] == work["args"]["stream"] == stream_of(work["tid"])
        if work["cat"] == "kernel":
            assert (host["args"]["kernel"], host["args"]["grid"], host["args"]["block"]) == (
                work["name"], work["args"]["grid"], work["args"]["block"])
    assert len(flows) == len(works_of(trace))


def enqueued(run, *names):
    """How many calls of these names the program made, siblings included."""
    return sum(n for call, n in calls_of(run.stdout).items() if any(call.startswith(name) for name in names))


def totals_of(trace):
    return trace.totals["gpu"]


# ---- Times ----

@pytest.fixture
def chain(run_app):
    return faithful(run_app, ["marks", "chain"], env=EVENTS)


def test_times_are_within_their_error(chain, trace_processor):
    """Behind a gate kernels follow each other without a gap, each 300 us long."""
    run, trace = chain
    works = works_of(trace)
    on_a = [w for w in works if stream_of(w["tid"]) == lane_of(trace, run, "a")]
    assert len(works) == 12 and len(on_a) == 8
    for work in works:
        assert work["name"] == "sleep_us_300" and work["args"]["cs.time"] == "events" and work["cat"] == "kernel"
        assert abs(work["dur"] - 300) <= 2 * error_of(work)
    for one, next_one in zip(on_a, on_a[1:]):
        assert abs(end_of(one) - next_one["ts"]) <= error_of(one, next_one)
    check_arrows(trace)
    trace_processor.load(run.trace)
    assert_clean(trace_processor)
    assert trace_processor.value("SELECT count(*) FROM slice WHERE category = 'kernel'") == 12


def test_times_fit_those_of_the_host(chain):
    """Nothing ran before the gate opened, and all had run when the context was synchronised."""
    run, trace = chain
    (marker,), (sync,) = trace.host("cuStreamQuery"), trace.host("cuCtxSynchronize")
    for work in works_of(trace):
        assert work["ts"] >= marker["ts"] - error_of(work) and end_of(work) <= end_of(sync) + error_of(work)


def test_order_is_that_of_the_dependencies(chain):
    run, trace = chain
    by_lane = collections.defaultdict(list)
    for work in works_of(trace):
        by_lane[stream_of(work["tid"])].append(work)
    last_on_a, = by_lane[lane_of(trace, run, "a")][-1:]
    (on_b,), (on_c,), (on_d,) = (by_lane[lane_of(trace, run, key)] for key in "bcd")
    (legacy,) = by_lane[7]
    for before, after in [(last_on_a, on_b), (on_c, legacy), (legacy, on_d)]:
        assert end_of(before) - error_of(before, after) <= after["ts"]


@pytest.mark.parametrize("slice_ms", [30, 150])
def test_a_gpu_that_is_shared_by_time(run_app, slice_ms):
    """The GPU is ours for 2 ms of each such while: what is known of its clock comes late and is less exact, and no work lacks its times."""
    run, trace = faithful(run_app, ["marks", "chain"], env=dict(EVENTS, CUSTREAM_FAKE_SLICE_NS=slice_ms * 1000000))
    works, (sync,) = works_of(trace), trace.host("cuCtxSynchronize")
    assert len(works) == 12 and not totals_of(trace)["lost"] and not totals_of(trace)["without_times"]
    for work in works:
        assert work["dur"] >= 300 - 2 * error_of(work) and end_of(work) <= end_of(sync) + error_of(work)
    check_arrows(trace)


def test_a_backend_of_a_profiler_gives_the_same_slices(run_app):
    """Names, lanes and shapes are those that CUPTI's records give."""
    shown = {}
    for source in ("events", "cupti"):
        _, trace = faithful(run_app, ["marks", "kinds"], env={"CUSTREAM_GPU": source, "CUSTREAM_FAKE_KERNEL_NS": 3000, "CUSTREAM_FAKE_COPY_NS": 2000})
        assert trace.metadata["gpu_time_source"] == source
        shown[source] = [(w["cat"], w["name"].split(" (")[0], w["args"].get("grid"), w["args"].get("block"), w["args"].get("bytes"), w["args"].get("value"))
                         for w in sorted(works_of(trace), key=lambda w: w["args"]["correlation"]) if w["cat"] != "gpu_graph"]
    told = [w for w in shown["events"] if w[1] != "Memcpy Unknown"]
    assert told == [w for w, e in zip(shown["cupti"], shown["events"]) if e[1] != "Memcpy Unknown"] and len(told) == len(shown["events"]) - 1


# ---- Kinds of calls ----

def test_kinds(run_app):
    run, trace = faithful(run_app, ["marks", "kinds"], env=EVENTS)
    s = lane_of(trace, run, "s")
    own, = {stream_of(tid) for (_, tid), name in trace.lanes.items() if "per-thread" in name and "sync" not in name}
    found = [(w["cat"], w["name"], stream_of(w["tid"]), w["args"].get("bytes")) for w in sorted(works_of(trace), key=lambda w: w["args"]["correlation"])]
    assert found == [
        ("kernel", "empty_kernel", s, None), ("kernel", "empty_kernel", s, None), ("kernel", "empty_kernel", own, None),
        ("kernel", "empty_kernel", own, None), ("gpu_memcpy", "Memcpy HtoD", s, 4096), ("gpu_memcpy", "Memcpy DtoH", s, 100),
        ("gpu_memcpy", "Memcpy DtoD", s, 8192), ("gpu_memcpy", "Memcpy HtoD", 7, 64), ("gpu_memcpy", "Memcpy DtoH", own, 64),
        ("gpu_memcpy", "Memcpy Unknown", s, 77), ("gpu_memset", "Memset (Unknown)", s, 64), ("gpu_memset", "Memset (Unknown)", 7, 32),
        ("gpu_graph", "graph", s, None)]
    assert [w["args"]["grid"] for w in works_of(trace) if w["cat"] == "kernel"] == [[5, 4, 3], [3, 2, 1], [1, 1, 1], [3, 2, 1]]
    check_arrows(trace)


@pytest.mark.parametrize("ms", [0, 500])
def test_a_copy_that_waits_ends_with_its_call(run_app, ms):
    """No event goes behind it: the stream is as idle as the program knows it to be, and the error says what was not seen. However long it took."""
    _, trace = faithful(run_app, ["marks", "kinds"], env={**EVENTS, "CUSTREAM_FAKE_COPY_NS": ms * 1000000})
    for work in works_of(trace):
        host = next(f.start for f in trace.flows("ac2g") if f.id == work["args"]["correlation"])
        if host["name"] in ("cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2_ptds"):
            assert abs(end_of(work) - end_of(host)) <= 0.002 and work["args"]["cs.error_us"] >= work["dur"] - 0.002


def test_a_bad_pointer_is_the_drivers_business(run_app):
    both(run_app, "badcalls", env=EVENTS)


# ---- Captures ----

def test_captures_hold_what_the_program_put_in(run_app):
    """With other threads' work coming and going, events made and asked about meanwhile."""
    run, trace = both(run_app, ["marks", "captures"], env=EVENTS)
    run.check()
    assert run.stdout.count("nodes 4 ") == 3
    works = works_of(trace)
    assert [w["cat"] for w in works if w["cat"] != "kernel"] == ["gpu_graph"] * 3
    assert not totals_of(trace)["lost"] and not totals_of(trace)["without_call"]
    inside = [(e["ts"], end_of(e), e["args"]["cs.stream"]) for e in trace.slices if e["name"] == "capture"]
    assert len(inside) == 7
    for work in works:
        host = next(f.start for f in trace.flows("ac2g") if f.id == work["args"]["correlation"])
        assert not [1 for begin, end, lane in inside if lane == stream_of(work["tid"]) and begin < host["ts"] < end]


def test_more_captures(run_app):
    """Ended well, and broken by the program."""
    _, trace = faithful(run_app, "capture", env=EVENTS)
    assert collections.Counter(w["cat"] for w in works_of(trace)) == {"gpu_graph": 11}


# ---- Contexts, streams, threads, processes ----

def test_contexts(run_app):
    run, trace = faithful(run_app, ["marks", "contexts"], env=EVENTS)
    works = works_of(trace)
    assert len(works) + totals_of(trace)["lost"] == enqueued(run, "cuLaunchKernel")
    kinds = collections.Counter(w["name"] for w in works)
    assert kinds["sleep_us_10"] == 9 and kinds["sleep_us_20"] == 16, "the work of contexts that ended when it was done has its times"
    causes = {e["args"]["cause"] for e in trace.slices if e.get("cat") == "cs_loss"}
    assert not totals_of(trace)["lost"] or causes == {"its context ended before its times were read"}
    check_arrows(trace)


def test_contexts_that_come_and_go(run_app):
    faithful(run_app, "contexts", env=EVENTS)


def test_new_contexts_while_others_end(run_app):
    """While a context is being ended nobody makes events: who is first in a new one waits for them."""
    run, trace = faithful(run_app, ["marks", "churn", 6, 20], env=EVENTS)
    causes = {e["args"]["cause"] for e in trace.slices if e.get("cat") == "cs_loss"}
    assert causes <= {"its context ended before its times were read"}
    assert sum(map(calls_for, works_of(trace))) + totals_of(trace)["lost"] == enqueued(run, "cuLaunchKernel") == 480
    check_arrows(trace)


def test_streams_destroyed_with_work_pending(run_app):
    run, trace = faithful(run_app, ["marks", "streams", 30], env=EVENTS)
    works = works_of(trace)
    assert len(works) == 60 and {w["name"] for w in works} == {"sleep_us_50"}
    assert set(collections.Counter(stream_of(w["tid"]) for w in works).values()) == {2}
    for work in works:
        assert abs(work["dur"] - 50) <= 2 * error_of(work)
    check_arrows(trace)


def test_threads(run_app):
    """On streams of their own, their default streams and a shared one: there, ranges overlap where calls did."""
    run, trace = faithful(run_app, ["marks", "threads", 6, 200], env=EVENTS)
    works = works_of(trace)
    assert sum(map(calls_for, works)) + totals_of(trace)["lost"] == enqueued(run, "cuLaunchKernel") == 3600
    names = {(w["pid"], w["args"]["stream"]) for w in works}
    assert len(names) == 13
    shared = {tid for (_, tid), name in trace.lanes.items() if "overlap" in name and "sync" not in name}
    assert len({stream_of(tid) for tid in shared}) <= 1
    check_arrows(trace)


@pytest.mark.parametrize("count", [8000, 20000])
def test_a_flood_is_shown_in_ranges(run_app, count):
    """The first events last for 8,000 calls whatever the GPU thread does; whether it makes more in time for 20,000 is the machine's business."""
    run, trace = faithful(run_app, ["marks", "flood", count], env=dict(EVENTS, CUSTREAM_COUNTERS="streams"))
    works = works_of(trace)
    ranges = [w for w in works if w["cat"] == "gpu_range"]
    lost = [(e["args"]["gpu_work"], e["args"]["cause"]) for e in trace.slices if e.get("cat") == "cs_loss"]
    assert sum(map(calls_for, works)) + totals_of(trace)["lost"] == enqueued(run, "cuLaunchKernel") == count + 10
    assert sum(n for n, _ in lost) == totals_of(trace)["lost"] and {cause for _, cause in lost} <= {"no event was free for the call"}
    assert count > 8000 or not lost
    assert ranges and all(w["name"] == f"{w['args']['calls']} calls" and 1 < w["args"]["calls"] <= 64 for w in ranges)
    assert [w["name"] for w in works[-10:]] == ["sleep_us_50"] * 10, "when there are enough events again, each call has its own"
    depths = trace.counters(f"stream {stream_of(works[0]['tid'])} depth")
    assert depths[-1][1] == {"n": 0}
    check_arrows(trace)


def test_work_under_way_at_the_end(run_app):
    _, trace = faithful(run_app, ["marks", "leave", 60], env=EVENTS)
    (work,) = works_of(trace)
    assert 60000 - 2 * error_of(work) <= work["dur"] and not totals_of(trace)["lost"]


def test_work_that_does_not_end(run_app):
    run, trace = faithful(run_app, ["marks", "leave", 100000], env=EVENTS)
    (loss,) = [e for e in trace.slices if e.get("cat") == "cs_loss"]
    assert not works_of(trace) and totals_of(trace)["lost"] == 1 and trace.totals["lost_records"] == 0
    assert loss["args"] == {"gpu_work": 1, "cause": LOSSES["unfinished"], "cs.loss": "unfinished"}


@pytest.mark.parametrize("app", ["timeline", "arrows", "callbacks", "reuse", "adopt", "race", "again", "closes", "reload", "ending", "forks", ["many", "threads", 50]])
def test_other_programs_do_what_they_do_without(run_app, app):
    both(run_app, app, env=EVENTS)


# ---- What can go wrong ----

@pytest.mark.parametrize("failing, cause", [
    ("cuEventRecord=2", "the driver took no event on the stream"),
    ("cuEventCreate=2", "there are no events for its context"),
    ("cuCtxPushCurrent_v2=201", "there are no events for its context"),
    ("cuEventElapsedTime=400", "the driver gave no time for its events"),
    ("cuEventQuery=700", "the driver gave no time for its events"),
    ("cuEventRecord:12=2", "the driver took no event on the stream"),
    ("cuEventRecord:13=2", "the driver took no event on the stream"),
])
def test_refused_by_the_driver(run_app, failing, cause):
    """The program sees nothing of it, and the file says what is missing."""
    env = EVENTS | {"CUSTREAM_FAKE_FAIL": failing}
    argv = ["marks", "streams", 3]
    bare, run = run_app(argv, shim=False, env=env).check(), run_app(argv, env=env).check()
    assert run.stdout == bare.stdout
    trace = read(run.trace)
    lost = totals_of(trace)["lost"]
    assert len(works_of(trace)) + lost == 6 and lost in (1, 6)
    if lost:
        assert {e["args"]["cause"] for e in trace.slices if e.get("cat") == "cs_loss"} == {cause}


@pytest.mark.parametrize("nth", [1, 40, 400])
def test_few_events(run_app, nth):
    """Where the driver makes no more, calls share what there is."""
    run, trace = faithful(run_app, ["marks", "flood", 3000], env=EVENTS | {"CUSTREAM_FAKE_FAIL": f"cuEventCreate:{nth}=2"})
    assert sum(map(calls_for, works_of(trace))) + totals_of(trace)["lost"] == 3010


def counts_of(path):
    return dict(line.split() for line in path.read_text().splitlines())


@pytest.mark.parametrize("source", ["off", "cupti"])
def test_no_event_without_the_backend(run_app, tmp_path, source):
    counts = {}
    for shim in (False, True):
        path = tmp_path / f"counts-{shim}"
        run_app(["marks", "kinds"], shim=shim, env={"CUSTREAM_GPU": source, "CUSTREAM_FAKE_COUNTS": path}).check()
        counts[shim] = {name: n for name, n in counts_of(path).items() if name.startswith("cuEvent") or "Capturing" in name}
    assert counts[True] == counts[False]


def test_the_second_choice_where_there_is_no_cupti(run_app):
    _, trace = faithful(run_app, ["marks", "chain"], env={"CUSTREAM_GPU": "auto", "CUSTREAM_CUPTI": "/nonexistent/libcupti.so"})
    assert trace.metadata["gpu_time_source"] == "events" and len(works_of(trace)) == 12


def test_no_event_before_there_is_work(run_app, tmp_path):
    path = tmp_path / "counts"
    run_app(["marks", "quiet"], env=EVENTS | {"CUSTREAM_FAKE_COUNTS": path}).check()
    assert not [name for name in counts_of(path) if name.startswith("cuEvent")]


def test_our_own_calls_are_not_in_the_file(run_app):
    run, trace = faithful(run_app, ["marks", "threads", 2, 50], env=EVENTS)
    assert calls_in(trace) == calls_of(run.stdout) and "custream-gpu" not in trace.threads.values()
