"""What is nearly a finding and is none, or gains less than its plainest figure: the limits of each rule."""
import json

import pytest

from tests.handmade import GPU, HOST, custream, meta, slice_
from tests.tracestory import LEGACY, MAIN, Story

MS = 1000  # microseconds
SMALL = {"grid": [1, 1, 1], "block": [32, 1, 1], "registers per thread": 16, "shared memory": 0}
QUARTER = {"grid": [1, 1, 1], "block": [1024, 1, 1], "registers per thread": 16, "shared memory": 0}  # of the GPU's two multiprocessors


def one_stream():
    story = Story()
    story.stream(13)
    return story


def rows_of(story, tmp_path, *ids):
    """The findings with these ids; without: all."""
    return [row for row in story.report(tmp_path)["findings"] if not ids or row["id"] in ids]


def found(story, tmp_path, *ids):
    return sorted((row["id"], row["stream"], row["times"]) for row in rows_of(story, tmp_path, *ids))


def gains(story, tmp_path, *ids):
    """By id and place: the gain in us, at most. Kernels have no shape in most of these traces: so much if they can run side by side."""
    rows = rows_of(story, tmp_path, *ids)
    assert all(0 <= row["gain_low_ns"] <= row["gain_high_ns"] for row in rows)
    return {(row["id"], row["stream"]): row["gain_high_ns"] / 1000 for row in rows}


def near(us):
    return pytest.approx(us, rel=0.03, abs=15)


# --- waits of the host ---

def rounds_of_waits(waits, call, own_code=475, **args):
    """A kernel of 1 ms, a wait that ends 20 us later, own code; and at last a kernel."""
    story, at = one_stream(), 0
    for i in range(waits + 1):
        end = story.kernel(13, at, at + 5, 1000)
        at = story.call(call, at + 3, end + 20 - at - 3, **args) + own_code if i < waits else at
    return story


@pytest.mark.parametrize("waits, expected", [(4, {}), (5, {("CS103", "main 4250"): near(5 * 500)})])
def test_few_synchronisations_are_no_loop(tmp_path, waits, expected):
    assert gains(rounds_of_waits(waits, "cuCtxSynchronize"), tmp_path, "CS103", "CS121") == expected


def test_own_code_that_takes_longer_than_the_wait_would_stay(tmp_path):
    """The host waits for 1022 us and then computes for 5 ms: without the wait it would still compute for 5 ms, and without that it would still wait."""
    story = rounds_of_waits(6, "cuCtxSynchronize", own_code=5 * MS)
    assert gains(story, tmp_path) == {("CS103", "main 4250"): near(6 * 1022), ("CS117", "main 4250"): near(6 * 5 * MS)}


def test_a_wait_for_one_stream_is_not_for_the_device(tmp_path):
    story = rounds_of_waits(5, "cuStreamSynchronize", **{"cs.stream": 13})
    assert gains(story, tmp_path, "CS103", "CS121") == {("CS121", "main 4250"): near(5 * 500)}


@pytest.mark.parametrize("call, args", [("cuCtxSynchronize", {}), ("cuStreamSynchronize", {"cs.stream": 13})])
def test_waits_behind_the_last_work_stay(tmp_path, call, args):
    """The program ends when its results are there."""
    story = one_stream()
    at = story.call(call, 4, story.kernel(13, 0, 5, 1000), **args)
    for _ in range(4):
        at = story.call(call, at + 5, 2, **args)
    assert found(story, tmp_path, "CS103", "CS121") == []


def test_waits_for_work_that_has_long_ended_gain_nothing(tmp_path):
    story, at = one_stream(), 0
    for _ in range(12):
        end = story.kernel(13, at, at + 5, 100)
        at = story.call("cuStreamSynchronize", end + 150, 2, **{"cs.stream": 13}) + 10
    assert found(story, tmp_path, "CS121") == []


def test_waits_for_copies_are_no_waits_for_a_stream(tmp_path):
    """Synchronous copies hold the host; the waits for the stream behind them gain nothing."""
    story, at = one_stream(), 0
    for _ in range(10):
        story.kernel(13, at, at + 5, 500)
        end = story.copy(13, at + 3, at + 505, 500, "DtoH", call="cuMemcpyDtoH_v2", took=1010)
        at = story.call("cuStreamSynchronize", end + 12, 2, **{"cs.stream": 13}) + 100
    assert [row[0] for row in found(story, tmp_path, "CS104", "CS121")] == ["CS104"]


def test_one_thread_waits_while_another_keeps_the_gpu_busy(tmp_path):
    """Its own waits hold nobody: no other work can run where the other thread's is."""
    story, end, at = Story(), 0, 0
    story.stream(13), story.stream(14)
    for i in range(12):
        end = story.kernel(13, 3 * i, end + 5 if not i else end, 1000, grid=[64, 1, 1], block=[1024, 1, 1])
    for _ in range(12):
        done = story.copy(14, at + 40, at + 45, 500, thread=MAIN + 10)
        at = story.call("cuStreamSynchronize", at + 42, done + 10 - at - 42, thread=MAIN + 10, **{"cs.stream": 14})
    assert found(story, tmp_path, "CS103", "CS121", "CS117") == []


# --- memory ---

def frees(call, work, **args):
    story, at = one_stream(), 0
    for _ in range(7):
        at = story.kernel(13, at, at + 2, work)
        at = story.call(call, at, 100, **args)
    return story


def test_what_gains_little_is_only_named(tmp_path):
    """100 us of cuMemFree between kernels of 20 ms are half a percent; of 2 ms, they are five. The last one is behind the last kernel."""
    assert found(frees("cuMemFree_v2", 20 * MS), tmp_path, "CS106") == []
    brief = custream("report", "--brief", tmp_path / "story.json").stdout
    assert "Below 1 % of the run's steady part: CS106" in " ".join(brief.split())
    assert gains(frees("cuMemFree_v2", 2 * MS), tmp_path, "CS106") == {("CS106", "main 4250"): near(700)}


def test_what_is_listed_is_not_named_as_small_too(tmp_path):
    """Copies of pageable memory on two streams: on one of them they take next to nothing."""
    story, at = one_stream(), 0
    story.stream(14)
    for _ in range(6):
        at = story.copy(13, at, at + 400, 1000, memory="Pageable", took=400)
    story.copy(14, at, at + 4, 2, memory="Pageable", took=4)
    assert {stream for _, stream, _ in found(story, tmp_path, "CS105")} == {"stream 13"}
    assert "CS105" not in custream("report", "--brief", tmp_path / "story.json").stdout.split("CS105  ")[0]


def test_memory_of_a_pool_waits_for_nothing(tmp_path):
    assert found(frees("cuMemFreeAsync", 1 * MS, **{"cs.stream": 13}), tmp_path, "CS106") == []


# --- launches ---

@pytest.mark.parametrize("kernels, lasted, apart, expected", [(20, 5, 15, 1), (19, 5, 15, 0), (60, 60, 80, 0), (60, 5, 500, 0), (60, 40, 40, 0)],
                         ids=["twenty", "nineteen", "long kernels", "long pauses", "the host is ahead"])
def test_launches_in_a_row(tmp_path, kernels, lasted, apart, expected):
    """A kernel every `apart` us, each enqueued when the one before has ended; or every 4 us, so that the GPU is never idle."""
    story = one_stream()
    for i in range(kernels):
        story.kernel(13, (4 if apart == lasted else apart) * i, apart * (i + 1) - lasted + 10 * (apart == lasted), lasted, took=3)
    assert len(found(story, tmp_path, "CS107")) == expected


def test_launches_between_waits_are_no_row(tmp_path):
    """Short kernels, but the host waits for each: a graph of one kernel gains nothing."""
    story, at = one_stream(), 0
    for _ in range(50):
        end = story.kernel(13, at, at + 5, 10, took=3)
        at = story.call("cuStreamSynchronize", at + 3, end + 4 - at - 3, **{"cs.stream": 13})
    assert [row[0] for row in found(story, tmp_path)] == ["CS121"]


# --- copies ---

def test_a_synchronous_copy_of_pageable_memory_is_both(tmp_path):
    """Pinned, it would still be a call that waits, but its 1 ms is the driver's copying."""
    story, at = one_stream(), 0
    for _ in range(6):
        end = story.copy(13, at, at + 5, 1000, "DtoH", call="cuMemcpyDtoH_v2", took=1025, memory="Pageable")
        at = end + 20 + 175
    assert [row[:2] for row in found(story, tmp_path, "CS104", "CS105")] == [("CS104", "stream 13"), ("CS105", "stream 13")]


def test_an_asynchronous_copy_that_waits_is_no_synchronous_one(tmp_path):
    """It waits because the memory is pageable, and no other call can mend that."""
    story, at = one_stream(), 0
    for _ in range(6):
        end = story.copy(13, at, at + 5, 1000, "DtoH", took=1025, memory="Pageable")
        at = end + 20 + 475
    assert [row[:2] for row in found(story, tmp_path, "CS104", "CS105")] == [("CS105", "stream 13")]


def test_copies_of_pageable_memory_that_are_as_fast_as_pinned_ones(tmp_path):
    """Their calls return at once, and the copies are short: the run has nothing to gain."""
    story, end = one_stream(), 0
    for i in range(8):
        end = story.kernel(13, 10 * i, max(end, 10 * i + 5), 1000)
        end = story.copy(13, 10 * i + 4, end, 3, memory="Pageable", took=2)
    assert found(story, tmp_path, "CS105") == []


@pytest.mark.parametrize("engines, expected", [(1, {}), (2, {("CS114", "stream 13"): near(1 * MS)})])
def test_a_device_with_one_copy_engine(tmp_path, engines, expected):
    story = one_stream()
    story.devices = [{"id": GPU, "name": "GPU", "numSms": 2, "asyncEngineCount": engines}]
    story.copy(13, 3, story.copy(13, 0, 10, 1000), 1000, "DtoH")
    assert gains(story, tmp_path) == expected


def test_copies_that_overlap_elsewhere(tmp_path):
    """One stream takes turns, but another copies beside it."""
    story = one_stream()
    story.stream(14)
    story.copy(13, 3, story.copy(13, 0, 10, 1000), 1000, "DtoH")
    story.copy(14, 6, 500, 1000, "DtoH")
    assert found(story, tmp_path, "CS114") == []


def test_copies_of_what_the_next_kernel_needs_are_no_loss_if_the_host_is_late(tmp_path):
    """Kernels do wait for copies on their stream, but the host enqueues each pair when the one before has ended."""
    story, at = one_stream(), 0
    for _ in range(8):
        copied = story.copy(13, at, at + 5, 100)
        at = story.kernel(13, at + 3, copied, 100) + 150
    assert found(story, tmp_path, "CS122") == []


# --- events ---

@pytest.mark.parametrize("times, expected", [(3, []), (4, [("CS108", "stream 14", 3)])])
def test_waits_again_for_one_record(tmp_path, times, expected):
    """The first wait is what the record is for."""
    story = Story()
    story.stream(13), story.stream(14)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    for i in range(times):
        story.kernel(13, 100 * i + 10, 100 * i + 20, 50)
        story.call("cuStreamWaitEvent", 100 * i + 15, event=1, **{"cs.stream": 14})
        story.kernel(14, 100 * i + 18, 100 * i + 70, 20)
    assert found(story, tmp_path, "CS108", "CS109") == expected


def test_waits_again_for_a_record_with_nothing_behind_it(tmp_path):
    """There is nothing that they could have missed. They order nothing, and cost the 2 us that each takes of idle time, but for the first."""
    story = Story()
    story.stream(13), story.stream(14)
    story.kernel(13, 0, 5, 50)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    for i in range(6):
        story.call("cuStreamWaitEvent", 100 * i + 15, event=1, **{"cs.stream": 14})
        story.kernel(14, 100 * i + 18, 100 * i + 70, 20)
    assert gains(story, tmp_path, "CS108", "CS109") == {("CS109", "stream 14"): 5 * 2}


@pytest.mark.parametrize("unknown", ["cuIpcOpenEventHandle", "cuGraphAddEventRecordNode", "cuGraphAddNode_v2"])
def test_an_event_that_others_may_have_recorded(tmp_path, unknown):
    story = one_stream()
    story.call(unknown, 0)
    story.call("cuStreamWaitEvent", 6, event=1, **{"cs.stream": 13})
    story.kernel(13, 9, 15, 400)
    assert found(story, tmp_path, "CS108") == []


def loss(at, took, **args):
    return {"ph": "X", "cat": "cs_loss", "name": "lost", "pid": 4242, "tid": 4250, "ts": at, "dur": took, "args": args}


def test_an_event_that_may_have_been_recorded_in_another_window(tmp_path):
    story = one_stream()
    story.call("cuStreamWaitEvent", 6, event=1, **{"cs.stream": 13})
    story.kernel(13, 9, 15, 400)
    assert [row[0] for row in found(story, tmp_path, "CS108")] == ["CS108"]
    story.rows.append(loss(2, 1, count=3, cause="ring full"))
    story.totals["lost_records"] = 3
    assert found(story, tmp_path, "CS108") == []


def test_a_wait_for_work_that_has_ended_long_before(tmp_path):
    """Each stream waits for the other's work by an event, but the host is late anyway."""
    story, at = Story(), 0
    story.stream(13), story.stream(14)
    for i in range(12):
        end = story.kernel(13, at, at + 5, 100, **SMALL)
        story.call("cuEventRecord", at + 3, event=i + 1, **{"cs.stream": 13})
        story.call("cuStreamWaitEvent", end + 50, event=i + 1, flags="0x0", **{"cs.stream": 14})
        at = story.kernel(14, end + 53, end + 60, 100, **SMALL) + 50
    assert found(story, tmp_path, "CS120") == []


def test_an_event_that_is_not_all_that_holds_the_work(tmp_path):
    """The kernel that waits fills the GPU, and so does the one that it waits for."""
    full, story, end = {"grid": [64, 1, 1], "block": [1024, 1, 1], "registers per thread": 16, "shared memory": 0}, Story(), 10
    story.stream(13), story.stream(14)
    for i in range(12):
        stream, at = 13 + i % 2, 10 * i
        if i:
            story.call("cuStreamWaitEvent", at, event=i, flags="0x0", **{"cs.stream": stream})
        end = story.kernel(stream, at + 3, max(13, end), 1000, **full)
        story.call("cuEventRecord", at + 6, event=i + 1, **{"cs.stream": stream})
    assert found(story, tmp_path, "CS120", "CS119") == []


# --- queries, results, objects ---

@pytest.mark.parametrize("queries, every, expected", [(99, 5, []), (100, 5, 1), (100, 1001, []), (100, 990, 1)])
def test_queries(tmp_path, queries, every, expected):
    """So many queries of one event, one in so many microseconds."""
    story = one_stream()
    story.kernel(13, 0, 5, queries * every)
    for i in range(queries):
        story.call("cuEventQuery", 10 + every * i, 1, event=1, **{"cs.result": "CUDA_ERROR_NOT_READY"})
    assert found(story, tmp_path, "CS113") == ([("CS113", "main 4250", 1)] if expected else [])


def test_queries_of_two_things_by_turns_are_no_loop(tmp_path):
    story = one_stream()
    story.kernel(13, 0, 5, 2000)
    for i in range(300):
        story.call("cuEventQuery", 10 + 5 * i, 1, event=1 + i % 2, **{"cs.result": "CUDA_ERROR_NOT_READY"})
    assert found(story, tmp_path, "CS113") == []


@pytest.mark.parametrize("call, result, times", [("cuEventElapsedTime", "CUDA_ERROR_NOT_READY", 0), ("cuStreamSynchronize", "CUDA_ERROR_NOT_READY", 1),
                                                 ("cuModuleUnload", "CUDA_ERROR_DEINITIALIZED", 0), ("cuEventQuery", "CUDA_ERROR_LAUNCH_FAILED", 1)])
def test_results(tmp_path, call, result, times):
    story = one_stream()
    story.kernel(13, 0, 5, 2000)
    story.call(call, 10, **{"cs.result": result})
    assert found(story, tmp_path, "CS115") == [("CS115", call, 1)] * times


@pytest.mark.parametrize("leaked, goes, expected", [(99, 20, []), (100, 20, [("CS110", "events", 100)]), (160, 10, [])])
def test_objects_that_live_as_long_as_the_program(tmp_path, leaked, goes, expected):
    """A few do by design, and those of a pool, which is made in a few goes."""
    story = one_stream()
    story.kernel(13, 0, 5, 2000)
    for i in range(goes):
        for j in range(leaked // goes):
            story.call("cuEventCreate", 10 + 50 * i + 2 * j, 1, flags="0x2")
        story.call("cuEventRecord", 55 + 50 * i, event=1 + i, **{"cs.stream": 13})
    story.totals["leaked_events"] = leaked
    story.trailer["neverDestroyed"] = [{"object": "event", "library": "app", "call": "cuEventCreate", "count": leaked}]
    assert found(story, tmp_path, "CS110") == expected


def test_a_pool_is_made_at_once(tmp_path):
    story = one_stream()
    for i in range(300):
        story.call("cuStreamCreate", 3 * i)
    story.kernel(13, 1000, 1005, 2000)
    assert found(story, tmp_path, "CS110") == []


# --- the legacy default stream, host functions ---

def test_work_on_the_legacy_stream_that_waits_for_a_blocking_one(tmp_path):
    """CS102 blames the blocking stream, although the work that waited is not on it."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    story.kernel(LEGACY, 3, story.kernel(13, 0, 10, 1 * MS), 2 * MS)
    assert gains(story, tmp_path, "CS101", "CS102") == {("CS101", "stream 7"): near(1 * MS), ("CS102", "stream 13"): near(1 * MS)}


def test_the_legacy_stream_that_is_in_order_anyway(tmp_path):
    """The second kernel would run behind the first one without its rule too: an event says so."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    end = story.kernel(13, 0, 10, 1 * MS)
    story.call("cuEventRecord", 3, event=1, **{"cs.stream": 13})
    story.call("cuStreamWaitEvent", 6, event=1, flags="0x0", **{"cs.stream": LEGACY})
    story.kernel(LEGACY, 9, end, 2 * MS)
    assert found(story, tmp_path, "CS101", "CS102") == []


def test_a_host_function_on_the_legacy_stream(tmp_path):
    """It holds the work of a blocking stream for 500 us, in which the GPU is idle, and so does the kernel before it, for 1 ms that two kernels could share."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    end = story.kernel(LEGACY, 0, 5, 1000)
    end = story.callback(LEGACY, 3, end, 500)
    story.kernel(13, 6, end, 1000)
    assert gains(story, tmp_path) == {("CS101", "stream 7"): near(1 * MS), ("CS102", "stream 13"): near(1 * MS), ("CS116", "stream 7"): near(500)}


def test_a_host_function_alone_on_the_legacy_stream(tmp_path):
    """No work ever ran there."""
    story = Story()
    story.stream(LEGACY), story.stream(13, blocking=True)
    story.kernel(13, 6, story.callback(LEGACY, 3, story.kernel(13, 0, 5, 1000), 500), 1000)
    assert gains(story, tmp_path) == {("CS101", "stream 7"): near(500), ("CS102", "stream 13"): near(500), ("CS116", "stream 7"): near(500)}


def test_a_host_function_with_nothing_behind_it(tmp_path):
    story, end = one_stream(), 5
    for i in range(10):
        end = story.kernel(13, 5 * i, end, 500)
    story.stream(14)
    story.callback(14, 3, 8, 4000)
    assert found(story, tmp_path, "CS116") == []


def test_each_gpu_has_findings_of_its_own(tmp_path):
    """One thread waits for host functions on the streams of two GPUs by turns."""
    story, at = Story(), 0
    story.stream(13), story.stream(27, device=1)
    for _ in range(6):
        for stream in (13, 27):
            end = story.kernel(stream, at, at + 5, 1000)
            end = story.callback(stream, at + 3, end, 400)
            at = story.call("cuStreamSynchronize", at + 6, end + 5 - at - 6, **story.on(stream))
    assert gains(story, tmp_path, "CS116") == {("CS116", f"stream {stream} of GPU {gpu}"): near(6 * 400) for stream, gpu in ((13, 0), (27, 1))}


# --- own code, threads, small kernels ---

def test_time_in_which_calls_are_missing_is_no_own_code(tmp_path):
    """Between two windows nothing was recorded; nor where a ring had no room."""
    def paused(*rows):
        story, at = one_stream(), 0
        for _ in range(12):
            at = story.kernel(13, at, at + 5, 100) + 900
        story.rows += rows
        story.totals["lost_records"] = 3 * len(rows)
        return story
    assert found(paused(), tmp_path, "CS117") == [("CS117", "main 4250", 11)]
    assert found(paused(loss(1200, 100, count=3, cause="ring full")), tmp_path, "CS117") == [("CS117", "main 4250", 10)], "the pause around it alone"


@pytest.mark.parametrize("pauses, us, expected", [(4, 5 * MS, 0), (5, 5 * MS, 1), (1, 98 * MS, 0), (1, 101 * MS, 1)])
def test_few_pauses_may_be_the_systems(tmp_path, pauses, us, expected):
    story, at = one_stream(), 0
    for _ in range(pauses + 1):
        at = story.kernel(13, at, at + 5, 1000) + us
    assert len(found(story, tmp_path, "CS117")) == expected


def test_pauses_between_bursts_of_one_kernel(tmp_path):
    """Steps of forty launches of one kernel, and 30 ms of own code between two steps: the run's steady part has many steps."""
    story, at = one_stream(), 0
    for _ in range(20):
        for _ in range(40):
            story.kernel(13, at, at + 5, 4, grid=[64, 1, 1], block=[1024, 1, 1])
            at += 5
        at += 30 * MS
    assert gains(story, tmp_path, "CS117") == {("CS117", "main 4250"): pytest.approx(19 * 30 * MS, rel=0.15)}


def test_threads_that_compute_by_turns_are_one_finding(tmp_path):
    """Without the own code of one of them, it would wait for the other one's."""
    story, at = one_stream(), 0
    for i in range(24):
        at = story.call("cuCtxSetCurrent", at, thread=MAIN + 10 * (i % 2)) + 3
        at = story.kernel(13, at, at + 5, 20, thread=MAIN + 10 * (i % 2)) + 1000
    rows = rows_of(story, tmp_path, "CS117")
    assert len(rows) == 1 and rows[0]["gain_high_ns"] >= 0.8 * 23 * 1_000_000, rows


def test_a_call_within_another_is_not_followed_by_own_code(tmp_path):
    """Kineto has the runtime's calls and the driver's within them."""
    rows, path = [meta("process_name", HOST, HOST, "python"), meta("thread_name", HOST, MAIN, "main")], tmp_path / "other.json"
    for i in range(12):
        at = 1100 * i
        rows += [slice_("cuda_runtime", "cudaFuncGetAttributes", HOST, MAIN, at, 1000, correlation=10 * i + 1),
                 slice_("cuda_driver", "cuModuleLoadData", HOST, MAIN, at + 10, 20, correlation=10 * i + 2),
                 slice_("cuda_runtime", "cudaLaunchKernel", HOST, MAIN, at + 1010, 4, correlation=10 * i + 3),
                 slice_("kernel", "k", GPU, 7, at + 1020, 50, device=GPU, stream=7, correlation=10 * i + 3)]
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1, "traceEvents": rows}), encoding="utf-8")
    tables = json.loads(custream("report", "--json", "--what-if=own code=0", path).stdout)["tables"]
    assert [row for row in tables["findings"] if row["id"] == "CS117"] == []
    (asked,) = tables["what_if"]
    assert asked["replayed_ns"] == pytest.approx(asked["recorded_ns"], rel=0.02) and asked["gain_high_ns"] < 0.02 * asked["recorded_ns"]


def test_threads_that_share_a_stream_and_take_turns_anyway(tmp_path):
    """Each begins when the other has its result: one is woken by the other, and per-thread streams gain nothing."""
    story, at = one_stream(), 0
    for i in range(12):
        thread = MAIN + 10 * (i % 2)
        end = story.kernel(13, at, at + 5, 1000, thread=thread, **SMALL)
        at = story.call("cuStreamSynchronize", at + 3, end + 5 - at - 3, thread=thread, **{"cs.stream": 13}) + 20
    assert found(story, tmp_path, "CS118") == []


def test_small_kernels_gain_as_much_as_fits_on_the_gpu(tmp_path):
    """Four fit at once, so twelve of 500 us take three times 500 us."""
    story, end = one_stream(), 50
    for i in range(12):
        end = story.kernel(13, 3 * i, end, 500, **QUARTER)
    assert gains(story, tmp_path, "CS119") == {("CS119", "stream 13"): near(9 * 500)}


def test_small_kernels_that_the_host_launches_late(tmp_path):
    """They are small and on one stream, but each is enqueued when the one before has ended."""
    story = one_stream()
    for i in range(12):
        story.kernel(13, 150 * i, 150 * i + 5, 100, **SMALL)
    assert found(story, tmp_path, "CS119") == []


def test_no_gain_is_known_of_a_run_that_cannot_be_played_again(tmp_path):
    """Most work has no call: a rule that cannot judge does not say that it found little."""
    rows, path = [meta("process_name", HOST, HOST, "python"), meta("thread_name", HOST, MAIN, "main")], tmp_path / "other.json"
    for i in range(12):
        rows += [slice_("cuda_runtime", "cudaLaunchKernel", HOST, MAIN, 1500 * i, 4, correlation=i + 1),
                 slice_("kernel", "k", GPU, 7, 1500 * i + 8, 1000, device=GPU, stream=7, correlation=i + 1 if i % 2 else 100 + i)]
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1, "traceEvents": rows}), encoding="utf-8")
    brief = custream("report", "--brief", path).stdout
    assert "Calls of GPU work are missing, so no gain is known." in brief and "Below 1 %" not in brief and "No rule found" not in brief


def test_the_runtimes_allocations_in_a_trace_of_another_tool(tmp_path):
    """PyTorch's profiler has no driver calls; what it has is cudaMalloc between two kernels."""
    rows, path = [meta("process_name", HOST, HOST, "python"), meta("thread_name", HOST, MAIN, "main")], tmp_path / "other.json"
    for i in range(8):
        at = 1310 * i
        rows += [slice_("cuda_runtime", "cudaLaunchKernel", HOST, MAIN, at, 4, correlation=2 * i + 1),
                 slice_("kernel", "k", GPU, 7, at + 8, 1000, device=GPU, stream=7, correlation=2 * i + 1),
                 slice_("cuda_runtime", "cudaMalloc", HOST, MAIN, at + 1009, 300, correlation=2 * i + 2)]
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 1, "traceEvents": rows}), encoding="utf-8")
    tables = json.loads(custream("report", "--json", path).stdout)["tables"]
    assert {row["id"]: row["gain_high_ns"] / 1000 for row in tables["findings"] if row["id"] == "CS106"} == {"CS106": near(7 * 300)}, "the last one lies behind all work"
