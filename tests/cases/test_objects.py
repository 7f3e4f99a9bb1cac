"""Stream and event objects: what the handles mean in each context and thread, how long objects live, and what happens when there are very many."""
import collections

import pytest

from tests.apprun import both, calls_in, calls_of, faithful, notes_of, said
from tests.gputrace import works
from tests.trace import check_file


def lives(trace):
    """The life of every stream: the B and E of its lane."""
    return [e for e in trace.lives if e["cat"] == "cs_stream"]


def ordered(trace, *names):
    """Host slices of these names in order of time."""
    return sorted((e for e in trace.host() if e["name"] in names), key=lambda e: e["ts"])


# ---- Default streams ----

def test_default_handles(run_app):
    """0, 1 and 2, legacy and per-thread entry points: one legacy lane a context, one lane a context and thread for their own default streams."""
    run, trace = faithful(run_app, "handles")
    meant = [line.split()[1:] for line in run.stdout.splitlines() if line.startswith("set ")]
    sets = ordered(trace, "cuMemsetD8Async", "cuMemsetD8Async_ptsz", "cuMemsetD8_v2", "cuMemsetD8_v2_ptds")
    assert [int(e["args"]["value"], 16) for e in sets] == [int(number) for number, *_ in meant] and len(sets) == 39
    lane_of = collections.defaultdict(set)
    wrong = [number for (number, *_), e in zip(meant, sets) if "cs.stream" not in e["args"]]
    assert not wrong, f"sets {wrong} are on no stream"
    for (_, kind, context, thread), e in zip(meant, sets):
        lane_of[(kind, context) if kind == "legacy" else (kind, context, thread)].add(e["args"]["cs.stream"])
    assert set(lane_of) == {
        ("legacy", "A"), ("legacy", "B"), ("own", "A", "main"), ("own", "B", "main"), ("own", "A", "second"), ("own", "B", "second")}
    assert all(len(lanes) == 1 for lanes in lane_of.values()), dict(lane_of)
    assert len(set.union(*lane_of.values())) == 6
    names = {key: trace.streams[0, min(lanes)] for key, lanes in lane_of.items()}
    assert names["legacy", "A"] == "stream 7 legacy default"
    assert names["legacy", "B"].endswith(" legacy default") and names["legacy", "B"] != names["legacy", "A"]
    assert names["own", "A", "main"].endswith(" per-thread default · handles")
    assert names["own", "B", "second"].endswith(" per-thread default · second")


# ---- Lives ----

def test_handle_given_out_again_is_a_new_lane(run_app):
    run, trace = faithful(run_app, "reuse")
    assert "handle given out again 9 times\nevent given out again 9 times\n" in run.stdout
    first_ten = sorted((e for e in lives(trace) if e["args"].get("created by") == "cuStreamCreateWithPriority"), key=lambda e: e["ts"])
    assert len({e["args"]["handle"] for e in first_ten}) == 1 and len({e["tid"] for e in first_ten}) == 10
    assert [e["args"]["launches"] for e in first_ten] == list(range(1, 11))
    assert [e["args"]["priority"] for e in first_ten] == [0, -1] * 5
    for one, after in zip(first_ten, first_ten[1:]):
        assert round(one["ts"] + one["dur"], 3) <= after["ts"]
    records = [e["args"]["event"] for e in ordered(trace, "cuEventRecord") if "cs.result" not in e["args"]]
    assert records == list(range(1, 11))


def test_use_after_destroy(run_app):
    """The program gets the driver's answer; a refused call creates no stream; default streams cannot be destroyed."""
    run, trace = faithful(run_app, "reuse")
    refused = [e for e in trace.host() if "cs.result" in e["args"]]
    assert len(refused) == 12
    origins = collections.Counter(e["args"]["origin"] for e in lives(trace))
    assert origins["created"] == 11 and origins["legacy default"] == 1 and not origins["adopted: first seen in use"]
    (legacy,) = [e for e in lives(trace) if e["tid"] == 7]
    assert legacy["args"]["launches"] == 1 and legacy["args"]["event records"] == 10


def test_create_here_destroy_there(run_app):
    run, trace = faithful(run_app, "reuse")
    notes = notes_of(run.stderr)
    (handed,) = [e for e in lives(trace) if e["args"].get("created by") == "cuStreamCreate"]
    assert handed["args"]["handle"] == notes["handed"] and handed["args"]["thread"] == int(notes["main"])
    assert handed["args"]["launches"] == 1 and handed["args"]["destroyed"] is True
    (kernel,) = [w for w in works(trace, "kernel") if w["args"]["grid"] == [9, 1, 1]]
    (launch,) = [e for e in trace.host("cuLaunchKernel") if e["args"].get("correlation") == kernel["args"]["correlation"]]
    assert launch["args"]["cs.stream"] == handed["tid"] and launch["tid"] != handed["args"]["thread"]


def test_streams_end_with_their_context(run_app):
    run, trace = faithful(run_app, "contexts")
    moments = [e["ts"] for e in ordered(trace, "cuStreamQuery")]  # after: destroy, reset, first of two releases, last release
    assert len(moments) == 4
    ends = collections.Counter()
    for e in lives(trace):
        if e["args"]["origin"] != "created":
            continue
        end = round(e["ts"] + e["dur"], 3)
        ends[sum(end > moment for moment in moments), e["args"]["destroyed"]] += 1
    assert ends == {(0, True): 2, (1, True): 3, (3, True): 4, (4, False): 1}
    assert (trace.totals["leaked_streams"], trace.totals["leaked_events"]) == (1, 1)
    # Each context, and the primary one again after its reset and its release, has default streams of its own.
    assert collections.Counter(e["args"]["origin"] for e in lives(trace)) == {"created": 10, "legacy default": 4, "per-thread default": 4}
    destroyed = [e["args"]["destroyed"] for e in lives(trace) if e["args"]["origin"] != "created"]
    assert collections.Counter(destroyed) == {True: 6, False: 2}


def test_events_have_numbers(run_app):
    """Numbers count all events of the process, from 1; one that was given out again does not bring its number back."""
    _, trace = faithful(run_app, "contexts")
    assert sorted(e["args"]["event"] for e in trace.host("cuEventRecord")) == list(range(1, 11))


def test_several_devices(run_app):
    run, trace = faithful(run_app, "devices", env={"CUSTREAM_FAKE_DEVICES": 3})
    assert "devices 3\n" in run.stdout
    assert {pid: name for pid, name in trace.process_names.items() if pid < 3} == {d: f"GPU {d} custream simulated GPU" for d in range(3)}
    work = {(e["pid"], e["tid"]): e["args"].get("memsets") for e in lives(trace)}
    for d in range(3):
        assert work.pop((d, 7)) == 7 + d
        assert sorted(n for (pid, _), n in work.items() if pid == d) == [3 + d, 5 + d]
    counts = collections.Counter((e["args"].get("cs.device", 0), e["args"]["cs.stream"]) for e in trace.host("cuMemsetD8Async"))
    assert counts[2, 7] == 9 and counts[0, 7] == 7
    (synchronised,) = trace.host("cuStreamSynchronize")
    assert synchronised["args"]["cs.device"] == 2
    assert [r["id"] for r in trace.json["deviceProperties"]] == [0, 1, 2]


def test_adopted_streams(run_app):
    """Streams that were created where the shim cannot see are there from their first use on, and say so."""
    run, trace = faithful(run_app, "adopt")
    notes = notes_of(run.stderr)
    adopted = {e["args"]["handle"]: e for e in lives(trace)}
    assert set(adopted) == {notes["plain"], notes["urgent"]}  # what is not used is not seen
    plain, urgent = adopted[notes["plain"]], adopted[notes["urgent"]]
    assert {e["args"]["origin"] for e in adopted.values()} == {"adopted: first seen in use"}
    assert trace.streams[0, plain["tid"]] == f"stream {plain['tid']} adopted"
    assert trace.streams[0, urgent["tid"]] == f"stream {urgent['tid']} p-4 nb adopted"
    assert plain["args"]["launches"] == 6 and plain["args"]["waits"] == 1 and plain["args"]["destroyed"] is True
    (flow,) = trace.flows("cs_dep")  # the event was adopted as well
    assert (flow.start["name"], flow.finish["name"]) == ("cuEventRecord", "cuStreamWaitEvent")
    assert (trace.totals["leaked_streams"], trace.totals["leaked_events"]) == (0, 0)


# ---- Many ----

def test_ten_thousand_live_streams(run_app):
    _, trace = faithful(run_app, ["many", "live", 10000], env={"CUSTREAM_FULL": "block"})
    created = [e for e in lives(trace) if e["args"]["origin"] == "created"]
    assert len(created) == 10000 and len({e["tid"] for e in created}) == 10000
    assert all(e["args"]["launches"] == 1 and e["args"]["destroyed"] for e in created)
    by_time = sorted(created, key=lambda e: e["ts"])
    launches = [e["args"]["cs.stream"] for e in ordered(trace, "cuLaunchKernel")]
    assert launches == [e["tid"] for e in reversed(by_time)]  # launched to in reverse order


def resident_mib(run):
    return int(notes_of(run.stderr)["rss_kib"]) / 1024


def test_churn_is_bounded_in_memory(run_app):
    """100,000 streams one after the other: what the shim keeps does not grow with them (a ring, the output buffer, a few pages of objects)."""
    bare = run_app(["many", "churn", 100000], shim=False).check()
    run = run_app(["many", "churn", 100000], env={"CUSTREAM_FULL": "block", "CUSTREAM_BUFFER": "256K"}).check()
    assert resident_mib(run) < resident_mib(bare) + 64
    check_file(run.trace)
    data = run.trace.read_bytes()  # as text: as objects it is a gigabyte
    for call, n in calls_of(run.stdout).items():
        assert data.count(b'"cat":"cuda_driver","name":"%s"' % call.encode()) == n
    assert data.count(b'"origin":"created"') == data.count(b'"destroyed":true') == 100000
    assert b'"untracked_objects":0' in data


def test_thread_churn_keeps_objects_free(run_app):
    """A thread's own default stream ends with its thread: its life ends long before the end, and its slot serves others."""
    run, trace = both(run_app, ["many", "threads", 500])
    run.check()
    own = [e for e in lives(trace) if e["args"]["origin"] == "per-thread default"]
    assert len(own) == 500
    last_launch = max(e["ts"] for e in trace.host("cuLaunchKernel"))
    open_at_the_end = [e for e in own if e["ts"] + e["dur"] > last_launch]
    assert len(open_at_the_end) < 100, f"{len(open_at_the_end)} per-thread default streams outlive their threads"


@pytest.mark.parametrize("what, n, room, made", [("live", 67000, 1 << 16, "cuStreamCreate"), ("events", 133000, 1 << 17, "cuEventCreate")])
def test_more_than_the_pools_hold(run_app, what, n, room, made):
    """The program is unharmed, its calls are all there, and the trace says how many objects it does not know."""
    run, trace = both(run_app, ["many", what, n], env={"CUSTREAM_FULL": "block"})
    run.check()
    assert calls_in(trace) == calls_of(run.stdout) and calls_in(trace)[made] == n
    assert not said(run)
    if what == "live":  # work on a stream without a lane is not shown, and that is told
        assert n - room <= trace.totals["gpu"]["lost"] == n - trace.totals["gpu"]["kernels"] <= n - room + 100
    assert trace.totals["lost_records"] == 0
    assert n - room <= trace.totals["untracked_objects"] <= n - room + 100
    if what == "live":
        assert n - room <= sum("cs.stream" not in e["args"] for e in trace.host("cuLaunchKernel")) <= n - room + 100
