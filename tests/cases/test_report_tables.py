"""The tables of `custream report`: those of the run, its devices, its streams, their work, the host's calls and waits, the program's ranges and steps.

What each must say of a small trace is worked out here by hand.
"""
import statistics

import pytest

from tests.handmade import HOST, meta, slice_, trailer_of
from tests.madetrace import MAIN, WORKER, Made, by, cells, only, process_range, report


# ---- the run ----

def test_run(tmp_path):
    made = Made()
    made.stream(13)
    made.stream(14)
    made.stream(15)
    made.stream(7, origin="legacy default")
    made.launch("k", 10, 14, 21)
    made.call("cuLaunchHostFunc", 20, 1, **{"cs.stream": 14})
    made.call("cuStreamQuery", 22, 1, WORKER, **{"cs.stream": 15})
    tables = report(tmp_path, made)
    assert only(tables["run"]) == {"program": "app", "pid": HOST, "rank": None, "source": "cupti", "wall_ns": 25000, "calls": 3, "works": 1, "sample": None, "threads": 2,
                                   "streams": 2, "unused_streams": 1, "whole": "yes", "lost_calls": 0, "lost_works": 0, "host": "",
                                   "began": "2025-10-09 08:53:20 UTC", "command_line": "", "settings": "", "recorded_by": "custream 0.1"}


WHOLE = [
    ({"complete": False}, {}, [], "the process had not ended when the trailer was written"),
    ({"ended": "its size limit"}, {}, [], "ended: its size limit"),
    ({"no_memory_for": ["rings"], "complete": False}, {}, [], "no memory for rings"),
    ({"no_memory_for": ["rings", "names"], "complete": False}, {}, [], "no memory for rings and more"),
    ({"no_room": {"waits": 3}, "untracked_objects": 2}, {}, [], "2 streams or events not tracked; 3 waits without the work that released them"),
    ({"parts_deleted": 1}, {}, [], "1 part deleted"),
    ({"continues": True}, {}, [], "another part follows"),
    ({}, {"without_times": 4, "launches_without_kernel": 1}, [], "4 pieces of GPU work without times; 1 launch without its kernel"),
    ({}, {}, [{"count": 7}, {"count": 2, "gpu_work": 1}], "9 calls lost; 1 piece of GPU work lost"),
]


@pytest.mark.parametrize("totals, gpu, losses, words", WHOLE)
def test_what_is_missing(tmp_path, totals, gpu, losses, words):
    made = Made()
    made.launch("k", 10, 14, 21)
    for at, loss in enumerate(losses):
        made.rows.append(slice_("cs_loss", "lost", HOST, MAIN, 20 + at, 1, cause="ring full", **loss))
    row = only(report(tmp_path, made.text(trailer_of(totals, gpu)))["run"])
    assert row["whole"] == words
    assert cells(row, "lost_calls", "lost_works") == (sum(l.get("count", 0) for l in losses), sum(l.get("gpu_work", 0) for l in losses))


def test_cut_file(tmp_path):
    made = Made()
    made.launch("k", 10, 14, 21)
    text = made.text()
    row = only(report(tmp_path, text[:text.index('"stream":13') + 3], said="truncated")["run"])
    assert (row["whole"], row["calls"], row["works"]) == ("the file ends inside an event", 1, 0)


# ---- devices and streams ----

def two_devices():
    """GPU 0: 0 to 100 us; stream 13 in [0, 30) twice over and [80, 100), stream 14 in [10, 50), stream 15 in [20, 25). GPU 1: one kernel."""
    made = Made()
    for lane in (13, 14, 15, 16):
        made.stream(lane)
    made.stream(17, device=1)
    made.ran("a", 0, 20)
    made.ran("a", 10, 20, lane=13)
    made.ran("a", 80, 20)
    made.ran("b", 10, 40, lane=14)
    made.ran("c", 20, 5, lane=15)
    made.ran("d", 1000, 10, lane=17, device=1)
    return made


def test_streams_at_work(tmp_path):
    device, other = report(tmp_path, two_devices())["devices"]
    assert cells(device, "device", "name", "works") == (0, "H200", 5)
    assert [device[f"at_work_{n}"] for n in range(4)] == pytest.approx([0.30, 0.50, 0.15, 0.05])
    assert device["at_once"] == pytest.approx((50 + 40 + 5) / 70)
    assert [other[f"at_work_{n}"] for n in range(4)] == [0, 1, 0, 0] and other["at_once"] == 1 and other["device"] == 1


def test_busy_and_idle(tmp_path):
    device, other = report(tmp_path, two_devices())["devices"]
    assert cells(device, "span_ns", "busy_ns", "busy", "idle_ns", "idle") == (100000, 70000, pytest.approx(0.7), 30000, pytest.approx(0.3))
    assert cells(other, "span_ns", "busy_ns", "idle_ns") == (10000, 10000, 0)


def test_streams_alone(tmp_path):
    rows = report(tmp_path, two_devices())["streams"]
    found = {row["stream"]: cells(row, "device", "works", "busy_ns", "alone_ns", "overlapped_ns") for row in rows}
    assert found == {"stream 13": (0, 3, 50000, 30000, 20000), "stream 14": (0, 1, 40000, 20000, 20000), "stream 15": (0, 1, 5000, 0, 5000),
                     "stream 17": (1, 1, 10000, 10000, 0)}  # not stream 16, which has no work
    assert [row["busy_ns"] for row in rows] == sorted((row["busy_ns"] for row in rows), reverse=True)


KINDS = [
    ({"flags": "non-blocking"}, ("non-blocking", "0", "")),
    ({"flags": "blocking"}, ("blocking", "0", "")),
    ({"flags": "blocking", "library": "libx.so", "created by": "cuStreamCreate"}, ("blocking", "0", "libx.so")),
    ({"priority": -5, "requested priority": -9, "created by": "cuStreamCreate"}, ("non-blocking", "asked -9, given -5", "cuStreamCreate")),
    ({"origin": "legacy default"}, ("legacy", "0", "")),
    ({"origin": "per-thread default"}, ("per-thread", "0", "")),
]


@pytest.mark.parametrize("args, said", KINDS, ids=[said[0] for _, said in KINDS])
def test_kinds_of_streams(tmp_path, args, said):
    made = Made()
    made.stream(13, **args)
    made.ran("k", 1, 2, lane=13)
    assert cells(only(report(tmp_path, made)["streams"]), "kind", "priority", "maker") == said


def test_stream_whose_life_is_not_told(tmp_path):
    made = Made()
    made.ran("k", 1, 2, lane=21)
    assert cells(only(report(tmp_path, made)["streams"]), "stream", "kind", "priority", "maker", "works") == ("stream 21", "", "", "", 1)


# ---- the work ----

def test_kernels(tmp_path):
    made = Made()
    shape = {"block": [64, 2, 1], "registers per thread": 32, "shared memory": 0}
    made.ran("a", 0, 10, grid=[132, 1, 1], **shape)
    made.ran("a", 20, 30, grid=[132, 3, 1], **shape)
    made.ran("a", 60, 20)  # as the one before
    made.ran("b", 90, 1.5, lane=14)
    made.ran("a", 95, 1, lane=13, device=1, grid=[1, 1, 1], **shape)
    rows = by(report(tmp_path, made)["kernels"], "device", "name")
    keys = ("times", "total_ns", "mean_ns", "shortest_ns", "longest_ns", "blocks", "threads")
    assert cells(rows[0, "a"], *keys) == (3, 60000, 20000, 10000, 30000, 308, 128)
    assert rows[0, "a"]["fills"] == pytest.approx(308 / (132 * 16))
    assert cells(rows[0, "b"], *keys) == (1, 1500, 1500, 1500, 1500, None, None) and rows[0, "b"]["fills"] is None
    assert rows[1, "a"]["blocks"] == 1 and rows[1, "a"]["fills"] is None  # of this device the trace does not tell the multiprocessors
    assert list(rows) == [(0, "a"), (0, "b"), (1, "a")]


# A launch that fills 132 multiprocessors once, by what limits it: blocks, block, registers per thread, shared memory.
FULL = [(2, 1024, 32, 0), (1, 1024, 64, 0), (2, 32, 0, 112 << 10), (2, 32, 0, 100 << 10), (32, 32, 16, 0), (16, 128, 32, 0), (1, 33, 255, 227 << 10), (64 // 3, 96, 16, 0), (1, 1024, 255, 0)]


@pytest.mark.parametrize("blocks, block, registers, shared", FULL)
def test_a_kernel_that_fills_the_device(tmp_path, blocks, block, registers, shared):
    made = Made()
    made.ran("k", 0, 10, grid=[132, blocks, 1], block=[block, 1, 1], **{"registers per thread": registers, "shared memory": shared})
    assert only(report(tmp_path, made)["kernels"])["fills"] == 1


def test_limits_of_the_device(tmp_path):
    """Those that the trace tells: here 1024 threads on a multiprocessor, of which there are 10."""
    made = Made()
    made.ran("k", 0, 10, grid=[10, 2, 1], block=[512, 1, 1], **{"registers per thread": 16, "shared memory": 0})
    device = {"id": 0, "name": "small", "numSms": 10, "maxThreadsPerMultiprocessor": 1024}
    assert only(report(tmp_path, made.text(trailer_of(deviceProperties=[device])))["kernels"])["fills"] == 1


def test_copies(tmp_path):
    made = Made()
    made.ran("Memcpy HtoD (Pinned -> Device)", 0, 10, cat="gpu_memcpy", bytes=400000)
    made.ran("Memcpy HtoD (Pinned -> Device)", 20, 30, cat="gpu_memcpy", lane=14, bytes=200000)
    made.ran("Memcpy HtoD (Pageable -> Device)", 60, 1, cat="gpu_memcpy", bytes=10)
    made.ran("Memcpy DtoH (Device -> Pageable)", 70, 5, cat="gpu_memcpy")
    made.ran("Memset (Device)", 80, 5, cat="gpu_memset", bytes=99)
    rows = by(report(tmp_path, made)["copies"], "device", "direction", "memory")
    keys = ("times", "bytes", "total_ns", "rate")
    assert cells(rows[0, "HtoD", "Pinned -> Device"], *keys) == (2, 600000, 40000, 15)
    assert cells(rows[0, "HtoD", "Pageable -> Device"], *keys) == (1, 10, 1000, 0.01)
    assert cells(rows[0, "DtoH", "Device -> Pageable"], *keys) == (1, 0, 5000, 0) and len(rows) == 3


def test_graphs_as_a_whole(tmp_path):
    made = Made()
    made.launch("graph 3", 0, 3, 10, call="cuGraphLaunch", cat="gpu_graph", graph=3)
    made.launch("graph 3", 20, 23, 30, call="cuGraphLaunch", cat="gpu_graph", graph=3)
    made.ran("graph", 60, 5, cat="gpu_graph")
    rows = by(report(tmp_path, made)["graphs"], "graph")
    assert cells(rows["graph 3"], "times", "total_ns", "mean_ns", "longest_ns", "nodes") == (2, 40000, 20000, 30000, None)
    assert rows["graph"]["total_ns"] == 5000


def test_graphs_by_their_nodes(tmp_path):
    """A launch lasts from its first node's begin to its last one's end."""
    made = Made()
    for at in (0, 100):
        made.launch("a", at, at + 10, 20, call="cuGraphLaunch", graph=3, **{"graph node": 0})
        made.ran("b", at + 15, 30, lane=14, correlation=made.correlation, graph=3, **{"graph node": 1})
    row = only(report(tmp_path, made)["graphs"])
    assert cells(row, "graph", "times", "total_ns", "mean_ns", "longest_ns", "nodes") == ("graph 3", 2, 70000, 35000, 35000, 2)


# ---- the host ----

def test_calls(tmp_path):
    made = Made()
    made.call("cuMemAlloc_v2", 0, 10)
    made.call("cuMemAlloc_v2", 20, 30, WORKER, **{"cs.result": "CUDA_ERROR_OUT_OF_MEMORY"})
    made.call("cuEventQuery", 60, 1, **{"cs.result": "CUDA_ERROR_NOT_READY"})
    made.call("cuEventQuery", 70, 1, **{"cs.result": "CUDA_ERROR_INVALID_HANDLE"})
    rows = by(report(tmp_path, made)["calls"], "call")
    assert list(rows) == ["cuMemAlloc_v2", "cuEventQuery"]
    assert cells(rows["cuMemAlloc_v2"], "times", "failed", "total_ns", "mean_ns", "longest_ns") == (2, 1, 40000, 20000, 30000)
    assert cells(rows["cuEventQuery"], "times", "failed") == (2, 1)


def waits_of(tmp_path, made):
    keys = ("call", "thread", "for")
    return {cells(row, *keys): cells(row, "times", "blocked_ns", "longest_ns") for row in report(tmp_path, made)["host_waits"]}


def test_wait_for_a_stream(tmp_path):
    made = Made()
    for at in (0, 100):
        made.launch("a", at, at + 5, 40)
        made.launch("b", at + 2, at + 5, 80, lane=14)
        made.call("cuStreamSynchronize", at + 10, 40 if at else 37, **{"cs.stream": 13})
    assert waits_of(tmp_path, made) == {("cuStreamSynchronize", f"main {MAIN}", "a on stream 13"): (2, 77000, 40000)}


def test_wait_for_nothing(tmp_path):
    made = Made()
    made.launch("a", 0, 5, 4)
    made.call("cuStreamSynchronize", 10, 5, **{"cs.stream": 13})
    made.call("cuEventSynchronize", 20, 5, event=9)
    assert waits_of(tmp_path, made) == {("cuStreamSynchronize", f"main {MAIN}", "nothing that still ran"): (1, 5000, 5000),
                                        ("cuEventSynchronize", f"main {MAIN}", "nothing that still ran"): (1, 5000, 5000)}


def test_wait_for_an_event(tmp_path):
    """The event's record, not what is enqueued on its stream behind it; and what the stream itself waited for."""
    made = Made()
    made.launch("far", 0, 5, 50, lane=14)
    made.call("cuEventRecord", 3, 1, **{"cs.stream": 14, "event": 1})
    made.call("cuStreamWaitEvent", 5, 1, **{"cs.stream": 13, "event": 1})
    made.call("cuEventRecord", 7, 1, **{"cs.stream": 13, "event": 2})
    made.launch("behind", 9, 56, 2)
    made.call("cuEventSynchronize", 12, 48, event=2)
    assert waits_of(tmp_path, made) == {("cuEventSynchronize", f"main {MAIN}", "far on stream 14"): (1, 48000, 48000)}


def test_wait_for_an_event_whose_next_record_failed(tmp_path):
    made = Made()
    made.launch("a", 0, 5, 40)
    made.call("cuEventRecord", 3, 1, **{"cs.stream": 13, "event": 1})
    made.launch("b", 5, 8, 30, lane=14)
    made.call("cuEventRecord", 8, 1, **{"cs.stream": 14, "event": 1, "cs.result": "CUDA_ERROR_INVALID_HANDLE"})
    made.call("cuEventSynchronize", 12, 35, event=1)
    assert waits_of(tmp_path, made) == {("cuEventSynchronize", f"main {MAIN}", "a on stream 13"): (1, 35000, 35000)}


def test_wait_for_a_device(tmp_path):
    made = Made()
    made.launch("a", 0, 5, 50, lane=14)
    made.launch("b", 3, 6, 20)
    made.launch("other", 6, 9, 900, lane=17, device=1)
    made.call("cuCtxSynchronize", 10, 48, WORKER)
    assert waits_of(tmp_path, made) == {("cuCtxSynchronize", f"thread {WORKER}", "a on stream 14"): (1, 48000, 48000)}


@pytest.mark.parametrize("flags, waited", [("blocking", "a on stream 13"), ("non-blocking", "z on default")])
def test_wait_for_the_legacy_default_stream(tmp_path, flags, waited):
    """It waits for the streams that are not non-blocking."""
    made = Made()
    made.stream(7, origin="legacy default", name="default")
    made.stream(13, flags=flags)
    made.launch("z", 0, 3, 12, lane=7)
    made.launch("a", 3, 5, 40)
    made.call("cuStreamSynchronize", 10, 40, **{"cs.stream": 7})
    assert [key[2] for key in waits_of(tmp_path, made)] == [waited]


def test_wait_in_a_copy(tmp_path):
    """Synchronous copies that take longer than 20 us, and no others."""
    made = Made()
    made.launch("k", 0, 3, 40)
    copy = {"call": "cuMemcpyDtoH_v2", "cat": "gpu_memcpy"}
    made.launch("Memcpy DtoH (Device -> Pageable)", 5, 44, 6, took=47, **copy)
    made.launch("Memcpy DtoH (Device -> Pageable)", 60, 64, 6, took=19, **copy)
    made.launch("Memcpy DtoH (Device -> Pageable)", 100, 104, 6, took=30, **copy | {"call": "cuMemcpyDtoHAsync_v2"})
    assert waits_of(tmp_path, made) == {("cuMemcpyDtoH_v2", f"main {MAIN}", "Memcpy DtoH (Device -> Pageable) on stream 13"): (1, 47000, 47000)}


def test_wait_for_work_without_its_call(tmp_path):
    made = Made()
    made.ran("a", 5, 40)
    made.call("cuStreamSynchronize", 10, 40, **{"cs.stream": 13})
    assert waits_of(tmp_path, made) == {("cuStreamSynchronize", f"main {MAIN}", "a on stream 13"): (1, 40000, 40000)}


def test_threads_of_one_name(tmp_path):
    made = Made()
    made.rows.append(meta("thread_name", HOST, WORKER, "main"))
    for thread in (MAIN, WORKER):
        made.call("cuCtxSynchronize", 10, 5, thread)
    assert {thread for _, thread, _ in waits_of(tmp_path, made)} == {f"main {MAIN}", f"main {WORKER}"}


# ---- ranges and steps ----

def test_ranges(tmp_path):
    made = Made()
    for at in (0, 100):
        made.range("step", at, 80 if at else 60)
        made.range("inner", at + 10, 20, domain="lib")
        made.launch("a", at + 5, at + 20, 30)             # in the step alone
        made.launch("b", at + 12, at + 40, 20, lane=14)   # in both
    made.launch("c", 90, 95, 40)                          # in neither
    made.launch("d", 101, 150, 40, thread=WORKER)         # another thread's
    rows = by(report(tmp_path, made)["ranges"], "name", "domain")
    keys = ("times", "total_ns", "mean_ns", "shortest_ns", "longest_ns", "gpu_busy_ns")
    assert cells(rows["step", ""], *keys) == (2, 140000, 70000, 60000, 80000, 80000)
    assert cells(rows["inner", "lib"], *keys) == (2, 40000, 20000, 20000, 20000, 40000)


def test_ranges_of_the_process(tmp_path):
    """They may cross, and have the calls of all threads."""
    made = Made()
    made.rows += process_range("one", "0x1", 0, 50) + process_range("two", "0x2", 20, 60)
    made.launch("a", 10, 15, 5)
    made.launch("b", 30, 35, 6, thread=WORKER)
    made.launch("c", 60, 65, 7)
    made.launch("d", 90, 95, 8)
    rows = by(report(tmp_path, made)["ranges"], "name")
    assert {name: cells(row, "times", "total_ns", "gpu_busy_ns") for name, row in rows.items()} == {"one": (1, 50000, 11000), "two": (1, 60000, 13000)}


def test_work_at_once_counts_once_for_a_range(tmp_path):
    made = Made()
    made.range("outer", 0, 100)
    made.range("outer", 1, 50)  # within itself
    made.launch("a", 5, 20, 30)
    made.launch("b", 8, 30, 60, lane=14)
    assert only(report(tmp_path, made)["ranges"])["gpu_busy_ns"] == 70000


def steps_made(lengths, name="step", thread=MAIN, made=None, slow=None):
    """Steps one after the other, in a range that does not repeat, each of two inner ranges and a kernel that takes 0.7 of it; `slow` adds to the slowest one."""
    made = made or Made()
    made.range("training", 0, sum(lengths) + 10, thread)
    at = 1
    for number, length in enumerate(lengths):
        made.range(name.format(number), at, length, thread)
        for _ in range(2):
            made.range("inner", at + 1 + _ * 10, 5, thread)
        made.launch("most", at + 2, at + 5, length * 0.7, thread=thread)
        if slow and length == max(lengths):
            slow(made, at)
        at += length
    return made


def test_steps(tmp_path):
    lengths = [100, 104, 300, 96]
    row = only(report(tmp_path, steps_made(lengths))["steps"])
    assert cells(row, "name", "times", "mean_ns", "slowest", "slowest_ns") == ("step", 4, 150000, 3, 300000)
    assert row["spread_ns"] == pytest.approx(1000 * statistics.pstdev(lengths))
    assert row["different"] == "most: 0.210 ms, on average 0.105 ms"


def test_steps_that_count_up(tmp_path):
    tables = report(tmp_path, steps_made([100, 110, 120], name="ProfilerStep#{}"))
    assert cells(only(tables["steps"]), "name", "times", "slowest", "slowest_ns") == ("ProfilerStep#N", 3, 3, 120000)
    assert {row["name"] for row in tables["ranges"]} == {"training", "inner", "ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"}


def test_two_numbered_ranges_are_no_steps(tmp_path):
    """But what repeats in them is."""
    assert cells(only(report(tmp_path, steps_made([100, 110], name="phase {}"))["steps"]), "name", "times") == ("inner", 4)


def test_steps_of_threads(tmp_path):
    made = steps_made([100, 110])
    steps_made([50, 60, 70], thread=WORKER, made=made)
    rows = by(report(tmp_path, made)["steps"], "name")
    assert {name: row["times"] for name, row in rows.items()} == {f"step, main {MAIN}": 2, f"step, thread {WORKER}": 3}


def slow_call(made, at):
    made.call("cuMemAlloc_v2", at + 60, 200)
    made.call("cuCtxSynchronize", at + 270, 220)


def slow_wait(made, at):
    made.call("cuCtxSynchronize", at + 60, 400)


@pytest.mark.parametrize("slow", [slow_call, slow_wait])
def test_what_was_different_is_no_wait_if_there_is_anything_else(tmp_path, slow):
    """A step that takes 320 us more than the mean, and its kernel 224."""
    row = only(report(tmp_path, steps_made([100, 100, 100, 100, 500], slow=slow))["steps"])
    assert cells(row, "slowest", "different") == (5, "most: 0.350 ms, on average 0.126 ms")


def test_a_wait_was_different(tmp_path):
    """Where nothing else was: the GPU may be busy with what another thread enqueued."""
    made = Made()
    for at, length in ((0, 100), (100, 100), (200, 900)):
        made.range("step", at, length)
        made.call("cuCtxSynchronize", at + 10, length - 20)
    assert only(report(tmp_path, made)["steps"])["different"] == "cuCtxSynchronize: 0.880 ms, on average 0.347 ms"


def test_a_call_was_different(tmp_path):
    def slow(made, at):
        made.call("cuMemAlloc_v2", at + 60, 200)
        made.call("cuCtxSynchronize", at + 265, 20)
    row = only(report(tmp_path, steps_made([100, 100, 100, 300], slow=slow))["steps"])
    assert row["different"] == "cuMemAlloc_v2: 0.200 ms, on average 0.050 ms"


def test_steps_of_about_one_length(tmp_path):
    assert only(report(tmp_path, steps_made([100, 101, 100]))["steps"])["different"] == ""


def test_no_steps_without_repetition(tmp_path):
    made = Made()
    made.range("a", 0, 10)
    made.range("b", 20, 10)
    assert report(tmp_path, made)["steps"] == []
