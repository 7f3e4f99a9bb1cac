"""Threads that hand things on to each other (tests/apps/relay.c): what one thread does with what another has made is in the trace, whichever of them is older."""
import collections

import pytest

from tests.apprun import faithful, read
from tests.cases.test_rotate import parts_of
from tests.gputrace import CUPTI, end_of, lane_of, works

WAITS = ("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize")


def waits_of(trace):
    """The waits of the program's own threads, by time; the last is main's, at the end."""
    return sorted((e for e in trace.host(cat="cuda_driver") if e["name"] in WAITS), key=lambda e: e["ts"])


def releasers(trace):
    """Of each wait that work released: that work, by the wait's thread and end."""
    found = {}
    for flow in trace.flows("cs_dep"):
        if flow.finish["name"] != "wake-up":
            continue
        wait = flow.finish["tid"], round(end_of(flow.finish) + 0.001, 3)
        assert wait not in found, "a wait was released twice"
        found[wait] = flow.start
    return found


def releaser_of(found, wait):
    work = found.pop((wait["tid"], end_of(wait)), None)
    return work and work["args"]["grid"][0]


def check_rounds(trace, n):
    """Each wait was released by the kernel of its round, unless that had ended before. How many were."""
    kernels, found = {w["args"]["grid"][0]: w for w in works(trace, "kernel")}, releasers(trace)
    waits = waits_of(trace)[:n]
    assert len(kernels) == len(waits) == n
    blocked = {k: end_of(kernels[k]) > wait["ts"] for k, wait in enumerate(waits, 1)}
    released = {k: releaser_of(found, wait) for k, wait in enumerate(waits, 1)}
    assert released == {k: k if blocked[k] else None for k in blocked} and not found
    return sum(blocked.values())


# ---- Waits ----

@pytest.mark.parametrize("how", ["older", "newer", "turns"])
def test_what_another_thread_launched_releases_a_wait(run_app, how):
    _, trace = faithful(run_app, ["relay", "waits", 300, how], env=CUPTI)
    assert check_rounds(trace, 300) > 150


def test_threads_that_end_when_they_have_launched(run_app):
    """The wait is made by a thread that takes over the state of one that has ended, or by a new one."""
    _, trace = faithful(run_app, ["relay", "ends", 300], env=CUPTI)
    assert check_rounds(trace, 300) > 150


def test_a_compressed_trace_of_threads(run_app, tmp_path):
    run = run_app(["relay", "waits", 100, "older"], env=CUPTI, trace=tmp_path / "relay.json.gz").check()
    assert check_rounds(read(run.trace), 100) > 50


def test_a_small_ring_that_blocks(run_app):
    """Threads stand still until the writer has made room, and everything is in order all the same."""
    run = run_app(["relay", "waits", 200, "turns"], env=dict(CUPTI, CUSTREAM_FULL="block", CUSTREAM_BUFFER="4K")).check()
    assert check_rounds(read(run.trace), 200) > 100


def test_waits_in_windows(run_app):
    """What was launched in a window releases what waits in it; what was launched outside of all of them releases nothing."""
    run = run_app(["relay", "waits", 300, "older"], env=dict(CUPTI, CUSTREAM_WINDOW="every=0.1s,for=0.05s")).check()
    trace = read(run.trace)
    assert 0 < len(trace.host("cuLaunchKernel")) < 300 and check_waits(trace) > 10


def test_waits_for_many_streams_at_once(run_app):
    """The context is waited for: of 40 streams with work, the one whose work ends last releases the wait."""
    _, trace = faithful(run_app, ["relay", "crowd", 40], env=CUPTI)
    check_waits(trace)


def check_waits(trace):
    """Of all calls that had begun before a wait did on what it waits for: the last on each stream, and of those the work that ended last within the wait."""
    found, on_stream = releasers(trace), collections.defaultdict(list)
    work_of = {w["args"]["correlation"]: w for w in works(trace)}
    for call in sorted((e for e in trace.host("cuLaunchKernel")), key=lambda e: e["ts"]):
        on_stream[call["args"]["cs.stream"]].append((call["ts"], work_of[call["args"]["correlation"]]))
    expected = 0
    for wait in waits_of(trace):
        stream = wait["args"].get("cs.stream")
        before = [[w for ts, w in calls if ts < wait["ts"]][-1:] for number, calls in on_stream.items() if stream in (None, number)]
        within = [w for last in before for w in last if wait["ts"] < end_of(w) <= end_of(wait)]
        truth = max(within, key=end_of, default=None)
        work = found.pop((wait["tid"], end_of(wait)), None)
        assert (work and end_of(work)) == (truth and end_of(truth)), (wait, work, truth)
        expected += truth is not None
    assert not found
    return expected


def test_waits_of_which_nobody_tells_the_launching_threads(run_app):
    run = run_app(["relay", "race", 1000], env=CUPTI).check()
    assert check_waits(read(run.trace)) > 100


def test_waits_in_parts(run_app):
    """An arrow is in the part in which both of its ends are; where they are not, it is counted."""
    run = run_app(["relay", "waits", 2400, "turns"], env=dict(CUPTI, CUSTREAM_FULL="block", CUSTREAM_TRACE_MAX="1M,rotate:99")).check()
    parts = parts_of(run.trace)
    kernels = {w["args"]["grid"][0]: w for part in parts for w in works(part, "kernel")}
    waits = [wait for part in parts for wait in waits_of(part)][:2400]
    ends = [wait["ts"] for wait in waits]
    assert len(parts) > 2 and len(kernels) == len(waits) == 2400 and ends == sorted(ends)
    flows = {}
    for part in parts:
        flows.update(releasers(part))
    blocked = [k for k, wait in enumerate(waits, 1) if end_of(kernels[k]) > wait["ts"]]
    released = {k: releaser_of(flows, wait) for k, wait in enumerate(waits, 1)}
    missing = [k for k in blocked if released[k] is None]
    assert all(released[k] in (k, None) for k in blocked) and not flows
    assert len(missing) <= sum(part.totals["arrows_between_parts"] for part in parts) < len(blocked) / 2


# ---- What else goes from thread to thread ----

def test_events_from_thread_to_thread(run_app):
    """Each wait has its arrow from the record; what was launched behind it waited for the event, or for its own stream, and never for something else."""
    run, trace = faithful(run_app, ["relay", "events", 3000], env=CUPTI)
    arrows = [f for f in trace.flows("cs_dep") if f.finish["name"] == "cuStreamWaitEvent"]
    assert len(arrows) == len(trace.host("cuStreamWaitEvent")) == 3000 and {f.start["name"] for f in arrows} == {"cuEventRecord"}
    by_time = {name: sorted(trace.host(name), key=lambda e: e["ts"]) for name in ("cuEventRecord", "cuStreamWaitEvent")}
    record_of = {id(f.finish): f.start for f in arrows}
    assert [record_of[id(wait)] for wait in by_time["cuStreamWaitEvent"]] == by_time["cuEventRecord"]
    a, b = lane_of(trace, run, "a"), lane_of(trace, run, "b")
    kernels = {w["args"]["grid"][0]: w for w in works(trace, "kernel")}
    calls = {e["args"]["correlation"]: e for e in trace.host("cuLaunchKernel")}
    late = 0
    for k in range(1, 3001):
        awaited, behind = kernels[2 * k], kernels[2 * k + 1]
        assert (awaited["args"]["stream"], behind["args"]["stream"]) == (a, b)
        assert behind["args"]["event_wait_ids"] == [awaited["args"]["correlation"]] and "event_wait_ids" not in awaited["args"]
        if end_of(awaited) <= end_of(calls[behind["args"]["correlation"]]) or "waited for" not in behind["args"]:
            continue
        late += 1
        assert (behind["args"]["waited for"], behind["args"].get("waited for stream")) == ("event", a), behind
    assert late >= 1500


def test_streams_from_thread_to_thread(run_app):
    """Each lane has the two kernels of its round, though all streams have had the same handle."""
    _, trace = faithful(run_app, ["relay", "handles", 3000], env=CUPTI)
    on_lane = collections.defaultdict(list)
    for work in works(trace, "kernel"):
        on_lane[work["args"]["stream"]].append(work["args"]["grid"][0])
    lives = sorted((life for life in trace.lives if life["args"]["created by"] == "cuStreamCreate"), key=lambda life: life["ts"])[40:]
    assert [on_lane[life["tid"]] for life in lives] == [[k, k] for k in range(1, 3001)]
    assert {(life["args"]["destroyed"], life["args"]["launches"]) for life in lives} == {(True, 2)}


def test_graphs_from_thread_to_thread(run_app):
    """Nodes stand on the streams from which they were captured, but for those of an executable that was changed."""
    run, trace = faithful(run_app, ["relay", "graphs", 600], env=dict(CUPTI, CUSTREAM_GRAPH="node"))
    a, b, c = (lane_of(trace, run, key) for key in "abc")
    stands = {w["args"]["grid"][0]: w["args"]["stream"] for w in works(trace, "kernel")}
    expected = {}
    for k in range(1, 601):
        changed = k % 3 == 0
        of = k + 600 if changed else k
        expected |= {4 * of: c, 4 * of + 1: c} if changed else {4 * of: a, 4 * of + 1: b}
    assert stands == expected
    assert trace.totals["gpu"]["launches_without_kernel"] == 0
