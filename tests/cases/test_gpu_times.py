"""GPU times from CUPTI: each piece of work is on its stream's lane, once and in order, with the arrow from the call that enqueued it."""
import bisect
import collections
import re

import pytest

from tests.apprun import both, calls_of, faithful, notes_of, read
from tests.gputrace import CUPTI, captured, check_depth, check_works, contexts, end_of, ids_noted, lane_of, works
from tests.perfetto import assert_clean
from tests.trace import SYNC, kind_of, level_of, stream_of, tid_of

DEPTHS = {"CUSTREAM_COUNTERS": "streams"}
SHORT = dict(CUPTI, CUSTREAM_FAKE_KERNEL_NS=3000, CUSTREAM_FAKE_COPY_NS=2000)


def cats(found):
    return collections.Counter(w["cat"] for w in found)


# ---- The start ----

@pytest.mark.parametrize("cupti", ["libslow_cupti.so", "none"])
def test_threads_that_meet_the_driver_together(run_app, build, cupti):
    """All of them wait until there are GPU times, not the first alone: whatever thread made a launch, it has its kernel."""
    run, trace = faithful(run_app, "first_calls", env=dict(SHORT, CUSTREAM_CUPTI=build / "tests" / cupti) if cupti != "none" else {"CUSTREAM_GPU": "events"})
    assert cats(works(trace))["kernel"] == calls_of(run.stdout)["cuLaunchKernel"] == 4 * 5


@pytest.mark.parametrize("how", ["together", "in-turn"])
def test_threads_that_have_stopped_waiting(run_app, build, how):
    """None waits longer than the first, however late it comes. What they enqueue has no times, and one slice says from when on, and why."""
    env = dict(SHORT, CUSTREAM_CUPTI=build / "tests" / "libslow_cupti.so", SLOW_CUPTI_MS=0, SLOW_CUPTI_START_MS=8000)
    run, trace = faithful(run_app, ["first_calls", how], env=env)
    (lost,) = [e for e in trace.events if e.get("cat") == "cs_loss"]
    assert (lost["name"], lost["args"]["cause"]) == ("no GPU times", "GPU times were not ready")
    launches = [e["ts"] for e in trace.events if e.get("name") == "cuLaunchKernel"]
    assert 1_500_000 < lost["ts"] <= min(launches) and max(launches) < end_of(lost)
    assert not works(trace) and len(launches) == calls_of(run.stdout)["cuLaunchKernel"] == 4 * 5


@pytest.mark.parametrize("threads, stack", [(600, 8), (100, 64)])
def test_a_crowd_of_threads(run_app, threads, stack):
    """CUPTI takes a buffer for each thread, and names a thread by half of its pthread_self(), which threads with 4 GiB between them share."""
    run = run_app(["crowd", threads, 20, stack], env=SHORT).check()
    trace = read(run.trace)
    assert run.stdout == "all right\n" and trace.totals["gpu"]["lost"] == trace.totals["gpu"]["launches_without_kernel"] == 0
    launches = {e["args"]["correlation"]: e["args"]["cs.stream"] for e in trace.host("cuLaunchKernel")}
    kernels = {e["args"]["correlation"]: stream_of(e["tid"]) for e in works(trace, "kernel")}
    assert len(launches) == len(works(trace, "kernel")) == threads * 20 and kernels == launches


def test_a_flush_while_threads_wait(run_app, build):
    """It waits as well, and lets nobody go on before there are GPU times."""
    run, trace = faithful(run_app, ["first_calls", "flushing"], env=dict(SHORT, CUSTREAM_CUPTI=build / "tests" / "libslow_cupti.so", SLOW_CUPTI_MS=0, SLOW_CUPTI_START_MS=600))
    assert cats(works(trace))["kernel"] == calls_of(run.stdout)["cuLaunchKernel"] == 4 * 5


# ---- Work and its lanes ----

def test_streams(run_app, trace_processor):
    """Created, legacy and per-thread streams, by several threads."""
    run, trace = faithful(run_app, ["works", "streams"], env=SHORT)
    found = check_works(trace, run)
    assert cats(found) == {"kernel": 3 + 3 * 20, "gpu_memcpy": 5, "gpu_memset": 3}
    by_lane = collections.Counter((stream_of(w["tid"]), w["cat"]) for w in found)
    plain, urgent, legacy, main = (ids_noted(run, key)[0] for key in ("plain", "urgent", "legacy", "main"))
    assert (plain, urgent) == (lane_of(trace, run, "plain"), lane_of(trace, run, "urgent")) and legacy == 7
    assert by_lane == collections.Counter({
        (plain, "kernel"): 1 + 15, (plain, "gpu_memcpy"): 2, (plain, "gpu_memset"): 1, (urgent, "kernel"): 1, (urgent, "gpu_memcpy"): 1,
        (urgent, "gpu_memset"): 1, (7, "kernel"): 1 + 15, (7, "gpu_memcpy"): 1, (7, "gpu_memset"): 1, (main, "gpu_memcpy"): 1,
        **{(lane, "kernel"): 10 for lane in ids_noted(run, "worker")}})
    assert {w["args"].get("priority") for w in found if stream_of(w["tid"]) == urgent} == {-3}
    assert {w["args"].get("priority") for w in found if stream_of(w["tid"]) != urgent} == {None}, "only a priority that is not 0 is said"
    assert set(contexts(trace).values()) == {1} and sum("context" in w["args"] for w in found) == len({w["tid"] for w in found}), "once on each lane"
    for lane in ids_noted(run, "worker"):
        assert trace.streams[0, lane] == f"stream {lane} per-thread default · worker"
    assert trace.metadata["gpu_time_source"] == "cupti"
    check_depth(trace)
    trace_processor.load(run.trace)
    assert_clean(trace_processor)


def test_names_and_arguments(run_app):
    run, trace = faithful(run_app, ["works", "streams"], env=SHORT)
    plain = [w for w in works(trace) if stream_of(w["tid"]) == lane_of(trace, run, "plain")][:5]
    assert [w["name"] for w in plain] == ["empty_kernel", "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)", "Memset (Device)", "empty_kernel"]
    assert [w["args"].get("bytes") for w in plain] == [None, 4096, 77, 64, None]
    kernel, copy, _, memset, _ = (w["args"] for w in plain)
    assert (kernel["grid"], kernel["block"], kernel["shared memory"], kernel["registers per thread"]) == ([2, 3, 4], [32, 2, 1], 256, 16)
    assert copy["memory bandwidth (GB/s)"] == pytest.approx(4096 / (plain[1]["dur"] * 1000), abs=0.002)
    assert memset["value"] == 9
    assert "cs.raw_start_ns" not in kernel


def test_threads_with_the_same_pthread_id(run_app):
    """CUPTI names a thread by its pthread_self(), which the next thread gets again: its calls are told apart by time."""
    run, trace = faithful(run_app, ["works", "threads", 40], env=SHORT)
    assert int(notes_of(run.stderr)["same"]) > 10, "the C library gives every thread a new id: nothing is tested"
    found = check_works(trace, run)
    assert len(found) == 80
    callers = collections.Counter(f.start["tid"] for f in trace.flows("ac2g"))
    assert len(callers) == 40 and set(callers.values()) == {2}
    own = {stream_of(w["tid"]) for w in found} - {lane_of(trace, run, "common")}
    assert len(own) == 40, "each thread's per-thread stream is a lane of its own"


def test_contexts(run_app):
    run, trace = faithful(run_app, ["works", "contexts"], env=SHORT)
    found = check_works(trace, run)
    context = contexts(trace)
    assert collections.Counter((context[w["args"]["correlation"]], stream_of(w["tid"])) for w in found if stream_of(w["tid"]) in ids_noted(run, "s0") + ids_noted(run, "s1")) == {
        (1, ids_noted(run, "s0")[0]): 3, (2, ids_noted(run, "s1")[0]): 3}
    assert [lane_of(trace, run, key) for key in ("s0", "s1")] == [ids_noted(run, key)[0] for key in ("s0", "s1")]
    legacy = {context[w["args"]["correlation"]]: stream_of(w["tid"]) for w in found if "legacy default" in trace.lanes[0, w["tid"]]}
    assert legacy == {1: 10007, 2: 7} or legacy == {1: 7, 2: 10007}, "CUPTI's number of both is 7: the second has a lane of its own"
    assert sum(stream_of(w["tid"]) in legacy.values() for w in found) == 5


def test_peer_copies_on_both_sides(run_app, trace_processor):
    run, trace = faithful(run_app, ["works", "peers"], env=dict(SHORT, CUSTREAM_FAKE_DEVICES=2))
    found = check_works(trace, run)
    assert collections.Counter((w["pid"], w["cat"]) for w in found) == {
        (0, "gpu_memset"): 1, (1, "gpu_memset"): 1, (0, "gpu_memcpy"): 2, (1, "gpu_memcpy"): 3}
    copies = [w for w in found if w["cat"] == "gpu_memcpy"]
    assert sorted((w["pid"], w["args"]["fromDevice"], w["args"]["toDevice"], w["args"]["bytes"]) for w in copies) == [
        (0, 0, 1, 6000), (0, 1, 0, 7000)] + [(1, 1, 0, 5000)] * 3
    sides = [e for e in trace.gpu() if e["cat"] == "cs_peer"]
    assert len(sides) == len(copies)
    by_number = {w["args"]["correlation"]: w for w in copies}
    for side in sides:
        work = by_number[side["args"]["correlation"]]
        assert side["pid"] == 1 - work["pid"] and (side["name"], side["ts"], side["dur"]) == (work["name"], work["ts"], work["dur"])
        assert side["args"]["copied by device"] == work["pid"] and side["args"]["copied by stream"] == work["args"]["stream"]
        assert all(side["args"][key] == work["args"][key] for key in ("fromDevice", "toDevice", "bytes"))
        assert "stream" not in side["args"], "nobody may count the copy twice"
        assert trace.lanes[side["pid"], side["tid"]].startswith("peer copies")
    trace_processor.load(run.trace)
    assert_clean(trace_processor)


def test_green_contexts(run_app):
    run, trace = faithful(run_app, ["works", "green"], env=SHORT)
    found = check_works(trace, run)
    direct, normal = lane_of(trace, run, "direct"), lane_of(trace, run, "normal")
    assert collections.Counter(stream_of(w["tid"]) for w in found) == {direct: 2, normal: 3}
    lives = {e["tid"]: e["args"] for e in trace.lives if e["cat"] == "cs_stream"}
    assert lives[direct]["green context"] == notes_of(run.stderr)["green"] and "green context" not in lives[normal]
    assert " green " in trace.streams[0, direct] and " green " not in trace.streams[0, normal]


def test_streams_destroyed_with_work_pending(run_app, trace_processor):
    """A life ends after the work; a handle that comes back is another lane."""
    run, trace = faithful(run_app, ["works", "ends"], env=SHORT)
    found = check_works(trace, run)
    assert int(notes_of(run.stderr)["reused"]) == 5
    lives = {e["tid"]: e for e in trace.lives if e["cat"] == "cs_stream" and e["args"].get("destroyed")}
    by_lane = collections.Counter(stream_of(w["tid"]) for w in found if w["name"].startswith("sleep"))
    assert len(by_lane) == 7 and set(by_lane.values()) == {3}
    for work in found:
        if stream_of(work["tid"]) in by_lane:
            life = lives[stream_of(work["tid"])]
            assert life["ts"] <= work["ts"] and end_of(work) <= end_of(life)
    destroyed = trace.host("cuStreamDestroy_v2")
    assert end_of(lives[sorted(by_lane)[0]]) > destroyed[0]["ts"]
    check_depth(trace)
    trace_processor.load(run.trace)
    assert_clean(trace_processor)


# ---- Waits ----

def rows(trace):
    """The rows of waits: name, the stream that they are beside, duration."""
    return sorted((e for e in trace.gpu() if e["cat"] == "cuda_sync"), key=lambda e: e["ts"])


def released(trace):
    """Arrows from work to the waits that it released, as pairs of slices: each leads to a wake-up, from the work's end to 1 ns before the wait's."""
    found = []
    for work, wake in ((f.start, f.finish) for f in trace.flows("cs_dep") if f.start["pid"] in trace.gpus):
        assert (wake["name"], wake["cat"]) == ("wake-up", "cs_dep") and end_of(work) - 0.001 <= wake["ts"] <= end_of(work)
        (wait,) = [e for e in trace.host(cat="cuda_driver") if e["tid"] == wake["tid"] and e["ts"] < wake["ts"] and end_of(e) == round(end_of(wake) + 0.001, 3)]
        found.append((work, wait))
    return found


def test_rows_of_waits(run_app):
    run, trace = faithful(run_app, ["works", "waits"], env=CUPTI)
    a, b = lane_of(trace, run, "a"), lane_of(trace, run, "b")
    of = collections.defaultdict(list)
    for row in rows(trace):
        of[row["name"]].append(row)
        assert kind_of(row["tid"]) == SYNC and row["args"]["device"] == row["pid"] and "stream" not in row["args"]
        assert stream_of(row["tid"]) == row["args"].get("cs.stream", 0)
    assert {name: len(found) for name, found in of.items()} == {"Stream Sync": 2, "Event Sync": 2, "Context Sync": 2, "Stream Wait Event": 1}
    assert {r["args"]["cs.stream"] for r in of["Stream Sync"] + of["Event Sync"]} == {a}
    assert (of["Stream Wait Event"][0]["args"]["cs.stream"], of["Stream Wait Event"][0]["args"]["recorded on"]) == (b, a)
    assert {trace.lanes[0, r["tid"]] for r in of["Context Sync"]} == {"all streams (sync)"}
    for name, call in [("Stream Sync", "cuStreamSynchronize"), ("Event Sync", "cuEventSynchronize"), ("Context Sync", "cuCtxSynchronize"),
                       ("Stream Wait Event", "cuStreamWaitEvent")]:
        assert [(r["ts"], r["dur"]) for r in of[name]] == [(e["ts"], e["dur"]) for e in trace.host(call)]


def test_what_released_a_wait(run_app):
    """The last work enqueued before it, or before the event was recorded; nothing where that had ended already."""
    run, trace = faithful(run_app, ["works", "waits"], env=CUPTI)
    check_works(trace, run)
    pairs = released(trace)
    assert [(w["args"]["grid"][0], wait["name"]) for w, wait in sorted(pairs, key=lambda p: p[1]["ts"])] == [
        (21, "cuStreamSynchronize"), (22, "cuEventSynchronize"), (23, "cuCtxSynchronize")]
    for work, wait in pairs:
        assert wait["ts"] < end_of(work) <= end_of(wait)


def test_what_another_thread_enqueues_meanwhile_does_not_release_a_wait(run_app):
    """It stands behind the wait."""
    run, trace = faithful(run_app, ["works", "meanwhile"], env=CUPTI)
    check_works(trace, run)
    first = min(trace.host("cuStreamSynchronize"), key=lambda e: e["ts"])
    assert [work["args"]["grid"][0] for work, wait in released(trace) if wait == first] == [31]


@pytest.mark.parametrize("what", ["waits", "depth"])
def test_work_that_ends_after_a_wait_has_not_released_it(run_app, what):
    """Where threads wake up in time, the works of this run end behind their waits, by less than a millisecond."""
    run, trace = both(run_app, ["works", what], env=dict(CUPTI, CUSTREAM_FAKE_CUPTI_LATE=900000))
    run.check()
    assert all(wait["ts"] < end_of(work) <= end_of(wait) for work, wait in released(trace))


# ---- Counters ----

def counters(trace, name):
    """The last value at each time."""
    return {ts: n for ts, args in trace.counters(name) for n in args.values()}


def test_depth_is_what_waits_on_the_stream(run_app):
    run, trace = faithful(run_app, ["works", "depth"], env=CUPTI | DEPTHS)
    found = check_works(trace, run)
    check_depth(trace)
    highest = {}
    for key in "ab":
        lane = lane_of(trace, run, key)
        begins = [e["ts"] for e in trace.host("cuLaunchKernel") if e["args"]["cs.stream"] == lane]
        ends = [end_of(w) for w in found if stream_of(w["tid"]) == lane]
        shown = counters(trace, f"stream {lane} depth")
        assert shown == {ts: sum(b <= ts for b in begins) - sum(e <= ts for e in ends) for ts in shown}
        for end in ends:  # 3 ms apart: each step is there
            assert end in shown, (end, shown)
        highest[key] = max(shown.values())
    assert highest == {"a": 8, "b": 3}


def most(found, ts, of=lambda work: 1):
    """The most that is under way at one time in the 200 us from then on."""
    near = [w for w in found if w["ts"] < ts + 200 and end_of(w) > ts]
    return max(sum(of(w) for w in near if w["ts"] <= at < end_of(w)) for at in [ts, *(w["ts"] for w in near if w["ts"] >= ts)])


def assert_most(shown, expected):
    """Each stretch of 200 us has one value; what is not written is as before."""
    steps = sorted(shown)
    assert all(round(ts * 1000) % 200000 == 0 for ts in steps) and shown[steps[-1]] == 0
    assert all(shown[one] != shown[other] for one, other in zip(steps, steps[1:]))
    assert shown == {ts: expected(ts) for ts in steps}
    assert all(expected(round(ts + 200, 3)) == shown[ts] for ts, after in zip(steps, steps[1:]) if after - ts > 200.5)


def test_kernels_at_once(run_app):
    run, trace = faithful(run_app, ["works", "depth"], env=CUPTI)
    found = works(trace, "kernel")
    shown = counters(trace, "kernels")
    assert max(shown.values()) == 2 and len(shown) >= 3
    assert_most(shown, lambda ts: most(found, ts))


def share(found, ts):
    """Percent of the 200 us from then on in which something was under way."""
    begin, busy, reached = round(ts * 1000), 0, 0
    for from_ns, to_ns in sorted((round(w["ts"] * 1000), round(end_of(w) * 1000)) for w in found):
        from_ns, to_ns = max(from_ns, begin, reached), min(to_ns, begin + 200000)
        busy, reached = busy + max(0, to_ns - from_ns), max(reached, to_ns)
    return (busy * 100 + 100000) // 200000


@pytest.mark.parametrize("argv", [["depth"], ["waits"], ["many", 3000]], ids=lambda argv: argv[0])
def test_share_of_time_at_work(run_app, argv):
    """Each stretch of 200 us has the share in which the GPU was at work; what is not written is as before."""
    _, trace = faithful(run_app, ["works", *argv], env=SHORT)
    found, shown = works(trace), counters(trace, "busy")
    steps = sorted(shown)
    assert steps and all(round(ts * 1000) % 200000 == 0 for ts in steps) and shown[steps[-1]] == 0
    assert shown == {ts: share(found, ts) for ts in steps}
    assert all(one != other for one, other in zip([0, *(shown[ts] for ts in steps)], [shown[ts] for ts in steps]))
    between = [round(ts + 200, 3) for ts, after in zip(steps, steps[1:]) if after - ts > 200]
    assert all(share(found, ts) == shown[round(ts - 200, 3)] for ts in between)


def test_bytes_in_flight(run_app):
    """By direction, and back to 0: the most that the copies on the GPU add up to in each stretch of 200 us."""
    trace = run_app("demo", env=dict(CUPTI, CUSTREAM_FAKE_COPY_NS=300000)).check().load()
    copies = works(trace, "gpu_memcpy")
    shown = [(e["ts"], way, n) for e in trace.events if e["ph"] == "C" and e["name"] == "bytes in flight" for way, n in e["args"].items()]
    assert {way for _, way, _ in shown} == {"HtoD", "DtoH"} and max(n for _, _, n in shown) >= 1 << 20
    for way in ("HtoD", "DtoH"):
        of_way = [w for w in copies if f" {way} " in w["name"]]
        assert_most({ts: n for ts, its, n in shown if its == way}, lambda ts, of_way=of_way: most(of_way, ts, lambda work: work["args"]["bytes"]))


@pytest.mark.parametrize("wanted, names", [("gpu", {"busy", "kernels"}), ("off", set()), ("streams", {"busy", "kernels", "stream depth"})])
def test_counters_on_request(run_app, wanted, names):
    _, trace = faithful(run_app, ["works", "depth"], env=dict(SHORT, CUSTREAM_COUNTERS=wanted))
    assert {re.sub(r"^stream \d+", "stream", e["name"]) for e in trace.events if e["ph"] == "C"} == names


def test_what_work_waited_for(run_app):
    """After its launch: an event of another stream, the default stream."""
    _, trace = faithful(run_app, ["audit_streams", "times"], env=CUPTI)
    of = {w["name"]: w for w in works(trace, "kernel") if w["name"].startswith("kernel_")}
    for name in of:
        call = next(e for e in trace.host() if e["args"].get("correlation") == of[name]["args"]["correlation"])
        assert of[name]["args"]["waited_us"] == round(of[name]["ts"] - end_of(call), 3) > 0
    blocking = sorted(e["args"]["cs.stream"] for e in trace.lives if e["args"].get("flags") == "blocking")
    told = {name: (w["args"]["waited for"], w["args"].get("waited for stream")) for name, w in of.items()}
    assert told == {"kernel_a": ("default stream", blocking[0]), "kernel_b": ("default stream", blocking[0]), "kernel_c": ("default stream", blocking[1])}
    by_number = {w["args"]["correlation"]: w for w in works(trace)}
    for name, w in of.items():  # and whose work that was
        awaited = [by_number[number] for number in w["args"]["event_wait_ids"]]
        last = max(awaited, key=end_of)
        assert last["args"]["stream"] == told[name][1] and end_of(last) <= w["ts"] and w not in awaited, (name, awaited)
    trace = run_app("demo", env=dict(CUPTI, CUSTREAM_FAKE_COPY_NS=300000)).check().load()
    told = {(w["args"].get("waited for"), w["args"].get("waited for stream")) for w in works(trace)}
    into = {w["args"]["stream"] for w in works(trace, "gpu_memcpy") if "HtoD" in w["name"]}
    assert (None, None) in told and ("event", into.pop()) in told, told


def test_what_is_not_said_of_a_wait_can_be_seen(run_app):
    """The work began soon after its call, or behind the work before it on its stream, and both do happen."""
    trace = run_app("demo", env=dict(CUPTI, CUSTREAM_FAKE_COPY_NS=300000)).check().load()
    calls = {e["args"]["correlation"]: e for e in trace.host(cat="cuda_driver") if "correlation" in e["args"]}
    ends, seen = collections.defaultdict(float), collections.Counter()
    for work in sorted(works(trace), key=lambda w: w["ts"]):
        called, before = end_of(calls[work["args"]["correlation"]]), ends[work["tid"]]
        ends[work["tid"]] = end_of(work)
        if "waited for" in work["args"] or work["ts"] <= called:
            continue
        after = work["ts"] - max(called, before)
        assert after <= max(50, (work["ts"] - called) / 2), work
        seen[before > called] += 1
    assert seen[True] and sum(seen.values()) > 5, seen


def test_streams_at_work_beside_a_long_kernel(run_app):
    """Of which nothing is known until it ends, while so many others come and go that there is no room for them all."""
    _, trace = faithful(run_app, ["works", "beside", 50000], env=dict(SHORT, CUSTREAM_BUFFER="64M"))
    (long,) = [w for w in works(trace) if w["dur"] > 1e6]
    shown = {ts: n for ts, n in counters(trace, "kernels").items() if long["ts"] - 200 < ts < end_of(long)}
    assert min(shown.values()) >= 1 and max(shown.values()) == 2
    others = sorted((w for w in works(trace) if w is not long), key=lambda w: w["ts"])
    begins = [w["ts"] for w in others]
    for ts, n in shown.items():
        i = bisect.bisect(begins, ts)
        beside = most(others[max(0, i - 50):i + 400], ts)
        assert 1 <= n <= 1 + beside, ts
        if long["ts"] <= ts and ts + 200 <= end_of(long):
            assert n == 1 + beside, ts


@pytest.mark.parametrize("argv", [["graphs"], ["waits"], ["contexts"], ["ends"], ["threads", 20], ["many", 20000]], ids=lambda argv: argv[0])
def test_counters_end_at_zero(run_app, argv):
    _, trace = faithful(run_app, ["works", *argv], env=SHORT | DEPTHS)
    last = check_depth(trace)
    assert last and last[0, "kernels at once"]


# ---- What CUPTI reports oddly ----

def perfetto_has_all(trace_processor, trace):
    """Slices, arrows and counters are those of the file, and nothing is dropped."""
    trace_processor.load(trace.path)
    assert_clean(trace_processor)
    shown = trace_processor.query("SELECT s.name, s.ts, s.dur, t.tid, p.pid FROM slice s JOIN thread_track k ON k.id = s.track_id "
                                  "JOIN thread t USING (utid) JOIN process p USING (upid)")
    expected = collections.Counter((e["pid"], e["tid"], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000)) for e in trace.slices)
    found = collections.Counter((r["pid"], r["tid"], r["name"], r["ts"], r["dur"]) for r in shown)
    assert not expected - found and len(shown) == len(trace.slices) + len(trace.instants)
    assert trace_processor.value("SELECT count(*) FROM flow") == len(trace.flows())
    assert trace_processor.value("SELECT count(*) FROM counter") == len([e for e in trace.events if e["ph"] == "C"])


ODD = {"overlap": {"CUSTREAM_FAKE_CUPTI_OVERLAP": 1}, "early": {"CUSTREAM_FAKE_CUPTI_EARLY": 3000000}, "shuffle": {"CUSTREAM_FAKE_CUPTI_SHUFFLE": 1},
       "lose": {"CUSTREAM_FAKE_CUPTI_LOSE": 7}, "zero": {"CUSTREAM_FAKE_CUPTI_ZERO": 3}, "nodes": {"CUSTREAM_GRAPH": "node"}}
ODD["all"] = {k: v for env in ODD.values() for k, v in env.items()}


@pytest.mark.parametrize("mode", ["streams", "ends", "graphs", "depth", "waits"])
@pytest.mark.parametrize("odd", ODD)
def test_perfetto_has_all_of_it(run_app, trace_processor, odd, mode):
    _, trace = both(run_app, ["works", mode], env=dict(SHORT, **ODD[odd]))
    assert works(trace)
    perfetto_has_all(trace_processor, trace)


def test_overlap(run_app):
    """Kernels that overlap on a stream: each is whole, the later one on an extra lane of the stream."""
    run, trace = faithful(run_app, ["works", "depth"], env=dict(CUPTI, CUSTREAM_FAKE_CUPTI_OVERLAP=1))
    found = check_works(trace, run)
    a = lane_of(trace, run, "a")
    lanes = collections.Counter(w["tid"] for w in found if w["args"]["stream"] == a)
    assert set(lanes) == {tid_of(a), tid_of(a, level=1)} and trace.lanes[0, tid_of(a, level=1)] == f"stream {a} (overlap 1)"
    assert all(abs(w["dur"] - (3000 if w["tid"] == tid_of(a) else 4500)) < 100 for w in found if w["args"]["stream"] == a) or lanes[tid_of(a)] > 1
    for lane in lanes:
        on_lane = [w for w in found if w["tid"] == lane]
        assert all(end_of(one) <= other["ts"] for one, other in zip(on_lane, on_lane[1:]))
    overlapping = sum(one["ts"] < end_of(other) and other["ts"] < end_of(one) for one in found for other in found if one is not other
                      and one["args"]["stream"] == other["args"]["stream"] == a)
    assert overlapping >= 7


def test_starts_before_their_calls(run_app):
    """Two clocks: work never begins before its call, nor with it, and the time as CUPTI has it is kept. Work that a busy machine holds up for longer than the clocks differ needs neither."""
    run, trace = faithful(run_app, ["works", "streams"], env=dict(SHORT, CUSTREAM_FAKE_CUPTI_EARLY=1000000))
    found = check_works(trace, run)
    host = {e["args"]["correlation"]: e for e in trace.host(cat="cuda_driver") if "correlation" in e["args"]}
    clamped = [w for w in found if w["ts"] == round(host[w["args"]["correlation"]]["ts"] + 0.001, 3)]
    early = [w for w in found if "cs.raw_start_ns" in w["args"]]
    assert clamped and all(w in early for w in clamped) and all(w["args"]["cs.raw_start_ns"] < round(w["ts"] * 1000) for w in early)


def test_records_out_of_order(run_app):
    run, trace = faithful(run_app, ["works", "streams"], env=dict(SHORT, CUSTREAM_FAKE_CUPTI_SHUFFLE=1))
    found = check_works(trace, run)
    assert {level_of(w["tid"]) for w in found} == {0}, "nothing overlaps: nothing may stand on an extra lane"
    check_depth(trace)


# ---- Graphs ----

def test_graphs_are_whole(run_app):
    run, trace = faithful(run_app, ["works", "graphs"], env=SHORT)
    found = check_works(trace, run)
    a, b, c = (lane_of(trace, run, key) for key in "abc")
    assert collections.Counter((stream_of(w["tid"]), w["cat"]) for w in found) == {(a, "kernel"): 2, (b, "kernel"): 1, (c, "gpu_graph"): 4, (a, "gpu_graph"): 3}
    names = {stream_of(w["tid"]): w["name"] for w in found if w["cat"] == "gpu_graph"}
    assert len(set(names.values())) == 2 and all(name == f"graph {w['args']['graph']}" for w in found for name in [w["name"]] if w["cat"] == "gpu_graph")


def test_nodes_of_graphs(run_app, trace_processor):
    """Each node with its graph and number, all with an arrow from the launch."""
    run, trace = faithful(run_app, ["works", "graphs"], env=dict(SHORT, CUSTREAM_GRAPH="node"))
    found = check_works(trace, run, whole_graphs=False)
    nodes = [w for w in found if "graph node" in w["args"]]
    of_launch = collections.defaultdict(list)
    for node in nodes:
        of_launch[node["args"]["correlation"]].append(node)
    shapes = sorted(tuple((n["cat"], n["args"].get("grid", [0])[0]) for n in sorted(launch, key=lambda n: n["args"]["graph node"])) for launch in of_launch.values())
    assert shapes == [(("kernel", 9), ("gpu_memset", 0))] * 3 + [(("kernel", 11), ("kernel", 12), ("gpu_memset", 0), ("kernel", 13))] * 4
    assert len({n["args"]["graph"] for n in nodes}) == 2 and not [w for w in found if w["cat"] == "gpu_graph"]
    for launch in of_launch.values():
        numbers = [n["args"]["graph node"] for n in launch]
        assert len(numbers) == len(set(numbers))
    perfetto_has_all(trace_processor, trace)


@pytest.mark.parametrize("graph", ["graph", "node"])
def test_captured_calls_wait_for_nothing(run_app, graph):
    """On the stream of the capture and on one that joined it: the depth counts the calls that make work, at every point written."""
    run, trace = faithful(run_app, ["works", "graphs"], env=dict(CUPTI | DEPTHS, CUSTREAM_GRAPH=graph, CUSTREAM_FAKE_KERNEL_NS=300000, CUSTREAM_FAKE_COPY_NS=300000))
    found, in_graph = works(trace), captured(trace)
    for key in "abc":
        lane = lane_of(trace, run, key)
        calls = {e["args"]["correlation"]: e["ts"] for e in trace.host(cat="cuda_driver") if e["args"].get("cs.stream") == lane
                 and "correlation" in e["args"] and not in_graph(e)}
        first_end = {}
        for work in sorted(found, key=end_of):
            first_end.setdefault(work["args"]["correlation"], end_of(work))
        shown = counters(trace, f"stream {lane} depth")
        assert shown and shown == {ts: sum(b <= ts for b in calls.values()) - sum(first_end[n] <= ts for n in calls) for ts in shown}, key


def test_nodes_stand_where_they_were_captured(run_app, trace_processor):
    """By every executable of the graph at every launch, whichever thread captured them; the stream that CUPTI names is told."""
    run, trace = faithful(run_app, ["works", "captures"], env=dict(SHORT, CUSTREAM_GRAPH="node"))
    found = check_works(trace, run, whole_graphs=False)
    a, b, c = (lane_of(trace, run, key) for key in "abc")
    kernels, sets = collections.Counter(), collections.Counter()
    for work in found:
        if "graph" in work["args"]:
            assert work["args"].get("cs.ran_on", work["args"]["stream"]) == c, "the simulated CUPTI names the stream of the launch"
            (kernels if work["cat"] == "kernel" else sets)[(work["args"].get("grid") or [work["args"].get("bytes")])[0], work["args"]["stream"]] += 1
    captured_once = {(10, a): 4, (11, b): 4, (12, a): 4, (20, b): 2, (21, a): 2, (22, b): 2}
    as_cupti_says = {(40, c): 1, **{(n, c): 1 for n in (30, 31, 32, 50, 51, 52, 60, 61)}}  # by hand; more in it than was captured, later and before; updated
    assert kernels == {**captured_once, **as_cupti_says}
    assert sets == {(11, b): 4, (21, a): 2, (99, c): 2, (31, c): 1, (51, c): 1}
    perfetto_has_all(trace_processor, trace)


def test_captured_lanes_with_records_out_of_order(run_app):
    run, trace = both(run_app, ["works", "captures"], env=dict(SHORT, CUSTREAM_GRAPH="node", CUSTREAM_FAKE_CUPTI_SHUFFLE=1))
    a, b = (lane_of(trace, run, key) for key in "ab")
    of_grid = {10: a, 11: b, 12: a, 20: b, 21: a, 22: b}
    moved = [w for w in works(trace, "kernel") if "cs.ran_on" in w["args"]]
    assert moved and all(w["args"]["stream"] == of_grid[w["args"]["grid"][0]] for w in moved)
